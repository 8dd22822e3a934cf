-- GPUs held: one row per job attempt and GPU, or per attempt with a count where no GPU is named.
-- columns: cluster text, job_id text, attempt int32, user text, team text, project text,
--          workload text, partition text, node text, gpu_uuid text, gpu_model text, gpus float64,
--          used_ratio float64 [0-1], started_at timestamp, ended_at timestamp
-- A job still running ends at as_of(); used_ratio is the share of the time not suspended.
WITH attempts AS (
    SELECT j.*, coalesce(j.attempt, 0) AS attempt_key, coalesce(j.cluster, '') AS cluster_key,
        greatest(1 - coalesce(j.suspended_s, 0) * 1000 / nullif(
            CAST(coalesce(j.ended_at, as_of()) AS BIGINT) - CAST(j.started_at AS BIGINT), 0), 0) AS share
    FROM jobs j
    WHERE j.started_at IS NOT NULL
),
granted AS (
    SELECT a.*, coalesce(a.attempt, 0) AS attempt_key, coalesce(a.cluster, '') AS cluster_key
    FROM allocations a
    WHERE a.started_at IS NOT NULL
)
SELECT g.cluster, g.job_id, g.attempt, j."user", j.team, j.project, j.workload,
    coalesce(j."partition", 'default') AS "partition", g.node, g.gpu_uuid, d.gpu_model,
    coalesce(g.gpu_share_ratio, 1) AS gpus, coalesce(j.share, 1) AS used_ratio, g.started_at,
    coalesce(g.ended_at, as_of()) AS ended_at
FROM granted g
LEFT JOIN attempts j ON j.cluster_key = g.cluster_key AND j.job_id = g.job_id AND j.attempt_key = g.attempt_key
LEFT JOIN gpus d ON d.gpu_uuid = g.gpu_uuid
WHERE coalesce(g.ended_at, as_of()) > g.started_at
UNION ALL
SELECT j.cluster, j.job_id, j.attempt, j."user", j.team, j.project, j.workload,
    coalesce(j."partition", 'default') AS "partition", CAST(NULL AS VARCHAR) AS node,
    CAST(NULL AS VARCHAR) AS gpu_uuid, j.gpu_model_requested AS gpu_model, j.gpus_allocated AS gpus,
    coalesce(j.share, 1) AS used_ratio, j.started_at, coalesce(j.ended_at, as_of()) AS ended_at
FROM attempts j
LEFT ANTI JOIN granted g ON g.cluster_key = j.cluster_key AND g.job_id = j.job_id AND g.attempt_key = j.attempt_key
WHERE j.gpus_allocated > 0 AND coalesce(j.ended_at, as_of()) > j.started_at
