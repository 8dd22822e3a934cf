-- Load offered to the fleet: GPUs that would be held in each local hour if every job started as
-- soon as it was eligible and ran as long as it did. What capacity is planned on.
-- columns: hour_started_at timestamp, cluster text, partition text, team text, workload text,
--          gpus_offered float64 [GPU]
-- A backlog is not a need for as many GPUs at once: a job that waits four days and runs one is one
-- day of load. A job that has not ended counts for what it ran, or for the mean of the ended jobs
-- of its size where that is longer; one cancelled before it began counts for nothing. Time
-- suspended is no load. Counts tell no durations: there held and waiting GPUs are the load.
WITH attempt AS (
    SELECT j.cluster, coalesce(j."partition", 'default') AS pool, j.team, j.workload,
        coalesce(j.gpus_allocated, j.gpus_asked) AS gpus, j.started_at, j.ended_at,
        coalesce(j.wait_started_at, j.started_at) AS eligible_at,
        CAST(round((CAST(coalesce(j.ended_at, as_of()) AS BIGINT)
            - CAST(j.started_at AS BIGINT)) * j.used_ratio) AS BIGINT) AS ran_ms
    FROM attempts j
    WHERE j.gpus_asked > 0
),
usual AS (
    SELECT a.gpus, avg(a.ran_ms) AS mean_ms
    FROM attempt a
    WHERE a.started_at IS NOT NULL AND a.ended_at IS NOT NULL
    GROUP BY a.gpus
),
timed AS (
    SELECT a.cluster, a.pool, a.team, a.workload, a.gpus, a.eligible_at,
        CASE
            WHEN a.started_at IS NULL AND a.ended_at IS NOT NULL THEN 0
            WHEN a.ended_at IS NOT NULL THEN a.ran_ms
            ELSE greatest(coalesce(a.ran_ms, 0), coalesce(u.mean_ms, 0))
        END AS load_ms
    FROM attempt a
    LEFT JOIN usual u ON u.gpus = a.gpus
),
offered AS (
    SELECT t.cluster, t.pool, t.team, t.workload, t.gpus,
        unnest(split_bins(t.eligible_at, least(as_of(), arrow_cast(
            CAST(t.eligible_at AS BIGINT) + CAST(t.load_ms AS BIGINT),
            'Timestamp(Millisecond, Some("UTC"))')), 'hour')) AS bin
    FROM timed t
),
parts AS (
    SELECT o.bin['bin_started_at'] AS hour_started_at, o.cluster, o.pool, o.team, o.workload,
        o.gpus * o.bin['elapsed_s'] * 1000 / (CAST(o.bin['bin_ended_at'] AS BIGINT)
            - CAST(o.bin['bin_started_at'] AS BIGINT)) AS load
    FROM offered o
    UNION ALL
    SELECT c.hour_started_at, c.cluster, c."partition" AS pool, c.team,
        CAST(NULL AS VARCHAR) AS workload,
        sum((coalesce(c.gpus_held, 0) + coalesce(c.gpus_waiting, 0)) * c.period_s)
            / sum(c.period_s) AS load
    FROM counts c
    WHERE c.period_s > 0
    GROUP BY c.hour_started_at, c.cluster, c."partition", c.team
)
SELECT p.hour_started_at, p.cluster, p.pool AS "partition", p.team, p.workload,
    sum(p.load) AS gpus_offered
FROM parts p
GROUP BY p.hour_started_at, p.cluster, p.pool, p.team, p.workload
