-- Each stretch in which a GPU was expected to report and did not.
-- parameters: $from timestamp, $until timestamp, $longer_s float64 = 0
-- columns:    gap_started_at timestamp, gap_ended_at timestamp, gap_hours float64 [h], kind text,
--             cluster text, node text, gpu int16, gpu_uuid text, mig int16
-- one row per gap longer than $longer_s, clipped to [$from, $until); ordered by start, cluster,
-- node, GPU. kind: gap (readings came back), silent (none since), never (no reading at all).
WITH clipped AS (
    SELECT g.*, greatest(g.gap_started_at, $from) AS started_at,
        least(g.gap_ended_at, $until) AS ended_at
    FROM gpu_gaps g
    WHERE g.gap_started_at < $until AND g.gap_ended_at > $from
)
SELECT
    c.started_at AS gap_started_at, c.ended_at AS gap_ended_at,
    (date_part('epoch', c.ended_at) - date_part('epoch', c.started_at)) / 3600 AS gap_hours,
    c.kind, c.cluster, c.node, c.gpu, c.gpu_uuid, c.mig
FROM clipped c
WHERE (date_part('epoch', c.ended_at) - date_part('epoch', c.started_at)) > $longer_s
ORDER BY c.started_at, c.cluster, c.node, c.gpu, c.gpu_uuid, c.mig
