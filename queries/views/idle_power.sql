-- What a board of each GPU model draws at rest.
-- columns: gpu_model text, idle_power_w float64 [W]
-- one row per model that was read below 0.05 of activity with its power, up to as_of(): the lowest.
SELECT s.gpu_model, min(s.power_w) AS idle_power_w
FROM samples s
WHERE s.sampled_at <= as_of() AND s.power_w > 0
    AND coalesce(s.gpu_util_ratio, s.sm_active_ratio) < 0.05
GROUP BY s.gpu_model
