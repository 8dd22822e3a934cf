-- GPUs held, waited for and in demand by local hour or day, for the fleet or by pool or team.
-- parameters: $from timestamp, $until timestamp,
--             $by text = 'fleet' of fleet|pool|team|workload|model,
--             $step text = 'hour' of hour|day|week|month
-- columns:    bin_started_at timestamp, asked_by text, gpus_held float64 [GPU],
--             gpus_waiting float64 [GPU], gpus_demand float64 [GPU], coverage_ratio float64 [0-1]
-- one row per bin (hour, day, week or month) and fleet, pool, team, workload or model; ordered by
-- bin, then name. Means over the hours that begin in [$from, $until) and in which the store tells
-- anything. Where all comes from jobs an hour without any is 0; where a source only counts, an hour
-- without a count is unknown, and coverage_ratio is the part of the time that was counted.
WITH asked AS (
    SELECT d.hour_started_at,
        CASE $by WHEN 'fleet' THEN 'fleet' WHEN 'pool' THEN d."partition" WHEN 'team' THEN d.team
            WHEN 'workload' THEN d.workload WHEN 'model' THEN d.gpu_model END AS asked_by,
        sum(d.gpus_held) AS held, sum(d.gpus_waiting) AS waiting, sum(d.gpus_demand) AS demand,
        coalesce(avg(d.counted_ratio), 1) AS counted_ratio, max(d.hours) AS hours
    FROM demand_hourly d
    WHERE d.hour_started_at >= local_hour($from) AND d.hour_started_at < $until
        AND $by IN ('fleet', 'pool', 'team', 'workload', 'model')
    GROUP BY 1, 2
),
known AS (
    SELECT local_bin($step, a.hour_started_at) AS known_at,
        coalesce(a.asked_by, '(none)') AS asked_by, sum(a.held * a.hours) AS held,
        sum(a.waiting * a.hours) AS waiting, sum(a.demand * a.hours) AS demand,
        sum(a.hours) AS hours, sum(a.counted_ratio * a.hours) AS hours_counted
    FROM asked a
    GROUP BY 1, 2
),
stretch AS (
    SELECT k.*,
        CASE WHEN lag(k.known_at) OVER (PARTITION BY k.asked_by ORDER BY k.known_at) IS NULL
            THEN local_hour(greatest($from, span_started_at())) ELSE k.known_at END AS from_at,
        coalesce(lead(k.known_at) OVER (PARTITION BY k.asked_by ORDER BY k.known_at),
            least($until, as_of())) AS until_at
    FROM known k
),
filled AS (
    SELECT s.known_at, s.asked_by, s.held, s.waiting, s.demand, s.hours,
        s.hours_counted, s.from_at, s.until_at,
        unnest(split_bins(s.from_at, s.until_at, $step)) AS bin
    FROM stretch s
),
whole AS (
    SELECT f.bin['bin_started_at'] AS bin_started_at, f.asked_by,
        f.bin['bin_started_at'] = f.known_at AS heard, f.held, f.waiting, f.demand, f.hours,
        f.hours_counted,
        (CAST(local_hour_ended(least(f.bin['bin_ended_at'], f.until_at)
                - INTERVAL '1 millisecond') AS BIGINT)
            - CAST(greatest(f.bin['bin_started_at'], f.from_at) AS BIGINT)) / 3600000.0
            AS hours_whole
    FROM filled f
),
counted AS (
    SELECT w.*, CASE WHEN w.heard THEN w.hours_counted ELSE 0 END AS hours_heard,
        CASE WHEN c.counts > 0 THEN CASE WHEN w.heard THEN w.hours END ELSE w.hours_whole END
            AS hours_known,
        c.counts
    FROM whole w
    CROSS JOIN (SELECT count(*) AS counts FROM counts) c
)
SELECT c.bin_started_at, c.asked_by,
    CASE WHEN c.heard THEN c.held ELSE 0 END / c.hours_known AS gpus_held,
    CASE WHEN c.heard THEN c.waiting ELSE 0 END / c.hours_known AS gpus_waiting,
    CASE WHEN c.heard THEN c.demand ELSE 0 END / c.hours_known AS gpus_demand,
    CASE WHEN c.counts > 0 THEN c.hours_heard / c.hours_whole ELSE 1.0 END AS coverage_ratio
FROM counted c
ORDER BY c.bin_started_at, c.asked_by
