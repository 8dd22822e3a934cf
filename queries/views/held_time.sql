-- GPUs held over stretches of time, from holdings and, where a cluster has none, from counts.
-- columns: cluster text, job_id text, attempt int32, user text, team text, project text,
--          workload text, partition text, node text, gpu_uuid text, gpu_model text, gpus float64,
--          shared boolean, started_at timestamp, ended_at timestamp
-- one row per holding, and per pool, team and local hour of counts (job_id NULL). gpus is less
-- suspension, so gpus x elapsed time is the time held. A count stands for its period in the hour
-- that its instant is in, as in all that is kept by the hour; a period that nobody counted is not
-- filled. shared is as in holdings.
WITH counted AS (
    SELECT c.cluster, c."partition", c.team,
        CAST(local_hour_ended(c.hour_started_at) AS BIGINT) AS hour_ended_ms,
        min(CAST(c.counted_at AS BIGINT)) AS from_ms,
        max(CAST(c.counted_at AS BIGINT) + CAST(round(c.period_s * 1000) AS BIGINT)) AS last_ms,
        sum(c.gpus_held * c.period_s) AS held_s
    FROM counts c
    LEFT ANTI JOIN (SELECT DISTINCT coalesce(h.cluster, '') AS cluster_key FROM holdings h) k
        ON k.cluster_key = coalesce(c.cluster, '')
    WHERE c.gpus_held IS NOT NULL AND c.period_s > 0
    GROUP BY c.cluster, c."partition", c.team, c.hour_started_at
),
stretch AS (
    SELECT c.*, least(c.last_ms, c.hour_ended_ms) AS until_ms
    FROM counted c
)
SELECT h.cluster, h.job_id, h.attempt, h."user", h.team, h.project, h.workload, h."partition",
    h.node, h.gpu_uuid, h.gpu_model, h.gpus * h.used_ratio AS gpus, h.shared, h.started_at,
    h.ended_at
FROM holdings h
UNION ALL
SELECT s.cluster, CAST(NULL AS VARCHAR) AS job_id, CAST(NULL AS INT) AS attempt,
    CAST(NULL AS VARCHAR) AS "user", s.team, CAST(NULL AS VARCHAR) AS project,
    CAST(NULL AS VARCHAR) AS workload, s."partition", CAST(NULL AS VARCHAR) AS node,
    CAST(NULL AS VARCHAR) AS gpu_uuid, CAST(NULL AS VARCHAR) AS gpu_model,
    s.held_s * 1000 / (s.until_ms - s.from_ms) AS gpus, false AS shared,
    arrow_cast(s.from_ms, 'Timestamp(Millisecond, Some("UTC"))') AS started_at,
    arrow_cast(s.until_ms, 'Timestamp(Millisecond, Some("UTC"))') AS ended_at
FROM stretch s
