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
WITH told AS (
    SELECT f.cluster, f."partition" AS pool, f.gpus_installed, f.gpus_down, f.gpus_free,
        f.largest_free_block, f.nodes_with_free, f.node_gpus_max, f.gpus_waiting,
        CAST(NULL AS DOUBLE) AS job_gpus, CAST(NULL AS BIGINT) AS waits,
        CAST(NULL AS BIGINT) AS recent
    FROM fragmentation f
    UNION ALL
    SELECT j.cluster, coalesce(j."partition", 'default') AS pool,
        CAST(NULL AS DOUBLE) AS gpus_installed, CAST(NULL AS DOUBLE) AS gpus_down,
        CAST(NULL AS DOUBLE) AS gpus_free, CAST(NULL AS DOUBLE) AS largest_free_block,
        CAST(NULL AS BIGINT) AS nodes_with_free, CAST(NULL AS DOUBLE) AS node_gpus_max,
        CAST(NULL AS DOUBLE) AS gpus_waiting,
        j.gpus_asked AS job_gpus, CASE WHEN j.waits THEN 1 ELSE 0 END AS waits,
        CASE WHEN j.submitted_at >= $from AND j.submitted_at < $until THEN 1 ELSE 0 END AS recent
    FROM attempts j
    WHERE j.gpus_asked > 0
),
known AS (
    SELECT t.*,
        count(t.gpus_installed) OVER (PARTITION BY t.cluster, t.pool) AS pool_known,
        count(CASE WHEN t.pool = 'default' THEN t.gpus_installed END) OVER (
            PARTITION BY t.cluster
        ) AS default_known
    FROM told t
    WHERE t.job_gpus IS NULL OR t.waits = 1 OR t.recent = 1
),
sizes AS (
    SELECT k.cluster, k."partition", k.job_gpus, sum(k.waits) AS jobs_waiting,
        sum(k.recent) AS jobs_recent, max(k.gpus_installed) AS gpus_installed,
        max(k.gpus_down) AS gpus_down, max(k.gpus_free) AS gpus_free,
        max(k.largest_free_block) AS largest_free_block,
        max(k.nodes_with_free) AS nodes_with_free, max(k.node_gpus_max) AS node_gpus_max,
        max(k.gpus_waiting) AS gpus_waiting
    FROM (
        SELECT k.*, CASE WHEN k.pool_known = 0 AND k.default_known > 0 THEN 'default'
            ELSE k.pool END AS "partition"
        FROM known k
    ) k
    GROUP BY k.cluster, k."partition", k.job_gpus
),
spread AS (
    SELECT s.cluster, s."partition", s.job_gpus, s.jobs_waiting, s.jobs_recent,
        max(s.gpus_installed) OVER pool AS gpus_installed, max(s.gpus_down) OVER pool AS gpus_down,
        max(s.gpus_free) OVER pool AS gpus_free,
        max(s.largest_free_block) OVER pool AS largest_free_block,
        max(s.nodes_with_free) OVER pool AS nodes_with_free,
        max(s.node_gpus_max) OVER pool AS node_gpus_max,
        max(s.gpus_waiting) OVER pool AS gpus_waiting, count(s.job_gpus) OVER pool AS sizes
    FROM sizes s
    WINDOW pool AS (PARTITION BY s.cluster, s."partition")
),
asked_pool AS (
    SELECT s.* FROM spread s
    WHERE s.gpus_installed IS NOT NULL AND (s.job_gpus IS NOT NULL OR s.sizes = 0)
),
fit AS (
    SELECT f.cluster, f."partition", z.job_gpus,
        sum(floor(f.gpus_free / z.job_gpus)) AS slots_on_one,
        sum(CASE WHEN f.gpus_free >= f.pool_gpus_max THEN 1 ELSE 0 END) AS nodes_whole
    FROM (
        SELECT n.cluster, n."partition", n.gpus_free,
            max(n.gpus_installed) OVER (PARTITION BY n.cluster, n."partition") AS pool_gpus_max
        FROM node_free n
    ) f
    CROSS JOIN (
        SELECT DISTINCT j.gpus_asked AS job_gpus FROM attempts j WHERE j.gpus_asked > 0
    ) z
    GROUP BY f.cluster, f."partition", z.job_gpus
),
slotted AS (
    SELECT a.*,
        CAST(CASE WHEN a.largest_free_block IS NULL THEN NULL
            WHEN a.job_gpus <= a.node_gpus_max THEN f.slots_on_one
            ELSE floor(f.nodes_whole / ceil(a.job_gpus / a.node_gpus_max)) END AS BIGINT) AS slots
    FROM asked_pool a
    LEFT JOIN fit f
        ON f.job_gpus = a.job_gpus AND (f.cluster IS NOT DISTINCT FROM a.cluster)
        AND (f."partition" IS NOT DISTINCT FROM a."partition")
),
judged AS (
    SELECT s.*, CASE WHEN s.slots IS NOT NULL THEN least(s.jobs_waiting, s.slots) END
        AS jobs_could_start
    FROM slotted s
)
SELECT
    t.cluster, t."partition", t.gpus_installed, t.gpus_down, t.gpus_free, t.largest_free_block,
    t.nodes_with_free, t.job_gpus, t.jobs_waiting, t.jobs_recent, t.slots, t.jobs_could_start,
    CASE
        WHEN t.job_gpus IS NULL AND t.gpus_waiting > 0 THEN concat(
            round(t.gpus_waiting, 1), ' GPUs are waited for; the sizes of the jobs are not known')
        WHEN t.job_gpus IS NULL THEN 'no job asks for GPUs here'
        WHEN t.jobs_waiting = 0 THEN 'none waits'
        WHEN t.gpus_free < t.job_gpus
            THEN concat('full: ', CAST(t.gpus_free AS BIGINT), ' GPUs are free')
        WHEN t.largest_free_block IS NULL THEN 'nodes are not known: free GPUs cannot be placed'
        WHEN t.jobs_could_start = t.jobs_waiting THEN 'every waiting job of this size fits'
        WHEN t.slots = 0 THEN concat('fragmented: ', CAST(t.gpus_free AS BIGINT),
            ' GPUs are free, at most ', CAST(t.largest_free_block AS BIGINT), ' on one node')
        ELSE concat(t.jobs_could_start, ' of ', t.jobs_waiting, ' waiting jobs fit')
    END AS reason
FROM judged t
ORDER BY t.cluster, t."partition", t.job_gpus
