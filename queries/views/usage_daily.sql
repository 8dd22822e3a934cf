-- GPU-hours held, busy and effective on each local day by who held them.
-- columns: day_started_at timestamp, cluster text, partition text, team text, user text,
--          project text, workload text, gpu_hours_held float64 [GPU·h],
--          gpu_hours_observed float64 [GPU·h], gpu_hours_busy float64 [GPU·h],
--          gpu_hours_effective float64 [GPU·h], coverage_ratio float64 [0-1]
-- one row per day and holder; days sum to the month. Observed, busy and effective are NULL where
-- nothing was read; coverage_ratio is observed / held.
WITH held_bin AS (
    SELECT t.cluster, t."partition", t.team, t."user", t.project, t.workload, t.gpus,
        unnest(split_bins(t.started_at, t.ended_at, 'day')) AS bin
    FROM held_time t
),
read_bin AS (
    SELECT r.cluster, r.job_cluster, r."partition", r.team, r."user", r.project, r.workload,
        r.gpus,
        r.util_ratio, r.effective_ratio,
        unnest(split_bins(r.started_at, r.sampled_at, 'day')) AS bin
    FROM job_readings r
    WHERE r.job_id IS NOT NULL AND r.util_ratio IS NOT NULL
),
part AS (
    SELECT h.bin['bin_started_at'] AS day_started_at, h.cluster, h."partition", h.team, h."user",
        h.project, h.workload, h.gpus * h.bin['elapsed_s'] AS held_s,
        CAST(NULL AS DOUBLE) AS observed_s, CAST(NULL AS DOUBLE) AS busy_s,
        CAST(NULL AS DOUBLE) AS effective_s
    FROM held_bin h
    UNION ALL
    SELECT r.bin['bin_started_at'] AS day_started_at,
        coalesce(r.job_cluster, r.cluster) AS cluster,
        r."partition", r.team, r."user", r.project, r.workload, CAST(NULL AS DOUBLE) AS held_s,
        r.gpus * r.bin['elapsed_s'] AS observed_s,
        r.gpus * r.bin['elapsed_s'] * r.util_ratio AS busy_s,
        r.gpus * r.bin['elapsed_s'] * r.effective_ratio AS effective_s
    FROM read_bin r
)
SELECT p.day_started_at, p.cluster, p."partition", p.team, p."user", p.project, p.workload,
    sum(p.held_s) / 3600 AS gpu_hours_held, sum(p.observed_s) / 3600 AS gpu_hours_observed,
    sum(p.busy_s) / 3600 AS gpu_hours_busy, sum(p.effective_s) / 3600 AS gpu_hours_effective,
    CASE WHEN sum(p.held_s) > 0 THEN
        least(coalesce(sum(p.observed_s), 0) / sum(p.held_s), 1) END AS coverage_ratio
FROM part p
GROUP BY p.day_started_at, p.cluster, p."partition", p.team, p."user", p.project, p.workload
