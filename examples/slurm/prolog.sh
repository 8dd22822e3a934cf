#!/bin/sh
# Slurm prolog (slurm.conf: Prolog=/etc/slurm/loadline/prolog.sh, PrologFlags=Alloc).
#
# Tells which GPUs of this node a job was given: the ledger knows only how many. It writes one small
# file a job into the folder that `loadline collect` watches:
#
#     [[collect.folder]]
#     path = "/var/spool/loadline/allocations"
#     format = "allocations"
#
# It never delays or fails a job: what it cannot do it leaves, and it always ends with 0.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
. "$(dirname "$0")/allocation.sh"
write_allocation ""
exit 0
