-- GPUs whose memory is held although no process runs on them, or no job holds them.
-- parameters: $from timestamp, $until timestamp, $held_bytes int64 = 1073741824
-- columns:    cluster text, node text, gpu int16, gpu_uuid text, mig int16, gpu_model text,
--             gpu_hours_no_process float64 [GPU·h], gpu_hours_no_job float64 [GPU·h],
--             gpu_hours_observed float64 [GPU·h], mem_used_bytes_max int64 [B],
--             first_seen_at timestamp, last_seen_at timestamp, held_now boolean, reason text
-- one row per GPU with more than $held_bytes held by nobody in ($from, $until]; ordered by the
-- hours, most first, then cluster, node, GPU. Hours without a process are NULL where processes were
-- never read; hours without a job are NULL where no job of the node names its GPUs. A reading
-- stands for the time before it: without a job is the part of it after the last job left the GPU.
WITH read AS (
    SELECT r.cluster, r.node, r.gpu, r.gpu_uuid, r.mig, r.gpu_model, r.sampled_at, r.job_id,
        r.mem_used_bytes, r.processes,
        least(r.period_s, date_part('epoch', r.sampled_at) - date_part('epoch', $from))
            AS covered_s,
        coalesce(r.mem_used_bytes > $held_bytes AND r.processes = 0, false) AS no_process,
        coalesce(r.mem_used_bytes > $held_bytes, false) AND r.latest['job_id'] IS NULL
            AS no_holder,
        least(r.latest['period_s'], date_part('epoch', r.sampled_at) - date_part('epoch', $from))
            AS unheld_s
    FROM (
        SELECT g.*, job_shares(g.job_id, g.cluster, g.node, g.gpu, g.gpu_uuid, g.mig,
            g.sampled_at, g.period_s, g.activity_ratio)[-1] AS latest
        FROM gpu_readings g
        WHERE g.sampled_at > $from AND g.sampled_at <= $until
    ) r
),
per_gpu AS (
    SELECT
        r.cluster, r.node, r.gpu, r.gpu_uuid, r.mig, max(r.gpu_model) AS gpu_model,
        sum(r.covered_s) / 3600 AS gpu_hours_observed, max(r.sampled_at) AS last_at,
        count(r.processes) AS processes_read, count(r.job_id) AS jobs_told,
        count(*) FILTER (WHERE r.no_process) > 0 AS no_process,
        coalesce(sum(r.covered_s) FILTER (WHERE r.no_process), 0) / 3600 AS hours_no_process,
        max(r.mem_used_bytes) FILTER (WHERE r.no_process) AS bytes_no_process,
        min(r.sampled_at) FILTER (WHERE r.no_process) AS first_no_process_at,
        max(r.sampled_at) FILTER (WHERE r.no_process) AS last_no_process_at,
        count(*) FILTER (WHERE r.no_holder) > 0 AS no_holder,
        coalesce(sum(r.unheld_s) FILTER (WHERE r.no_holder), 0) / 3600 AS hours_no_holder,
        max(r.mem_used_bytes) FILTER (WHERE r.no_holder) AS bytes_no_holder,
        min(r.sampled_at) FILTER (WHERE r.no_holder) AS first_no_holder_at,
        max(r.sampled_at) FILTER (WHERE r.no_holder) AS last_no_holder_at
    FROM read r
    GROUP BY r.cluster, r.node, r.gpu, r.gpu_uuid, r.mig
),
named AS (
    SELECT p.*,
        n.node IS NOT NULL OR sum(p.jobs_told) OVER (PARTITION BY p.node) > 0 AS jobs_named
    FROM per_gpu p
    LEFT JOIN (SELECT DISTINCT h.node FROM holdings h WHERE h.gpu_uuid IS NOT NULL) n
        ON n.node = p.node
),
summed AS (
    SELECT
        n.cluster, n.node, n.gpu, n.gpu_uuid, n.mig, n.gpu_model, n.gpu_hours_observed, n.last_at,
        n.no_process, n.jobs_named AND n.no_holder AS no_job,
        CASE WHEN n.processes_read > 0 THEN n.hours_no_process END AS gpu_hours_no_process,
        CASE WHEN n.jobs_named THEN n.hours_no_holder END AS gpu_hours_no_job,
        greatest(n.bytes_no_process, CASE WHEN n.jobs_named THEN n.bytes_no_holder END)
            AS mem_used_bytes_max,
        least(n.first_no_process_at, CASE WHEN n.jobs_named THEN n.first_no_holder_at END)
            AS first_seen_at,
        greatest(n.last_no_process_at, CASE WHEN n.jobs_named THEN n.last_no_holder_at END)
            AS last_seen_at
    FROM named n
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
