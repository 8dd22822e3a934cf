-- GPUs installed and available in each local hour of the store, and how that is known.
-- columns: hour_started_at timestamp, cluster text, partition text, gpus_installed float64,
--          gpus_available float64, source text (inventory, counts or peak-held)
-- The inventory counts from the first sight of a GPU; without inventory or counts the most GPUs
-- ever held in an hour is a floor.
WITH counted AS (
    SELECT c.cluster, coalesce(c."partition", 'default') AS "partition",
        local_hour(c.counted_at) AS hour_started_at,
        sum(c.gpus_installed * c.period_s) / sum(c.period_s) AS gpus
    FROM gpu_counts c
    WHERE c.gpus_installed IS NOT NULL
    GROUP BY c.cluster, c."partition", local_hour(c.counted_at)
),
hours AS (
    SELECT DISTINCT d.hour_started_at FROM demand_hourly d
),
inventory AS (
    SELECT g.cluster, coalesce(g."partition", 'default') AS "partition", h.hour_started_at,
        CAST(count(*) AS DOUBLE) AS gpus
    FROM gpus g
    JOIN hours h ON coalesce(local_hour(g.first_seen_at) <= h.hour_started_at, true)
    GROUP BY g.cluster, g."partition", h.hour_started_at
),
peak AS (
    SELECT f.cluster, f."partition", max(f.gpus) AS gpus
    FROM (
        SELECT d.cluster, d."partition", d.hour_started_at, sum(d.gpus_held) AS gpus
        FROM demand_hourly d
        GROUP BY d.cluster, d."partition", d.hour_started_at
    ) AS f
    GROUP BY f.cluster, f."partition"
)
SELECT c.hour_started_at, c.cluster, c."partition", c.gpus AS gpus_installed,
    c.gpus AS gpus_available, 'counts' AS source
FROM counted c
UNION ALL
SELECT i.hour_started_at, i.cluster, i."partition", i.gpus AS gpus_installed,
    i.gpus AS gpus_available, 'inventory' AS source
FROM inventory i
UNION ALL
SELECT h.hour_started_at, p.cluster, p."partition", p.gpus AS gpus_installed,
    p.gpus AS gpus_available, 'peak-held' AS source
FROM peak p
CROSS JOIN hours h
WHERE (SELECT count(*) FROM counted) = 0 AND (SELECT count(*) FROM gpus) = 0
