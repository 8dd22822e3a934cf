-- GPUs installed, down, held and free by pool and local day or hour, and how that is known.
-- parameters: $from timestamp, $until timestamp, $step text = 'day' of hour|day|week|month
-- columns:    bin_started_at timestamp, cluster text, partition text,
--             gpus_installed float64 [GPU], gpus_down float64 [GPU],
--             gpus_available float64 [GPU], gpus_held float64 [GPU], gpus_free float64 [GPU],
--             gpus_excess float64 [GPU], held_ratio float64 [0-1], source text
-- one row per bin (hour, day, week or month) and pool; ordered by bin, cluster, partition. Means
-- over the hours that begin in [$from, $until) in which it is known what is installed; where that
-- is never known, over all and without what is installed. installed = held + free + down - excess;
-- excess is what jobs held beyond what is installed and up, 0 where the inventory is right.
-- held_ratio is held / available. source: config, inventory, counts or peak-held, which is a floor.
SELECT local_bin($step, p.hour_started_at) AS bin_started_at, p.cluster, p."partition",
    avg(p.gpus_installed) AS gpus_installed, avg(p.gpus_down) AS gpus_down,
    avg(p.gpus_available) AS gpus_available,
    coalesce(avg(p.gpus_held) FILTER (WHERE p.gpus_installed IS NOT NULL), avg(p.gpus_held))
        AS gpus_held,
    avg(p.gpus_free) AS gpus_free, avg(p.gpus_excess) AS gpus_excess,
    sum(p.gpus_held) FILTER (WHERE p.gpus_installed IS NOT NULL)
        / nullif(sum(p.gpus_available), 0) AS held_ratio,
    max(p.source) AS source
FROM pool_hourly p
WHERE p.hour_started_at >= local_hour($from) AND p.hour_started_at < $until
GROUP BY local_bin($step, p.hour_started_at), p.cluster, p."partition"
ORDER BY local_bin($step, p.hour_started_at), p.cluster, p."partition"
