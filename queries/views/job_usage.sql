-- What each job attempt asked for, held and used, from its start to its end or the latest instant.
-- columns: cluster text, job_id text, attempt int32, user text, team text, project text,
--          workload text, partition text, state text, submitted_at timestamp,
--          started_at timestamp, ended_at timestamp, queue_time_s float64 [s],
--          gpus_requested float64, gpus_allocated float64, gpu_hours_held float64 [GPU·h],
--          gpu_hours_observed float64 [GPU·h], gpu_hours_busy float64 [GPU·h],
--          gpu_hours_effective float64 [GPU·h], util_ratio float64 [0-1],
--          mem_used_bytes_max int64 [B], energy_kwh float64 [kWh], gpus_observed int64,
--          shared boolean, ledgered boolean, coverage_ratio float64 [0-1]
-- one row per attempt that held a GPU or was read on one; ledgered is false where only samples
-- name the job. Measurements are NULL where nothing was read. energy_kwh is that of the boards,
-- for the time read. shared tells that another job held a GPU with it at some time.
WITH held AS (
    SELECT coalesce(t.cluster, '') AS cluster_key, t.job_id,
        coalesce(t.attempt, 0) AS attempt_key,
        sum(t.gpus * (CAST(t.ended_at AS BIGINT) - CAST(t.started_at AS BIGINT))) / 3600000.0
            AS gpu_hours_held,
        bool_or(t.shared) AS shared
    FROM held_time t
    WHERE t.job_id IS NOT NULL
    GROUP BY coalesce(t.cluster, ''), t.job_id, coalesce(t.attempt, 0)
),
read AS (
    SELECT coalesce(r.job_cluster, r.cluster, '') AS cluster_key, r.job_id,
        coalesce(r.attempt, 0) AS attempt_key, r.ledgered,
        concat(r.gpu_key, '/', coalesce(CAST(r.mig AS VARCHAR), '')) AS device,
        r.gpus * r.period_s AS gpu_s, r.util_ratio, r.effective_ratio,
        CASE WHEN r.ended_at = r.sampled_at THEN r.mem_used_bytes END AS mem_used_bytes,
        r.power_w,
        r.shared
    FROM job_readings r
    WHERE r.job_id IS NOT NULL
),
observed AS (
    SELECT r.cluster_key, r.job_id, r.attempt_key, bool_or(r.ledgered) AS ledgered,
        sum(r.gpu_s) FILTER (WHERE r.util_ratio IS NOT NULL) / 3600 AS gpu_hours_observed,
        sum(r.gpu_s * r.util_ratio) / 3600 AS gpu_hours_busy,
        sum(r.gpu_s * r.effective_ratio) / 3600 AS gpu_hours_effective,
        max(r.mem_used_bytes) AS mem_used_bytes_max,
        sum(r.gpu_s * r.power_w) / 3600000 AS energy_kwh,
        count(DISTINCT r.device) AS gpus_observed, bool_or(r.shared) AS shared
    FROM read r
    GROUP BY r.cluster_key, r.job_id, r.attempt_key
),
seen AS (
    SELECT coalesce(h.cluster_key, o.cluster_key) AS cluster_key,
        coalesce(h.job_id, o.job_id) AS job_id,
        coalesce(h.attempt_key, o.attempt_key) AS attempt_key, h.gpu_hours_held,
        o.gpu_hours_observed, o.gpu_hours_busy, o.gpu_hours_effective, o.mem_used_bytes_max,
        o.energy_kwh, o.gpus_observed, coalesce(h.shared OR o.shared, h.shared, o.shared) AS shared
    FROM held h
    FULL JOIN observed o
        ON o.job_id = h.job_id AND o.attempt_key = h.attempt_key AND o.cluster_key = h.cluster_key
)
SELECT nullif(s.cluster_key, '') AS cluster, s.job_id,
    coalesce(j.attempt, s.attempt_key) AS attempt,
    j."user", j.team, j.project, j.workload, coalesce(j."partition", 'default') AS "partition",
    j.state, j.submitted_at, j.started_at, j.ended_at,
    (CAST(j.started_at AS BIGINT) - CAST(j.submitted_at AS BIGINT)) / 1000.0 AS queue_time_s,
    j.gpus_requested, j.gpus_allocated, s.gpu_hours_held, s.gpu_hours_observed, s.gpu_hours_busy,
    s.gpu_hours_effective, s.gpu_hours_busy / nullif(s.gpu_hours_observed, 0) AS util_ratio,
    s.mem_used_bytes_max, s.energy_kwh, s.gpus_observed, s.shared,
    j.job_id IS NOT NULL AS ledgered,
    CASE WHEN s.gpu_hours_held > 0 THEN
        least(coalesce(s.gpu_hours_observed, 0) / s.gpu_hours_held, 1) END AS coverage_ratio
FROM seen s
LEFT JOIN attempts j
    ON j.job_id = s.job_id AND coalesce(j.attempt, 0) = s.attempt_key
    AND coalesce(j.cluster, '') = s.cluster_key
