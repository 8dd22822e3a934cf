-- GPUs asked for, granted and used, by team or job: usage is not allocation.
-- parameters: $from timestamp, $until timestamp,
--             $by text = 'team' of team|user|project|workload|job
-- columns:    held_by text, jobs int64, gpu_hours_requested float64 [GPU·h],
--             gpu_hours_held float64 [GPU·h], gpu_hours_observed float64 [GPU·h],
--             gpu_hours_busy float64 [GPU·h], used_ratio float64 [0-1],
--             gpus_observed int64, gpus_active int64, coverage_ratio float64 [0-1]
-- one row per team (or user, project, workload, job) with GPUs held in [$from, $until), clipped
-- exactly; ordered by gpu_hours_held, highest first, then name. Requested counts the GPUs asked
-- for over the time that the job ran, whatever it shared with others, those held where the request
-- is not known. used_ratio is busy / observed. gpus_observed sums the GPUs read over jobs,
-- gpus_active those that reached 0.05 on average: a job of eight GPUs that works on one has 8 and
-- 1. NULL where nothing was read.
WITH held AS (
    SELECT coalesce(t.cluster, '') AS cluster_key, t.job_id,
        coalesce(t.attempt, 0) AS attempt_key,
        max(t.team) AS team, max(t."user") AS "user", max(t.project) AS project,
        max(t.workload) AS workload,
        sum(t.gpus * (CAST(least(t.ended_at, $until) AS BIGINT)
            - CAST(greatest(t.started_at, $from) AS BIGINT)) / 1000.0) AS held_s
    FROM held_time t
    WHERE t.started_at < $until AND t.ended_at > $from AND t.job_id IS NOT NULL
    GROUP BY coalesce(t.cluster, ''), t.job_id, coalesce(t.attempt, 0)
),
asked AS (
    SELECT coalesce(j.cluster, '') AS cluster_key, j.job_id,
        coalesce(j.attempt, 0) AS attempt_key,
        max(j.gpus_requested * j.used_ratio
            * (CAST(least(coalesce(j.ended_at, as_of()), $until) AS BIGINT)
                - CAST(greatest(j.started_at, span_started_at(), $from) AS BIGINT)) / 1000.0)
            AS asked_s
    FROM attempts j
    WHERE j.started_at < $until AND coalesce(j.ended_at, as_of()) > $from
    GROUP BY coalesce(j.cluster, ''), j.job_id, coalesce(j.attempt, 0)
),
by_gpu AS (
    SELECT coalesce(r.job_cluster, r.cluster, '') AS cluster_key, r.job_id,
        coalesce(r.attempt, 0) AS attempt_key, r.gpu_key, r.mig,
        sum(r.gpus * (CAST(least(r.ended_at, $until) AS BIGINT)
            - CAST(greatest(r.started_at, $from) AS BIGINT)) / 1000.0) AS observed_s,
        sum(r.util_ratio * r.gpus * (CAST(least(r.ended_at, $until) AS BIGINT)
            - CAST(greatest(r.started_at, $from) AS BIGINT)) / 1000.0) AS busy_s
    FROM job_readings r
    WHERE r.job_id IS NOT NULL AND r.util_ratio IS NOT NULL
        AND r.started_at < $until AND r.ended_at > $from
    GROUP BY coalesce(r.job_cluster, r.cluster, ''), r.job_id, coalesce(r.attempt, 0), r.gpu_key,
        r.mig
),
by_job AS (
    SELECT g.cluster_key, g.job_id, g.attempt_key, sum(g.observed_s) AS observed_s,
        sum(g.busy_s) AS busy_s,
        count(*) AS gpus_observed,
        count(*) FILTER (WHERE g.busy_s >= 0.05 * g.observed_s) AS gpus_active
    FROM by_gpu g
    GROUP BY g.cluster_key, g.job_id, g.attempt_key
),
joined AS (
    SELECT held_by($by, h.team, h."user", h.project, h.workload, NULL, h.job_id) AS held_by,
        h.held_s, coalesce(a.asked_s, h.held_s) AS asked_s,
        b.observed_s, b.busy_s, b.gpus_observed, b.gpus_active
    FROM held h
    LEFT JOIN asked a
        ON a.job_id = h.job_id AND a.attempt_key = h.attempt_key AND a.cluster_key = h.cluster_key
    LEFT JOIN by_job b
        ON b.job_id = h.job_id AND b.attempt_key = h.attempt_key AND b.cluster_key = h.cluster_key
)
SELECT coalesce(j.held_by, '(none)') AS held_by, count(*) AS jobs,
    sum(j.asked_s) / 3600 AS gpu_hours_requested, sum(j.held_s) / 3600 AS gpu_hours_held,
    sum(j.observed_s) / 3600 AS gpu_hours_observed, sum(j.busy_s) / 3600 AS gpu_hours_busy,
    sum(j.busy_s) / nullif(sum(j.observed_s), 0) AS used_ratio,
    sum(j.gpus_observed) AS gpus_observed, sum(j.gpus_active) AS gpus_active,
    CASE WHEN sum(j.held_s) > 0 THEN
        least(coalesce(sum(j.observed_s), 0) / sum(j.held_s), 1) END AS coverage_ratio
FROM joined j
GROUP BY j.held_by
ORDER BY gpu_hours_held DESC, held_by
