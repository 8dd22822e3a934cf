-- GPUs installed by pool and local day, and how that is known.
-- parameters: $from timestamp, $until timestamp
-- columns:    day_started_at timestamp, cluster text, partition text, gpus_installed float64,
--             source text
-- one row per day and pool; ordered by day, cluster, partition.
SELECT local_day(c.hour_started_at) AS day_started_at, c.cluster, c."partition",
    avg(c.gpus_installed) AS gpus_installed, max(c.source) AS source
FROM capacity_hourly c
WHERE c.hour_started_at >= local_hour($from) AND c.hour_started_at < $until
GROUP BY local_day(c.hour_started_at), c.cluster, c."partition"
ORDER BY day_started_at, c.cluster, c."partition"
