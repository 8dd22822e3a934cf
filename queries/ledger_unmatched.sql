-- Jobs in the ledger that no reading saw, and readings that no job in the ledger explains.
-- parameters: $from timestamp, $until timestamp
-- columns:    kind text, cluster text, job_id text, team text, user text, node text,
--             gpu_uuid text, first_at timestamp, last_at timestamp, gpu_hours float64 [GPU·h],
--             gpu_hours_busy float64 [GPU·h]
-- one row per job held in [$from, $until) without any reading (`job without samples`), per job
-- that samples name and the ledger does not (`samples of an unknown job`) and per GPU read while
-- nobody held it (`samples without job`), clipped exactly; ordered by kind, then gpu_hours, most
-- first, then cluster, job, node, GPU. An idle GPU that nobody holds is listed too: its busy
-- hours tell. A job that ended before readings_since(), whose readings were dropped, is not.
WITH part AS (
    SELECT coalesce(t.cluster, '') AS cluster_key, t.job_id, t.team, t."user", t.node,
        CAST(NULL AS VARCHAR) AS gpu_key, 'held' AS found,
        greatest(t.started_at, $from) AS from_at, least(t.ended_at, $until) AS until_at,
        t.gpus, CAST(NULL AS DOUBLE) AS util_ratio
    FROM held_time t
    WHERE t.job_id IS NOT NULL AND t.started_at < $until AND t.ended_at > $from
    UNION ALL
    SELECT coalesce(r.job_cluster, r.cluster, '') AS cluster_key, r.job_id, r.team, r."user",
        r.node,
        r.gpu_key,
        CASE WHEN r.job_id IS NULL THEN 'nobody' WHEN r.ledgered THEN 'read' ELSE 'unknown' END
            AS found,
        greatest(r.started_at, $from) AS from_at, least(r.ended_at, $until) AS until_at,
        r.gpus, r.util_ratio
    FROM job_readings r
    WHERE r.gpus > 0 AND r.started_at < $until AND r.ended_at > $from
),
timed AS (
    SELECT p.*,
        p.gpus * (CAST(p.until_at AS BIGINT) - CAST(p.from_at AS BIGINT)) / 3600000.0
            AS gpu_hours,
        CASE WHEN p.job_id IS NULL THEN p.node END AS by_node,
        CASE WHEN p.job_id IS NULL THEN p.gpu_key END AS by_gpu
    FROM part p
),
summed AS (
    SELECT t.cluster_key, t.job_id, max(t.team) AS team, max(t."user") AS "user",
        min(t.node) AS node, min(t.gpu_key) AS gpu_uuid, min(t.from_at) AS first_at,
        max(t.until_at) AS last_at,
        sum(t.gpu_hours) FILTER (WHERE t.found = 'held') AS gpu_hours_held,
        sum(t.gpu_hours) FILTER (WHERE t.found <> 'held') AS gpu_hours_read,
        sum(t.gpu_hours * t.util_ratio) AS gpu_hours_busy,
        count(*) FILTER (WHERE t.found = 'held') AS held,
        count(*) FILTER (WHERE t.found = 'read') AS read,
        count(*) FILTER (WHERE t.found = 'unknown') AS unknown
    FROM timed t
    GROUP BY t.cluster_key, t.job_id, t.by_node, t.by_gpu
),
told AS (
    SELECT s.*,
        CASE WHEN s.job_id IS NULL THEN 'samples without job'
            WHEN s.unknown > 0 THEN 'samples of an unknown job'
            WHEN s.held > 0 AND s.read = 0 AND coalesce(s.last_at > readings_since(), true)
                THEN 'job without samples' END AS kind
    FROM summed s
)
SELECT t.kind, nullif(t.cluster_key, '') AS cluster, t.job_id, t.team, t."user", t.node,
    t.gpu_uuid,
    t.first_at, t.last_at, coalesce(t.gpu_hours_read, t.gpu_hours_held) AS gpu_hours,
    t.gpu_hours_busy
FROM told t
WHERE t.kind IS NOT NULL
ORDER BY t.kind, gpu_hours DESC, t.cluster_key, t.job_id, t.node, t.gpu_uuid
