-- GPUs whose memory is held although no process runs on them, or no job holds them.
-- parameters: $from timestamp, $until timestamp, $held_bytes int64 = 1073741824
-- columns:    cluster text, node text, gpu int16, gpu_uuid text, mig int16, gpu_model text,
--             gpu_hours_no_process float64 [GPU·h], gpu_hours_no_job float64 [GPU·h],
--             gpu_hours_observed float64 [GPU·h], mem_used_bytes_max int64 [B],
--             first_seen_at timestamp, last_seen_at timestamp, held_now boolean, reason text
-- one row per GPU with more than $held_bytes held by nobody in ($from, $until]; ordered by the hours,
-- most first, then cluster, node, GPU. Hours without a process are NULL where processes were never
-- read; hours without a job are NULL where no job of the node names its GPUs.
WITH read AS (
    SELECT r.*, least(r.period_s, (date_part('epoch', r.sampled_at) - date_part('epoch', $from)))
        AS covered_s
    FROM gpu_readings r
    WHERE r.sampled_at > $from AND r.sampled_at <= $until
),
held AS (
    SELECT DISTINCT h.gpu_uuid, h.started_at, h.ended_at
    FROM holdings h
    WHERE h.gpu_uuid IS NOT NULL AND h.started_at < $until AND h.ended_at > $from
),
held_readings AS (
    SELECT DISTINCT r.gpu_key, r.mig, r.sampled_at
    FROM read r
    JOIN held h ON h.gpu_uuid = r.gpu_uuid
    WHERE r.mem_used_bytes > $held_bytes
        AND r.sampled_at >= h.started_at
        AND (r.sampled_at < h.ended_at OR h.ended_at >= as_of())
),
named AS (
    SELECT DISTINCT h.node FROM holdings h WHERE h.gpu_uuid IS NOT NULL
    UNION
    SELECT DISTINCT r.node FROM read r WHERE r.job_id IS NOT NULL
),
marked AS (
    SELECT
        r.*,
        coalesce(r.mem_used_bytes > $held_bytes AND r.processes = 0, false) AS no_process,
        coalesce(
            r.mem_used_bytes > $held_bytes AND r.job_id IS NULL AND n.node IS NOT NULL
            AND h.gpu_key IS NULL,
            false
        ) AS no_job,
        n.node IS NOT NULL AS jobs_named
    FROM read r
    LEFT JOIN held_readings h
        ON h.gpu_key = r.gpu_key AND h.sampled_at = r.sampled_at
        AND (h.mig IS NOT DISTINCT FROM r.mig)
    LEFT JOIN named n ON n.node = r.node
),
summed AS (
    SELECT
        m.cluster, m.node, m.gpu, m.gpu_uuid, m.mig, max(m.gpu_model) AS gpu_model,
        CASE WHEN count(m.processes) > 0
            THEN coalesce(sum(m.covered_s) FILTER (WHERE m.no_process), 0) / 3600 END
            AS gpu_hours_no_process,
        CASE WHEN bool_or(m.jobs_named)
            THEN coalesce(sum(m.covered_s) FILTER (WHERE m.no_job), 0) / 3600 END
            AS gpu_hours_no_job,
        sum(m.covered_s) / 3600 AS gpu_hours_observed,
        max(m.mem_used_bytes) FILTER (WHERE m.no_process OR m.no_job) AS mem_used_bytes_max,
        min(m.sampled_at) FILTER (WHERE m.no_process OR m.no_job) AS first_seen_at,
        max(m.sampled_at) FILTER (WHERE m.no_process OR m.no_job) AS last_seen_at,
        max(m.sampled_at) AS last_at,
        bool_or(m.no_process) AS no_process, bool_or(m.no_job) AS no_job
    FROM marked m
    GROUP BY m.cluster, m.node, m.gpu, m.gpu_uuid, m.mig
)
SELECT
    s.cluster, s.node, s.gpu, s.gpu_uuid, s.mig, s.gpu_model,
    s.gpu_hours_no_process, s.gpu_hours_no_job, s.gpu_hours_observed,
    s.mem_used_bytes_max, s.first_seen_at, s.last_seen_at,
    s.last_seen_at = s.last_at AS held_now,
    CASE
        WHEN s.no_process AND s.no_job THEN 'memory held with no process and no job'
        WHEN s.no_process THEN 'memory held with no process'
        ELSE 'memory held with no job'
    END AS reason
FROM summed s
WHERE s.no_process OR s.no_job
ORDER BY
    greatest(coalesce(s.gpu_hours_no_process, 0), coalesce(s.gpu_hours_no_job, 0)) DESC,
    s.cluster, s.node, s.gpu, s.gpu_uuid, s.mig
