-- Allocations as they count: what was granted on one GPU at once is never more than the GPU.
-- columns: job_id text, attempt int32, cluster text, node text, gpu_uuid text, gpus float64,
--          used_ratio float64 [0-1], shared boolean, started_at timestamp, ended_at timestamp,
--          held_since_at timestamp
-- one row per allocation, inside [span_started_at(), as_of()]; an open one ends at as_of(). Where
-- the shares granted on one GPU (by cluster and UUID, else node and index; first those of each
-- slice, then those of the board), less suspension, sum to more than 1, each counts its share /
-- that sum, and is cut where that changes. used_ratio is the share of the row's time in which a
-- suspended attempt is taken to have run: it was suspended first while others held a GPU of its
-- own; NULL where that is the same for all of its time. Shares are those of
-- allocation_shares; an allocation that names no GPU counts as told. shared tells that another held
-- the GPU or slice within the row: their use cannot be told apart. held_since_at is the start of
-- the allocation.
WITH known AS (
    SELECT a.job_id, a.attempt, a.cluster, a.node, a.gpu, a.gpu_uuid, a.mig,
        a.gpu_share_ratio AS gpus, a.started_at AS held_since_at,
        greatest(a.started_at, span_started_at()) AS from_at,
        least(coalesce(a.ended_at, as_of()), as_of()) AS until_at,
        gpu_shared(a.cluster, a.node, a.gpu, a.gpu_uuid) AS several
    FROM allocation_shares a
    WHERE a.started_at < as_of()
),
cut AS (
    SELECT k.job_id, k.attempt, k.cluster, k.node, k.gpu_uuid, k.held_since_at,
        unnest(grant_parts(k.cluster, k.node, k.gpu, k.gpu_uuid, k.mig, k.gpus, k.from_at,
            k.until_at, k.job_id, k.attempt)) AS part
    FROM known k
    WHERE k.several AND k.until_at > k.from_at
)
SELECT k.job_id, k.attempt, k.cluster, k.node, k.gpu_uuid, k.gpus,
    CAST(NULL AS DOUBLE) AS used_ratio, false AS shared,
    k.from_at AS started_at, k.until_at AS ended_at, k.held_since_at
FROM known k
WHERE NOT k.several AND k.until_at > k.from_at
UNION ALL
SELECT c.job_id, c.attempt, c.cluster, c.node, c.gpu_uuid, c.part['gpus'] AS gpus,
    c.part['used_ratio'] AS used_ratio, c.part['shared'] AS shared,
    c.part['started_at'] AS started_at,
    c.part['ended_at'] AS ended_at, c.held_since_at
FROM cut c
