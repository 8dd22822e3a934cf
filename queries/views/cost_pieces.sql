-- GPUs held, cut at local months, and what a second of them costs.
-- columns: month_started_at timestamp, cluster text, job_id text, user text, team text,
--          project text, workload text, partition text, gpus float64, started_at timestamp,
--          ended_at timestamp, owed_until_at timestamp, unpriced boolean,
--          hourly_per_s float64 [currency/s], depreciation_per_s float64 [currency/s],
--          power_per_s float64 [currency/s], rack_per_s float64 [currency/s],
--          power_assumed boolean, currency text
-- one row per stretch of held_time and local month; the costs are of all its GPUs. A GPU with a
-- price per hour costs that and no more: its own in the inventory, else its model's in the
-- settings. A bought one costs its purchase price over its depreciation time, a month's part by the
-- seconds of that month, until owed_until_at (NULL: without end); its power, as drawn in the mean
-- by the job, else (power_assumed) the board's limit, x site overhead x price of electricity; and
-- its rack. unpriced is what has neither price.
WITH drawn AS (
    SELECT coalesce(r.job_cluster, r.cluster, '') AS cluster_key, r.job_id,
        coalesce(r.attempt, 0) AS attempt_key,
        sum(r.gpus * r.period_s * r.power_w) / nullif(sum(r.gpus * r.period_s), 0) AS power_w
    FROM job_readings r
    WHERE r.job_id IS NOT NULL AND r.power_w IS NOT NULL
    GROUP BY coalesce(r.job_cluster, r.cluster, ''), r.job_id, coalesce(r.attempt, 0)
),
held_month AS (
    SELECT t.*, coalesce(t.cluster, '') AS cluster_key, coalesce(t.attempt, 0) AS attempt_key,
        unnest(split_bins(t.started_at, t.ended_at, 'month')) AS bin
    FROM held_time t
),
piece AS (
    SELECT h.*, h.bin['bin_started_at'] AS month_started_at,
        (CAST(h.bin['bin_ended_at'] AS BIGINT) - CAST(h.bin['bin_started_at'] AS BIGINT)) / 1000.0
            AS month_s,
        greatest(h.started_at, h.bin['bin_started_at']) AS from_at,
        least(h.ended_at, h.bin['bin_ended_at']) AS until_at,
        coalesce(g.gpu_model, h.gpu_model, '') AS model, g.price_per_hour AS own_per_hour,
        g.purchase_price AS own_price, g.depreciation_months AS own_months,
        CASE WHEN g.bought_at IS NOT NULL THEN arrow_cast(
            CAST(CAST(g.bought_at AS BIGINT) + coalesce(g.depreciation_months,
                depreciation_months(g.gpu_model)) * 2629746000.0 AS BIGINT),
            'Timestamp(Millisecond, Some("UTC"))') END AS owed_until_at,
        d.power_w
    FROM held_month h
    LEFT JOIN gpus g ON g.gpu_uuid = h.gpu_uuid
    LEFT JOIN drawn d
        ON d.job_id = h.job_id AND d.attempt_key = h.attempt_key AND d.cluster_key = h.cluster_key
),
priced AS (
    SELECT p.*,
        coalesce(p.own_per_hour, CASE WHEN p.own_price IS NULL THEN price_per_hour(p.model) END)
            AS per_hour,
        coalesce(p.own_price, purchase_price(p.model))
            / nullif(coalesce(p.own_months, depreciation_months(p.model)), 0) AS per_month,
        coalesce(p.power_w, board_power_w(p.model)) AS priced_w
    FROM piece p
)
SELECT p.month_started_at, p.cluster, p.job_id, p."user", p.team, p.project, p.workload,
    p."partition", p.gpus, p.from_at AS started_at, p.until_at AS ended_at, p.owed_until_at,
    p.per_hour IS NULL AND p.per_month IS NULL AS unpriced,
    p.gpus * p.per_hour / 3600 AS hourly_per_s,
    CASE WHEN p.per_hour IS NULL THEN p.gpus * p.per_month / p.month_s END AS depreciation_per_s,
    CASE WHEN p.per_hour IS NULL AND p.per_month IS NOT NULL THEN
        p.gpus * p.priced_w / 3600000 * e.pue * m.power_price_per_kwh END AS power_per_s,
    CASE WHEN p.per_hour IS NULL AND p.per_month IS NOT NULL THEN
        p.gpus * m.rack_cost_per_gpu_month / p.month_s END AS rack_per_s,
    p.power_w IS NULL AS power_assumed, m.currency
FROM priced p
CROSS JOIN config_money m
CROSS JOIN config_energy e
