-- GPUs installed, down, held and free by pool and local day or hour, and how that is known.
-- parameters: $from timestamp, $until timestamp, $step text = 'day'
-- columns:    bin_started_at timestamp, cluster text, partition text,
--             gpus_installed float64 [GPU], gpus_down float64 [GPU],
--             gpus_available float64 [GPU], gpus_held float64 [GPU], gpus_free float64 [GPU],
--             held_ratio float64 [0-1], source text
-- one row per bin (hour, day, week or month) and pool; ordered by bin, cluster, partition. Means
-- over the hours that begin in [$from, $until); held_ratio is held / available. source: config,
-- inventory, counts or peak-held, which is a floor.
WITH held AS (
    SELECT coalesce(d.cluster, '') AS cluster_key, d."partition", d.hour_started_at,
        sum(d.gpus_held) AS gpus
    FROM demand_hourly d
    WHERE d.hour_started_at >= local_hour($from) AND d.hour_started_at < $until
    GROUP BY coalesce(d.cluster, ''), d."partition", d.hour_started_at
),
hourly AS (
    SELECT local_bin($step, c.hour_started_at) AS bin_started_at, c.cluster, c."partition",
        c.gpus_installed, c.gpus_down, c.gpus_available, c.source, coalesce(h.gpus, 0) AS held,
        greatest(c.gpus_available - coalesce(h.gpus, 0), 0) AS free
    FROM capacity_hourly c
    LEFT JOIN held h
        ON h.hour_started_at = c.hour_started_at AND h."partition" = c."partition"
        AND h.cluster_key = coalesce(c.cluster, '')
    WHERE c.hour_started_at >= local_hour($from) AND c.hour_started_at < $until
)
SELECT h.bin_started_at, h.cluster, h."partition", avg(h.gpus_installed) AS gpus_installed,
    avg(h.gpus_down) AS gpus_down, avg(h.gpus_available) AS gpus_available,
    avg(h.held) AS gpus_held, avg(h.free) AS gpus_free,
    sum(h.held) / nullif(sum(h.gpus_available), 0) AS held_ratio, max(h.source) AS source
FROM hourly h
GROUP BY h.bin_started_at, h.cluster, h."partition"
ORDER BY h.bin_started_at, h.cluster, h."partition"
