-- Which GPUs are idle now, since when, and whether somebody holds them.
-- parameters: $idle_util_ratio float64 = 0.05, $sustained_s float64 = 600
-- columns:    cluster text, partition text, node text, gpu int16, gpu_uuid text, mig int16,
--             gpu_model text, holding text, idle_since_at timestamp, idle_hours float64 [h],
--             coverage_ratio float64 [0-1], job_id text, user text, team text,
--             held_since_at timestamp, mem_used_bytes int64 [B], power_w float64 [W],
--             last_sampled_at timestamp
-- one row per GPU or slice whose activity stayed below $idle_util_ratio for the last $sustained_s
-- seconds or more; held ones first, then by idle_hours, longest first, then cluster, node, GPU.
-- holding: held, free, or unknown where jobs on the node name no GPU. A GPU whose last reading is
-- older than three periods is silent, not idle (see gaps). A slice has its own row; its holder is
-- that of its board.
WITH read AS (
    SELECT r.*
    FROM gpu_readings r
    WHERE r.activity_ratio IS NOT NULL AND r.sampled_at <= as_of()
),
turned AS (
    SELECT
        r.gpu_key, r.mig,
        max(r.sampled_at) AS last_at,
        max(r.sampled_at) FILTER (WHERE r.activity_ratio >= $idle_util_ratio) AS busy_at,
        min(r.started_at) AS first_at,
        avg(r.period_s) AS period_s
    FROM read r
    GROUP BY r.gpu_key, r.mig
),
resting AS (
    SELECT t.*, coalesce(t.busy_at, t.first_at) AS idle_since_at
    FROM turned t
    WHERE t.last_at > coalesce(t.busy_at, t.first_at)
        AND date_part('epoch', t.last_at) + 3 * t.period_s >= date_part('epoch', as_of())
),
observed AS (
    SELECT r.gpu_key, r.mig, sum(r.period_s) AS observed_s
    FROM read r
    JOIN resting t ON t.gpu_key = r.gpu_key AND (t.mig IS NOT DISTINCT FROM r.mig)
    WHERE r.sampled_at > t.idle_since_at
    GROUP BY r.gpu_key, r.mig
),
latest AS (
    SELECT
        r.cluster, r.node, r.gpu, r.gpu_uuid, r.mig, r.gpu_key, r.gpu_model, r.job_id,
        r.mem_used_bytes, r.power_w, r.contradictory, t.last_at, t.idle_since_at,
        (date_part('epoch', t.last_at) - date_part('epoch', t.idle_since_at)) AS idle_s
    FROM read r
    JOIN resting t
        ON t.gpu_key = r.gpu_key AND t.last_at = r.sampled_at
        AND (t.mig IS NOT DISTINCT FROM r.mig)
),
on_gpu AS (
    SELECT h.gpu_uuid,
        array_to_string(array_sort(array_agg(DISTINCT h.job_id)), ',') AS job_id,
        array_to_string(array_sort(array_agg(DISTINCT h."user")), ',') AS "user",
        array_to_string(array_sort(array_agg(DISTINCT h.team)), ',') AS team,
        min(h.started_at) AS held_since_at
    FROM holdings h
    WHERE h.gpu_uuid IS NOT NULL AND h.started_at <= as_of() AND h.ended_at >= as_of()
    GROUP BY h.gpu_uuid
),
on_node AS (
    SELECT h.cluster, h.node, sum(h.gpus) AS gpus_held
    FROM holdings h
    WHERE h.gpu_uuid IS NULL AND h.node IS NOT NULL
        AND h.started_at <= as_of() AND h.ended_at >= as_of()
    GROUP BY h.cluster, h.node
),
sized AS (
    SELECT r.cluster, r.node, count(DISTINCT r.gpu_key) AS gpus
    FROM read r
    JOIN turned t ON t.gpu_key = r.gpu_key AND t.last_at = r.sampled_at
    GROUP BY r.cluster, r.node
)
SELECT
    l.cluster,
    coalesce(g."partition", n."partition", 'default') AS "partition",
    l.node, l.gpu, l.gpu_uuid, l.mig, l.gpu_model,
    CASE
        WHEN coalesce(h.job_id, l.job_id) IS NOT NULL OR d.gpus_held >= z.gpus THEN 'held'
        WHEN d.gpus_held > 0 THEN 'unknown'
        ELSE 'free'
    END AS holding,
    l.idle_since_at, l.idle_s / 3600 AS idle_hours,
    least(o.observed_s / l.idle_s, 1) AS coverage_ratio,
    coalesce(h.job_id, l.job_id) AS job_id, h."user", h.team, h.held_since_at,
    l.mem_used_bytes, l.power_w, l.last_at AS last_sampled_at
FROM latest l
JOIN observed o ON o.gpu_key = l.gpu_key AND (o.mig IS NOT DISTINCT FROM l.mig)
LEFT JOIN on_gpu h ON h.gpu_uuid = l.gpu_uuid
LEFT JOIN on_node d ON d.node = l.node AND (d.cluster IS NOT DISTINCT FROM l.cluster)
LEFT JOIN sized z ON z.node = l.node AND (z.cluster IS NOT DISTINCT FROM l.cluster)
LEFT JOIN gpus g ON g.gpu_uuid = l.gpu_uuid
LEFT JOIN nodes n ON n.node = l.node AND (n.cluster IS NOT DISTINCT FROM l.cluster)
WHERE l.idle_s >= $sustained_s
ORDER BY
    CASE holding WHEN 'held' THEN 0 WHEN 'unknown' THEN 1 ELSE 2 END,
    idle_hours DESC, l.cluster, l.node, l.gpu, l.gpu_uuid, l.mig
