-- One job's own use of its GPUs beside what is usual for its workload and GPU model.
-- parameters: $job text
-- columns:    cluster text, job_id text, attempt int32, workload text, gpu_model text, hours text,
--             measurement text, unit text, gpu_hours float64 [GPU·h], mean float64, p5 float64,
--             p25 float64, p50 float64, p75 float64, p95 float64, usual_mean float64,
--             usual_p5 float64, usual_p25 float64, usual_p50 float64, usual_p75 float64,
--             usual_p95 float64, usual_jobs int64, usual_gpu_hours float64 [GPU·h],
--             usable boolean
-- one row per attempt, GPU model, hours (working, other) and measurement that was read while the
-- job held the GPU; ordered by them. Means and quantiles as in baselines, of the whole of the
-- job. usual_: the baseline as of the store's latest instant, NULL where there is none; usable
-- from 7 days on. A baseline is made of the jobs of 28 days, among them this one.
WITH held AS (
    SELECT s.cluster, s.job_id, coalesce(s.attempt, 0) AS attempt,
        coalesce(s.workload, 'unlabelled') AS workload, s.gpu_model,
        CASE WHEN working_hours(s.sampled_at) THEN 'working' ELSE 'other' END AS hours,
        s.period_s * s.gpus AS weight_s,
        s.util_ratio AS util, s.sm_active_ratio AS sm,
        CAST(s.mem_used_bytes AS DOUBLE) / nullif(s.mem_total_bytes, 0) AS mem,
        s.power_read_w AS power_w, s.temp_c
    FROM job_readings s
    WHERE s.job_id = $job AND s.period_s * s.gpus > 0 AND s.ended_at = s.sampled_at
),
read AS (
    SELECT h.cluster, h.job_id, h.attempt, h.workload, h.gpu_model, h.hours, h.weight_s,
        unnest(make_array(h.util, h.sm, h.mem, h.power_w, h.temp_c)) AS level,
        unnest(make_array(0, 1, 2, 3, 4)) AS measured
    FROM held h
),
binned AS (
    SELECT r.cluster, r.job_id, r.attempt, r.workload, r.gpu_model, r.hours, r.measured,
        CASE WHEN r.measured < 3 THEN round(r.level * 1000) / 1000 ELSE round(r.level) END AS bin,
        sum(r.weight_s) AS weight_s, sum(r.weight_s * r.level) AS level_s
    FROM read r
    WHERE r.level IS NOT NULL
    GROUP BY r.cluster, r.job_id, r.attempt, r.workload, r.gpu_model, r.hours, r.measured,
        CASE WHEN r.measured < 3 THEN round(r.level * 1000) / 1000 ELSE round(r.level) END
),
ranked AS (
    SELECT b.*,
        sum(b.weight_s) OVER (
            PARTITION BY b.cluster, b.attempt, b.gpu_model, b.hours, b.measured ORDER BY b.bin
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) / sum(b.weight_s) OVER (
            PARTITION BY b.cluster, b.attempt, b.gpu_model, b.hours, b.measured
        ) AS below_ratio
    FROM binned b
),
own AS (
    SELECT r.cluster, r.job_id, r.attempt, r.workload, r.gpu_model, r.hours,
        CASE r.measured WHEN 0 THEN 'gpu_util_ratio' WHEN 1 THEN 'sm_active_ratio'
            WHEN 2 THEN 'mem_used_ratio' WHEN 3 THEN 'power_w' ELSE 'temp_c' END AS measurement,
        CASE WHEN r.measured < 3 THEN '0-1' WHEN r.measured = 3 THEN 'W' ELSE '°C' END AS unit,
        r.measured, sum(r.weight_s) / 3600 AS gpu_hours,
        sum(r.level_s) / sum(r.weight_s) AS mean,
        min(r.bin) FILTER (WHERE r.below_ratio >= 0.05 - 1e-9) AS p5,
        min(r.bin) FILTER (WHERE r.below_ratio >= 0.25 - 1e-9) AS p25,
        min(r.bin) FILTER (WHERE r.below_ratio >= 0.5 - 1e-9) AS p50,
        min(r.bin) FILTER (WHERE r.below_ratio >= 0.75 - 1e-9) AS p75,
        min(r.bin) FILTER (WHERE r.below_ratio >= 0.95 - 1e-9) AS p95
    FROM ranked r
    GROUP BY r.cluster, r.job_id, r.attempt, r.workload, r.gpu_model, r.hours, r.measured
)
SELECT o.cluster, o.job_id, o.attempt, o.workload, o.gpu_model, o.hours, o.measurement, o.unit,
    o.gpu_hours, o.mean, o.p5, o.p25, o.p50, o.p75, o.p95, b.mean AS usual_mean,
    b.p5 AS usual_p5, b.p25 AS usual_p25, b.p50 AS usual_p50, b.p75 AS usual_p75,
    b.p95 AS usual_p95, b.jobs AS usual_jobs, b.gpu_hours AS usual_gpu_hours,
    coalesce(b.usable, false) AS usable
FROM own o
LEFT JOIN baselines b
    ON b.workload = o.workload AND (b.gpu_model IS NOT DISTINCT FROM o.gpu_model)
    AND b.hours = o.hours AND b.measurement = o.measurement
ORDER BY o.cluster, o.attempt, o.gpu_model, o.hours DESC, o.measured
