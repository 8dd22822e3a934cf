-- GPU-hours held by team, user, project, workload or pool, per local day, week or month.
-- parameters: $from timestamp, $until timestamp, $by text = 'team', $per text = 'month'
-- columns:    period_started_at timestamp, held_by text, gpu_hours_held float64 [GPU·h], jobs int64
-- one row per period and holder inside [$from, $until), clipped exactly; ordered by period, then
-- gpu_hours_held, highest first, then name.
WITH clipped AS (
    SELECT h.job_id, h.gpus * h.used_ratio AS gpus_used,
        CASE $by WHEN 'user' THEN h."user" WHEN 'project' THEN h.project
            WHEN 'workload' THEN h.workload WHEN 'pool' THEN h."partition" ELSE h.team END AS held_by,
        unnest(split_bins(greatest(h.started_at, $from), least(h.ended_at, $until), $per)) AS bin
    FROM holdings h
    WHERE h.started_at < $until AND h.ended_at > $from
),
counted AS (
    SELECT local_bin($per, c.counted_at) AS period_started_at,
        CASE $by WHEN 'team' THEN c.team WHEN 'pool' THEN c."partition" END AS held_by,
        sum(c.gpus_held * c.period_s) / 3600 AS gpu_hours
    FROM gpu_counts c
    WHERE c.counted_at >= $from AND c.counted_at <= $until
    GROUP BY 1, 2
),
parts AS (
    SELECT c.bin['bin_started_at'] AS period_started_at, c.held_by,
        c.gpus_used * c.bin['elapsed_s'] / 3600 AS gpu_hours, c.job_id
    FROM clipped c
    UNION ALL
    SELECT c.period_started_at, c.held_by, c.gpu_hours, CAST(NULL AS VARCHAR) AS job_id FROM counted c
)
SELECT p.period_started_at, coalesce(p.held_by, '(none)') AS held_by,
    sum(p.gpu_hours) AS gpu_hours_held, count(DISTINCT p.job_id) AS jobs
FROM parts p
GROUP BY p.period_started_at, p.held_by
ORDER BY p.period_started_at, gpu_hours_held DESC, held_by
