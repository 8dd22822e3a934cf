-- Utilisation of the GPUs of each node by local hour or day.
-- parameters: $from timestamp, $until timestamp, $step text = 'hour' of bin
-- columns:    bin_started_at timestamp, cluster text, node text,
--             util_ratio float64 [0-1],
--             effective_ratio float64 [0-1], mem_used_ratio float64 [0-1], power_w float64 [W],
--             gpu_hours_expected float64 [GPU·h], gpu_hours_observed float64 [GPU·h],
--             gpu_hours_busy float64 [GPU·h], coverage_ratio float64 [0-1]
-- one row per bin and node in [$from, $until) in which a GPU was expected to report; $step
-- is hour, day, week or month of local time; ordered by bin, cluster, node. Means are weighted
-- by time and by the part of the board that a slice is; power_w is that of a GPU. A bin without
-- a reading is NULL with coverage 0: coverage_ratio is observed / expected.
WITH cut AS (
    SELECT t.*, unnest(split_bins(greatest(t.started_at, $from), least(t.ended_at, $until), $step))
        AS bin
    FROM device_time t
    WHERE t.started_at < $until AND t.ended_at > $from
),
timed AS (
    SELECT c.*, c.bin['bin_started_at'] AS bin_started_at, c.bin['elapsed_s'] AS elapsed_s,
        c.gpus_expected * c.bin['elapsed_s'] AS expected_s,
        c.gpus_read * c.bin['elapsed_s'] AS read_s
    FROM cut c
),
summed AS (
    SELECT t.bin_started_at, t.cluster, t.node, sum(t.expected_s) AS expected_s,
        sum(t.read_s) FILTER (WHERE t.util_ratio IS NOT NULL) AS observed_s,
        sum(t.read_s * t.util_ratio) AS busy_s, sum(t.read_s * t.effective_ratio) AS effective_s,
        sum(t.mem_used_bytes * t.elapsed_s) / nullif(sum(t.mem_total_bytes * t.elapsed_s), 0)
            AS mem_used_ratio,
        sum(t.read_s * t.power_w)
            / nullif(sum(t.read_s) FILTER (WHERE t.power_w IS NOT NULL), 0) AS power_w
    FROM timed t
    GROUP BY t.bin_started_at, t.cluster, t.node
)
SELECT s.bin_started_at, s.cluster, s.node, s.busy_s / nullif(s.observed_s, 0) AS util_ratio,
    s.effective_s / nullif(s.observed_s, 0) AS effective_ratio, s.mem_used_ratio, s.power_w,
    s.expected_s / 3600 AS gpu_hours_expected, s.observed_s / 3600 AS gpu_hours_observed,
    s.busy_s / 3600 AS gpu_hours_busy,
    CASE WHEN s.expected_s > 0 THEN
        least(coalesce(s.observed_s, 0) / s.expected_s, 1) END AS coverage_ratio
FROM summed s
WHERE s.expected_s IS NOT NULL
ORDER BY s.bin_started_at, s.cluster, s.node
