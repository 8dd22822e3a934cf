-- GPUs held and waited for in each local hour, as means over the hour (so: GPU-hours).
-- columns: hour_started_at timestamp, cluster text, partition text, team text, workload text,
--          gpu_model text, gpus_held float64, gpus_waiting float64, gpus_demand float64
-- From holdings, from jobs that wait, and from counts where a source only tells those.
WITH held AS (
    SELECT h.cluster, h."partition", h.team, h.workload, h.gpu_model, h.gpus * h.used_ratio AS gpus_used,
        unnest(split_bins(h.started_at, h.ended_at, 'hour')) AS bin
    FROM holdings h
),
waiting AS (
    SELECT j.cluster, coalesce(j."partition", 'default') AS pool, j.team, j.workload,
        j.gpu_model_requested AS gpu_model, coalesce(j.gpus_requested, j.gpus_allocated) AS gpus,
        unnest(split_bins(coalesce(j.eligible_at, j.submitted_at),
            coalesce(j.started_at, j.ended_at, as_of()), 'hour')) AS bin
    FROM jobs j
    WHERE coalesce(j.gpus_requested, j.gpus_allocated) > 0
),
parts AS (
    SELECT h.cluster, h."partition", h.team, h.workload, h.gpu_model,
        h.bin['bin_started_at'] AS hour_started_at,
        h.gpus_used * h.bin['elapsed_s'] / 3600 AS held, 0.0 AS waiting
    FROM held h
    UNION ALL
    SELECT w.cluster, w.pool AS "partition", w.team, w.workload, w.gpu_model,
        w.bin['bin_started_at'] AS hour_started_at,
        0.0 AS held, w.gpus * w.bin['elapsed_s'] / 3600 AS waiting
    FROM waiting w
    UNION ALL
    SELECT c.cluster, coalesce(c."partition", 'default') AS "partition", c.team,
        CAST(NULL AS VARCHAR) AS workload, CAST(NULL AS VARCHAR) AS gpu_model,
        local_hour(c.counted_at) AS hour_started_at,
        sum(c.gpus_held * c.period_s) / sum(c.period_s) AS held,
        sum(c.gpus_waiting * c.period_s) / sum(c.period_s) AS waiting
    FROM gpu_counts c
    GROUP BY c.cluster, c."partition", c.team, local_hour(c.counted_at)
)
SELECT p.hour_started_at, p.cluster, p."partition", p.team, p.workload, p.gpu_model,
    sum(p.held) AS gpus_held, sum(p.waiting) AS gpus_waiting,
    sum(p.held) + sum(p.waiting) AS gpus_demand
FROM parts p
GROUP BY p.hour_started_at, p.cluster, p."partition", p.team, p.workload, p.gpu_model
