#!/bin/sh
# Slurm epilog (slurm.conf: Epilog=/etc/slurm/loadline/epilog.sh): the end of what prolog.sh began.
#
# The file of the job is replaced by one that tells the end too; `loadline` reads it again and knows
# it for the same allocation by its start. Files older than ninety days are removed.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
. "$(dirname "$0")/allocation.sh"
write_allocation "$(now)"
find "$folder" -maxdepth 1 -name '*.csv' -mtime +90 -delete 2>/dev/null
exit 0
