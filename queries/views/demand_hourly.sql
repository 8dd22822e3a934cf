-- GPUs held and waited for in each local hour, as means over the hour; x hours they are GPU-hours.
-- columns: hour_started_at timestamp, cluster text, partition text, team text, workload text,
--          gpu_model text, gpus_held float64, gpus_waiting float64, gpus_demand float64,
--          counted_ratio float64 [0-1], hours float64 [h]
-- From holdings, from jobs that wait, and from counts where a source only tells those: means over
-- what was counted. counted_ratio is the part of the hour, as far as the store reaches, that
-- counts stand for; NULL where jobs tell all. hours is how long the local hour is: 1, but where the
-- clock is shifted by half an hour, as on Lord Howe Island, there is one of a half.
WITH held AS (
    SELECT h.cluster, h."partition", h.team, h.workload, h.gpu_model,
        h.gpus * h.used_ratio AS gpus_used,
        unnest(split_bins(h.started_at, h.ended_at, 'hour')) AS bin
    FROM holdings h
),
waiting AS (
    SELECT j.cluster, coalesce(j."partition", 'default') AS pool, j.team, j.workload,
        j.gpu_model_requested AS gpu_model, j.gpus_asked AS gpus,
        unnest(split_bins(j.wait_started_at, j.wait_ended_at, 'hour')) AS bin
    FROM attempts j
    WHERE j.gpus_asked > 0
),
parts AS (
    SELECT h.cluster, h."partition", h.team, h.workload, h.gpu_model,
        h.bin['bin_started_at'] AS hour_started_at,
        h.gpus_used * h.bin['elapsed_s'] * 1000 / (CAST(h.bin['bin_ended_at'] AS BIGINT)
            - CAST(h.bin['bin_started_at'] AS BIGINT)) AS held, 0.0 AS waiting,
        CAST(NULL AS DOUBLE) AS counted_s
    FROM held h
    UNION ALL
    SELECT w.cluster, w.pool AS "partition", w.team, w.workload, w.gpu_model,
        w.bin['bin_started_at'] AS hour_started_at,
        0.0 AS held,
        w.gpus * w.bin['elapsed_s'] * 1000 / (CAST(w.bin['bin_ended_at'] AS BIGINT)
            - CAST(w.bin['bin_started_at'] AS BIGINT)) AS waiting,
        CAST(NULL AS DOUBLE) AS counted_s
    FROM waiting w
    UNION ALL
    SELECT c.cluster, c."partition", c.team,
        CAST(NULL AS VARCHAR) AS workload, CAST(NULL AS VARCHAR) AS gpu_model, c.hour_started_at,
        sum(c.gpus_held * c.period_s) / sum(c.period_s) AS held,
        sum(c.gpus_waiting * c.period_s) / sum(c.period_s) AS waiting,
        sum(c.period_s) AS counted_s
    FROM counts c
    WHERE c.period_s > 0
    GROUP BY c.cluster, c."partition", c.team, c.hour_started_at
)
SELECT p.hour_started_at, p.cluster, p."partition", p.team, p.workload, p.gpu_model,
    sum(p.held) AS gpus_held, sum(p.waiting) AS gpus_waiting,
    sum(p.held) + sum(p.waiting) AS gpus_demand,
    CASE WHEN count(p.counted_s) > 0 THEN least(sum(p.counted_s) * 1000
        / (CAST(least(local_hour_ended(p.hour_started_at), as_of()) AS BIGINT)
            - greatest(CAST(p.hour_started_at AS BIGINT), CAST(span_started_at() AS BIGINT))), 1)
        END AS counted_ratio,
    (CAST(local_hour_ended(p.hour_started_at) AS BIGINT) - CAST(p.hour_started_at AS BIGINT))
        / 3600000.0 AS hours
FROM parts p
GROUP BY p.hour_started_at, p.cluster, p."partition", p.team, p.workload, p.gpu_model
