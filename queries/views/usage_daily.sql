-- GPU-hours held, busy and effective on each local day by who held them.
-- columns: day_started_at timestamp, cluster text, partition text, team text, user text,
--          project text, workload text, gpu_hours_held float64 [GPU·h],
--          gpu_hours_observed float64 [GPU·h], gpu_hours_busy float64 [GPU·h],
--          gpu_hours_effective float64 [GPU·h], coverage_ratio float64 [0-1]
-- one row per day and holder; days sum to the month. Observed, busy and effective are NULL where
-- nothing was read; coverage_ratio is observed / held.
WITH cut AS (
    SELECT t.*, unnest(split_bins(t.started_at, t.ended_at, 'day')) AS bin
    FROM job_time t
    WHERE t.gpus_held IS NOT NULL OR t.util_ratio IS NOT NULL
),
timed AS (
    SELECT c.*, c.bin['bin_started_at'] AS day_started_at,
        c.gpus_held * c.bin['elapsed_s'] AS held_s, c.gpus_read * c.bin['elapsed_s'] AS observed_s
    FROM cut c
)
SELECT t.day_started_at, t.cluster, t."partition", t.team, t."user", t.project, t.workload,
    sum(t.held_s) / 3600 AS gpu_hours_held, sum(t.observed_s) / 3600 AS gpu_hours_observed,
    sum(t.observed_s * t.util_ratio) / 3600 AS gpu_hours_busy,
    sum(t.observed_s * t.effective_ratio) / 3600 AS gpu_hours_effective,
    CASE WHEN sum(t.held_s) > 0 THEN
        least(coalesce(sum(t.observed_s), 0) / sum(t.held_s), 1) END AS coverage_ratio
FROM timed t
GROUP BY t.day_started_at, t.cluster, t."partition", t.team, t."user", t.project, t.workload
