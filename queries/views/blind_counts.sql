-- Counts at which whatever counts a cluster saw nothing: every count of every pool is 0 at once.
-- columns: cluster text, counted_at timestamp, period_s float64 [s]
-- one row per cluster and instant at which all its pools and teams are counted and installed, held
-- and waiting GPUs are 0 throughout, while each has GPUs installed before and after. GPUs do not
-- vanish from all pools at once and come back: that is an outage of the counting and not a demand
-- of 0, so `counts` leaves it out. One pool at 0 beside others that are not is a count.
WITH known AS (
    SELECT c.cluster, coalesce(c."partition", 'default') AS pool, c.team, c.counted_at,
        c.gpus_installed, c.gpus_held, c.gpus_waiting, c.period_s
    FROM gpu_counts c
    WHERE c.counted_at BETWEEN span_started_at() AND as_of()
),
pair AS (
    SELECT k.cluster, k.pool, k.team, min(k.counted_at) AS first_at, max(k.counted_at) AS last_at
    FROM known k
    WHERE k.gpus_installed > 0
    GROUP BY k.cluster, k.pool, k.team
),
zero AS (
    SELECT k.cluster, k.counted_at, max(k.period_s) AS period_s
    FROM known k
    GROUP BY k.cluster, k.counted_at
    HAVING max(k.gpus_installed) = 0 AND coalesce(max(k.gpus_held), 0) = 0
        AND coalesce(max(k.gpus_waiting), 0) = 0
),
expected AS (
    SELECT z.cluster, z.counted_at, z.period_s, p.pool, p.team
    FROM zero z
    JOIN pair p ON p.first_at < z.counted_at AND p.last_at > z.counted_at
        AND (p.cluster IS NOT DISTINCT FROM z.cluster)
)
SELECT e.cluster, e.counted_at, max(e.period_s) AS period_s
FROM expected e
LEFT JOIN known k
    ON k.counted_at = e.counted_at AND k.pool = e.pool
    AND (k.cluster IS NOT DISTINCT FROM e.cluster) AND (k.team IS NOT DISTINCT FROM e.team)
GROUP BY e.cluster, e.counted_at
HAVING count(*) = count(k.counted_at)
