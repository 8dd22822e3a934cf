-- GPUs of each node at the store's latest instant: installed, down, held, free.
-- columns: cluster text, partition text, node text, gpus_installed float64, gpus_down float64,
--          gpus_held float64, gpus_free float64
-- one row per node of the inventory. A GPU or node whose state says so is down.
WITH placed AS (
    SELECT
        g.cluster, coalesce(g."partition", n."partition", 'default') AS "partition", g.node,
        CASE WHEN lower(coalesce(g.state, '')) IN ('lost', 'failed', 'failing', 'error', 'down',
                'drained', 'draining', 'reset_required', 'requires reset', 'gpu requires reset',
                'unknown error')
            OR lower(coalesce(n.state, '')) IN ('down', 'drained', 'draining', 'failed', 'maint',
                'notready')
        THEN 1.0 ELSE 0.0 END AS down
    FROM gpus g
    LEFT JOIN nodes n ON n.node = g.node AND (n.cluster IS NOT DISTINCT FROM g.cluster)
    WHERE coalesce(lower(g.state), '') NOT IN ('retired', 'removed', 'replaced')
),
sized AS (
    SELECT p.cluster, p."partition", p.node, CAST(count(*) AS DOUBLE) AS gpus, sum(p.down) AS down
    FROM placed p
    GROUP BY p.cluster, p."partition", p.node
),
held AS (
    SELECT h.cluster, h.node, sum(h.gpus) AS gpus
    FROM holdings h
    WHERE h.node IS NOT NULL AND h.started_at <= as_of() AND h.ended_at >= as_of()
    GROUP BY h.cluster, h.node
)
SELECT
    s.cluster, s."partition", s.node, s.gpus AS gpus_installed, s.down AS gpus_down,
    coalesce(h.gpus, 0) AS gpus_held,
    greatest(s.gpus - s.down - coalesce(h.gpus, 0), 0) AS gpus_free
FROM sized s
LEFT JOIN held h ON h.node = s.node AND (h.cluster IS NOT DISTINCT FROM s.cluster)
