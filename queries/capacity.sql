-- GPUs installed, down, held and free by pool and local day or hour, and how that is known.
-- parameters: $from timestamp, $until timestamp, $step text = 'day' of hour|day|week|month
-- columns:    bin_started_at timestamp, cluster text, partition text,
--             gpus_installed float64 [GPU], gpus_down float64 [GPU],
--             gpus_available float64 [GPU], gpus_held float64 [GPU], gpus_free float64 [GPU],
--             gpus_excess float64 [GPU], held_ratio float64 [0-1], source text
-- one row per bin (hour, day, week or month) and pool; ordered by bin, cluster, partition. Means
-- over the hours that begin in [$from, $until) in which it is known what is installed and held (see
-- pool_hourly); what is never known of a pool is NULL, and the other over all hours. installed =
-- held + free + down - excess; excess is what jobs held beyond what is installed and up, 0 where
-- the inventory is right.
-- held_ratio is held / available. source: config, inventory, counts or peak-held, which is a floor.
WITH timed AS (
    SELECT p.*, CASE WHEN p.gpus_installed IS NOT NULL THEN p.hours END AS known_hours
    FROM pool_hourly p
    WHERE p.hour_started_at >= local_hour($from) AND p.hour_started_at < $until
),
kept AS (
    SELECT t.*,
        count(t.gpus_held) OVER (PARTITION BY t.cluster, t."partition") AS held_known
    FROM timed t
)
SELECT local_bin($step, p.hour_started_at) AS bin_started_at, p.cluster, p."partition",
    sum(p.gpus_installed * p.hours) / sum(p.known_hours) AS gpus_installed,
    sum(p.gpus_down * p.hours) / sum(p.known_hours) AS gpus_down,
    sum(p.gpus_available * p.hours) / sum(p.known_hours) AS gpus_available,
    coalesce(sum(p.gpus_held * p.known_hours) / sum(p.known_hours),
        sum(p.gpus_held * p.hours) / sum(p.hours)) AS gpus_held,
    sum(p.gpus_free * p.hours) / sum(p.known_hours) AS gpus_free,
    sum(p.gpus_excess * p.hours) / sum(p.known_hours) AS gpus_excess,
    sum(p.gpus_held * p.known_hours) / nullif(sum(p.gpus_available * p.hours), 0) AS held_ratio,
    max(p.source) AS source
FROM kept p
WHERE p.gpus_held IS NOT NULL OR p.held_known = 0
GROUP BY local_bin($step, p.hour_started_at), p.cluster, p."partition"
ORDER BY local_bin($step, p.hour_started_at), p.cluster, p."partition"
