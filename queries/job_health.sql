-- Which jobs use their GPUs well, and what is wrong with the others.
-- parameters: $from timestamp, $until timestamp
-- columns:    verdict text, cluster text, job_id text, attempt int32, user text, team text,
--             workload text, partition text, gpu_model text, gpus int64, measurement text,
--             level float64, limit_level float64, gpu_hours_observed float64 [GPU·h],
--             coverage_ratio float64 [0-1], util_mean_ratio float64 [0-1], util_p50_ratio
--             float64 [0-1], mem_used_ratio float64 [0-1], cpu_util_ratio float64 [0-1],
--             first_sampled_at timestamp, last_sampled_at timestamp, idle_tail_hours float64 [h],
--             baseline_p25_ratio float64 [0-1], baseline_jobs int64, baseline_gpu_hours float64
--             [GPU·h], util_best_ratio float64 [0-1], temp_max_c float64 [°C],
--             span_hours float64 [h], hours_read float64 [h], reason text
-- one row per job attempt with readings in [$from, $until); the verdict is on the whole of the job.
-- level and limit_level are in the unit of measurement: _ratio 0-1, hours h, else a count. reason
-- says in words what level, limit_level and the columns before it tell. hours_read is the mean over
-- the GPUs, util_best_ratio the mean of the busiest. Ordered:
-- what needs somebody first, healthy and not-enough-data last, then gpu_hours_observed, most first.
SELECT
    h.verdict, h.cluster, h.job_id, h.attempt, h."user", h.team, h.workload, h."partition",
    h.gpu_model, h.gpus, h.measurement, h.level, h.limit_level, h.gpu_hours_observed,
    h.coverage_ratio, h.util_mean_ratio, h.util_p50_ratio, h.mem_used_ratio, h.cpu_util_ratio,
    h.first_sampled_at, h.last_sampled_at, h.idle_tail_hours, h.baseline_p25_ratio,
    h.baseline_jobs, h.baseline_gpu_hours, h.util_best_ratio, h.temp_max_c, h.span_hours,
    h.hours_read, h.reason
FROM job_health h
WHERE h.first_sampled_at <= $until AND h.last_sampled_at >= $from
ORDER BY
    CASE h.verdict WHEN 'failing-hardware' THEN 0 WHEN 'hot' THEN 1 WHEN 'idle-held' THEN 2
        WHEN 'memory-only' THEN 3 WHEN 'unbalanced' THEN 4 WHEN 'starved-of-data' THEN 5
        WHEN 'under-used' THEN 6 WHEN 'not-enough-data' THEN 7 ELSE 8 END,
    h.gpu_hours_observed DESC, h.cluster, h.job_id, h.attempt
