-- What the readings of each job look like: what it can be told by where nobody labelled it.
-- columns: cluster text, job_id text, attempt int32, name text, user text, team text, project text,
--          workload text, partition text, gpu_hours_held float64 [GPU·h],
--          gpu_hours_observed float64 [GPU·h], coverage_ratio float64 [0-1], hours_read float64
--          [h], enough boolean, util_mean_ratio float64 [0-1], util_p10_ratio float64 [0-1],
--          util_p50_ratio float64 [0-1], util_p90_ratio float64 [0-1], util_spread_ratio
--          float64 [0-1], idle_ratio float64 [0-1], mem_used_ratio float64 [0-1], power_level_ratio
--          float64 [0-1], rhythm_correlation float64 [-1-1], switches_per_hour float64 [1/h],
--          working_lift_ratio float64 [-1-1], gpus float64, hours_run float64 [h], even_ratio
--          float64 [0-1]
-- one row per attempt of the ledger whose utilisation was read while it held a GPU by itself:
-- readings of a GPU that jobs share cannot be told apart. enough tells that at least 10 minutes
-- were read of each GPU and half of the hours held. Quantiles are of time, to 1 %; spread is p90
-- less p10. idle_ratio is the time below 0.05. power_level_ratio is where power lies between what
-- the board's model draws at rest and the highest read of it. Rhythm and switches (between below
-- 0.05 and above) compare each 5 minutes that were read with those read before; the first is NULL
-- below 6 such pairs. working_lift_ratio is the share of its work that fell into working hours less
-- the share of its time that did. gpus are those read; even_ratio is the mean of the least busy
-- over that of the busiest.
WITH read AS (
    SELECT coalesce(r.job_cluster, r.cluster, '') AS cluster_key, r.job_id,
        coalesce(r.attempt, 0) AS attempt_key,
        concat(r.gpu_key, '/', coalesce(CAST(r.mig AS VARCHAR), '')) AS device, r.gpu_model,
        r.started_at, r.ended_at, r.period_s, r.gpus * r.period_s AS weight_s,
        r.util_ratio AS util,
        CAST(r.mem_used_bytes AS DOUBLE) / nullif(r.mem_total_bytes, 0) AS mem, r.power_w
    FROM job_readings r
    WHERE r.ledgered AND NOT coalesce(r.shared, false) AND r.ended_at = r.sampled_at
        AND r.util_ratio IS NOT NULL AND r.gpus * r.period_s > 0
),
bounds AS (
    SELECT s.gpu_model, max(i.idle_power_w) AS rest_w, max(s.power_w) AS highest_w
    FROM samples s
    JOIN idle_power i ON i.gpu_model = s.gpu_model
    WHERE s.sampled_at <= as_of()
    GROUP BY s.gpu_model
),
per_gpu AS (
    SELECT r.cluster_key, r.job_id, r.attempt_key, r.device, min(r.started_at) AS first_at,
        max(r.ended_at) AS last_at, sum(r.period_s) AS period_s, sum(r.weight_s) AS weight_s,
        sum(r.weight_s * r.util) AS util_s,
        sum(r.weight_s * r.util) / sum(r.weight_s) AS util_mean,
        sum(r.weight_s) FILTER (WHERE r.util < 0.05) AS idle_s,
        sum(r.weight_s) FILTER (WHERE r.mem IS NOT NULL) AS mem_weight_s,
        sum(r.weight_s * r.mem) AS mem_s,
        sum(r.weight_s) FILTER (WHERE r.power_w IS NOT NULL AND b.highest_w > b.rest_w)
            AS power_weight_s,
        sum(r.weight_s * least(greatest(r.power_w - b.rest_w, 0) / (b.highest_w - b.rest_w), 1))
            FILTER (WHERE b.highest_w > b.rest_w) AS power_s
    FROM read r
    LEFT JOIN bounds b ON b.gpu_model = r.gpu_model
    GROUP BY r.cluster_key, r.job_id, r.attempt_key, r.device
),
per_job AS (
    SELECT g.cluster_key, g.job_id, g.attempt_key, count(*) AS gpus, min(g.first_at) AS first_at,
        max(g.last_at) AS last_at, sum(g.period_s) / count(*) / 3600 AS hours_read,
        sum(g.weight_s) AS weight_s, sum(g.util_s) / sum(g.weight_s) AS util_mean,
        coalesce(sum(g.idle_s), 0) / sum(g.weight_s) AS idle_ratio,
        sum(g.mem_s) / sum(g.mem_weight_s) AS mem, sum(g.power_s) / sum(g.power_weight_s) AS power,
        min(g.util_mean) / nullif(max(g.util_mean), 0) AS even_ratio
    FROM per_gpu g
    GROUP BY g.cluster_key, g.job_id, g.attempt_key
),
levels AS (
    SELECT r.cluster_key, r.job_id, r.attempt_key, round(r.util * 100) / 100 AS level,
        sum(r.weight_s) AS weight_s
    FROM read r
    GROUP BY r.cluster_key, r.job_id, r.attempt_key, round(r.util * 100) / 100
),
ranked AS (
    SELECT l.*, sum(l.weight_s) OVER (
            PARTITION BY l.cluster_key, l.job_id, l.attempt_key ORDER BY l.level
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) / sum(l.weight_s) OVER (PARTITION BY l.cluster_key, l.job_id, l.attempt_key) AS below
    FROM levels l
),
quantiles AS (
    SELECT r.cluster_key, r.job_id, r.attempt_key,
        min(r.level) FILTER (WHERE r.below >= 0.1 - 1e-9) AS p10,
        min(r.level) FILTER (WHERE r.below >= 0.5 - 1e-9) AS p50,
        min(r.level) FILTER (WHERE r.below >= 0.9 - 1e-9) AS p90
    FROM ranked r
    GROUP BY r.cluster_key, r.job_id, r.attempt_key
),
binned AS (
    SELECT r.cluster_key, r.job_id, r.attempt_key,
        date_bin(INTERVAL '5 minutes', r.ended_at) AS bin_started_at,
        sum(r.weight_s) AS weight_s, sum(r.weight_s * r.util) AS util_s
    FROM read r
    GROUP BY r.cluster_key, r.job_id, r.attempt_key,
        date_bin(INTERVAL '5 minutes', r.ended_at)
),
paired AS (
    SELECT b.*, b.util_s / b.weight_s AS util, working_hours(b.bin_started_at) AS worked,
        lag(b.util_s / b.weight_s) OVER (
            PARTITION BY b.cluster_key, b.job_id, b.attempt_key ORDER BY b.bin_started_at
        ) AS before
    FROM binned b
),
rhythms AS (
    SELECT p.cluster_key, p.job_id, p.attempt_key,
        CASE WHEN count(p.before) >= 6 AND stddev_pop(p.util) > 1e-9 THEN corr(p.util, p.before)
            END AS rhythm,
        count(*) FILTER (WHERE (p.util < 0.05) <> (p.before < 0.05)) * 3600.0 / nullif(
            date_part('epoch', max(p.bin_started_at)) - date_part('epoch', min(p.bin_started_at)),
            0) AS switches_per_hour,
        coalesce(sum(p.util_s) FILTER (WHERE p.worked), 0) / nullif(sum(p.util_s), 0)
            - coalesce(sum(p.weight_s) FILTER (WHERE p.worked), 0) / sum(p.weight_s)
            AS working_lift
    FROM paired p
    GROUP BY p.cluster_key, p.job_id, p.attempt_key
),
held AS (
    SELECT coalesce(h.cluster, '') AS cluster_key, h.job_id, coalesce(h.attempt, 0) AS attempt_key,
        sum((date_part('epoch', h.ended_at) - date_part('epoch', h.started_at)) / 3600 * h.gpus
            * h.used_ratio) AS gpu_hours
    FROM holdings h
    GROUP BY coalesce(h.cluster, ''), h.job_id, coalesce(h.attempt, 0)
)
SELECT j.cluster, j.job_id, j.attempt, j.name, j."user", j.team, j.project,
    coalesce(j.workload, 'unlabelled') AS workload,
    coalesce(j."partition", 'default') AS "partition", h.gpu_hours AS gpu_hours_held,
    p.weight_s / 3600 AS gpu_hours_observed,
    CASE WHEN h.gpu_hours > 0 THEN least(p.weight_s / 3600 / h.gpu_hours, 1) END AS coverage_ratio,
    p.hours_read,
    p.hours_read >= 600.0 / 3600 - 1e-9
        AND coalesce(p.weight_s / 3600 / nullif(h.gpu_hours, 0) >= 0.5 - 1e-9, true) AS enough,
    p.util_mean AS util_mean_ratio, q.p10 AS util_p10_ratio, q.p50 AS util_p50_ratio,
    q.p90 AS util_p90_ratio, q.p90 - q.p10 AS util_spread_ratio, p.idle_ratio,
    p.mem AS mem_used_ratio, p.power AS power_level_ratio, r.rhythm AS rhythm_correlation,
    r.switches_per_hour, r.working_lift AS working_lift_ratio, CAST(p.gpus AS DOUBLE) AS gpus,
    (date_part('epoch', p.last_at) - date_part('epoch', p.first_at)) / 3600 AS hours_run,
    p.even_ratio
FROM per_job p
JOIN attempts j
    ON j.job_id = p.job_id AND coalesce(j.attempt, 0) = p.attempt_key
    AND (coalesce(j.cluster, '') = p.cluster_key OR j.cluster IS NULL)
LEFT JOIN quantiles q
    ON q.cluster_key = p.cluster_key AND q.job_id = p.job_id AND q.attempt_key = p.attempt_key
LEFT JOIN rhythms r
    ON r.cluster_key = p.cluster_key AND r.job_id = p.job_id AND r.attempt_key = p.attempt_key
LEFT JOIN held h
    ON h.job_id = p.job_id AND h.attempt_key = p.attempt_key
    AND (h.cluster_key = p.cluster_key OR h.cluster_key = '')
