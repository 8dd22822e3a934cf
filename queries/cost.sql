-- What the GPUs that each team held cost, by local month.
-- parameters: $from timestamp, $until timestamp,
--             $by text = 'team' of team|user|project|workload|pool|fleet
-- columns: month_started_at timestamp, held_by text,
--          gpu_hours_held float64 [GPU·h], gpu_hours_unpriced float64 [GPU·h],
--          cost_hourly float64 [currency], cost_depreciation float64 [currency],
--          cost_power float64 [currency], cost_rack float64 [currency], cost float64 [currency],
--          currency text, cost_basis text
-- one row per month and holder (team, user, project, workload, pool or fleet) in [$from, $until),
-- clipped exactly; ordered by month, then cost, highest first, then name.
-- A GPU with a price per hour costs that and no more: its own in the inventory, else its model's
-- in the settings. A bought one costs its purchase price over its depreciation time until it is
-- written off, its power (mean drawn by the job, else the board's limit, x site overhead x price
-- of electricity) and its rack. What has no price is unknown, not free: `cost` is NULL where any
-- hour held is unpriced, gpu_hours_unpriced says how many are, cost_basis what the cost is made
-- of.
WITH drawn AS (
    SELECT coalesce(r.job_cluster, r.cluster, '') AS cluster_key, r.job_id,
        coalesce(r.attempt, 0) AS attempt_key,
        sum(r.gpus * r.period_s * r.power_w) / nullif(sum(r.gpus * r.period_s), 0) AS power_w
    FROM job_readings r
    WHERE r.job_id IS NOT NULL AND r.power_w IS NOT NULL
    GROUP BY coalesce(r.job_cluster, r.cluster, ''), r.job_id, coalesce(r.attempt, 0)
),
held AS (
    SELECT CASE $by WHEN 'team' THEN t.team WHEN 'user' THEN t."user"
            WHEN 'project' THEN t.project WHEN 'workload' THEN t.workload
            WHEN 'pool' THEN t."partition" WHEN 'fleet' THEN 'fleet' END AS held_by,
        coalesce(t.cluster, '') AS cluster_key, t.job_id, coalesce(t.attempt, 0) AS attempt_key,
        t.gpu_uuid, t.gpu_model, t.gpus, greatest(t.started_at, $from) AS from_at,
        least(t.ended_at, $until) AS until_at
    FROM held_time t
    WHERE t.started_at < $until AND t.ended_at > $from
        AND $by IN ('team', 'user', 'project', 'workload', 'pool', 'fleet')
),
held_month AS (
    SELECT h.held_by, h.cluster_key, h.job_id, h.attempt_key, h.gpu_uuid, h.gpu_model, h.gpus,
        h.from_at, unnest(split_bins(h.from_at, h.until_at, 'month')) AS bin
    FROM held h
),
piece AS (
    SELECT h.held_by, h.bin['bin_started_at'] AS month_started_at, h.gpus,
        (CAST(h.bin['bin_ended_at'] AS BIGINT) - CAST(h.bin['bin_started_at'] AS BIGINT)) / 1000.0
            AS month_s,
        h.bin['elapsed_s'] AS held_s, CAST(greatest(h.from_at, h.bin['bin_started_at']) AS BIGINT)
            AS from_ms,
        coalesce(g.gpu_model, h.gpu_model, '') AS model, g.price_per_hour AS own_per_hour,
        g.purchase_price AS own_price, g.depreciation_months AS own_months,
        CASE WHEN g.bought_at IS NOT NULL THEN CAST(g.bought_at AS BIGINT)
            + coalesce(g.depreciation_months, depreciation_months(g.gpu_model)) * 2629746000.0
        END AS written_off_ms,
        d.power_w
    FROM held_month h
    LEFT JOIN gpus g ON g.gpu_uuid = h.gpu_uuid
    LEFT JOIN drawn d
        ON d.job_id = h.job_id AND d.attempt_key = h.attempt_key AND d.cluster_key = h.cluster_key
),
device AS (
    SELECT p.held_by, p.month_started_at, p.month_s, p.model, p.own_per_hour, p.own_price,
        p.own_months,
        sum(p.gpus * p.held_s) AS gpu_s,
        sum(p.gpus * CASE WHEN p.written_off_ms IS NULL THEN p.held_s
            ELSE least(greatest((p.written_off_ms - p.from_ms) / 1000.0, 0), p.held_s) END)
            AS owed_s,
        coalesce(sum(p.gpus * p.held_s) FILTER (WHERE p.power_w IS NULL), 0) AS unread_s,
        coalesce(sum(p.gpus * p.held_s * p.power_w), 0) AS read_j
    FROM piece p
    GROUP BY p.held_by, p.month_started_at, p.month_s, p.model, p.own_per_hour, p.own_price,
        p.own_months
),
priced AS (
    SELECT d.*,
        coalesce(d.own_per_hour, CASE WHEN d.own_price IS NULL THEN price_per_hour(d.model) END)
            AS per_hour,
        coalesce(d.own_price, purchase_price(d.model))
            / nullif(coalesce(d.own_months, depreciation_months(d.model)), 0) AS per_month,
        d.read_j + CASE WHEN d.unread_s > 0 THEN d.unread_s * board_power_w(d.model) ELSE 0 END
            AS energy_j
    FROM device d
),
part AS (
    SELECT p.held_by, p.month_started_at, p.gpu_s / 3600 AS gpu_hours,
        p.per_hour IS NULL AND p.per_month IS NULL AS unpriced,
        p.gpu_s / 3600 * p.per_hour AS hourly,
        CASE WHEN p.per_hour IS NULL THEN p.owed_s / p.month_s * p.per_month END AS written_off,
        CASE WHEN p.per_hour IS NULL AND p.per_month IS NOT NULL THEN
            p.energy_j / 3600000 * e.pue * m.power_price_per_kwh END AS power,
        CASE WHEN p.per_hour IS NULL AND p.per_month IS NOT NULL THEN
            p.gpu_s / p.month_s * m.rack_cost_per_gpu_month END AS rack,
        p.unread_s > 0 AS assumed, m.currency
    FROM priced p
    CROSS JOIN config_money m
    CROSS JOIN config_energy e
)
SELECT p.month_started_at, coalesce(p.held_by, '(none)') AS held_by,
    sum(p.gpu_hours) AS gpu_hours_held,
    coalesce(sum(p.gpu_hours) FILTER (WHERE p.unpriced), 0) AS gpu_hours_unpriced,
    sum(p.hourly) AS cost_hourly, sum(p.written_off) AS cost_depreciation,
    sum(p.power) AS cost_power,
    sum(p.rack) AS cost_rack,
    CASE WHEN count(*) FILTER (WHERE p.unpriced) = 0 THEN
        coalesce(sum(p.hourly), 0) + coalesce(sum(p.written_off), 0) + coalesce(sum(p.power), 0)
            + coalesce(sum(p.rack), 0) END AS cost,
    max(p.currency) AS currency,
    nullif(concat_ws(', ',
        CASE WHEN count(p.hourly) > 0 THEN 'price per GPU-hour' END,
        CASE WHEN count(p.written_off) > 0 THEN 'depreciation' END,
        CASE WHEN count(p.power) FILTER (WHERE p.assumed) > 0
            THEN 'power (part at the board limit)'
            WHEN count(p.power) > 0 THEN 'power' END,
        CASE WHEN count(p.rack) > 0 THEN 'rack' END
    ), '') AS cost_basis
FROM part p
GROUP BY p.month_started_at, p.held_by
ORDER BY p.month_started_at, cost DESC NULLS LAST, held_by
