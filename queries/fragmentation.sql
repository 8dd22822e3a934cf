-- How many waiting jobs of each size could start on the GPUs that are free now.
-- parameters: $from timestamp, $until timestamp
-- columns:    cluster text, partition text, gpus_installed float64, gpus_down float64,
--             gpus_free float64, largest_free_block float64 [GPU], nodes_with_free int64,
--             job_gpus float64 [GPU], jobs_waiting int64, jobs_recent int64, slots int64,
--             jobs_could_start int64, reason text
-- one row per pool and job size that waits now or was submitted in [$from, $until); a pool nobody
-- asks has one row without a size. Ordered by cluster, partition, job_gpus. slots: how many jobs of
-- that size fit, one size at a time: on one node each, or on whole free nodes where a job is larger
-- than a node. A job whose pool is not in the inventory counts in pool `default` if there is one.
WITH pool AS (
    SELECT f.* FROM fragmentation f
),
asked AS (
    SELECT j.cluster,
        CASE WHEN p."partition" IS NULL AND d."partition" IS NOT NULL THEN 'default'
            ELSE coalesce(j."partition", 'default') END AS "partition",
        coalesce(j.gpus_requested, j.gpus_allocated) AS job_gpus,
        CASE WHEN j.started_at IS NULL AND j.ended_at IS NULL AND j.submitted_at <= as_of()
            THEN 1 ELSE 0 END AS waits,
        CASE WHEN j.submitted_at >= $from AND j.submitted_at < $until THEN 1 ELSE 0 END AS recent
    FROM jobs j
    LEFT JOIN pool p
        ON p."partition" = coalesce(j."partition", 'default')
        AND (p.cluster IS NOT DISTINCT FROM j.cluster)
    LEFT JOIN pool d
        ON d."partition" = 'default' AND (d.cluster IS NOT DISTINCT FROM j.cluster)
),
sizes AS (
    SELECT a.cluster, a."partition", a.job_gpus, sum(a.waits) AS jobs_waiting,
        sum(a.recent) AS jobs_recent
    FROM asked a
    WHERE a.job_gpus > 0 AND (a.waits = 1 OR a.recent = 1)
    GROUP BY a.cluster, a."partition", a.job_gpus
),
asked_pool AS (
    SELECT p.*, s.job_gpus, s.jobs_waiting, s.jobs_recent
    FROM pool p
    LEFT JOIN sizes s
        ON (s.cluster IS NOT DISTINCT FROM p.cluster)
        AND (s."partition" IS NOT DISTINCT FROM p."partition")
),
fit AS (
    SELECT a.cluster, a."partition", a.job_gpus,
        CASE
            WHEN a.job_gpus <= a.node_gpus_max THEN sum(floor(f.gpus_free / a.job_gpus))
            ELSE floor(
                sum(CASE WHEN f.gpus_free >= a.node_gpus_max THEN 1 ELSE 0 END)
                / ceil(a.job_gpus / a.node_gpus_max))
        END AS slots
    FROM asked_pool a
    JOIN node_free f
        ON (f.cluster IS NOT DISTINCT FROM a.cluster)
        AND (f."partition" IS NOT DISTINCT FROM a."partition")
    WHERE a.job_gpus IS NOT NULL
    GROUP BY a.cluster, a."partition", a.job_gpus, a.node_gpus_max
),
told AS (
    SELECT a.*, CAST(t.slots AS BIGINT) AS slots,
        CASE WHEN t.slots IS NOT NULL
            THEN least(a.jobs_waiting, CAST(t.slots AS BIGINT)) END AS jobs_could_start
    FROM asked_pool a
    LEFT JOIN fit t
        ON t.job_gpus = a.job_gpus AND (t.cluster IS NOT DISTINCT FROM a.cluster)
        AND (t."partition" IS NOT DISTINCT FROM a."partition")
)
SELECT
    t.cluster, t."partition", t.gpus_installed, t.gpus_down, t.gpus_free, t.largest_free_block,
    t.nodes_with_free, t.job_gpus, t.jobs_waiting, t.jobs_recent, t.slots, t.jobs_could_start,
    CASE
        WHEN t.job_gpus IS NULL AND t.gpus_waiting > 0 THEN concat(
            round(t.gpus_waiting, 1), ' GPUs are waited for; the sizes of the jobs are not known')
        WHEN t.job_gpus IS NULL THEN 'no job asks for GPUs here'
        WHEN t.largest_free_block IS NULL THEN 'nodes are not known: free GPUs cannot be placed'
        WHEN t.jobs_waiting = 0 THEN 'none waits'
        WHEN t.jobs_could_start = t.jobs_waiting THEN 'every waiting job of this size fits'
        WHEN t.gpus_free < t.job_gpus
            THEN concat('full: ', CAST(t.gpus_free AS BIGINT), ' GPUs are free')
        WHEN t.slots = 0 THEN concat('fragmented: ', CAST(t.gpus_free AS BIGINT),
            ' GPUs are free, at most ', CAST(t.largest_free_block AS BIGINT), ' on one node')
        ELSE concat(t.jobs_could_start, ' of ', t.jobs_waiting, ' waiting jobs fit')
    END AS reason
FROM told t
ORDER BY t.cluster, t."partition", t.job_gpus
