-- Readings of GPUs as they are judged: one key a device, the stretch each reading stands for, and
-- an activity that does not believe a board that reports 100 % with no memory in use, at idle power
-- or without a process.
-- columns: sampled_at timestamp, started_at timestamp, period_s float64 [s], cluster text,
--          node text, gpu int16, gpu_uuid text, mig int16, gpu_key text, gpu_model text,
--          job_id text,
--          activity_ratio float64 [0-1], reported_ratio float64 [0-1], mem_used_bytes int64 [B],
--          mem_total_bytes int64 [B], power_w float64 [W], idle_power_w float64 [W],
--          processes int32, contradictory boolean
-- one row per reading in [span_started_at(), as_of()]. Activity is utilisation, else SM activity
-- where a slice has no utilisation; NULL where neither was measured. Idle power is the lowest power
-- read from the GPU model while it was below 0.05: up to 1.5 times that, or half of its board's, is
-- idle power.
WITH judged AS (
    SELECT
        s.*,
        p.idle_power_w,
        coalesce(s.gpu_util_ratio, s.sm_active_ratio) AS reported_ratio,
        coalesce(
            coalesce(s.gpu_util_ratio, s.sm_active_ratio) >= 0.95
            AND s.mem_used_bytes < 1048576
            AND (coalesce(s.processes = 0, false)
                OR coalesce(s.power_w <= greatest(1.5 * p.idle_power_w,
                    0.5 * board_power_w(s.gpu_model)), false)),
            false
        ) AS contradictory
    FROM samples s
    LEFT JOIN idle_power p ON p.gpu_model = s.gpu_model
    WHERE s.sampled_at BETWEEN span_started_at() AND as_of()
)
SELECT
    j.sampled_at,
    arrow_cast(
        CAST(round(
            (date_part('epoch', j.sampled_at) - coalesce(j.period_s, 0)) * 1000
        ) AS BIGINT),
        'Timestamp(Millisecond, Some("UTC"))'
    ) AS started_at,
    coalesce(j.period_s, 0) AS period_s,
    j.cluster, j.node, j.gpu, j.gpu_uuid, j.mig,
    coalesce(j.gpu_uuid, concat(j.node, '/', j.gpu)) AS gpu_key,
    j.gpu_model, j.job_id,
    CASE WHEN j.contradictory THEN 0.0 ELSE j.reported_ratio END AS activity_ratio,
    j.reported_ratio, j.mem_used_bytes, j.mem_total_bytes, j.power_w, j.idle_power_w,
    j.processes, j.contradictory
FROM judged j
