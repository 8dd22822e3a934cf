-- How much of each local day the readings of a node cover.
-- columns: day_started_at timestamp, cluster text, node text, gpus int64,
--          gpu_hours_expected float64 [GPU·h], gpu_hours_observed float64 [GPU·h],
--          coverage_ratio float64 [0-1], gaps int64
-- one row per local day and node with a GPU that was expected to report. A slice counts as a GPU.
WITH piece AS (
    SELECT c.*, (CAST(c.ended_at AS BIGINT) - CAST(c.started_at AS BIGINT)) / 1000.0 AS elapsed_s
    FROM coverage_pieces c
)
SELECT
    p.day_started_at, p.cluster, p.node,
    count(DISTINCT concat(p.gpu_key, '/', coalesce(CAST(p.mig AS VARCHAR), '')))
        FILTER (WHERE NOT p.gap) AS gpus,
    sum(p.elapsed_s) FILTER (WHERE NOT p.gap) / 3600 AS gpu_hours_expected,
    sum(CASE WHEN p.gap THEN -p.elapsed_s ELSE p.elapsed_s END) / 3600 AS gpu_hours_observed,
    sum(CASE WHEN p.gap THEN -p.elapsed_s ELSE p.elapsed_s END)
        / sum(p.elapsed_s) FILTER (WHERE NOT p.gap) AS coverage_ratio,
    count(*) FILTER (WHERE p.gap) AS gaps
FROM piece p
GROUP BY p.day_started_at, p.cluster, p.node
HAVING count(*) FILTER (WHERE NOT p.gap) > 0
