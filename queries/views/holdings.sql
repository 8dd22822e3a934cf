-- GPUs held: one row per job attempt and GPU, or per attempt with a count where no GPU is named.
-- columns: cluster text, job_id text, attempt int32, user text, team text, project text,
--          workload text, partition text, node text, gpu_uuid text, gpu_model text, gpus float64,
--          used_ratio float64 [0-1], shared boolean, started_at timestamp, ended_at timestamp,
--          held_since_at timestamp, nodes text
-- All inside [span_started_at(), as_of()]; a job still running ends at as_of(). used_ratio is the
-- share of the time not suspended (see grants). Attempts on one GPU never hold more than the GPU:
-- where they were granted more, each counts its part (see grants), with a row for each stretch in
-- which that is the same; shared tells that another held the GPU within the row. held_since_at is
-- when the attempt got the GPU. nodes are those that the jobs table lists, between commas, where no
-- allocation tells more.
WITH begun AS (
    SELECT j.cluster, j.job_id, j.attempt, j."user", j.team, j.project, j.workload,
        coalesce(j."partition", 'default') AS pool, j.gpus_allocated, j.gpu_model_requested,
        j.used_ratio, j.nodes, j.started_at AS begun_at,
        greatest(j.started_at, span_started_at()) AS from_at,
        coalesce(j.ended_at, as_of()) AS until_at, coalesce(j.attempt, 0) AS attempt_key,
        coalesce(j.cluster, '') AS cluster_key
    FROM attempts j
    WHERE j.started_at IS NOT NULL
),
granted AS (
    SELECT g.*, coalesce(g.attempt, 0) AS attempt_key, coalesce(g.cluster, '') AS cluster_key
    FROM grants g
),
named AS (
    SELECT a.job_id, coalesce(a.attempt, 0) AS attempt_key, coalesce(a.cluster, '') AS cluster_key
    FROM allocations a
    WHERE a.started_at <= as_of()
)
SELECT g.cluster, g.job_id, g.attempt, j."user", j.team, j.project, j.workload,
    coalesce(j.pool, 'default') AS "partition", g.node, g.gpu_uuid, d.gpu_model,
    g.gpus, coalesce(g.used_ratio, j.used_ratio, 1) AS used_ratio, g.shared, g.started_at,
    g.ended_at,
    g.held_since_at, CAST(NULL AS VARCHAR) AS nodes
FROM granted g
LEFT JOIN begun j
    ON j.cluster_key = g.cluster_key AND j.job_id = g.job_id AND j.attempt_key = g.attempt_key
LEFT JOIN gpus d ON d.gpu_uuid = g.gpu_uuid
UNION ALL
SELECT j.cluster, j.job_id, j.attempt, j."user", j.team, j.project, j.workload,
    j.pool AS "partition", CAST(NULL AS VARCHAR) AS node, CAST(NULL AS VARCHAR) AS gpu_uuid,
    j.gpu_model_requested AS gpu_model, j.gpus_allocated AS gpus,
    coalesce(j.used_ratio, 1) AS used_ratio, false AS shared, j.from_at AS started_at,
    j.until_at AS ended_at, j.begun_at AS held_since_at, j.nodes
FROM begun j
LEFT ANTI JOIN named a
    ON a.cluster_key = j.cluster_key AND a.job_id = j.job_id AND a.attempt_key = j.attempt_key
WHERE j.gpus_allocated > 0 AND j.until_at > j.from_at
