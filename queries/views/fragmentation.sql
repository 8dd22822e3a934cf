-- Free GPUs of each pool at the store's latest instant, and the largest block on one node.
-- columns: cluster text, partition text, gpus_installed float64, gpus_down float64,
--          gpus_held float64, gpus_free float64, largest_free_block float64 [GPU],
--          node_gpus_max float64 [GPU], nodes_with_free int64, gpus_waiting float64
-- one row per pool. Without an inventory the counts are those of the latest hour and the blocks are
-- NULL: which node is free is not known.
WITH pools AS (
    SELECT f.cluster, f."partition",
        sum(f.gpus_installed) AS gpus_installed, sum(f.gpus_down) AS gpus_down,
        sum(f.gpus_held) AS gpus_held, sum(f.gpus_free) AS gpus_free,
        max(floor(f.gpus_free)) AS largest_free_block, max(f.gpus_installed) AS node_gpus_max,
        count(*) FILTER (WHERE f.gpus_free >= 1) AS nodes_with_free
    FROM node_free f
    GROUP BY f.cluster, f."partition"
),
last_hour AS (
    SELECT c.cluster, c."partition", max(c.hour_started_at) AS hour_started_at
    FROM capacity_hourly c
    GROUP BY c.cluster, c."partition"
),
counted AS (
    SELECT c.cluster, c."partition", max(c.gpus_installed) AS gpus_installed,
        max(c.gpus_down) AS gpus_down, max(c.gpus_available) AS gpus_available,
        coalesce(sum(d.gpus_held), 0) AS gpus_held
    FROM capacity_hourly c
    JOIN last_hour l
        ON l.hour_started_at = c.hour_started_at AND (l.cluster IS NOT DISTINCT FROM c.cluster)
        AND (l."partition" IS NOT DISTINCT FROM c."partition")
    LEFT JOIN demand_hourly d
        ON d.hour_started_at = c.hour_started_at AND (d.cluster IS NOT DISTINCT FROM c.cluster)
        AND (d."partition" IS NOT DISTINCT FROM c."partition")
    WHERE NOT EXISTS (
        SELECT 1 FROM pools p WHERE coalesce(p.cluster, '') = coalesce(c.cluster, '')
    )
    GROUP BY c.cluster, c."partition"
),
last_demand AS (
    SELECT max(d.hour_started_at) AS hour_started_at FROM demand_hourly d
),
waiting AS (
    SELECT d.cluster, d."partition", sum(d.gpus_waiting) AS gpus_waiting
    FROM demand_hourly d
    JOIN last_demand l ON l.hour_started_at = d.hour_started_at
    GROUP BY d.cluster, d."partition"
),
every AS (
    SELECT p.* FROM pools p
    UNION ALL
    SELECT c.cluster, c."partition", c.gpus_installed, c.gpus_down, c.gpus_held,
        greatest(c.gpus_available - c.gpus_held, 0) AS gpus_free,
        CAST(NULL AS DOUBLE) AS largest_free_block, CAST(NULL AS DOUBLE) AS node_gpus_max,
        CAST(NULL AS BIGINT) AS nodes_with_free
    FROM counted c
)
SELECT e.cluster, e."partition", e.gpus_installed, e.gpus_down, e.gpus_held, e.gpus_free,
    e.largest_free_block, e.node_gpus_max, e.nodes_with_free, w.gpus_waiting
FROM every e
LEFT JOIN waiting w
    ON (w.cluster IS NOT DISTINCT FROM e.cluster)
    AND (w."partition" IS NOT DISTINCT FROM e."partition")
