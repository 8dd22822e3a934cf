-- What the GPUs that each team held cost in each local month.
-- columns: month_started_at timestamp, cluster text, team text,
--          gpu_hours_held float64 [GPU·h], gpu_hours_unpriced float64 [GPU·h],
--          cost_hourly float64 [currency], cost_depreciation float64 [currency],
--          cost_power float64 [currency], cost_rack float64 [currency], cost float64 [currency],
--          currency text, cost_basis text
-- one row per month, cluster and team; months sum to the year, teams to the fleet.
-- A GPU with a price per hour costs that and no more: its own in the inventory, else its model's
-- in the settings. A bought one costs its purchase price over its depreciation time until it is
-- written off, its power (mean drawn by the job, else the board's limit, x site overhead x price
-- of electricity) and its rack. What has no price is unknown, not free: `cost` is NULL where any
-- hour held is unpriced, gpu_hours_unpriced says how many are, cost_basis what the cost is made
-- of.
WITH piece AS (
    SELECT c.*, CAST(c.started_at AS BIGINT) AS from_ms,
        (CAST(c.ended_at AS BIGINT) - CAST(c.started_at AS BIGINT)) / 1000.0 AS held_s
    FROM cost_pieces c
),
timed AS (
    SELECT p.*,
        p.held_s * p.hourly_per_s AS hourly, p.held_s * p.power_per_s AS power,
        p.held_s * p.rack_per_s AS rack,
        p.depreciation_per_s * CASE WHEN p.owed_until_at IS NULL THEN p.held_s
            ELSE least(greatest((CAST(p.owed_until_at AS BIGINT) - p.from_ms) / 1000.0, 0),
                p.held_s) END AS depreciation
    FROM piece p
)
SELECT t.month_started_at, t.cluster, t.team,
    sum(t.gpus * t.held_s) / 3600 AS gpu_hours_held,
    coalesce(sum(t.gpus * t.held_s) FILTER (WHERE t.unpriced), 0) / 3600 AS gpu_hours_unpriced,
    sum(t.hourly) AS cost_hourly, sum(t.depreciation) AS cost_depreciation,
    sum(t.power) AS cost_power, sum(t.rack) AS cost_rack,
    CASE WHEN count(*) FILTER (WHERE t.unpriced) = 0 THEN
        coalesce(sum(t.hourly), 0) + coalesce(sum(t.depreciation), 0) + coalesce(sum(t.power), 0)
            + coalesce(sum(t.rack), 0) END AS cost,
    max(t.currency) AS currency,
    nullif(concat_ws(', ',
        CASE WHEN count(t.hourly) > 0 THEN 'price per GPU-hour' END,
        CASE WHEN count(t.depreciation) > 0 THEN 'depreciation' END,
        CASE WHEN count(t.power) FILTER (WHERE t.power_assumed) > 0
            THEN 'power (part at the board limit)'
            WHEN count(t.power) > 0 THEN 'power' END,
        CASE WHEN count(t.rack) > 0 THEN 'rack' END
    ), '') AS cost_basis
FROM timed t
GROUP BY t.month_started_at, t.cluster, t.team
