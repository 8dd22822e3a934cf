-- Free GPUs of each pool at the store's latest instant, and the largest block on one node.
-- columns: cluster text, partition text, gpus_installed float64, gpus_down float64,
--          gpus_held float64, gpus_free float64, largest_free_block float64 [GPU],
--          node_gpus_max float64 [GPU], nodes_with_free int64, gpus_waiting float64,
--          source text
-- one row per pool. Without an inventory the size of a pool is that of its latest hour. Where that
-- is so, or jobs hold GPUs and nobody tells on which node, the blocks and nodes_with_free are NULL:
-- which node is free is not known. Jobs whose pool is not among these count in pool `default` if
-- there is one. source is how what is installed is known: inventory, else as in capacity_hourly.
WITH latest AS (
    SELECT c.*, max(c.hour_started_at) OVER (PARTITION BY c.cluster, c."partition") AS last_at
    FROM capacity_hourly c
),
known AS (
    SELECT 1 AS tried, 'inventory' AS source, f.cluster, f."partition",
        sum(f.gpus_installed) AS gpus_installed, sum(f.gpus_down) AS gpus_down,
        sum(f.gpus_held) AS gpus_held, sum(f.gpus_free) AS gpus_free,
        max(floor(f.gpus_free)) AS largest_free_block, max(f.gpus_installed) AS node_gpus_max,
        count(*) FILTER (WHERE f.gpus_free >= 1) AS nodes_with_free
    FROM node_free f
    GROUP BY f.cluster, f."partition"
    UNION ALL
    SELECT 2 AS tried, l.source, l.cluster, l."partition", l.gpus_installed, l.gpus_down,
        CAST(NULL AS DOUBLE) AS gpus_held, CAST(NULL AS DOUBLE) AS gpus_free,
        CAST(NULL AS DOUBLE) AS largest_free_block, CAST(NULL AS DOUBLE) AS node_gpus_max,
        CAST(NULL AS BIGINT) AS nodes_with_free
    FROM latest l
    WHERE l.hour_started_at = l.last_at
),
first AS (
    SELECT k.*, min(k.tried) OVER (PARTITION BY k.cluster) AS first_tried FROM known k
),
counted AS (
    SELECT c.cluster, c."partition", c.gpus_held, c.gpus_waiting, c.counted_at,
        max(c.counted_at) OVER (PARTITION BY c.cluster, c."partition", c.team) AS last_at
    FROM gpu_counts c
),
asked AS (
    SELECT h.cluster, h."partition", h.gpus AS held,
        CASE WHEN h.node IS NULL THEN h.gpus ELSE 0 END AS unplaced, 0.0 AS waiting
    FROM holdings h
    WHERE h.started_at <= as_of() AND h.ended_at >= as_of()
    UNION ALL
    SELECT j.cluster, coalesce(j."partition", 'default') AS "partition", 0.0 AS held,
        0.0 AS unplaced, j.gpus_requested AS waiting
    FROM jobs j
    WHERE j.started_at IS NULL AND j.ended_at IS NULL AND j.submitted_at <= as_of()
    UNION ALL
    SELECT c.cluster, coalesce(c."partition", 'default') AS "partition", c.gpus_held AS held,
        0.0 AS unplaced, c.gpus_waiting AS waiting
    FROM counted c
    WHERE c.counted_at = c.last_at
),
every AS (
    SELECT f.cluster, f."partition" AS pool, f.tried, f.source, f.gpus_installed, f.gpus_down,
        f.gpus_held, f.gpus_free, f.largest_free_block, f.node_gpus_max, f.nodes_with_free,
        0.0 AS held, 0.0 AS unplaced, 0.0 AS waiting
    FROM first f
    WHERE f.tried = f.first_tried
    UNION ALL
    SELECT a.cluster, a."partition" AS pool, CAST(NULL AS BIGINT) AS tried,
        CAST(NULL AS VARCHAR) AS source, CAST(NULL AS DOUBLE) AS gpus_installed, CAST(NULL AS DOUBLE) AS gpus_down,
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
        max(p.gpus_installed) AS gpus_installed, max(p.gpus_down) AS gpus_down,
        max(p.gpus_held) AS gpus_held, max(p.gpus_free) AS gpus_free,
        max(p.largest_free_block) AS largest_free_block, max(p.node_gpus_max) AS node_gpus_max,
        max(p.nodes_with_free) AS nodes_with_free, sum(p.held) AS held,
        sum(p.unplaced) AS unplaced, sum(p.waiting) AS waiting
    FROM placed p
    GROUP BY p.cluster, p."partition"
)
SELECT s.cluster, s."partition", s.gpus_installed, s.gpus_down,
    CASE WHEN s.tried = 1 THEN s.gpus_held + s.unplaced ELSE s.held END AS gpus_held,
    CASE WHEN s.tried = 1 THEN greatest(s.gpus_free - s.unplaced, 0)
        ELSE greatest(s.gpus_installed - s.gpus_down - s.held, 0) END AS gpus_free,
    CASE WHEN s.unplaced = 0 THEN s.largest_free_block END AS largest_free_block,
    s.node_gpus_max,
    CASE WHEN s.unplaced = 0 THEN s.nodes_with_free END AS nodes_with_free,
    coalesce(s.waiting, 0) AS gpus_waiting, s.source
FROM summed s
WHERE s.tried IS NOT NULL
