-- GPUs held, waited for and in demand, hour by hour, over the whole fleet.
-- parameters: $from timestamp, $until timestamp
-- columns:    hour_started_at timestamp, gpus_held float64, gpus_waiting float64, gpus_demand float64
-- one row per hour with any; ordered by hour.
SELECT d.hour_started_at, sum(d.gpus_held) AS gpus_held, sum(d.gpus_waiting) AS gpus_waiting,
    sum(d.gpus_demand) AS gpus_demand
FROM demand_hourly d
WHERE d.hour_started_at >= local_hour($from) AND d.hour_started_at < $until
GROUP BY d.hour_started_at
ORDER BY d.hour_started_at
