-- Queue time and failures of the jobs submitted on each local day.
-- parameters: $from timestamp, $until timestamp
-- columns:    day_started_at timestamp, jobs int64, started int64, queue_time_s_p50 float64 [s],
--             queue_time_s_max float64 [s], failed int64, failed_ratio float64 [0-1]
-- one row per day; jobs that never started count in jobs only. ordered by day.
SELECT local_day(j.submitted_at) AS day_started_at, count(*) AS jobs, count(j.started_at) AS started,
    median((CAST(j.started_at AS BIGINT) - CAST(j.submitted_at AS BIGINT)) / 1000.0) AS queue_time_s_p50,
    max((CAST(j.started_at AS BIGINT) - CAST(j.submitted_at AS BIGINT)) / 1000.0) AS queue_time_s_max,
    count(*) FILTER (WHERE j.state IN ('FAILED', 'NODE_FAIL', 'OUT_OF_MEMORY', 'TIMEOUT', 'BOOT_FAIL')) AS failed,
    count(*) FILTER (WHERE j.state IN ('FAILED', 'NODE_FAIL', 'OUT_OF_MEMORY', 'TIMEOUT', 'BOOT_FAIL'))
        / CAST(nullif(count(j.ended_at), 0) AS DOUBLE) AS failed_ratio
FROM jobs j
WHERE j.submitted_at >= $from AND j.submitted_at < $until
GROUP BY local_day(j.submitted_at)
ORDER BY day_started_at
