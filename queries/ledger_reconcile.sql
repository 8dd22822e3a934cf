-- Does the ledger add up? Held, free and down against installed GPU-hours, and against readings.
-- parameters: $from timestamp, $until timestamp
-- columns:    day_started_at timestamp, cluster text, gpu_hours_installed float64 [GPU·h],
--             gpu_hours_held float64 [GPU·h], gpu_hours_free float64 [GPU·h],
--             gpu_hours_down float64 [GPU·h], gpu_hours_excess float64 [GPU·h],
--             gpu_hours_observed float64 [GPU·h], gpu_hours_observed_held float64 [GPU·h],
--             gpu_hours_observed_nobody float64 [GPU·h], coverage_ratio float64 [0-1],
--             jobs int64, jobs_without_samples int64, source text
-- one row per local day and cluster, clipped exactly to [$from, $until); ordered by day, cluster.
-- installed = held + free + down - excess; excess is what jobs held beyond what is installed and
-- up in an hour and pool, 0 where the inventory is right. observed is the time read, of which
-- observed_held is of jobs in the ledger and observed_nobody of none (ledger_unmatched lists them);
-- coverage_ratio is observed / installed. What rests on readings is NULL before readings_since(),
-- the first instant of which readings are left where old ones were dropped. source tells how
-- installed is known. Held, free and excess are NULL where nothing tells of jobs.
WITH installed_hour AS (
    SELECT coalesce(c.cluster, '') AS cluster_key, c.hour_started_at, c.gpus_installed,
        c.gpus_down,
        c.source, greatest(c.hour_started_at, $from) AS from_at,
        least(local_hour_ended(c.hour_started_at), $until, as_of()) AS until_at
    FROM capacity_hourly c
),
installed AS (
    SELECT i.cluster_key, local_day(i.hour_started_at) AS day_started_at, max(i.source) AS source,
        sum(i.gpus_installed * (CAST(i.until_at AS BIGINT) - CAST(i.from_at AS BIGINT)))
            / 3600000.0 AS installed,
        sum(i.gpus_down * (CAST(i.until_at AS BIGINT) - CAST(i.from_at AS BIGINT)))
            / 3600000.0 AS down
    FROM installed_hour i
    WHERE i.until_at > i.from_at
    GROUP BY i.cluster_key, local_day(i.hour_started_at)
),
beyond AS (
    SELECT coalesce(p.cluster, '') AS cluster_key, local_day(p.hour_started_at) AS day_started_at,
        sum(coalesce(p.gpus_excess, p.gpus_held)
            * (CAST(least(local_hour_ended(p.hour_started_at), $until, as_of()) AS BIGINT)
                - CAST(greatest(p.hour_started_at, $from, span_started_at()) AS BIGINT)))
            / 3600000.0 AS excess
    FROM pool_hourly p
    WHERE p.hour_started_at < least($until, as_of())
        AND local_hour_ended(p.hour_started_at) > greatest($from, span_started_at())
    GROUP BY coalesce(p.cluster, ''), local_day(p.hour_started_at)
),
held_bin AS (
    SELECT coalesce(t.cluster, '') AS cluster_key, t.job_id, t.attempt, t.gpus,
        unnest(split_bins(greatest(t.started_at, $from), least(t.ended_at, $until), 'day')) AS bin
    FROM held_time t
    WHERE t.started_at < $until AND t.ended_at > $from
),
device_bin AS (
    SELECT coalesce(d.cluster, '') AS cluster_key, d.board_ratio,
        unnest(split_bins(greatest(d.started_at, $from), least(d.sampled_at, $until), 'day'))
            AS bin
    FROM device_readings d
    WHERE d.started_at < $until AND d.sampled_at > $from
),
device AS (
    SELECT d.cluster_key, d.bin['bin_started_at'] AS day_started_at,
        sum(d.board_ratio * d.bin['elapsed_s']) / 3600 AS observed
    FROM device_bin d
    GROUP BY d.cluster_key, d.bin['bin_started_at']
),
job_bin AS (
    SELECT coalesce(r.job_cluster, r.cluster, '') AS cluster_key, r.job_id, r.attempt, r.gpus,
        unnest(split_bins(greatest(r.started_at, $from), least(r.ended_at, $until), 'day'))
            AS bin
    FROM job_readings r
    WHERE r.ledgered AND r.started_at < $until AND r.ended_at > $from
),
job_part AS (
    SELECT h.cluster_key, h.bin['bin_started_at'] AS day_started_at, h.job_id,
        coalesce(h.attempt, 0) AS attempt_key, h.gpus * h.bin['elapsed_s'] / 3600 AS held,
        CAST(NULL AS DOUBLE) AS read
    FROM held_bin h
    UNION ALL
    SELECT j.cluster_key, j.bin['bin_started_at'] AS day_started_at, j.job_id,
        coalesce(j.attempt, 0) AS attempt_key, CAST(NULL AS DOUBLE) AS held,
        j.gpus * j.bin['elapsed_s'] / 3600 AS read
    FROM job_bin j
),
job_day AS (
    SELECT j.cluster_key, j.day_started_at, j.job_id, j.attempt_key, sum(j.held) AS held,
        sum(j.read) AS read
    FROM job_part j
    GROUP BY j.cluster_key, j.day_started_at, j.job_id, j.attempt_key
),
part AS (
    SELECT i.cluster_key, i.day_started_at, i.source, i.installed, i.down,
        CAST(NULL AS DOUBLE) AS excess, CAST(NULL AS DOUBLE) AS held,
        CAST(NULL AS DOUBLE) AS observed,
        CAST(NULL AS DOUBLE) AS read, CAST(NULL AS VARCHAR) AS job_id
    FROM installed i
    UNION ALL
    SELECT b.cluster_key, b.day_started_at, CAST(NULL AS VARCHAR) AS source,
        CAST(NULL AS DOUBLE) AS installed, CAST(NULL AS DOUBLE) AS down, b.excess,
        CAST(NULL AS DOUBLE) AS held, CAST(NULL AS DOUBLE) AS observed,
        CAST(NULL AS DOUBLE) AS read, CAST(NULL AS VARCHAR) AS job_id
    FROM beyond b
    UNION ALL
    SELECT j.cluster_key, j.day_started_at, CAST(NULL AS VARCHAR) AS source,
        CAST(NULL AS DOUBLE) AS installed, CAST(NULL AS DOUBLE) AS down,
        CAST(NULL AS DOUBLE) AS excess, j.held,
        CAST(NULL AS DOUBLE) AS observed, j.read, j.job_id
    FROM job_day j
    UNION ALL
    SELECT d.cluster_key, d.day_started_at, CAST(NULL AS VARCHAR) AS source,
        CAST(NULL AS DOUBLE) AS installed, CAST(NULL AS DOUBLE) AS down,
        CAST(NULL AS DOUBLE) AS excess, CAST(NULL AS DOUBLE) AS held, d.observed,
        CAST(NULL AS DOUBLE) AS read,
        CAST(NULL AS VARCHAR) AS job_id
    FROM device d
),
day AS (
    SELECT p.day_started_at, p.cluster_key, max(p.source) AS source,
        sum(p.installed) AS installed,
        sum(p.down) AS down, coalesce(sum(p.held), 0) AS held,
        greatest(coalesce(sum(p.excess), 0),
            coalesce(sum(p.held), 0) + sum(p.down) - sum(p.installed)) AS excess,
        coalesce(sum(p.observed), 0) AS observed, coalesce(sum(p.read), 0) AS read,
        count(p.job_id) FILTER (WHERE p.held IS NOT NULL) AS jobs,
        count(p.job_id) FILTER (WHERE p.held IS NOT NULL AND p.read IS NULL) AS jobs_unread
    FROM part p
    GROUP BY p.day_started_at, p.cluster_key
)
SELECT d.day_started_at, nullif(d.cluster_key, '') AS cluster, d.installed AS gpu_hours_installed,
    CASE WHEN d.ledgered THEN d.held END AS gpu_hours_held,
    CASE WHEN d.ledgered AND d.installed IS NOT NULL THEN
        greatest(d.installed + d.excess - d.down - d.held, 0) END AS gpu_hours_free,
    d.down AS gpu_hours_down,
    CASE WHEN d.ledgered AND d.installed IS NOT NULL THEN greatest(d.excess, 0) END
        AS gpu_hours_excess,
    CASE WHEN d.readable THEN d.observed END AS gpu_hours_observed,
    CASE WHEN d.readable THEN d.read END AS gpu_hours_observed_held,
    CASE WHEN d.readable THEN greatest(d.observed - d.read, 0) END AS gpu_hours_observed_nobody,
    CASE WHEN d.installed > 0 AND d.readable THEN
        least(d.observed / d.installed, 1) END AS coverage_ratio, d.jobs,
    CASE WHEN d.readable THEN d.jobs_unread END AS jobs_without_samples, d.source
FROM (
    SELECT y.*, coalesce(y.day_started_at >= readings_since(), true) AS readable,
        l.cluster_key IS NOT NULL AS ledgered
    FROM day y
    LEFT JOIN ledgers l ON l.cluster_key = y.cluster_key
) d
ORDER BY d.day_started_at, d.cluster_key
