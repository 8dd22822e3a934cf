-- Allocations with the share of a GPU that each is of, stated or as the ledger counts it.
-- columns: job_id text, attempt int32, cluster text, node text, gpu int16, gpu_uuid text,
--          mig int16, gpu_share_ratio float64, started_at timestamp, ended_at timestamp
-- one row per allocation that began by as_of(). One without a share is of the whole GPU, but where
-- the ledger gives its job less: of a job that was granted parts of GPUs (a MIG slice, a fraction),
-- each GPU or slice without a share is of its granted GPUs / those GPUs and slices.
WITH parted AS (
    SELECT j.job_id, coalesce(j.attempt, 0) AS attempt_key, coalesce(j.cluster, '') AS cluster_key,
        j.gpus_allocated
    FROM attempts j
    WHERE j.gpus_allocated > 0
),
unstated AS (
    SELECT a.job_id, coalesce(a.attempt, 0) AS attempt_key, coalesce(a.cluster, '') AS cluster_key,
        count(a.mig) AS slices,
        count(DISTINCT concat(a.node, '/', a.gpu, '/', a.gpu_uuid, '/', a.mig)) AS devices
    FROM allocations a
    WHERE a.gpu_share_ratio IS NULL AND (a.gpu IS NOT NULL OR a.gpu_uuid IS NOT NULL)
    GROUP BY a.job_id, coalesce(a.attempt, 0), coalesce(a.cluster, '')
),
part AS (
    SELECT u.job_id, u.attempt_key, u.cluster_key, p.gpus_allocated / u.devices AS share_ratio
    FROM unstated u
    JOIN parted p
        ON p.job_id = u.job_id AND p.attempt_key = u.attempt_key
        AND p.cluster_key = u.cluster_key
    WHERE p.gpus_allocated < u.devices AND (u.slices > 0 OR p.gpus_allocated % 1 > 0)
)
SELECT a.job_id, a.attempt, a.cluster, a.node, a.gpu, a.gpu_uuid, a.mig,
    coalesce(a.gpu_share_ratio,
        CASE WHEN a.gpu IS NOT NULL OR a.gpu_uuid IS NOT NULL THEN p.share_ratio END, 1.0)
        AS gpu_share_ratio,
    a.started_at, a.ended_at
FROM allocations a
LEFT JOIN part p
    ON p.job_id = a.job_id AND p.attempt_key = coalesce(a.attempt, 0)
    AND p.cluster_key = coalesce(a.cluster, '')
WHERE a.started_at <= as_of()
