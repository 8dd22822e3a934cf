-- GPUs installed, down and available by pool and local day, and how that is known.
-- parameters: $from timestamp, $until timestamp
-- columns:    day_started_at timestamp, cluster text, partition text, gpus_installed float64 [GPU],
--             gpus_down float64 [GPU], gpus_available float64 [GPU], source text
-- means over the hours of [$from, $until); one row per day and pool, ordered by day, cluster,
-- partition. source: config, inventory, counts or peak-held, which is a floor.
SELECT local_day(c.hour_started_at) AS day_started_at, c.cluster, c."partition",
    avg(c.gpus_installed) AS gpus_installed, avg(c.gpus_down) AS gpus_down,
    avg(c.gpus_available) AS gpus_available, max(c.source) AS source
FROM capacity_hourly c
WHERE c.hour_started_at >= local_hour($from) AND c.hour_started_at < $until
GROUP BY local_day(c.hour_started_at), c.cluster, c."partition"
ORDER BY day_started_at, c.cluster, c."partition"
