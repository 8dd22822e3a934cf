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
WITH placed AS (
    SELECT p.cluster, p.node, 
        CASE WHEN p.mig IS NOT NULL THEN 1.0 / count(p.mig) OVER (PARTITION BY p.gpu_key)
            WHEN count(p.mig) OVER (PARTITION BY p.gpu_key) > 0 THEN 0.0 ELSE 1.0 END AS gpus,
        greatest(p.expected_started_at, $from) AS from_at,
        least(p.expected_ended_at, $until) AS until_at
    FROM gpu_presence p
),
expected_bin AS (
    SELECT p.cluster, p.node, p.gpus, unnest(split_bins(p.from_at, p.until_at, $step)) AS bin
    FROM placed p
),
expected AS (
    SELECT e.bin['bin_started_at'] AS bin_started_at, e.cluster, e.node, 
        sum(e.gpus * e.bin['elapsed_s']) AS expected_s
    FROM expected_bin e
    GROUP BY e.bin['bin_started_at'], e.cluster, e.node
),
read_bin AS (
    SELECT r.cluster, r.node, r.board_ratio, r.util_ratio, r.effective_ratio, r.mem_used_bytes,
        r.mem_total_bytes, r.power_w,
        unnest(split_bins(greatest(r.started_at, $from), least(r.sampled_at, $until), $step))
            AS bin
    FROM device_readings r
    WHERE r.started_at < $until AND r.sampled_at > $from
),
read AS (
    SELECT r.bin['bin_started_at'] AS bin_started_at, r.cluster, r.node, 
        r.bin['elapsed_s'] AS elapsed_s, r.board_ratio * r.bin['elapsed_s'] AS board_s,
        r.util_ratio, r.effective_ratio, r.power_w,
        CASE WHEN r.mem_total_bytes IS NOT NULL THEN r.mem_used_bytes END AS used_bytes,
        CASE WHEN r.mem_used_bytes IS NOT NULL THEN r.mem_total_bytes END AS total_bytes
    FROM read_bin r
),
observed AS (
    SELECT r.bin_started_at, r.cluster, r.node, 
        sum(r.board_s) FILTER (WHERE r.util_ratio IS NOT NULL) AS observed_s,
        sum(r.board_s * r.util_ratio) AS busy_s,
        sum(r.board_s * r.effective_ratio) AS effective_s,
        sum(r.used_bytes * r.elapsed_s) / nullif(sum(r.total_bytes * r.elapsed_s), 0)
            AS mem_used_ratio,
        sum(r.power_w * r.board_s)
            / nullif(sum(r.board_s) FILTER (WHERE r.power_w IS NOT NULL), 0) AS power_w
    FROM read r
    GROUP BY r.bin_started_at, r.cluster, r.node
)
SELECT e.bin_started_at, e.cluster, e.node, o.busy_s / nullif(o.observed_s, 0) AS util_ratio,
    o.effective_s / nullif(o.observed_s, 0) AS effective_ratio, o.mem_used_ratio, o.power_w,
    e.expected_s / 3600 AS gpu_hours_expected, o.observed_s / 3600 AS gpu_hours_observed,
    o.busy_s / 3600 AS gpu_hours_busy,
    CASE WHEN e.expected_s > 0 THEN
        least(coalesce(o.observed_s, 0) / e.expected_s, 1) END AS coverage_ratio
FROM expected e
LEFT JOIN observed o
    ON o.bin_started_at = e.bin_started_at
    AND (o.cluster IS NOT DISTINCT FROM e.cluster)
    AND (o.node IS NOT DISTINCT FROM e.node)
ORDER BY e.bin_started_at, e.cluster, e.node
