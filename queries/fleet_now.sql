-- The fleet at its latest instant: GPUs installed, down, held, free and waited for, and their use.
-- parameters: $window_s float64 = 600
-- columns:    scope text, cluster text, partition text, now_at timestamp,
--             gpus_installed float64 [GPU], gpus_down float64 [GPU], gpus_held float64 [GPU],
--             gpus_free float64 [GPU], gpus_waiting float64 [GPU], held_ratio float64 [0-1],
--             util_ratio float64 [0-1], power_w float64 [W], gpus_reporting int64,
--             coverage_ratio float64 [0-1], source text
-- one row for the fleet, then one per pool, ordered by cluster, partition. held_ratio is
-- held / (installed - down). Utilisation is the mean of the last $window_s seconds of readings,
-- power_w their sum over GPUs of mean power; coverage_ratio is the part of the installed GPUs x
-- that time that was read. NULL where nothing was; held and free where nothing tells of jobs.
-- source is how what is installed is known, as in capacity: config, inventory, counts or peak-held;
-- for the fleet, that of the pool known worst.
WITH placed AS (
    SELECT d.cluster, coalesce(g."partition", n."partition", 'default') AS "partition", d.gpu_key,
        d.board_ratio * (CAST(d.sampled_at AS BIGINT) - CAST(greatest(d.started_at,
            arrow_cast(CAST(as_of() AS BIGINT) - CAST(round($window_s * 1000) AS BIGINT),
                'Timestamp(Millisecond, Some("UTC"))')) AS BIGINT)) / 1000.0 AS gpu_s,
        d.util_ratio, d.power_w
    FROM device_readings d
    LEFT JOIN gpus g ON g.gpu_uuid = d.gpu_uuid
    LEFT JOIN nodes n ON n.node = d.node AND (n.cluster IS NOT DISTINCT FROM d.cluster)
    WHERE d.sampled_at <= as_of()
        AND CAST(d.sampled_at AS BIGINT) > CAST(as_of() AS BIGINT) - $window_s * 1000
),
by_gpu AS (
    SELECT p.cluster, p."partition", p.gpu_key,
        sum(p.gpu_s) FILTER (WHERE p.util_ratio IS NOT NULL) AS observed_s,
        sum(p.gpu_s * p.util_ratio) AS busy_s,
        CASE WHEN count(p.power_w) > 0 THEN sum(p.gpu_s * p.power_w)
            / nullif(sum(p.gpu_s) FILTER (WHERE p.power_w IS NOT NULL), 0) END AS power_w
    FROM placed p
    GROUP BY p.cluster, p."partition", p.gpu_key
),
read AS (
    SELECT coalesce(b.cluster, '') AS cluster_key, b."partition", sum(b.observed_s) AS observed_s,
        sum(b.busy_s) AS busy_s, CASE WHEN count(b.power_w) > 0 THEN sum(b.power_w) END AS power_w,
        count(*) AS gpus_reporting
    FROM by_gpu b
    GROUP BY coalesce(b.cluster, ''), b."partition"
),
pool AS (
    SELECT coalesce(f.cluster, r.cluster_key, '') AS cluster_key,
        coalesce(f."partition", r."partition") AS "partition", f.gpus_installed, f.gpus_down,
        f.gpus_held, f.gpus_free, f.gpus_waiting, r.observed_s, r.busy_s, r.power_w,
        coalesce(r.gpus_reporting, 0) AS gpus_reporting,
        CASE f.source WHEN 'config' THEN 1 WHEN 'inventory' THEN 2 WHEN 'counts' THEN 3
            WHEN 'peak-held' THEN 4 END AS known_by
    FROM fragmentation f
    FULL JOIN read r
        ON r."partition" = f."partition" AND r.cluster_key = coalesce(f.cluster, '')
),
scoped AS (
    SELECT CASE WHEN grouping(p.cluster_key) = 1 THEN 'fleet' ELSE 'pool' END AS scope,
        p.cluster_key, p."partition", sum(p.gpus_installed) AS gpus_installed,
        sum(p.gpus_down) AS gpus_down,
        count(CASE WHEN p.gpus_installed IS NOT NULL AND p.gpus_held IS NULL THEN 1 END) AS unknown,
        sum(p.gpus_held) AS gpus_held, sum(p.gpus_free) AS gpus_free,
        sum(p.gpus_waiting) AS gpus_waiting, sum(p.observed_s) AS observed_s,
        sum(p.busy_s) AS busy_s, CASE WHEN count(p.power_w) > 0 THEN sum(p.power_w) END AS power_w,
        max(p.known_by) AS known_by, sum(p.gpus_reporting) AS gpus_reporting
    FROM pool p
    GROUP BY GROUPING SETS ((p.cluster_key, p."partition"), ())
)
SELECT s.scope, nullif(s.cluster_key, '') AS cluster, s."partition", as_of() AS now_at,
    s.gpus_installed, s.gpus_down, CASE WHEN s.unknown = 0 THEN s.gpus_held END AS gpus_held,
    CASE WHEN s.unknown = 0 THEN s.gpus_free END AS gpus_free, s.gpus_waiting,
    CASE WHEN s.unknown = 0 THEN s.gpus_held / nullif(s.gpus_installed - s.gpus_down, 0) END
        AS held_ratio,
    s.busy_s / nullif(s.observed_s, 0) AS util_ratio, s.power_w, s.gpus_reporting,
    CASE WHEN s.gpus_installed > 0 THEN
        least(coalesce(s.observed_s, 0) / (s.gpus_installed * $window_s), 1) END AS coverage_ratio,
    CASE s.known_by WHEN 1 THEN 'config' WHEN 2 THEN 'inventory' WHEN 3 THEN 'counts'
        WHEN 4 THEN 'peak-held' END AS source
FROM scoped s
ORDER BY s.scope, s.cluster_key, s."partition"
