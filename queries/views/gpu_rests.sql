-- How long each GPU that reports has stayed below any level of activity, and whether it is held.
-- columns: cluster text, partition text, node text, gpu int16, gpu_uuid text, mig int16,
--          gpu_model text, holding text, idle_since_at timestamp, idle_s float64 [s],
--          before_ratio float64 [0-1], peak_ratio float64 [0-1], coverage_ratio float64 [0-1],
--          job_id text, user text, team text, held_since_at timestamp, mem_used_bytes int64 [B],
--          power_w float64 [W], last_sampled_at timestamp
-- one row per GPU or slice and stretch from idle_since_at to its last reading in which it was never
-- as active as just before: before_ratio is the activity at idle_since_at, NULL where the stretch
-- is all that was read; peak_ratio is the highest since. A GPU was idle below a level from
-- idle_since_at on where peak_ratio < level <= before_ratio, which is true of one row at most.
-- holding: held, free, or unknown where jobs on the node name no GPU or nothing tells of jobs. A
-- GPU whose last reading is older than three periods is silent, not idle, and left out. A slice has
-- its own rows; its holder is that of its board.
WITH read AS (
    SELECT r.*
    FROM gpu_readings r
    WHERE r.activity_ratio IS NOT NULL AND r.sampled_at <= as_of()
),
seen AS (
    SELECT r.gpu_key, r.mig, max(r.sampled_at) AS last_at, min(r.started_at) AS first_at,
        avg(r.period_s) AS period_s, sum(r.period_s) AS observed_s,
        max(r.activity_ratio) AS peak_ratio
    FROM read r
    GROUP BY r.gpu_key, r.mig
),
followed AS (
    SELECT r.gpu_key, r.mig, r.sampled_at, r.activity_ratio,
        max(r.activity_ratio) OVER later AS peak_ratio, sum(r.period_s) OVER later AS observed_s
    FROM read r
    WINDOW later AS (
        PARTITION BY r.gpu_key, r.mig ORDER BY r.sampled_at DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
rest AS (
    SELECT f.gpu_key, f.mig, f.sampled_at AS idle_since_at, f.activity_ratio AS before_ratio,
        f.peak_ratio, f.observed_s
    FROM followed f
    WHERE f.activity_ratio > f.peak_ratio
    UNION ALL
    SELECT s.gpu_key, s.mig, s.first_at AS idle_since_at, CAST(NULL AS DOUBLE) AS before_ratio,
        s.peak_ratio, s.observed_s
    FROM seen s
    WHERE s.last_at > s.first_at
),
latest AS (
    SELECT r.cluster, r.node, r.gpu, r.gpu_uuid, r.mig, r.gpu_key, r.gpu_model, r.job_id,
        r.mem_used_bytes, r.power_w, s.last_at,
        count(DISTINCT r.gpu_key) OVER (PARTITION BY r.cluster, r.node) AS node_gpus,
        count(r.job_id) OVER (PARTITION BY r.cluster) AS jobs_named,
        date_part('epoch', s.last_at) + 3 * s.period_s >= date_part('epoch', as_of()) AS reports
    FROM read r
    JOIN seen s
        ON s.gpu_key = r.gpu_key AND s.last_at = r.sampled_at
        AND (s.mig IS NOT DISTINCT FROM r.mig)
),
held AS (
    SELECT h.gpu_uuid, h.job_id, h."user", h.team, h.held_since_at
    FROM holdings h
    WHERE h.started_at <= as_of() AND h.ended_at >= as_of()
),
on_gpu AS (
    SELECT h.gpu_uuid,
        array_to_string(array_sort(array_agg(DISTINCT h.job_id)), ',') AS job_id,
        array_to_string(array_sort(array_agg(DISTINCT h."user")), ',') AS "user",
        array_to_string(array_sort(array_agg(DISTINCT h.team)), ',') AS team,
        min(h.held_since_at) AS held_since_at
    FROM held h
    WHERE h.gpu_uuid IS NOT NULL
    GROUP BY h.gpu_uuid
),
on_node AS (
    SELECT h.cluster, h.node, sum(h.gpus) AS gpus_held
    FROM node_held h
    WHERE h.gpu_uuid IS NULL AND h.node IS NOT NULL
    GROUP BY h.cluster, h.node
)
SELECT
    l.cluster,
    coalesce(g."partition", n."partition", 'default') AS "partition",
    l.node, l.gpu, l.gpu_uuid, l.mig, l.gpu_model,
    CASE
        WHEN coalesce(h.job_id, l.job_id) IS NOT NULL OR d.gpus_held >= l.node_gpus THEN 'held'
        WHEN d.gpus_held > 0 OR k.cluster_key IS NULL AND l.jobs_named = 0 THEN 'unknown'
        ELSE 'free'
    END AS holding,
    t.idle_since_at,
    date_part('epoch', l.last_at) - date_part('epoch', t.idle_since_at) AS idle_s,
    t.before_ratio, t.peak_ratio,
    least(t.observed_s / (date_part('epoch', l.last_at) - date_part('epoch', t.idle_since_at)), 1)
        AS coverage_ratio,
    coalesce(h.job_id, l.job_id) AS job_id, h."user", h.team, h.held_since_at,
    l.mem_used_bytes, l.power_w, l.last_at AS last_sampled_at
FROM rest t
JOIN latest l ON l.gpu_key = t.gpu_key AND (l.mig IS NOT DISTINCT FROM t.mig)
LEFT JOIN on_gpu h ON h.gpu_uuid = l.gpu_uuid
LEFT JOIN on_node d ON d.node = l.node AND (d.cluster IS NOT DISTINCT FROM l.cluster)
LEFT JOIN ledgers k ON k.cluster_key = coalesce(l.cluster, '')
LEFT JOIN gpus g ON g.gpu_uuid = l.gpu_uuid
LEFT JOIN nodes n ON n.node = l.node AND (n.cluster IS NOT DISTINCT FROM l.cluster)
WHERE l.reports
