-- GPUs of each node at the store's latest instant: installed, down, held, free.
-- columns: cluster text, partition text, node text, gpus_installed float64, gpus_down float64,
--          gpus_held float64, gpus_free float64
-- one row per node of the inventory. A GPU is down where its state or its node's says so and no job
-- holds it, so held + free + down = installed, unless jobs hold more than is installed.
WITH holding AS (
    SELECT h.cluster, h.node, h.gpu_uuid, h.gpus FROM node_held h
),
placed AS (
    SELECT g.cluster, g."partition", g.node,
        CASE WHEN g.down_from_at IS NOT NULL AND h.gpu_uuid IS NULL THEN 1.0 ELSE 0.0 END AS down
    FROM gpu_service g
    LEFT JOIN (SELECT DISTINCT h.gpu_uuid FROM holding h) h ON h.gpu_uuid = g.gpu_uuid
    WHERE coalesce(g.installed_until_at > as_of(), true)
),
sized AS (
    SELECT p.cluster, p."partition", p.node, CAST(count(*) AS DOUBLE) AS gpus, sum(p.down) AS down
    FROM placed p
    GROUP BY p.cluster, p."partition", p.node
),
held AS (
    SELECT h.cluster, h.node, sum(h.gpus) AS gpus
    FROM holding h
    WHERE h.node IS NOT NULL
    GROUP BY h.cluster, h.node
)
SELECT
    s.cluster, s."partition", s.node, s.gpus AS gpus_installed,
    greatest(least(s.down, s.gpus - coalesce(h.gpus, 0)), 0) AS gpus_down,
    coalesce(h.gpus, 0) AS gpus_held,
    greatest(s.gpus - s.down - coalesce(h.gpus, 0), 0) AS gpus_free
FROM sized s
LEFT JOIN held h ON h.node = s.node AND (h.cluster IS NOT DISTINCT FROM s.cluster)
