-- Time in which a GPU was expected to report and no reading covers.
-- columns: cluster text, node text, gpu int16, gpu_uuid text, mig int16, gpu_key text,
--          gap_started_at timestamp, gap_ended_at timestamp, kind text
-- one row per gap. It begins at the last reading before it and ends where the next reading's
-- period begins. kind: gap (closed), silent (no reading since), never (no reading at all).
WITH spaced AS (
    SELECT
        r.cluster, r.node, r.gpu, r.gpu_uuid, r.mig, r.gpu_key, r.started_at,
        lag(r.sampled_at) OVER (
            PARTITION BY r.gpu_key, r.mig, r.node, r.gpu ORDER BY r.sampled_at
        ) AS previous_at
    FROM gpu_readings r
)
SELECT
    s.cluster, s.node, s.gpu, s.gpu_uuid, s.mig, s.gpu_key,
    s.previous_at AS gap_started_at, s.started_at AS gap_ended_at, 'gap' AS kind
FROM spaced s
WHERE date_part('epoch', s.started_at) - date_part('epoch', s.previous_at) >= 1
UNION ALL
SELECT
    p.cluster, p.node, p.gpu, p.gpu_uuid, p.mig, p.gpu_key,
    coalesce(p.last_sampled_at, p.expected_started_at), p.expected_ended_at,
    CASE WHEN p.last_sampled_at IS NULL THEN 'never' ELSE 'silent' END
FROM gpu_presence p
WHERE date_part('epoch', p.expected_ended_at)
    - date_part('epoch', coalesce(p.last_sampled_at, p.expected_started_at)) >= 1
