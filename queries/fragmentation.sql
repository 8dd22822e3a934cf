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
WITH known AS (
    SELECT g.cluster, array_agg(DISTINCT coalesce(g."partition", n."partition", 'default')) AS pools
    FROM gpus g
    LEFT JOIN nodes n ON n.node = g.node AND (n.cluster IS NOT DISTINCT FROM g.cluster)
    GROUP BY g.cluster
),
asked AS (
    SELECT j.cluster,
        CASE WHEN array_has(k.pools, 'default') AND j."partition" IS NOT NULL
                AND NOT array_has(k.pools, j."partition") THEN 'default'
            ELSE coalesce(j."partition", 'default') END AS pool,
        coalesce(j.gpus_requested, j.gpus_allocated) AS job_gpus,
        CASE WHEN j.started_at IS NULL AND j.ended_at IS NULL AND j.submitted_at <= as_of()
            THEN 1 ELSE 0 END AS waits,
        CASE WHEN j.submitted_at >= $from AND j.submitted_at < $until THEN 1 ELSE 0 END AS recent
    FROM jobs j
    LEFT JOIN known k ON k.cluster IS NOT DISTINCT FROM j.cluster
),
sizes AS (
    SELECT a.cluster, a.pool, a.job_gpus, sum(a.waits) AS jobs_waiting, sum(a.recent) AS jobs_recent
    FROM asked a
    WHERE a.job_gpus > 0 AND (a.waits = 1 OR a.recent = 1)
    GROUP BY a.cluster, a.pool, a.job_gpus
),
fit AS (
    SELECT p.cluster, p."partition", p.gpus_installed, p.gpus_down, p.gpus_free, p.gpus_waiting,
        p.largest_free_block, p.node_gpus_max, p.nodes_with_free,
        s.job_gpus, s.jobs_waiting, s.jobs_recent,
        sum(floor(f.gpus_free / s.job_gpus)) AS slots_on_a_node,
        sum(CASE WHEN f.gpus_free >= p.node_gpus_max THEN 1 ELSE 0 END) AS nodes_all_free
    FROM fragmentation p
    LEFT JOIN sizes s
        ON (s.cluster IS NOT DISTINCT FROM p.cluster)
        AND (s.pool IS NOT DISTINCT FROM p."partition")
    LEFT JOIN node_free f
        ON (f.cluster IS NOT DISTINCT FROM p.cluster)
        AND (f."partition" IS NOT DISTINCT FROM p."partition")
    GROUP BY p.cluster, p."partition", p.gpus_installed, p.gpus_down, p.gpus_free, p.gpus_waiting,
        p.largest_free_block, p.node_gpus_max, p.nodes_with_free,
        s.job_gpus, s.jobs_waiting, s.jobs_recent
),
fitted AS (
    SELECT f.*,
        CAST(CASE
            WHEN f.job_gpus <= f.node_gpus_max THEN f.slots_on_a_node
            ELSE floor(f.nodes_all_free / ceil(f.job_gpus / f.node_gpus_max))
        END AS BIGINT) AS slots
    FROM fit f
),
told AS (
    SELECT f.*,
        CASE WHEN f.slots IS NOT NULL THEN least(f.jobs_waiting, f.slots) END AS jobs_could_start
    FROM fitted f
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
