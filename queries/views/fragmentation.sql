-- Free GPUs of each pool at the store's latest instant, and the largest block on one node.
-- columns: cluster text, partition text, gpus_installed float64, gpus_down float64,
--          gpus_held float64, gpus_free float64, largest_free_block float64 [GPU],
--          node_gpus_max float64 [GPU], nodes_with_free int64, gpus_waiting float64
-- one row per pool. Without an inventory the size of a pool is that of its latest hour and the
-- blocks are NULL: which node is free is not known.
WITH latest AS (
    SELECT c.*, max(c.hour_started_at) OVER (PARTITION BY c.cluster, c."partition") AS last_at
    FROM capacity_hourly c
),
known AS (
    SELECT 1 AS tried, f.cluster, f."partition",
        sum(f.gpus_installed) AS gpus_installed, sum(f.gpus_down) AS gpus_down,
        sum(f.gpus_held) AS gpus_held, sum(f.gpus_free) AS gpus_free,
        max(floor(f.gpus_free)) AS largest_free_block, max(f.gpus_installed) AS node_gpus_max,
        count(*) FILTER (WHERE f.gpus_free >= 1) AS nodes_with_free
    FROM node_free f
    GROUP BY f.cluster, f."partition"
    UNION ALL
    SELECT 2 AS tried, l.cluster, l."partition", l.gpus_installed, l.gpus_down,
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
    SELECT h.cluster, h."partition", h.gpus AS held, 0.0 AS waiting
    FROM holdings h
    WHERE h.started_at <= as_of() AND h.ended_at >= as_of()
    UNION ALL
    SELECT j.cluster, coalesce(j."partition", 'default') AS "partition", 0.0 AS held,
        j.gpus_requested AS waiting
    FROM jobs j
    WHERE j.started_at IS NULL AND j.ended_at IS NULL AND j.submitted_at <= as_of()
    UNION ALL
    SELECT c.cluster, coalesce(c."partition", 'default') AS "partition", c.gpus_held AS held,
        c.gpus_waiting AS waiting
    FROM counted c
    WHERE c.counted_at = c.last_at
),
asked_pool AS (
    SELECT a.cluster, a."partition", sum(a.held) AS gpus_held, sum(a.waiting) AS gpus_waiting
    FROM asked a
    GROUP BY a.cluster, a."partition"
)
SELECT f.cluster, f."partition", f.gpus_installed, f.gpus_down,
    CASE WHEN f.tried = 1 THEN f.gpus_held ELSE coalesce(a.gpus_held, 0) END AS gpus_held,
    CASE WHEN f.tried = 1 THEN f.gpus_free
        ELSE greatest(f.gpus_installed - f.gpus_down - coalesce(a.gpus_held, 0), 0) END
        AS gpus_free,
    f.largest_free_block, f.node_gpus_max, f.nodes_with_free,
    coalesce(a.gpus_waiting, 0) AS gpus_waiting
FROM first f
LEFT JOIN asked_pool a
    ON (a.cluster IS NOT DISTINCT FROM f.cluster)
    AND (a."partition" IS NOT DISTINCT FROM f."partition")
WHERE f.tried = f.first_tried
