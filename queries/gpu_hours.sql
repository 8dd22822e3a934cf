-- GPU-hours held, busy and effective by team, user, project, workload or pool and local period.
-- parameters: $from timestamp, $until timestamp,
--             $by text = 'team' of team|user|project|workload|pool|fleet,
--             $step text = 'month' of bin
-- columns:    period_started_at timestamp, held_by text, gpu_hours_held float64 [GPU·h],
--             gpu_hours_observed float64 [GPU·h], gpu_hours_busy float64 [GPU·h],
--             gpu_hours_effective float64 [GPU·h], effective_signal text,
--             coverage_ratio float64 [0-1], jobs int64
-- one row per period (hour, day, week or month) and holder (team, user, project, workload, pool
-- or fleet) in [$from, $until), clipped exactly; ordered by period, then gpu_hours_held, highest
-- first, then name. Busy is observed time x utilisation; effective takes the best signal that
-- each reading has, named in effective_signal: activity (of tensor or SM), power (utilisation x
-- power above idle) or utilisation. Observed, busy and effective are NULL where nothing was read;
-- coverage_ratio is observed / held, NULL where samples name a job that no ledger holds; jobs is
-- NULL where no ledger tells them.
WITH held AS (
    SELECT t.cluster, t.job_id, t.attempt, t.gpus,
        held_by($by, t.team, t."user", t.project, t.workload, t."partition") AS held_by,
        greatest(t.started_at, $from) AS from_at, least(t.ended_at, $until) AS until_at
    FROM held_time t
    WHERE t.started_at < $until AND t.ended_at > $from
),
held_bin AS (
    SELECT h.cluster, h.job_id, h.attempt, h.gpus, h.held_by,
        unnest(split_bins(h.from_at, h.until_at, $step)) AS bin
    FROM held h
),
read AS (
    SELECT r.gpus, r.util_ratio, r.effective_ratio, r.effective_signal,
        held_by($by, r.team, r."user", r.project, r.workload, r."partition") AS held_by,
        greatest(r.started_at, $from) AS from_at, least(r.ended_at, $until) AS until_at
    FROM job_readings r
    WHERE r.job_id IS NOT NULL AND r.util_ratio IS NOT NULL
        AND r.started_at < $until AND r.ended_at > $from
),
read_bin AS (
    SELECT r.gpus, r.util_ratio, r.effective_ratio, r.effective_signal, r.held_by,
        unnest(split_bins(r.from_at, r.until_at, $step)) AS bin
    FROM read r
),
part AS (
    SELECT h.bin['bin_started_at'] AS period_started_at, h.held_by,
        sum(h.gpus * h.bin['elapsed_s']) AS held_s,
        CAST(NULL AS DOUBLE) AS observed_s, CAST(NULL AS DOUBLE) AS busy_s,
        CAST(NULL AS DOUBLE) AS effective_s, CAST(NULL AS VARCHAR) AS effective_signal,
        nullif(count(DISTINCT CASE WHEN h.job_id IS NOT NULL
            THEN concat(h.cluster, '/', h.job_id, '/', h.attempt) END), 0) AS jobs
    FROM held_bin h
    GROUP BY h.bin['bin_started_at'], h.held_by
    UNION ALL
    SELECT r.bin['bin_started_at'] AS period_started_at, r.held_by,
        CAST(NULL AS DOUBLE) AS held_s,
        sum(r.gpus * r.bin['elapsed_s']) AS observed_s,
        sum(r.gpus * r.bin['elapsed_s'] * r.util_ratio) AS busy_s,
        sum(r.gpus * r.bin['elapsed_s'] * r.effective_ratio) AS effective_s,
        r.effective_signal, NULL AS jobs
    FROM read_bin r
    GROUP BY r.bin['bin_started_at'], r.held_by, r.effective_signal
)
SELECT p.period_started_at, coalesce(p.held_by, '(none)') AS held_by,
    sum(p.held_s) / 3600 AS gpu_hours_held, sum(p.observed_s) / 3600 AS gpu_hours_observed,
    sum(p.busy_s) / 3600 AS gpu_hours_busy, sum(p.effective_s) / 3600 AS gpu_hours_effective,
    nullif(concat_ws(',',
        CASE WHEN count(*) FILTER (WHERE p.effective_signal = 'activity') > 0 THEN 'activity' END,
        CASE WHEN count(*) FILTER (WHERE p.effective_signal = 'power') > 0 THEN 'power' END,
        CASE WHEN count(*) FILTER (WHERE p.effective_signal = 'utilisation') > 0
            THEN 'utilisation' END
    ), '') AS effective_signal,
    CASE WHEN sum(p.held_s) > 0 THEN
        least(coalesce(sum(p.observed_s), 0) / sum(p.held_s), 1) END AS coverage_ratio,
    sum(p.jobs) AS jobs
FROM part p
GROUP BY p.period_started_at, p.held_by
ORDER BY p.period_started_at, gpu_hours_held DESC NULLS LAST, held_by
