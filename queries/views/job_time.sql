-- Time in which jobs held GPUs, and time that readings of theirs tell of.
-- columns: cluster text, job_id text, attempt int32, user text, team text, project text,
--          workload text, partition text, started_at timestamp, ended_at timestamp,
--          gpus_held float64 [GPU], gpus_read float64 [GPU], util_ratio float64 [0-1],
--          effective_ratio float64 [0-1], mem_used_bytes int64 [B], mem_total_bytes int64 [B],
--          power_w float64 [W]
-- one row per stretch of held_time (gpus_held; what is read is NULL), and per piece of a reading
-- and job that held the GPU (gpus_read, the part of the board that was the job's). Memory is NULL
-- where only one of both sizes was read; power is the board's.
SELECT t.cluster, t.job_id, t.attempt, t."user", t.team, t.project, t.workload, t."partition",
    t.started_at, t.ended_at, t.gpus AS gpus_held, CAST(NULL AS DOUBLE) AS gpus_read,
    CAST(NULL AS DOUBLE) AS util_ratio, CAST(NULL AS DOUBLE) AS effective_ratio,
    CAST(NULL AS BIGINT) AS mem_used_bytes, CAST(NULL AS BIGINT) AS mem_total_bytes,
    CAST(NULL AS DOUBLE) AS power_w
FROM held_time t
UNION ALL
SELECT coalesce(r.job_cluster, r.cluster) AS cluster, r.job_id, r.attempt, r."user", r.team,
    r.project, r.workload, r."partition", r.started_at, r.ended_at,
    CAST(NULL AS DOUBLE) AS gpus_held, r.gpus AS gpus_read, r.util_ratio, r.effective_ratio,
    CASE WHEN r.mem_total_bytes IS NOT NULL THEN r.mem_used_bytes END AS mem_used_bytes,
    CASE WHEN r.mem_used_bytes IS NOT NULL THEN r.mem_total_bytes END AS mem_total_bytes,
    r.power_w
FROM job_readings r
WHERE r.job_id IS NOT NULL
