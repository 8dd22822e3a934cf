-- Time in which GPUs were expected to report, and time that their readings tell of.
-- columns: cluster text, node text, started_at timestamp, ended_at timestamp,
--          gpus_expected float64 [GPU], gpus_read float64 [GPU], util_ratio float64 [0-1],
--          effective_ratio float64 [0-1], mem_used_bytes int64 [B], mem_total_bytes int64 [B],
--          power_w float64 [W]
-- one row per GPU or slice for the time expected (gpus_expected; the rest is NULL), and per reading
-- (gpus_read). Both are parts of boards: the slices of a board are one GPU together, and the board
-- beside them none. Memory is NULL where only one of both sizes was read; power is the board's.
SELECT p.cluster, p.node, p.expected_started_at AS started_at, p.expected_ended_at AS ended_at,
    CASE WHEN p.mig IS NOT NULL THEN 1.0 / count(p.mig) OVER (PARTITION BY p.gpu_key)
        WHEN count(p.mig) OVER (PARTITION BY p.gpu_key) > 0 THEN 0.0 ELSE 1.0 END AS gpus_expected,
    CAST(NULL AS DOUBLE) AS gpus_read, CAST(NULL AS DOUBLE) AS util_ratio,
    CAST(NULL AS DOUBLE) AS effective_ratio, CAST(NULL AS BIGINT) AS mem_used_bytes,
    CAST(NULL AS BIGINT) AS mem_total_bytes, CAST(NULL AS DOUBLE) AS power_w
FROM gpu_presence p
UNION ALL
SELECT r.cluster, r.node, r.started_at, r.sampled_at AS ended_at,
    CAST(NULL AS DOUBLE) AS gpus_expected, r.board_ratio AS gpus_read, r.util_ratio,
    r.effective_ratio,
    CASE WHEN r.mem_total_bytes IS NOT NULL THEN r.mem_used_bytes END AS mem_used_bytes,
    CASE WHEN r.mem_used_bytes IS NOT NULL THEN r.mem_total_bytes END AS mem_total_bytes,
    r.power_w
FROM device_readings r
