-- From when until when each GPU of the inventory is installed, and since when it is down.
-- columns: cluster text, partition text, node text, gpu int16, gpu_uuid text, gpu_model text,
--          installed_from_at timestamp, installed_until_at timestamp, down_from_at timestamp
-- one row per GPU of the inventory that was first seen by as_of(); nothing that its rows tell of a
-- later instant is seen. A GPU that stops to report stays installed: it leaves when its
-- state says so (at the end of the local hour of its last sight), or when another GPU is first
-- seen in its place after its last sight (at the start of that local hour). It counts from the
-- start of the local hour of its first sight. installed_until_at is NULL while it is installed.
-- Down is a GPU whose state, or whose node's, says that it cannot run a job (lost, failed, in
-- need of a reset, drained, in maintenance): since its last sight, or the end of the last job
-- that held it. down_from_at is NULL where it is not down.
WITH told AS (
    SELECT g.cluster, coalesce(g."partition", n."partition", 'default') AS "partition", g.node,
        g.gpu, g.gpu_uuid, g.gpu_model, g.first_seen_at, g.last_seen_at,
        coalesce(lower(g.state), '') IN ('retired', 'removed', 'replaced', 'decommissioned')
            AND coalesce(g.last_seen_at <= as_of(), true) AS retired,
        concat_ws(', node ', g.state, n.state) AS state
    FROM gpus g
    LEFT JOIN nodes n ON n.node = g.node AND (n.cluster IS NOT DISTINCT FROM g.cluster)
    WHERE coalesce(g.first_seen_at <= as_of(), true)
),
followed AS (
    SELECT g.gpu_uuid, min(f.first_seen_at) AS replaced_at
    FROM gpus g
    JOIN gpus f
        ON f.node = g.node AND f.gpu = g.gpu AND (f.cluster IS NOT DISTINCT FROM g.cluster)
        AND f.gpu_uuid <> g.gpu_uuid AND f.first_seen_at > g.last_seen_at
        AND f.first_seen_at <= as_of()
    GROUP BY g.gpu_uuid
),
released AS (
    SELECT h.gpu_uuid, max(h.ended_at) AS released_at
    FROM holdings h
    WHERE h.gpu_uuid IS NOT NULL
    GROUP BY h.gpu_uuid
),
judged AS (
    SELECT t.*, f.replaced_at, r.released_at,
        NOT t.retired AND f.replaced_at IS NULL
            AND coalesce(t.last_seen_at <= as_of(), true) AND regexp_like(t.state,
            concat('lost|fail|error|down|drain|reset|maint|not.?re|disabled|cordon|unschedul|',
                'unhealthy|offline|off the bus'), 'i') AS down
    FROM told t
    LEFT JOIN followed f ON f.gpu_uuid = t.gpu_uuid
    LEFT JOIN released r ON r.gpu_uuid = t.gpu_uuid
)
SELECT j.cluster, j."partition", j.node, j.gpu, j.gpu_uuid, j.gpu_model,
    local_hour(coalesce(j.first_seen_at, span_started_at())) AS installed_from_at,
    least(
        CASE WHEN j.retired THEN local_hour_ended(coalesce(j.last_seen_at, j.first_seen_at,
            span_started_at()) - INTERVAL '1 millisecond') END,
        local_hour(j.replaced_at)
    ) AS installed_until_at,
    CASE WHEN j.down THEN greatest(coalesce(j.last_seen_at, span_started_at()), j.released_at) END
        AS down_from_at,
    CASE WHEN j.down THEN j.state END AS down_state
FROM judged j
