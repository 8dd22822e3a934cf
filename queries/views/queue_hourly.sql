-- Jobs submitted, started and ended and GPUs waited for in each local hour.
-- columns: hour_started_at timestamp, cluster text, partition text, team text,
--          jobs_submitted int64, jobs_started int64, jobs_ended int64, jobs_failed int64,
--          jobs_waiting float64, gpus_waiting float64
-- one row per hour, pool and team with any. jobs_waiting and gpus_waiting are means over the
-- hour; jobs that ask for no GPU are left out.
WITH asked AS (
    SELECT j.cluster, coalesce(j."partition", 'default') AS pool, j.team, j.submitted_at,
        j.started_at, j.ended_at, upper(j.state) AS state, j.gpus_asked AS gpus,
        j.wait_started_at, j.wait_ended_at
    FROM attempts j
    WHERE j.gpus_asked > 0
),
wait_bin AS (
    SELECT a.cluster, a.pool, a.team, a.gpus,
        unnest(split_bins(a.wait_started_at, a.wait_ended_at, 'hour')) AS bin
    FROM asked a
),
part AS (
    SELECT local_hour(a.submitted_at) AS hour_started_at, a.cluster, a.pool, a.team,
        count(*) AS submitted, 0 AS started, 0 AS ended, 0 AS failed, 0.0 AS job_s, 0.0 AS gpu_s
    FROM asked a
    WHERE a.submitted_at >= span_started_at()
    GROUP BY local_hour(a.submitted_at), a.cluster, a.pool, a.team
    UNION ALL
    SELECT local_hour(a.started_at) AS hour_started_at, a.cluster, a.pool, a.team,
        0 AS submitted, count(*) AS started, 0 AS ended, 0 AS failed, 0.0 AS job_s, 0.0 AS gpu_s
    FROM asked a
    WHERE a.started_at >= span_started_at()
    GROUP BY local_hour(a.started_at), a.cluster, a.pool, a.team
    UNION ALL
    SELECT local_hour(a.ended_at) AS hour_started_at, a.cluster, a.pool, a.team,
        0 AS submitted, 0 AS started, count(*) AS ended,
        count(*) FILTER (WHERE a.state IN ('FAILED', 'NODE_FAIL', 'OUT_OF_MEMORY', 'TIMEOUT',
            'BOOT_FAIL', 'DEADLINE', 'LAUNCH_FAILED', 'RECONFIG_FAIL', 'ERROR')) AS failed,
        0.0 AS job_s, 0.0 AS gpu_s
    FROM asked a
    WHERE a.ended_at >= span_started_at()
    GROUP BY local_hour(a.ended_at), a.cluster, a.pool, a.team
    UNION ALL
    SELECT w.bin['bin_started_at'] AS hour_started_at, w.cluster, w.pool, w.team,
        0 AS submitted, 0 AS started, 0 AS ended, 0 AS failed,
        sum(w.bin['elapsed_s']) AS job_s, sum(w.gpus * w.bin['elapsed_s']) AS gpu_s
    FROM wait_bin w
    GROUP BY w.bin['bin_started_at'], w.cluster, w.pool, w.team
),
summed AS (
    SELECT p.hour_started_at, p.cluster, p.pool, p.team, sum(p.submitted) AS submitted,
        sum(p.started) AS started, sum(p.ended) AS ended, sum(p.failed) AS failed,
        sum(p.job_s) AS job_s, sum(p.gpu_s) AS gpu_s,
        (CAST(local_hour_ended(p.hour_started_at) AS BIGINT)
            - CAST(p.hour_started_at AS BIGINT)) / 1000.0 AS hour_s
    FROM part p
    GROUP BY p.hour_started_at, p.cluster, p.pool, p.team
)
SELECT s.hour_started_at, s.cluster, s.pool AS "partition", s.team,
    s.submitted AS jobs_submitted, s.started AS jobs_started, s.ended AS jobs_ended,
    s.failed AS jobs_failed, s.job_s / s.hour_s AS jobs_waiting, s.gpu_s / s.hour_s AS gpus_waiting
FROM summed s
