# What prolog.sh and epilog.sh share: one CSV of `allocations` a job and node.

folder="${LOADLINE_ALLOCATIONS:-/var/spool/loadline/allocations}"

now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

# The UUID of the GPU with index $1, and nothing where the driver does not tell.
uuid_of() {
    command -v nvidia-smi >/dev/null 2>&1 || return 0
    timeout 10 nvidia-smi --id="$1" --query-gpu=uuid --format=csv,noheader 2>/dev/null |
        grep -m 1 '^GPU-'
}

# Indices of "0,2-4", one a line.
each_index() {
    echo "$1" | tr ',' '\n' | while IFS=- read -r first last; do
        case "$first$last" in '' | *[!0-9]*) continue ;; esac
        seq "$first" "${last:-$first}"
    done
}

# Writes the job's file with its end ($1; none while it runs). A job without a GPU gets no file.
write_allocation() {
    gpus="${SLURM_JOB_GPUS:-}"
    job="${SLURM_JOB_ID:-}"
    attempt="${SLURM_JOB_RESTART_COUNT:-${SLURM_RESTART_COUNT:-0}}"
    file="$folder/$job-$attempt.csv"
    [ -n "$job" ] || return 0
    [ -n "$gpus" ] || [ -f "$file" ] || return 0
    mkdir -p "$folder" || return 0
    draft=$(mktemp "$folder/.allocation.XXXXXX") || return 0
    if [ -f "$file" ]; then
        # The start and the GPUs as the prolog told them, with the end in the last column.
        sed "2,\$s/,[^,]*\$/,$1/" "$file" >"$draft"
    else
        start=$(now)
        node="${SLURMD_NODENAME:-$(uname -n)}"
        echo 'job_id,attempt,cluster,node,gpu,gpu_uuid,started_at,ended_at' >"$draft"
        for gpu in $(each_index "$gpus"); do
            echo "$job,$attempt,${SLURM_CLUSTER_NAME:-},$node,$gpu,$(uuid_of "$gpu"),$start,$1"
        done >>"$draft"
    fi
    chmod 644 "$draft" && mv -f "$draft" "$file" || rm -f "$draft"
}
