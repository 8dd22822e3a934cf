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
    (CAST(c.ended_at AS BIGINT) - CAST(c.started_at AS BIGINT)) / 3600000.0 AS gap_hours,
    c.kind, c.cluster, c.node, c.gpu, c.gpu_uuid, c.mig
FROM clipped c
WHERE (CAST(c.ended_at AS BIGINT) - CAST(c.started_at AS BIGINT)) / 1000.0 > $longer_s
ORDER BY c.started_at, c.cluster, c.node, c.gpu, c.gpu_uuid, c.mig
