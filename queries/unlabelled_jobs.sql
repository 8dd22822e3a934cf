-- Jobs that wait for someone to say what workload they are.
-- parameters: $from timestamp, $until timestamp
-- columns:    job_id text, attempt int32, cluster text, name text, user text, team text,
--             project text, partition text, state text, submitted_at timestamp,
--             started_at timestamp, ended_at timestamp, gpu_hours float64 [GPU·h]
-- one row per unlabelled job attempt that was submitted, or held GPUs, in [$from, $until);
-- GPU-hours are clipped to it. Ordered by gpu_hours, highest first, then submission, job, attempt.
WITH held AS (
    SELECT h.cluster, h.job_id, h.attempt,
        sum(
            (date_part('epoch', least(h.ended_at, $until))
                - date_part('epoch', greatest(h.started_at, $from))) / 3600
            * h.gpus * h.used_ratio
        ) AS gpu_hours
    FROM holdings h
    WHERE h.started_at < $until AND h.ended_at > $from
    GROUP BY h.cluster, h.job_id, h.attempt
)
SELECT
    j.job_id, j.attempt, j.cluster, j.name, j."user", j.team, j.project, j."partition", j.state,
    j.submitted_at, j.started_at, j.ended_at, coalesce(h.gpu_hours, 0) AS gpu_hours
FROM attempts j
LEFT JOIN held h
    ON h.job_id = j.job_id AND (h.attempt IS NOT DISTINCT FROM j.attempt)
    AND (h.cluster IS NOT DISTINCT FROM j.cluster)
WHERE coalesce(j.workload, 'unlabelled') = 'unlabelled'
    AND (h.job_id IS NOT NULL OR (j.submitted_at >= $from AND j.submitted_at < $until))
ORDER BY 13 DESC, j.submitted_at, j.job_id, j.attempt
