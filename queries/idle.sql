-- Which GPUs are idle now, since when, and whether somebody holds them.
-- parameters: $idle_util_ratio float64 = 0.05, $sustained_s float64 = 600
-- columns:    cluster text, partition text, node text, gpu int16, gpu_uuid text, mig int16,
--             gpu_model text, holding text, idle_since_at timestamp, idle_hours float64 [h],
--             coverage_ratio float64 [0-1], job_id text, user text, team text,
--             held_since_at timestamp, mem_used_bytes int64 [B], power_w float64 [W],
--             last_sampled_at timestamp
-- one row per GPU or slice whose activity stayed below $idle_util_ratio for the last $sustained_s
-- seconds or more; held ones first, then by idle_hours, longest first, then cluster, node, GPU.
-- holding: held, free, or unknown where jobs on the node name no GPU or nothing tells of jobs. A
-- GPU whose last reading is older than three periods is silent, not idle (see gaps). A slice has
-- its own row; its holder is that of its board.
SELECT
    r.cluster, r."partition", r.node, r.gpu, r.gpu_uuid, r.mig, r.gpu_model, r.holding,
    r.idle_since_at, r.idle_s / 3600 AS idle_hours, r.coverage_ratio, r.job_id, r."user", r.team,
    r.held_since_at, r.mem_used_bytes, r.power_w, r.last_sampled_at
FROM gpu_rests r
WHERE r.peak_ratio < $idle_util_ratio AND coalesce(r.before_ratio >= $idle_util_ratio, true)
    AND r.idle_s >= $sustained_s
ORDER BY
    CASE r.holding WHEN 'held' THEN 0 WHEN 'unknown' THEN 1 ELSE 2 END,
    idle_hours DESC, r.cluster, r.node, r.gpu, r.gpu_uuid, r.mig
