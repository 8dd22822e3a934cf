-- Time in which each GPU was expected to report, and the gaps in it, cut at local midnights.
-- columns: day_started_at timestamp, cluster text, node text, gpu_key text, mig int16, gap boolean,
--          started_at timestamp, ended_at timestamp
-- one row per GPU or slice and local day for the time expected (gap false), and per gap and local
-- day for the time that no reading covers (gap true).
WITH stretch AS (
    SELECT p.cluster, p.node, p.gpu_key, p.mig, false AS gap, p.expected_started_at AS started_at,
        p.expected_ended_at AS ended_at
    FROM gpu_presence p
    UNION ALL
    SELECT g.cluster, g.node, g.gpu_key, g.mig, true AS gap, g.gap_started_at AS started_at,
        g.gap_ended_at AS ended_at
    FROM gpu_gaps g
),
cut AS (
    SELECT s.*, unnest(split_bins(s.started_at, s.ended_at, 'day')) AS bin FROM stretch s
)
SELECT c.bin['bin_started_at'] AS day_started_at, c.cluster, c.node, c.gpu_key, c.mig, c.gap,
    greatest(c.started_at, c.bin['bin_started_at']) AS started_at,
    least(c.ended_at, c.bin['bin_ended_at']) AS ended_at
FROM cut c
