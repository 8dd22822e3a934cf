-- GPU-hours held, busy and effective over the asked time by team, user, project, workload or pool.
-- parameters: $from timestamp, $until timestamp,
--             $by text = 'team' of team|user|project|workload|pool|fleet
-- columns:    held_by text, gpu_hours_held float64 [GPU·h], held_ratio float64 [0-1],
--             gpu_hours_working float64 [GPU·h], gpu_hours_other float64 [GPU·h],
--             gpu_hours_observed float64 [GPU·h], gpu_hours_busy float64 [GPU·h],
--             gpu_hours_effective float64 [GPU·h], effective_signal text,
--             coverage_ratio float64 [0-1], jobs int64
-- one row per holder (team, user, project, workload, pool or fleet) in [$from, $until), clipped
-- exactly; ordered by gpu_hours_held, highest first, then name. held_ratio is the part of all
-- that was held; gpu_hours_working + gpu_hours_other (inside and outside working hours) = held.
-- The rest is as in gpu_hours.
WITH held AS (
    SELECT t.cluster, t.job_id, t.attempt, t.gpus,
        held_by($by, t.team, t."user", t.project, t.workload, t."partition") AS held_by,
        split_working(greatest(t.started_at, $from), least(t.ended_at, $until)) AS spent
    FROM held_time t
    WHERE t.started_at < $until AND t.ended_at > $from
),
read AS (
    SELECT r.gpus, r.util_ratio, r.effective_ratio, r.effective_signal,
        held_by($by, r.team, r."user", r.project, r.workload, r."partition") AS held_by,
        (CAST(least(r.ended_at, $until) AS BIGINT)
            - CAST(greatest(r.started_at, $from) AS BIGINT)) / 1000.0 AS elapsed_s
    FROM job_readings r
    WHERE r.job_id IS NOT NULL AND r.util_ratio IS NOT NULL
        AND r.started_at < $until AND r.ended_at > $from
),
part AS (
    SELECT h.held_by, sum(h.gpus * h.spent['working_s']) AS working_s,
        sum(h.gpus * h.spent['other_s']) AS other_s,
        CAST(NULL AS DOUBLE) AS observed_s, CAST(NULL AS DOUBLE) AS busy_s,
        CAST(NULL AS DOUBLE) AS effective_s, CAST(NULL AS VARCHAR) AS effective_signal,
        nullif(count(DISTINCT CASE WHEN h.job_id IS NOT NULL
            THEN concat(h.cluster, '/', h.job_id, '/', h.attempt) END), 0) AS jobs
    FROM held h
    GROUP BY h.held_by
    UNION ALL
    SELECT r.held_by, CAST(NULL AS DOUBLE) AS working_s, CAST(NULL AS DOUBLE) AS other_s,
        sum(r.gpus * r.elapsed_s) AS observed_s,
        sum(r.gpus * r.elapsed_s * r.util_ratio) AS busy_s,
        sum(r.gpus * r.elapsed_s * r.effective_ratio) AS effective_s, r.effective_signal,
        NULL AS jobs
    FROM read r
    GROUP BY r.held_by, r.effective_signal
),
total AS (
    SELECT p.held_by, sum(p.working_s) AS working_s, sum(p.other_s) AS other_s,
        sum(p.working_s) + sum(p.other_s) AS held_s, sum(p.observed_s) AS observed_s,
        sum(p.busy_s) AS busy_s, sum(p.effective_s) AS effective_s,
        nullif(concat_ws(',',
        CASE WHEN count(*) FILTER (WHERE p.effective_signal = 'activity') > 0 THEN 'activity' END,
        CASE WHEN count(*) FILTER (WHERE p.effective_signal = 'power') > 0 THEN 'power' END,
        CASE WHEN count(*) FILTER (WHERE p.effective_signal = 'utilisation') > 0
            THEN 'utilisation' END
    ), '') AS effective_signal,
        sum(p.jobs) AS jobs
    FROM part p
    GROUP BY p.held_by
)
SELECT coalesce(t.held_by, '(none)') AS held_by, t.held_s / 3600 AS gpu_hours_held,
    t.held_s / nullif(sum(t.held_s) OVER (), 0) AS held_ratio,
    t.working_s / 3600 AS gpu_hours_working, t.other_s / 3600 AS gpu_hours_other,
    t.observed_s / 3600 AS gpu_hours_observed, t.busy_s / 3600 AS gpu_hours_busy,
    t.effective_s / 3600 AS gpu_hours_effective, t.effective_signal,
    CASE WHEN t.held_s > 0 THEN least(coalesce(t.observed_s, 0) / t.held_s, 1) END
        AS coverage_ratio,
    t.jobs
FROM total t
ORDER BY gpu_hours_held DESC NULLS LAST, held_by
