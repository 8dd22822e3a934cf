-- Readings as the ledger counts them: the stretch each stands for, the part of the board it speaks
-- of, how busy and how effective it was, and the board's power counted once.
-- columns: sampled_at timestamp, started_at timestamp, period_s float64 [s], cluster text,
--          node text, gpu int16, gpu_uuid text, mig int16, gpu_key text, gpu_model text,
--          job_id text, board_ratio float64 [0-1], util_ratio float64 [0-1],
--          effective_ratio float64 [0-1], effective_signal text, sm_active_ratio float64 [0-1],
--          mem_used_bytes int64 [B], mem_total_bytes int64 [B], temp_c float64 [°C], xid int64,
--          throttle_reasons int64, ecc_uncorrected_total int64, power_read_w float64 [W],
--          power_w float64 [W], power_source text
-- one row per reading in [span_started_at(), as_of()]. util_ratio is utilisation, else SM activity
-- where a slice has no utilisation; a board at 100 % with no memory in use is at 0 where it draws
-- no more than half of its board's power or 1.5 times what its model does at rest, or has no
-- process.
-- effective_ratio is the best signal read: `activity` (the higher of tensor and SM activity),
-- `power` (utilisation x power above idle over the board's span), `utilisation`. board_ratio:
-- slices of one board share it by the compute slices that their models name (`1g.10gb`), as the
-- ledger counts them, else by their memory, else evenly, and the board's own reading beside them
-- counts for no time. power_read_w is the reading's own, which slices have none of. power_w is the
-- board's mean power since its last reading where the energy counter tells it (`counter`), else the
-- power read (`power`).
WITH sliced AS (
    SELECT DISTINCT s.gpu_uuid FROM samples s WHERE s.mig IS NOT NULL AND s.gpu_uuid IS NOT NULL
),
board AS (
    SELECT s.gpu_uuid, s.sampled_at, count(s.mig) AS slices,
        count(s.mem_total_bytes) FILTER (WHERE s.mig IS NOT NULL) AS slices_sized,
        sum(s.mem_total_bytes) FILTER (WHERE s.mig IS NOT NULL) AS slices_bytes,
        count(CASE WHEN s.mig IS NOT NULL
            THEN regexp_match(s.gpu_model, '([1-7])g\.[0-9]+gb', 'i')[1] END) AS slices_named,
        sum(CASE WHEN s.mig IS NOT NULL
            THEN CAST(regexp_match(s.gpu_model, '([1-7])g\.[0-9]+gb', 'i')[1] AS DOUBLE) END)
            AS slices_compute,
        max(s.power_w) AS power_w, max(s.energy_j) AS energy_j
    FROM samples s
    JOIN sliced d ON d.gpu_uuid = s.gpu_uuid
    WHERE s.sampled_at BETWEEN span_started_at() AND as_of()
    GROUP BY s.gpu_uuid, s.sampled_at
),
read AS (
    SELECT
        s.sampled_at, coalesce(s.period_s, 0) AS period_s, s.cluster, s.node, s.gpu, s.gpu_uuid,
        s.mig, coalesce(s.gpu_uuid, concat(s.node, '/', s.gpu)) AS gpu_key, s.gpu_model, s.job_id,
        CASE
            WHEN coalesce(b.slices, 0) = 0 THEN 1.0
            WHEN s.mig IS NULL THEN 0.0
            WHEN b.slices_named = b.slices
                THEN CAST(regexp_match(s.gpu_model, '([1-7])g\.[0-9]+gb', 'i')[1] AS DOUBLE)
                    / b.slices_compute
            WHEN b.slices_sized = b.slices
                THEN CAST(s.mem_total_bytes AS DOUBLE) / nullif(b.slices_bytes, 0)
            ELSE 1.0 / b.slices
        END AS board_ratio,
        CASE WHEN coalesce(s.gpu_util_ratio, s.sm_active_ratio) >= 0.95
            AND s.mem_used_bytes < 1048576 AND (coalesce(s.processes = 0, false)
                OR coalesce(s.power_w <= greatest(1.5 * p.idle_power_w,
                    0.5 * board_power_w(s.gpu_model)), false))
        THEN 0.0 ELSE coalesce(s.gpu_util_ratio, s.sm_active_ratio) END AS util_ratio,
        greatest(s.tensor_active_ratio, s.sm_active_ratio) AS activity_ratio,
        CASE WHEN s.mig IS NULL AND board_power_w(s.gpu_model) > p.idle_power_w
            THEN (s.power_w - p.idle_power_w) / (board_power_w(s.gpu_model) - p.idle_power_w)
        END AS span_ratio,
        s.sm_active_ratio, s.mem_used_bytes, s.mem_total_bytes, s.temp_c, s.xid, s.throttle_reasons,
        s.ecc_uncorrected_total, s.power_w AS power_read_w,
        coalesce(b.power_w, s.power_w) AS power_board_w,
        coalesce(b.energy_j, s.energy_j) AS energy_j
    FROM samples s
    LEFT JOIN idle_power p ON p.gpu_model = s.gpu_model
    LEFT JOIN board b ON b.gpu_uuid = s.gpu_uuid AND b.sampled_at = s.sampled_at
    WHERE s.sampled_at BETWEEN span_started_at() AND as_of()
),
metered AS (
    SELECT r.*,
        CASE WHEN r.span_ratio < 0 THEN 0.0 WHEN r.span_ratio > 1 THEN 1.0 ELSE r.span_ratio END
            AS power_ratio,
        r.energy_j - lag(r.energy_j) OVER (
            PARTITION BY r.gpu_key, r.mig ORDER BY r.sampled_at
        ) AS spent_j,
        (CAST(r.sampled_at AS BIGINT) - CAST(lag(r.sampled_at) OVER (
            PARTITION BY r.gpu_key, r.mig ORDER BY r.sampled_at
        ) AS BIGINT)) / 1000.0 AS since_s
    FROM read r
)
SELECT
    m.sampled_at,
    arrow_cast(
        CAST(m.sampled_at AS BIGINT) - CAST(round(m.period_s * 1000) AS BIGINT),
        'Timestamp(Millisecond, Some("UTC"))'
    ) AS started_at,
    m.period_s, m.cluster, m.node, m.gpu, m.gpu_uuid, m.mig, m.gpu_key, m.gpu_model, m.job_id,
    m.board_ratio, m.util_ratio,
    coalesce(m.activity_ratio, m.util_ratio * m.power_ratio, m.util_ratio) AS effective_ratio,
    CASE
        WHEN m.activity_ratio IS NOT NULL THEN 'activity'
        WHEN m.util_ratio IS NULL THEN NULL
        WHEN m.power_ratio IS NOT NULL THEN 'power'
        ELSE 'utilisation'
    END AS effective_signal,
    m.sm_active_ratio, m.mem_used_bytes, m.mem_total_bytes, m.temp_c, m.xid, m.throttle_reasons,
    m.ecc_uncorrected_total, m.power_read_w,
    CASE WHEN m.spent_j >= 0 AND m.since_s > 0 THEN m.spent_j / m.since_s
        ELSE m.power_board_w END AS power_w,
    CASE WHEN m.spent_j >= 0 AND m.since_s > 0 THEN 'counter'
        WHEN m.power_board_w IS NOT NULL THEN 'power' END AS power_source
FROM metered m
