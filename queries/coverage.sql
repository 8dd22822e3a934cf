-- How much of the asked time the readings cover, by day and node.
-- parameters: $from timestamp, $until timestamp
-- columns:    day_started_at timestamp, cluster text, node text, gpus int64,
--             gpu_hours_expected float64 [GPU·h], gpu_hours_observed float64 [GPU·h],
--             coverage_ratio float64 [0-1], gaps int64, gpu_hours_longest_gap float64 [GPU·h]
-- one row per local day and node with a GPU that was expected to report in [$from, $until);
-- ordered by day, cluster, node. A slice counts as a GPU; a gap over midnight counts in both days.
WITH expected AS (
    SELECT p.cluster, p.node, p.gpu_key, p.mig,
        unnest(split_bins(
            greatest(p.expected_started_at, $from), least(p.expected_ended_at, $until), 'day'
        )) AS piece
    FROM gpu_presence p
    WHERE p.expected_started_at < $until AND p.expected_ended_at > $from
),
missing AS (
    SELECT g.cluster, g.node,
        unnest(split_bins(
            greatest(g.gap_started_at, $from), least(g.gap_ended_at, $until), 'day'
        )) AS piece
    FROM gpu_gaps g
    WHERE g.gap_started_at < $until AND g.gap_ended_at > $from
),
by_day AS (
    SELECT e.piece['bin_started_at'] AS day_started_at, e.cluster, e.node,
        count(DISTINCT concat(e.gpu_key, '/', coalesce(CAST(e.mig AS VARCHAR), ''))) AS gpus,
        sum(e.piece['elapsed_s']) AS expected_s
    FROM expected e
    GROUP BY e.piece['bin_started_at'], e.cluster, e.node
),
lost AS (
    SELECT m.piece['bin_started_at'] AS day_started_at, m.cluster, m.node,
        count(*) AS gaps, sum(m.piece['elapsed_s']) AS missing_s,
        max(m.piece['elapsed_s']) AS longest_s
    FROM missing m
    GROUP BY m.piece['bin_started_at'], m.cluster, m.node
)
SELECT
    d.day_started_at, d.cluster, d.node, d.gpus,
    d.expected_s / 3600 AS gpu_hours_expected,
    (d.expected_s - coalesce(l.missing_s, 0)) / 3600 AS gpu_hours_observed,
    (d.expected_s - coalesce(l.missing_s, 0)) / d.expected_s AS coverage_ratio,
    coalesce(l.gaps, 0) AS gaps,
    coalesce(l.longest_s, 0) / 3600 AS gpu_hours_longest_gap
FROM by_day d
LEFT JOIN lost l
    ON l.day_started_at = d.day_started_at AND l.node = d.node
    AND (l.cluster IS NOT DISTINCT FROM d.cluster)
ORDER BY d.day_started_at, d.cluster, d.node
