-- Queue time and failures of the GPU jobs submitted on each local day, or over the asked time.
-- parameters: $from timestamp, $until timestamp,
--             $by text = 'fleet' of fleet|pool|team|user|workload, $step text = 'day' of bin|all
-- columns:    day_started_at timestamp, asked_by text, jobs_submitted int64, jobs_started int64,
--             jobs_waiting int64, queue_time_s_p50 float64 [s], queue_time_s_p90 float64 [s],
--             queue_time_s_max float64 [s], jobs_ended int64, jobs_failed int64,
--             jobs_cancelled int64, failed_ratio float64 [0-1]
-- one row per day ($step: hour, day, week, month, or all for the asked time) and fleet, pool,
-- team, user or workload with a job attempt submitted in [$from, $until) that asks for a GPU;
-- ordered by day, then name. Each attempt counts on the day of its submission. Queue time is start
-- minus submission of those that started; jobs_waiting are those that still waited at the latest
-- instant of the store. failed_ratio is failed / ended with a known outcome, NULL where none is
-- known; a job that ran out of time or memory failed, a cancelled or preempted one did not.
WITH asked AS (
    SELECT CASE WHEN $step = 'all' THEN $from
            ELSE local_bin(CASE WHEN $step = 'all' THEN 'day' ELSE $step END, j.submitted_at)
        END AS day_started_at,
        held_by($by, j.team, j."user", j.project, j.workload, coalesce(j."partition", 'default'))
            AS asked_by,
        j.started_at, j.ended_at, upper(j.state) AS state,
        (CAST(j.started_at AS BIGINT) - CAST(j.submitted_at AS BIGINT)) / 1000.0 AS queue_time_s
    FROM attempts j
    WHERE j.submitted_at >= $from AND j.submitted_at < $until
        AND j.gpus_asked > 0
),
judged AS (
    SELECT a.*,
        a.ended_at IS NOT NULL AND a.state IS NOT NULL AS known,
        coalesce(a.state IN ('FAILED', 'NODE_FAIL', 'OUT_OF_MEMORY', 'TIMEOUT', 'BOOT_FAIL',
            'DEADLINE', 'LAUNCH_FAILED', 'RECONFIG_FAIL', 'ERROR'), false) AS failed,
        coalesce(a.state IN ('CANCELLED', 'CANCELED', 'KILLED'), false) AS cancelled
    FROM asked a
)
SELECT j.day_started_at, coalesce(j.asked_by, '(none)') AS asked_by, count(*) AS jobs_submitted,
    count(j.started_at) AS jobs_started,
    count(*) FILTER (WHERE j.started_at IS NULL AND j.ended_at IS NULL) AS jobs_waiting,
    percentile_cont(j.queue_time_s, 0.5) AS queue_time_s_p50,
    percentile_cont(j.queue_time_s, 0.9) AS queue_time_s_p90,
    max(j.queue_time_s) AS queue_time_s_max, count(j.ended_at) AS jobs_ended,
    count(*) FILTER (WHERE j.failed AND j.known) AS jobs_failed,
    count(*) FILTER (WHERE j.cancelled AND j.known) AS jobs_cancelled,
    CAST(count(*) FILTER (WHERE j.failed AND j.known) AS DOUBLE)
        / nullif(count(*) FILTER (WHERE j.known), 0) AS failed_ratio
FROM judged j
GROUP BY j.day_started_at, j.asked_by
ORDER BY j.day_started_at, asked_by
