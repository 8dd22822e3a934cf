-- What happened to GPUs and their drivers: lost, recovered, replaced, moved, hung.
-- parameters: $from timestamp, $until timestamp
-- columns:    event_at timestamp, kind text, cluster text, node text, gpu int16, gpu_uuid text,
--             mig int16, detail text, recovered_at timestamp, hours float64 [h]
-- one row per event in [$from, $until], its end included; ordered by time, cluster, node, GPU,
-- kind, detail. kind: lost, requires-reset, recovered (the first good reading after either),
-- driver-failed (a whole node), uuid-changed (another board in the place), index-moved, node-moved,
-- driver-changed, stale (the same reading again and again), clock-jump, memory-held (by no living
-- process), rows-lost (on the way to the store), spool-copied (two collectors sent under the name
-- of one spool). recovered_at is when a GPU that was lost or needed a reset was read again, NULL
-- where it was not yet; hours is the time until then.
WITH followed AS (
    SELECT e.*,
        min(CASE WHEN e.kind = 'recovered' THEN e.event_at END) OVER (
            PARTITION BY e.cluster, coalesce(e.gpu_uuid, concat(e.node, '/', e.gpu))
            ORDER BY e.event_at
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) AS next_recovered_at
    FROM events e
),
told AS (
    SELECT f.*,
        CASE WHEN f.kind IN ('lost', 'requires-reset')
            AND (f.gpu_uuid IS NOT NULL OR f.gpu IS NOT NULL) THEN f.next_recovered_at END
            AS recovered_at
    FROM followed f
    WHERE f.event_at >= $from AND f.event_at <= $until
)
SELECT
    t.event_at, t.kind, t.cluster, t.node, t.gpu, t.gpu_uuid, t.mig, t.detail, t.recovered_at,
    (date_part('epoch', t.recovered_at) - date_part('epoch', t.event_at)) / 3600 AS hours
FROM told t
ORDER BY t.event_at, t.cluster, t.node, t.gpu, t.gpu_uuid, t.kind, t.detail
