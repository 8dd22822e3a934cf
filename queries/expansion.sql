-- Has a pool been full for weeks while its queue grows? The weeks, their figures and a conclusion.
-- parameters: $from timestamp, $until timestamp, $weeks int64 = 4, $util_ratio float64 = 0.7
-- columns:    cluster text, partition text, week_started_at timestamp,
--             gpu_hours_held float64 [GPU·h], gpu_hours_available float64 [GPU·h],
--             held_ratio float64 [0-1], busy_ratio float64 [0-1],
--             gpus_waiting_mean float64 [GPU], gpus_waiting_change float64 [GPU],
--             weeks_above int64, conclusion text
-- one row per pool and local week of which nine tenths or more lie inside [$from, $until) and the
-- store, as `plan` takes a week for whole; ordered by cluster, partition, week.
-- held_ratio is held / available; busy_ratio is observed busy time / observed time, NULL without
-- samples. weeks_above counts consecutive weeks above $util_ratio up to this one. The queue grows
-- where a line through the last $weeks weekly means of waiting GPUs rises by one GPU or more. The
-- conclusion is the pool's, as of its last whole week: `expand` where both hold.
WITH pool AS (
    SELECT p.cluster, p."partition", local_week(p.hour_started_at) AS week_started_at,
        sum(p.gpus_held * p.hours) AS gpu_hours_held,
        sum(p.gpus_waiting * p.hours) AS gpu_hours_waiting,
        sum(p.gpus_available * p.hours) AS gpu_hours_available, sum(p.hours) AS hours
    FROM pool_hourly p
    WHERE p.hour_started_at >= $from AND p.hour_started_at < $until
        AND p.gpus_installed IS NOT NULL AND p.gpus_held IS NOT NULL
    GROUP BY p.cluster, p."partition", local_week(p.hour_started_at)
),
sampled AS (
    SELECT r.cluster, r.node, r.gpu_uuid, local_week(r.started_at) AS week_started_at,
        sum(r.period_s) AS observed_s, sum(r.period_s * r.activity_ratio) AS busy_s
    FROM gpu_readings r
    WHERE r.activity_ratio IS NOT NULL AND r.sampled_at > $from AND r.sampled_at <= $until
    GROUP BY r.cluster, r.node, r.gpu_uuid, local_week(r.started_at)
),
busy AS (
    SELECT s.cluster, coalesce(g."partition", n."partition", 'default') AS "partition",
        s.week_started_at, sum(s.busy_s) / nullif(sum(s.observed_s), 0) AS busy_ratio
    FROM sampled s
    LEFT JOIN gpus g ON g.gpu_uuid = s.gpu_uuid
    LEFT JOIN nodes n ON n.node = s.node AND (n.cluster IS NOT DISTINCT FROM s.cluster)
    GROUP BY s.cluster, coalesce(g."partition", n."partition", 'default'), s.week_started_at
),
week AS (
    SELECT p.cluster, p."partition", p.week_started_at,
        local_week(p.week_started_at + INTERVAL '180 hours') AS week_ended_at,
        p.gpu_hours_held, p.gpu_hours_available, p.hours,
        p.gpu_hours_held / nullif(p.gpu_hours_available, 0) AS held_ratio,
        b.busy_ratio, p.gpu_hours_waiting / p.hours AS gpus_waiting_mean
    FROM pool p
    LEFT JOIN busy b
        ON b.week_started_at = p.week_started_at AND (b.cluster IS NOT DISTINCT FROM p.cluster)
        AND (b."partition" IS NOT DISTINCT FROM p."partition")
),
whole AS (
    SELECT w.*,
        coalesce(w.held_ratio > $util_ratio, false) AS above,
        row_number() OVER pool AS week_number,
        w.gpus_waiting_mean - lag(w.gpus_waiting_mean) OVER pool AS gpus_waiting_change,
        CASE WHEN coalesce(w.held_ratio > $util_ratio, false)
            AND coalesce(lag(w.week_ended_at) OVER pool = w.week_started_at, true)
        THEN 0 ELSE 1 END AS breaks
    FROM week w
    WHERE w.hours >= 0.9 * (CAST(w.week_ended_at AS BIGINT)
        - CAST(w.week_started_at AS BIGINT)) / 3600000.0
    WINDOW pool AS (PARTITION BY w.cluster, w."partition" ORDER BY w.week_started_at)
),
run AS (
    SELECT w.*,
        sum(w.breaks) OVER (
            PARTITION BY w.cluster, w."partition" ORDER BY w.week_started_at
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS run_id,
        count(*) OVER (PARTITION BY w.cluster, w."partition") AS weeks_seen
    FROM whole w
),
counted AS (
    SELECT r.*,
        sum(CASE WHEN r.above THEN 1 ELSE 0 END) OVER (
            PARTITION BY r.cluster, r."partition", r.run_id ORDER BY r.week_started_at
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS weeks_above
    FROM run r
),
recent AS (
    SELECT c.cluster, c."partition",
        regr_slope(c.gpus_waiting_mean, CAST(c.week_number AS DOUBLE)) AS slope,
        string_agg(coalesce(CAST(round(c.gpus_waiting_mean, 1) AS VARCHAR), 'unknown'), ', '
            ORDER BY c.week_number) AS waiting,
        last_value(c.weeks_above ORDER BY c.week_number) AS weeks_above,
        last_value(c.held_ratio ORDER BY c.week_number) AS held_ratio,
        max(c.weeks_seen) AS weeks_seen
    FROM counted c
    WHERE c.week_number > c.weeks_seen - $weeks
    GROUP BY c.cluster, c."partition"
),
judged AS (
    SELECT r.*,
        CASE
            WHEN r.weeks_seen < $weeks THEN concat('not enough history: ', r.weeks_seen,
                CASE WHEN r.weeks_seen = 1 THEN ' whole week, ' ELSE ' whole weeks, ' END, $weeks,
                ' needed')
            WHEN r.weeks_above < $weeks THEN concat('keep: ', r.weeks_above, ' of ', $weeks,
                ' consecutive weeks above ', CAST(round($util_ratio * 100) AS BIGINT),
                ' %; the last was at ',
                coalesce(CAST(CAST(round(r.held_ratio * 100) AS BIGINT) AS VARCHAR), 'unknown'),
                ' %')
            WHEN r.slope * ($weeks - 1) > 1 - 1e-9 THEN concat('expand: ', r.weeks_above,
                ' consecutive weeks above ',
                CAST(round($util_ratio * 100) AS BIGINT), ' % and the queue grows: ', r.waiting,
                ' GPUs waiting, on average of each of the last ', $weeks)
            ELSE concat('watch: ', r.weeks_above, ' consecutive weeks above ',
                CAST(round($util_ratio * 100) AS BIGINT), ' %, but the queue does not grow: ',
                r.waiting, ' GPUs waiting, on average of each of the last ', $weeks)
        END AS conclusion
    FROM recent r
)
SELECT
    c.cluster, c."partition", c.week_started_at, c.gpu_hours_held, c.gpu_hours_available,
    c.held_ratio, c.busy_ratio, c.gpus_waiting_mean, c.gpus_waiting_change,
    c.weeks_above, j.conclusion
FROM counted c
JOIN judged j
    ON (j.cluster IS NOT DISTINCT FROM c.cluster)
    AND (j."partition" IS NOT DISTINCT FROM c."partition")
ORDER BY c.cluster, c."partition", c.week_started_at
