-- What is usual for each workload and GPU model, in working and in other hours.
-- columns:    made_at timestamp, workload text, gpu_model text, hours text, measurement text,
--             unit text, mean float64, sd float64, p5 float64, p25 float64, p50 float64,
--             p75 float64, p95 float64, jobs int64, gpu_hours float64 [GPU·h], days float64 [day],
--             usable boolean
-- one row per workload, GPU model, hours and measurement of the 28 days up to the store's latest
-- instant; ordered by them. The unit of the levels stands in unit. A row is usable from 7 days on.
SELECT b.made_at, b.workload, b.gpu_model, b.hours, b.measurement, b.unit, b.mean, b.sd,
    b.p5, b.p25, b.p50, b.p75, b.p95, b.jobs, b.gpu_hours, b.days, b.usable
FROM baselines b
ORDER BY b.workload, b.gpu_model, b.hours DESC, b.measurement
