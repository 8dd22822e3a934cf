-- GPU-hours held while idle for ten minutes or more, by team, user and pool, and their worth.
-- parameters: $from timestamp, $until timestamp, $idle_util_ratio float64 = 0.05,
--             $sustained_s float64 = 600
-- columns:    team text, user text, partition text, gpu_hours_held float64 [GPU·h],
--             gpu_hours_observed float64 [GPU·h], gpu_hours_idle float64 [GPU·h],
--             idle_ratio float64 [0-1], coverage_ratio float64 [0-1],
--             cost_idle float64 [currency], jobs_idle int64
-- one row per team, user and pool with GPUs held in [$from, $until), clipped exactly; ordered by
-- gpu_hours_idle, most first, then team, user and pool. Idle: activity below $idle_util_ratio for
-- $sustained_s seconds (ten minutes unless given) or more at a stretch, less suspension; shorter
-- pauses count as work. idle_ratio is
-- idle / observed, coverage_ratio observed / held; both, and the idle hours, are NULL where nothing
-- was observed. cost_idle is NULL where a GPU has no price: the inventory's, else the configured
-- one, by the hour or written off over 730.5 hours a month.
WITH read AS (
    SELECT
        s.cluster, s.job_id, s.attempt, s.gpu_uuid, s.gpu_model, s.mig, s.ended_at,
        s.gpu_key,
        (CAST(least(s.ended_at, $until) AS BIGINT)
            - CAST(greatest(s.started_at, $from) AS BIGINT)) / 1000.0 * s.used_ratio AS period_s,
        (CAST(least(s.ended_at, $until) AS BIGINT)
            - CAST(greatest(s.started_at, $from) AS BIGINT)) / 1000.0 * s.gpus AS held_s,
        CASE WHEN s.util_ratio < $idle_util_ratio THEN 0 ELSE 1 END AS busy
    FROM job_readings s
    WHERE s.job_id IS NOT NULL AND s.util_ratio IS NOT NULL
        AND s.ended_at > $from AND s.started_at < $until
),
run AS (
    SELECT r.*,
        sum(r.busy) OVER (
            PARTITION BY r.cluster, r.job_id, r.attempt, r.gpu_key, r.mig ORDER BY r.ended_at
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS run_id
    FROM read r
),
stretch AS (
    SELECT r.cluster, r.job_id, r.attempt, r.gpu_uuid, r.run_id, max(r.gpu_model) AS gpu_model,
        sum(r.held_s) AS held_s,
        coalesce(sum(r.period_s) FILTER (WHERE r.busy = 0), 0) AS idle_run_s,
        coalesce(sum(r.held_s) FILTER (WHERE r.busy = 0), 0) AS idle_s
    FROM run r
    GROUP BY r.cluster, r.job_id, r.attempt, r.gpu_uuid, r.gpu_key, r.mig, r.run_id
),
priced AS (
    SELECT t.*,
        coalesce(
            g.price_per_hour,
            price_per_hour(t.gpu_model),
            coalesce(g.purchase_price, purchase_price(t.gpu_model))
                / nullif(coalesce(g.depreciation_months, depreciation_months(t.gpu_model)), 0)
                / 730.5
        ) AS hourly_price,
        CASE WHEN t.idle_s > 0 AND t.idle_run_s >= $sustained_s THEN t.idle_s ELSE 0 END
            AS counted_s
    FROM stretch t
    LEFT JOIN gpus g ON g.gpu_uuid = t.gpu_uuid
),
by_job AS (
    SELECT p.cluster, p.job_id, p.attempt,
        sum(p.held_s) / 3600 AS gpu_hours_observed,
        sum(p.counted_s) / 3600 AS gpu_hours_idle,
        CASE WHEN count(*) FILTER (WHERE p.counted_s > 0 AND p.hourly_price IS NULL) = 0
            THEN coalesce(sum(p.counted_s / 3600 * p.hourly_price), 0) END AS cost_idle
    FROM priced p
    GROUP BY p.cluster, p.job_id, p.attempt
),
held AS (
    SELECT h.cluster, h.job_id, h.attempt, h.team, h."user", h."partition",
        sum(
            (date_part('epoch', least(h.ended_at, $until))
                - date_part('epoch', greatest(h.started_at, $from))) / 3600
            * h.gpus * h.used_ratio
        ) AS gpu_hours_held
    FROM holdings h
    WHERE h.started_at < $until AND h.ended_at > $from
    GROUP BY h.cluster, h.job_id, h.attempt, h.team, h."user", h."partition"
),
joined AS (
    SELECT coalesce(h.cluster, b.cluster) AS cluster, coalesce(h.job_id, b.job_id) AS job_id,
        coalesce(h.attempt, b.attempt) AS attempt, h.job_id IS NOT NULL AS ledgered,
        h.team, h."user", h."partition", h.gpu_hours_held, b.gpu_hours_observed,
        b.gpu_hours_idle, b.cost_idle
    FROM held h
    FULL JOIN by_job b
        ON b.job_id = h.job_id AND coalesce(b.cluster, '') = coalesce(h.cluster, '')
        AND coalesce(b.attempt, -1) = coalesce(h.attempt, -1)
),
told AS (
    SELECT t.gpu_hours_held, t.gpu_hours_observed, t.gpu_hours_idle, t.cost_idle,
        CASE WHEN t.ledgered THEN t.team ELSE j.team END AS team,
        CASE WHEN t.ledgered THEN t."user" ELSE j."user" END AS "user",
        CASE WHEN t.ledgered THEN t."partition" ELSE coalesce(j."partition", 'default') END
            AS "partition"
    FROM joined t
    LEFT JOIN jobs j
        ON NOT t.ledgered AND j.job_id = t.job_id AND (j.cluster IS NOT DISTINCT FROM t.cluster)
        AND (j.attempt IS NOT DISTINCT FROM t.attempt)
)
SELECT
    j.team, j."user", j."partition",
    sum(j.gpu_hours_held) AS gpu_hours_held,
    sum(j.gpu_hours_observed) AS gpu_hours_observed,
    sum(j.gpu_hours_idle) AS gpu_hours_idle,
    sum(j.gpu_hours_idle) / nullif(sum(j.gpu_hours_observed), 0) AS idle_ratio,
    coalesce(sum(j.gpu_hours_observed), 0) / nullif(sum(j.gpu_hours_held), 0) AS coverage_ratio,
    CASE WHEN count(*) FILTER (WHERE j.gpu_hours_idle > 0 AND j.cost_idle IS NULL) = 0
        THEN sum(j.cost_idle) END AS cost_idle,
    count(*) FILTER (WHERE j.gpu_hours_idle > 0) AS jobs_idle
FROM told j
GROUP BY j.team, j."user", j."partition"
ORDER BY gpu_hours_idle DESC NULLS LAST, j.team, j."user", j."partition"
