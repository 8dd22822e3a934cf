-- GPUs installed, down, held, free and waited for in each local hour by pool.
-- columns: hour_started_at timestamp, cluster text, partition text, gpus_installed float64 [GPU],
--          gpus_down float64 [GPU], gpus_available float64 [GPU], gpus_held float64 [GPU],
--          gpus_free float64 [GPU], gpus_excess float64 [GPU], gpus_waiting float64 [GPU],
--          source text, hours float64 [h]
-- one row per hour and pool with capacity or demand. installed = held + free + down - excess;
-- excess is what jobs held beyond what is installed and up, 0 where the inventory is right. Jobs
-- whose pool is not among those installed count in pool `default` if there is one; where there is
-- none, installed, free and source are NULL. hours is how long the local hour is, as in
-- demand_hourly. An hour of which nobody counted what a pool holds, where only counts tell it, is
-- not an hour of 0: held, free, excess and waiting are NULL, as they are where nothing tells of
-- jobs.
WITH told AS (
    SELECT coalesce(c.cluster, '') AS cluster_key, c."partition" AS pool, c.hour_started_at,
        c.gpus_installed, c.gpus_down, c.gpus_available, c.source, 0.0 AS held, 0.0 AS waiting,
        CAST(NULL AS BOOLEAN) AS counted
    FROM capacity_hourly c
    UNION ALL
    SELECT coalesce(d.cluster, '') AS cluster_key, d."partition" AS pool, d.hour_started_at,
        CAST(NULL AS DOUBLE) AS gpus_installed, CAST(NULL AS DOUBLE) AS gpus_down,
        CAST(NULL AS DOUBLE) AS gpus_available, CAST(NULL AS VARCHAR) AS source,
        d.gpus_held AS held, d.gpus_waiting AS waiting, d.counted_ratio IS NOT NULL AS counted
    FROM demand_hourly d
),
known AS (
    SELECT t.*,
        count(t.gpus_installed) OVER (PARTITION BY t.cluster_key, t.pool) AS pool_known,
        count(CASE WHEN t.pool = 'default' THEN t.gpus_installed END) OVER (
            PARTITION BY t.cluster_key
        ) AS default_known,
        bool_and(t.counted) OVER (PARTITION BY t.cluster_key, t.pool) AS only_counted
    FROM told t
),
placed AS (
    SELECT k.*,
        CASE WHEN k.pool_known = 0 AND k.default_known > 0 THEN 'default' ELSE k.pool END
            AS "partition"
    FROM known k
),
joined AS (
    SELECT p.hour_started_at, p.cluster_key, p."partition",
        sum(p.gpus_installed) AS gpus_installed, sum(p.gpus_down) AS gpus_down,
        sum(p.gpus_available) AS gpus_available,
        count(p.counted) > 0 OR NOT coalesce(bool_or(p.only_counted), false) AS known,
        sum(p.held) AS held, sum(p.waiting) AS waiting, max(p.source) AS source
    FROM placed p
    GROUP BY p.hour_started_at, p.cluster_key, p."partition"
),
told_of AS (
    SELECT j.hour_started_at, nullif(j.cluster_key, '') AS cluster, j."partition",
        j.gpus_installed, j.gpus_down, j.gpus_available,
        CASE WHEN j.known AND l.cluster_key IS NOT NULL THEN j.held END AS held,
        CASE WHEN j.known AND l.cluster_key IS NOT NULL THEN j.waiting END AS waiting, j.source
    FROM joined j
    LEFT JOIN ledgers l ON l.cluster_key = j.cluster_key
)
SELECT j.hour_started_at, j.cluster, j."partition", j.gpus_installed, j.gpus_down,
    j.gpus_available, j.held AS gpus_held,
    CASE WHEN j.gpus_installed IS NOT NULL AND j.held IS NOT NULL
        THEN greatest(j.gpus_available - j.held, 0) END
        AS gpus_free,
    CASE WHEN j.held > j.gpus_available + 1e-9 THEN j.held - j.gpus_available
        WHEN j.gpus_installed IS NOT NULL AND j.held IS NOT NULL THEN 0.0 END AS gpus_excess,
    j.waiting AS gpus_waiting, j.source,
    (CAST(local_hour_ended(j.hour_started_at) AS BIGINT) - CAST(j.hour_started_at AS BIGINT))
        / 3600000.0 AS hours
FROM told_of j
