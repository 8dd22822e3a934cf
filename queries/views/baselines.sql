-- What is usual for a workload on a GPU model in working and in other hours, over the 28 days up to
-- the store's latest instant, which is the day the baseline was made.
-- columns: made_at timestamp, workload text, gpu_model text, hours text, measurement text,
--          unit text, mean float64, sd float64, p5 float64, p25 float64, p50 float64, p75 float64,
--          p95 float64, jobs int64, gpu_hours float64 [GPU·h], days float64 [day], usable boolean
-- one row per workload, GPU model, hours (working, other) and measurement that was read while a job
-- held the GPU. Mean and standard deviation are weighted by time and share. A quantile is the
-- lowest level that holds for that share of the time or more, on a grid of 0.001 for shares, 1 W,
-- 1 °C. jobs and gpu_hours are what stands behind the row; days is from its first reading to its
-- last; usable from 7 days on. Baselines of `unlabelled` jobs are told and never judged by.
WITH held AS (
    SELECT
        coalesce(s.workload, 'unlabelled') AS workload, s.gpu_model,
        CASE WHEN working_hours(s.sampled_at) THEN 'working' ELSE 'other' END AS hours,
        s.job_id, s.cluster,
        s.sampled_at, s.period_s * s.gpus AS weight_s,
        s.util_ratio AS util, s.sm_active_ratio AS sm,
        CAST(s.mem_used_bytes AS DOUBLE) / nullif(s.mem_total_bytes, 0) AS mem,
        s.power_read_w AS power_w, s.temp_c
    FROM job_readings s
    WHERE s.job_id IS NOT NULL AND s.period_s * s.gpus > 0 AND s.ended_at = s.sampled_at
        AND s.sampled_at > as_of() - INTERVAL '28 days' AND s.sampled_at <= as_of()
),
read AS (
    SELECT h.workload, h.gpu_model, h.hours, h.sampled_at, h.weight_s,
        unnest(make_array(h.util, h.sm, h.mem, h.power_w, h.temp_c)) AS level,
        unnest(make_array(0, 1, 2, 3, 4)) AS measured
    FROM held h
),
binned AS (
    SELECT r.workload, r.gpu_model, r.hours, r.measured,
        CASE WHEN r.measured < 3 THEN round(r.level * 1000) / 1000 ELSE round(r.level) END AS bin,
        sum(r.weight_s) AS weight_s, sum(r.weight_s * r.level) AS level_s,
        sum(r.weight_s * r.level * r.level) AS square_s,
        min(r.sampled_at) AS first_at, max(r.sampled_at) AS last_at
    FROM read r
    WHERE r.level IS NOT NULL
    GROUP BY r.workload, r.gpu_model, r.hours, r.measured,
        CASE WHEN r.measured < 3 THEN round(r.level * 1000) / 1000 ELSE round(r.level) END
),
ranked AS (
    SELECT b.*,
        sum(b.weight_s) OVER (
            PARTITION BY b.workload, b.gpu_model, b.hours, b.measured ORDER BY b.bin
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) / sum(b.weight_s) OVER (
            PARTITION BY b.workload, b.gpu_model, b.hours, b.measured
        ) AS below_ratio
    FROM binned b
),
summed AS (
    SELECT r.workload, r.gpu_model, r.hours, r.measured,
        sum(r.weight_s) AS weight_s, sum(r.level_s) / sum(r.weight_s) AS mean,
        sum(r.square_s) / sum(r.weight_s) AS mean_square,
        min(r.bin) FILTER (WHERE r.below_ratio >= 0.05 - 1e-9) AS p5,
        min(r.bin) FILTER (WHERE r.below_ratio >= 0.25 - 1e-9) AS p25,
        min(r.bin) FILTER (WHERE r.below_ratio >= 0.5 - 1e-9) AS p50,
        min(r.bin) FILTER (WHERE r.below_ratio >= 0.75 - 1e-9) AS p75,
        min(r.bin) FILTER (WHERE r.below_ratio >= 0.95 - 1e-9) AS p95,
        (date_part('epoch', max(r.last_at)) - date_part('epoch', min(r.first_at))) / 86400 AS days
    FROM ranked r
    GROUP BY r.workload, r.gpu_model, r.hours, r.measured
),
per_job AS (
    SELECT h.workload, h.gpu_model, h.hours, h.cluster, h.job_id,
        least(count(h.util), 1) AS util, least(count(h.sm), 1) AS sm, least(count(h.mem), 1) AS mem,
        least(count(h.power_w), 1) AS power, least(count(h.temp_c), 1) AS temp
    FROM held h
    GROUP BY h.workload, h.gpu_model, h.hours, h.cluster, h.job_id
),
behind AS (
    SELECT p.workload, p.gpu_model, p.hours,
        unnest(make_array(sum(p.util), sum(p.sm), sum(p.mem), sum(p.power), sum(p.temp))) AS jobs,
        unnest(make_array(0, 1, 2, 3, 4)) AS measured
    FROM per_job p
    GROUP BY p.workload, p.gpu_model, p.hours
)
SELECT
    as_of() AS made_at, s.workload, s.gpu_model, s.hours,
    CASE s.measured WHEN 0 THEN 'gpu_util_ratio' WHEN 1 THEN 'sm_active_ratio'
        WHEN 2 THEN 'mem_used_ratio' WHEN 3 THEN 'power_w' ELSE 'temp_c' END AS measurement,
    CASE WHEN s.measured < 3 THEN '0-1' WHEN s.measured = 3 THEN 'W' ELSE '°C' END AS unit,
    s.mean, sqrt(greatest(s.mean_square - s.mean * s.mean, 0)) AS sd,
    s.p5, s.p25, s.p50, s.p75, s.p95,
    b.jobs, s.weight_s / 3600 AS gpu_hours, s.days, s.days >= 7 AS usable
FROM summed s
JOIN behind b
    ON b.workload = s.workload AND (b.gpu_model IS NOT DISTINCT FROM s.gpu_model)
    AND b.hours = s.hours AND b.measured = s.measured
