-- GPUs installed, down and available in each local hour of the store, by pool, and how that is
-- known.
-- columns: hour_started_at timestamp, cluster text, partition text, gpus_installed float64 [GPU],
--          gpus_down float64 [GPU], gpus_available float64 [GPU],
--          source text (config, inventory, counts or peak-held)
-- One source for each cluster, the first that there is: the settings, the inventory (a GPU counts
-- whole local hours until it is retired or replaced, reporting or not), counts, or the most GPUs
-- ever held at once, which is a floor: of a GPU that is not named, less suspension. gpus_down is
-- the mean over the hour of the GPUs of the inventory whose state says so. Of what the settings
-- install those of the same pool are down, else in pool `default`, or of no pool in the only one.
-- available = installed - down; a GPU is not down while a job holds it, so held + free + down =
-- installed.
WITH hours AS (
    SELECT h.bin['bin_started_at'] AS hour_started_at, h.bin['bin_ended_at'] AS hour_ended_at,
        h.bin['elapsed_s'] AS elapsed_s
    FROM (SELECT unnest(split_bins(span_started_at(), as_of(), 'hour')) AS bin) h
),
held AS (
    SELECT coalesce(d.cluster, '') AS cluster_key, d."partition" AS pool, d.hour_started_at,
        sum(d.gpus_held) AS gpus
    FROM demand_hourly d
    GROUP BY coalesce(d.cluster, ''), d."partition", d.hour_started_at
),
device AS (
    SELECT coalesce(g.cluster, '') AS cluster_key, g."partition" AS pool,
        g.installed_from_at AS from_at, coalesce(g.installed_until_at, as_of()) AS until_at,
        g.down_from_at AS down_at, CAST(count(*) AS DOUBLE) AS gpus
    FROM gpu_service g
    GROUP BY coalesce(g.cluster, ''), g."partition", g.installed_from_at,
        coalesce(g.installed_until_at, as_of()), g.down_from_at
),
inventory AS (
    SELECT d.cluster_key, d.pool, h.hour_started_at, sum(d.gpus) AS gpus,
        coalesce(sum(d.gpus * (CAST(least(h.hour_ended_at, as_of()) AS BIGINT)
            - CAST(greatest(d.down_at, h.hour_started_at, span_started_at()) AS BIGINT))
            / (h.elapsed_s * 1000)) FILTER (
                WHERE d.down_at < h.hour_ended_at AND d.down_at < as_of()), 0) AS down
    FROM device d
    JOIN hours h ON d.from_at < h.hour_ended_at AND d.until_at > h.hour_started_at
    GROUP BY d.cluster_key, d.pool, h.hour_started_at
),
counted AS (
    SELECT coalesce(c.cluster, '') AS cluster_key, c.pool, c.hour_started_at, sum(c.gpus) AS gpus
    FROM (
        SELECT r.cluster, r."partition" AS pool, r.team, r.hour_started_at,
            sum(r.gpus_installed * r.period_s) / sum(r.period_s) AS gpus
        FROM counts r
        WHERE r.gpus_installed IS NOT NULL AND r.period_s > 0
        GROUP BY r.cluster, r."partition", r.team, r.hour_started_at
    ) c
    GROUP BY coalesce(c.cluster, ''), c.pool, c.hour_started_at
),
named AS (
    SELECT coalesce(j.cluster, '') AS cluster_key FROM jobs j
    UNION SELECT coalesce(a.cluster, '') AS cluster_key FROM allocations a
    UNION SELECT d.cluster_key FROM device d
    UNION SELECT coalesce(r.cluster, '') AS cluster_key FROM gpu_counts r
),
configured AS (
    SELECT k.cluster_key, s."partition" AS pool, h.hour_started_at, s.gpus
    FROM config_capacity s
    JOIN named k ON coalesce(s.cluster, k.cluster_key) = k.cluster_key
    JOIN hours h ON coalesce(s.from_at < h.hour_ended_at, true)
        AND coalesce(s.until_at >= h.hour_ended_at, true)
),
certain AS (
    SELECT coalesce(h.cluster, '') AS cluster_key, h."partition" AS pool, h.started_at, h.ended_at,
        CASE WHEN h.used_ratio > 0 AND h.gpu_uuid IS NOT NULL AND NOT h.shared THEN h.gpus
            ELSE h.gpus * h.used_ratio END AS gpus,
        CASE WHEN h.used_ratio > 0 THEN h.gpus END AS gpus_alone
    FROM holdings h
),
moment AS (
    SELECT c.cluster_key, c.pool, c.started_at AS at, c.gpus AS step, 1 AS starts FROM certain c
    UNION ALL
    SELECT c.cluster_key, c.pool, c.ended_at AS at, -c.gpus AS step, 0 AS starts FROM certain c
),
concurrent AS (
    SELECT m.cluster_key, m.pool, sum(m.step) OVER (
        PARTITION BY m.cluster_key, m.pool ORDER BY m.at, m.starts ROWS UNBOUNDED PRECEDING
    ) AS gpus
    FROM moment m
    UNION ALL
    SELECT coalesce(c.cluster, '') AS cluster_key, c."partition" AS pool, sum(c.gpus_held) AS gpus
    FROM counts c
    GROUP BY coalesce(c.cluster, ''), c."partition", c.counted_at
),
peak AS (
    SELECT p.cluster_key, p.pool, round(max(p.gpus), 6) AS gpus
    FROM (
        SELECT c.cluster_key, c.pool, c.gpus FROM concurrent c
        UNION ALL
        SELECT c.cluster_key, c.pool, c.gpus_alone AS gpus FROM certain c
    ) p
    WHERE p.gpus > 0
    GROUP BY p.cluster_key, p.pool
),
ranked AS (
    SELECT c.cluster_key, c.pool, c.hour_started_at, c.gpus, 0.0 AS down, 'config' AS source,
        1 AS tried
    FROM configured c
    UNION ALL
    SELECT i.cluster_key, i.pool, i.hour_started_at, i.gpus, i.down, 'inventory' AS source,
        2 AS tried
    FROM inventory i
    UNION ALL
    SELECT c.cluster_key, c.pool, c.hour_started_at, c.gpus, 0.0 AS down, 'counts' AS source,
        3 AS tried
    FROM counted c
    UNION ALL
    SELECT p.cluster_key, p.pool, h.hour_started_at, p.gpus, 0.0 AS down, 'peak-held' AS source,
        4 AS tried
    FROM peak p
    CROSS JOIN hours h
),
first AS (
    SELECT r.*, min(r.tried) OVER (PARTITION BY r.cluster_key) AS first_tried,
        min(r.tried) OVER (PARTITION BY r.cluster_key, r.pool) AS pool_tried,
        min(CASE WHEN r.pool = 'default' THEN r.tried END) OVER (PARTITION BY r.cluster_key)
            AS default_tried,
        min(CASE WHEN r.tried = 1 THEN r.pool END) OVER (PARTITION BY r.cluster_key) AS first_pool,
        max(CASE WHEN r.tried = 1 THEN r.pool END) OVER (PARTITION BY r.cluster_key) AS last_pool
    FROM ranked r
),
placed AS (
    SELECT f.*,
        CASE WHEN f.pool_tried = 1 THEN f.pool WHEN f.default_tried = 1 THEN 'default'
            WHEN f.pool = 'default' AND f.first_pool = f.last_pool THEN f.first_pool END
            AS down_pool
    FROM first f
),
known AS (
    SELECT p.*,
        CASE WHEN p.tried = 1 THEN least(coalesce(sum(CASE WHEN p.tried = 2 THEN p.down END) OVER (
            PARTITION BY p.cluster_key, p.down_pool, p.hour_started_at
        ), 0), p.gpus) ELSE p.down END AS gpus_down
    FROM placed p
)
SELECT k.hour_started_at, nullif(k.cluster_key, '') AS cluster, k.pool AS "partition",
    k.gpus AS gpus_installed, k.gpus_down, k.gpus - k.gpus_down AS gpus_available, k.source
FROM known k
WHERE k.tried = k.first_tried
