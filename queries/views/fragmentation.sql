-- Free GPUs of each pool at the store's latest instant, and the largest block on one node.
-- columns: cluster text, partition text, gpus_installed float64, gpus_down float64,
--          gpus_held float64, gpus_free float64, largest_free_block float64 [GPU],
--          node_gpus_max float64 [GPU], nodes_with_free int64, gpus_waiting float64,
--          source text
-- one row per pool. source is how what is installed is known, in the order of capacity_hourly:
-- config, inventory, counts or peak-held. GPUs of the inventory that are down are down in what the
-- settings install, too. Without an inventory of the pool's nodes, or where jobs hold GPUs and
-- nobody tells on which node of the inventory (see node_held), the blocks and nodes_with_free are
-- NULL: which node is free is not known. Jobs whose pool is not among these count in pool `default`
-- if there is one; where there is none, the pool has a row of what is held and waited for, and
-- nothing installed. Where nothing tells of jobs, what is held and free is NULL.
WITH latest AS (
    SELECT c.*, max(c.hour_started_at) OVER (PARTITION BY c.cluster, c."partition") AS last_at,
        max(c.hour_started_at) OVER () AS now_at
    FROM capacity_hourly c
),
known AS (
    SELECT 2 AS tried, 'inventory' AS source, f.cluster, f."partition",
        sum(f.gpus_installed) AS gpus_installed, sum(f.gpus_down) AS gpus_down,
        sum(f.gpus_held) AS gpus_held, sum(f.gpus_free) AS gpus_free,
        max(floor(f.gpus_free)) AS largest_free_block, max(f.gpus_installed) AS node_gpus_max,
        count(*) FILTER (WHERE f.gpus_free >= 1) AS nodes_with_free
    FROM node_free f
    GROUP BY f.cluster, f."partition"
    UNION ALL
    SELECT CASE WHEN l.source = 'config' THEN 1 ELSE 3 END AS tried, l.source, l.cluster,
        l."partition", l.gpus_installed, CAST(NULL AS DOUBLE) AS gpus_down,
        CAST(NULL AS DOUBLE) AS gpus_held, CAST(NULL AS DOUBLE) AS gpus_free,
        CAST(NULL AS DOUBLE) AS largest_free_block, CAST(NULL AS DOUBLE) AS node_gpus_max,
        CAST(NULL AS BIGINT) AS nodes_with_free
    FROM latest l
    WHERE l.source <> 'inventory'
        AND l.hour_started_at = CASE WHEN l.source = 'config' THEN l.now_at ELSE l.last_at END
),
first AS (
    SELECT k.*, min(k.tried) OVER (PARTITION BY k.cluster) AS first_tried,
        min(k.tried) OVER (PARTITION BY k.cluster, k."partition") AS pool_tried,
        min(CASE WHEN k."partition" = 'default' THEN k.tried END) OVER (PARTITION BY k.cluster)
            AS default_tried,
        min(CASE WHEN k.tried = 1 THEN k."partition" END) OVER (PARTITION BY k.cluster)
            AS first_pool,
        max(CASE WHEN k.tried = 1 THEN k."partition" END) OVER (PARTITION BY k.cluster)
            AS last_pool
    FROM known k
),
aimed AS (
    SELECT f.*,
        CASE WHEN f.first_tried > 1 OR f.pool_tried = 1 THEN f."partition"
            WHEN f.default_tried = 1 THEN 'default'
            WHEN f."partition" = 'default' AND f.first_pool = f.last_pool THEN f.first_pool
            END AS pool
    FROM first f
    WHERE f.tried = f.first_tried OR f.first_tried = 1 AND f.tried = 2
),
sized AS (
    SELECT a.cluster, a.pool, min(a.tried) AS tried,
        max(CASE WHEN a.tried = a.first_tried THEN a.source END) AS source,
        sum(CASE WHEN a.tried = a.first_tried THEN a.gpus_installed END) AS gpus_installed,
        coalesce(sum(a.gpus_down), 0) AS gpus_down, sum(a.gpus_held) AS gpus_held,
        sum(a.gpus_free) AS gpus_free,
        max(CASE WHEN a.pool = a."partition" THEN a.largest_free_block END) AS largest_free_block,
        max(CASE WHEN a.pool = a."partition" THEN a.node_gpus_max END) AS node_gpus_max,
        sum(CASE WHEN a.pool = a."partition" THEN a.nodes_with_free END) AS nodes_with_free
    FROM aimed a
    WHERE a.pool IS NOT NULL
    GROUP BY a.cluster, a.pool
),
counted AS (
    SELECT c.cluster, c."partition", c.gpus_held, c.gpus_waiting, c.counted_at,
        max(c.counted_at) OVER (PARTITION BY c.cluster, c."partition", c.team) AS last_at
    FROM counts c
),
asked AS (
    SELECT h.cluster, h."partition", h.gpus AS held,
        CASE WHEN i.node IS NULL THEN h.gpus ELSE 0 END AS unplaced, 0.0 AS waiting
    FROM node_held h
    LEFT JOIN (SELECT DISTINCT g.cluster, g.node FROM gpus g WHERE g.node IS NOT NULL) i
        ON i.node = h.node AND (i.cluster IS NOT DISTINCT FROM h.cluster)
    UNION ALL
    SELECT j.cluster, coalesce(j."partition", 'default') AS "partition", 0.0 AS held,
        0.0 AS unplaced, j.gpus_asked AS waiting
    FROM attempts j
    WHERE j.waits
    UNION ALL
    SELECT c.cluster, c."partition", c.gpus_held AS held, 0.0 AS unplaced, c.gpus_waiting AS waiting
    FROM counted c
    WHERE c.counted_at = c.last_at
),
every AS (
    SELECT f.cluster, f.pool, f.tried, f.source, f.gpus_installed, f.gpus_down,
        f.gpus_held, f.gpus_free, f.largest_free_block, f.node_gpus_max, f.nodes_with_free,
        0.0 AS held, 0.0 AS unplaced, 0.0 AS waiting
    FROM sized f
    UNION ALL
    SELECT a.cluster, a."partition" AS pool, CAST(NULL AS BIGINT) AS tried,
        CAST(NULL AS VARCHAR) AS source, CAST(NULL AS DOUBLE) AS gpus_installed,
        CAST(NULL AS DOUBLE) AS gpus_down,
        CAST(NULL AS DOUBLE) AS gpus_held, CAST(NULL AS DOUBLE) AS gpus_free,
        CAST(NULL AS DOUBLE) AS largest_free_block, CAST(NULL AS DOUBLE) AS node_gpus_max,
        CAST(NULL AS BIGINT) AS nodes_with_free, a.held, a.unplaced, a.waiting
    FROM asked a
),
placed AS (
    SELECT e.*,
        CASE WHEN count(e.tried) OVER (PARTITION BY e.cluster, e.pool) = 0
            AND count(CASE WHEN e.pool = 'default' THEN e.tried END) OVER (
                PARTITION BY e.cluster
            ) > 0
        THEN 'default' ELSE e.pool END AS "partition"
    FROM every e
),
summed AS (
    SELECT p.cluster, p."partition", max(p.tried) AS tried, max(p.source) AS source,
        max(p.gpus_installed) AS gpus_installed,
        least(max(p.gpus_down), max(p.gpus_installed)) AS gpus_down,
        max(p.gpus_held) AS gpus_held, max(p.gpus_free) AS gpus_free,
        max(p.largest_free_block) AS largest_free_block, max(p.node_gpus_max) AS node_gpus_max,
        max(p.nodes_with_free) AS nodes_with_free, sum(p.held) AS held,
        sum(p.unplaced) AS unplaced, sum(p.waiting) AS waiting
    FROM placed p
    GROUP BY p.cluster, p."partition"
),
standing AS (
    SELECT s.*,
        CASE WHEN s.tried = 2 THEN s.gpus_held + s.unplaced ELSE s.held END AS held_now,
        CASE WHEN s.tried = 2 THEN greatest(s.gpus_free - s.unplaced, 0)
            ELSE greatest(s.gpus_installed - s.gpus_down - s.held, 0) END AS free_now
    FROM summed s
    WHERE s.tried IS NOT NULL OR s.held + s.waiting > 0
)
SELECT c.cluster, c."partition", c.gpus_installed, c.gpus_down,
    CASE WHEN l.cluster_key IS NOT NULL THEN c.held_now END AS gpus_held,
    CASE WHEN l.cluster_key IS NOT NULL THEN c.free_now END AS gpus_free,
    CASE WHEN l.cluster_key IS NOT NULL AND c.unplaced = 0 AND c.largest_free_block IS NOT NULL
        THEN least(c.largest_free_block, floor(c.free_now)) END AS largest_free_block,
    c.node_gpus_max,
    CASE WHEN l.cluster_key IS NOT NULL AND c.unplaced = 0 THEN c.nodes_with_free END
        AS nodes_with_free,
    coalesce(c.waiting, 0) AS gpus_waiting, c.source
FROM standing c
LEFT JOIN ledgers l ON l.cluster_key = coalesce(c.cluster, '')
