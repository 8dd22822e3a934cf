-- When each GPU is expected to report: from its first reading, until another GPU sits in its place,
-- it moves, it is retired, or the store's latest instant.
-- columns: cluster text, node text, gpu int16, gpu_uuid text, mig int16, gpu_key text,
--          gpu_model text, expected_started_at timestamp, expected_ended_at timestamp,
--          last_sampled_at timestamp
-- one row per GPU or slice and place, inside [span_started_at(), as_of()]. A GPU of the inventory
-- that never reported is expected from its first sight, in clusters that have readings; its
-- last_sampled_at is NULL. A GPU whose last reading is less than three periods old is expected up
-- to that reading only.
WITH seen AS (
    SELECT
        r.cluster, r.node, r.gpu, r.gpu_uuid, r.mig, r.gpu_key,
        max(r.gpu_model) AS gpu_model,
        min(r.started_at) AS first_at,
        max(r.sampled_at) AS last_at,
        avg(r.period_s) AS period_s
    FROM gpu_readings r
    GROUP BY r.cluster, r.node, r.gpu, r.gpu_uuid, r.mig, r.gpu_key
),
followed AS (
    SELECT
        s.*,
        lead(s.first_at) OVER (
            PARTITION BY s.cluster, s.node, s.gpu, s.mig ORDER BY s.first_at, s.gpu_key
        ) AS replaced_at,
        lead(s.first_at) OVER (
            PARTITION BY s.gpu_key, s.mig ORDER BY s.first_at, s.node, s.gpu
        ) AS moved_at
    FROM seen s
),
retired AS (
    SELECT g.gpu_uuid, max(g.last_seen_at) AS retired_at
    FROM gpus g
    WHERE lower(g.state) IN ('retired', 'removed', 'replaced')
        AND coalesce(g.last_seen_at <= as_of(), true)
    GROUP BY g.gpu_uuid
)
SELECT
    f.cluster, f.node, f.gpu, f.gpu_uuid, f.mig, f.gpu_key, f.gpu_model,
    f.first_at AS expected_started_at,
    CASE
        WHEN f.replaced_at >= f.last_at AND (f.moved_at IS NULL OR f.replaced_at <= f.moved_at)
            THEN f.replaced_at
        WHEN f.moved_at >= f.last_at THEN f.moved_at
        WHEN d.retired_at IS NOT NULL THEN greatest(f.last_at, d.retired_at)
        WHEN date_part('epoch', f.last_at) + 3 * f.period_s >= date_part('epoch', as_of())
            THEN f.last_at
        ELSE greatest(f.last_at, as_of())
    END AS expected_ended_at,
    f.last_at AS last_sampled_at
FROM followed f
LEFT JOIN retired d ON d.gpu_uuid = f.gpu_uuid
UNION ALL
SELECT
    g.cluster, g.node, g.gpu, g.gpu_uuid, CAST(NULL AS SMALLINT) AS mig, g.gpu_uuid AS gpu_key,
    g.gpu_model,
    greatest(coalesce(g.first_seen_at, c.first_at), span_started_at()) AS expected_started_at,
    CASE
        WHEN lower(g.state) IN ('retired', 'removed', 'replaced')
            THEN least(coalesce(g.last_seen_at, as_of()), as_of())
        ELSE as_of()
    END AS expected_ended_at,
    arrow_cast(NULL, 'Timestamp(Millisecond, Some("UTC"))') AS last_sampled_at
FROM gpus g
JOIN (SELECT s.cluster, min(s.first_at) AS first_at FROM seen s GROUP BY s.cluster) c
    ON c.cluster = g.cluster
WHERE NOT EXISTS (SELECT 1 FROM seen s WHERE s.gpu_uuid = g.gpu_uuid)
    AND coalesce(g.first_seen_at, c.first_at) < as_of()
