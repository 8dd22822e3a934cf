-- Free GPUs of each pool at the store's latest instant, and the largest block on one node.
-- columns: cluster text, partition text, gpus_installed float64, gpus_down float64,
--          gpus_held float64, gpus_free float64, largest_free_block float64 [GPU],
--          node_gpus_max float64 [GPU], nodes_with_free int64, gpus_waiting float64
-- one row per pool. Without an inventory the size of a pool is that of its latest hour and the
-- blocks are NULL: which node is free is not known.
WITH pools AS (
    SELECT f.cluster, f."partition",
        sum(f.gpus_installed) AS gpus_installed, sum(f.gpus_down) AS gpus_down,
        sum(f.gpus_held) AS gpus_held, sum(f.gpus_free) AS gpus_free,
        max(floor(f.gpus_free)) AS largest_free_block, max(f.gpus_installed) AS node_gpus_max,
        count(*) FILTER (WHERE f.gpus_free >= 1) AS nodes_with_free
    FROM node_free f
    GROUP BY f.cluster, f."partition"
),
capacity AS (
    SELECT c.*,
        row_number() OVER (
            PARTITION BY c.cluster, c."partition" ORDER BY c.hour_started_at DESC
        ) AS age
    FROM capacity_hourly c
    WHERE NOT EXISTS (
        SELECT 1 FROM gpus g WHERE coalesce(g.cluster, '') = coalesce(c.cluster, '')
    )
),
last_count AS (
    SELECT c.cluster, c."partition", c.team, max(c.counted_at) AS counted_at
    FROM gpu_counts c
    GROUP BY c.cluster, c."partition", c.team
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
    FROM gpu_counts c
    JOIN last_count l
        ON l.counted_at = c.counted_at AND (l.cluster IS NOT DISTINCT FROM c.cluster)
        AND (l."partition" IS NOT DISTINCT FROM c."partition")
        AND (l.team IS NOT DISTINCT FROM c.team)
),
asked_pool AS (
    SELECT a.cluster, a."partition", sum(a.held) AS gpus_held, sum(a.waiting) AS gpus_waiting
    FROM asked a
    GROUP BY a.cluster, a."partition"
),
sized AS (
    SELECT p.* FROM pools p
    UNION ALL
    SELECT c.cluster, c."partition", c.gpus_installed,
        c.gpus_installed - c.gpus_available AS gpus_down,
        CAST(NULL AS DOUBLE) AS gpus_held, CAST(NULL AS DOUBLE) AS gpus_free,
        CAST(NULL AS DOUBLE) AS largest_free_block, CAST(NULL AS DOUBLE) AS node_gpus_max,
        CAST(NULL AS BIGINT) AS nodes_with_free
    FROM capacity c
    WHERE c.age = 1
)
SELECT s.cluster, s."partition", s.gpus_installed, s.gpus_down,
    coalesce(s.gpus_held, a.gpus_held, 0) AS gpus_held,
    coalesce(
        s.gpus_free, greatest(s.gpus_installed - s.gpus_down - coalesce(a.gpus_held, 0), 0)
    ) AS gpus_free,
    s.largest_free_block, s.node_gpus_max, s.nodes_with_free,
    coalesce(a.gpus_waiting, 0) AS gpus_waiting
FROM sized s
LEFT JOIN asked_pool a
    ON (a.cluster IS NOT DISTINCT FROM s.cluster)
    AND (a."partition" IS NOT DISTINCT FROM s."partition")
