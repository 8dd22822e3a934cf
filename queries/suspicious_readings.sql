-- Readings that cannot be what they say, such as full utilisation of an empty, resting board.
-- parameters: $from timestamp, $until timestamp, $repeats int64 = 10
-- columns:    kind text, cluster text, node text, gpu int16, gpu_uuid text, mig int16,
--             gpu_model text, readings int64, gpu_hours float64 [GPU·h], first_seen_at timestamp,
--             last_seen_at timestamp, reason text
-- one row per GPU and kind; readings after $from up to $until, as each stands for the time before
-- it. Ordered by kind, gpu_hours (most first), cluster,
-- node, GPU. kind: busy-but-empty (counted as idle everywhere), memory-without-process, and
-- repeated: $repeats or more equal readings in a row of an energy counter that stands still under
-- power, or, without a counter, of power and temperature to the last digit.
WITH read AS (
    SELECT
        s.cluster, s.node, s.gpu, s.gpu_uuid, s.mig, s.gpu_model, s.sampled_at,
        coalesce(s.gpu_uuid, concat(s.node, '/', s.gpu)) AS gpu_key,
        coalesce(s.period_s, 0) AS period_s,
        coalesce(s.gpu_util_ratio, s.sm_active_ratio) AS reported_ratio,
        s.mem_used_bytes, s.processes, s.power_w, s.energy_j, s.temp_c,
        lag(s.energy_j) OVER each AS energy_before_j,
        lag(s.power_w) OVER each AS power_before_w,
        lag(s.temp_c) OVER each AS temp_before_c,
        lag(s.gpu_util_ratio) OVER each AS util_before_ratio,
        s.gpu_util_ratio
    FROM samples s
    WHERE s.sampled_at > $from AND s.sampled_at <= least($until, as_of())
    WINDOW each AS (
        PARTITION BY coalesce(s.gpu_uuid, concat(s.node, '/', s.gpu)), s.mig ORDER BY s.sampled_at
    )
),
turned AS (
    SELECT
        r.*,
        CASE WHEN coalesce(
            r.power_w > 0 AND r.power_w = r.power_before_w
            AND (r.gpu_util_ratio IS NOT DISTINCT FROM r.util_before_ratio), false
        ) AND CASE WHEN r.energy_j IS NOT NULL THEN coalesce(r.energy_j = r.energy_before_j, false)
            ELSE coalesce(r.temp_c = r.temp_before_c, false) AND r.power_w <> round(r.power_w) END
        THEN 0 ELSE 1 END AS fresh
    FROM read r
),
run AS (
    SELECT
        t.*,
        sum(t.fresh) OVER (
            PARTITION BY t.gpu_key, t.mig ORDER BY t.sampled_at
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS run_id
    FROM turned t
),
repeated AS (
    SELECT
        r.cluster, r.node, r.gpu, r.gpu_uuid, r.mig, max(r.gpu_model) AS gpu_model,
        count(*) - 1 AS readings, sum(r.period_s * (1 - r.fresh)) AS seconds,
        min(r.sampled_at) FILTER (WHERE r.fresh = 0) AS first_at, max(r.sampled_at) AS last_at
    FROM run r
    GROUP BY r.cluster, r.node, r.gpu, r.gpu_uuid, r.mig, r.gpu_key, r.run_id
    HAVING count(*) >= $repeats AND count(*) > 1
),
found AS (
    SELECT 'busy-but-empty' AS kind, g.cluster, g.node, g.gpu, g.gpu_uuid, g.mig, g.gpu_model,
        1 AS readings, g.period_s AS seconds, g.sampled_at AS first_at, g.sampled_at AS last_at
    FROM gpu_readings g
    WHERE g.contradictory AND g.sampled_at > $from AND g.sampled_at <= $until
    UNION ALL
    SELECT 'memory-without-process', r.cluster, r.node, r.gpu, r.gpu_uuid, r.mig, r.gpu_model,
        1 AS readings, r.period_s AS seconds, r.sampled_at AS first_at, r.sampled_at AS last_at
    FROM read r
    WHERE r.processes = 0 AND r.mem_used_bytes > 1073741824
    UNION ALL
    SELECT 'repeated', p.cluster, p.node, p.gpu, p.gpu_uuid, p.mig, p.gpu_model,
        p.readings, p.seconds, p.first_at, p.last_at
    FROM repeated p
)
SELECT
    f.kind, f.cluster, f.node, f.gpu, f.gpu_uuid, f.mig, max(f.gpu_model) AS gpu_model,
    sum(f.readings) AS readings, sum(f.seconds) / 3600 AS gpu_hours,
    min(f.first_at) AS first_seen_at, max(f.last_at) AS last_seen_at,
    CASE f.kind
        WHEN 'busy-but-empty' THEN 'reports full utilisation with no memory in use at idle power'
        WHEN 'memory-without-process' THEN 'holds memory with no process'
        ELSE 'publishes the same reading again and again: the driver may hang'
    END AS reason
FROM found f
GROUP BY f.kind, f.cluster, f.node, f.gpu, f.gpu_uuid, f.mig
ORDER BY f.kind, 9 DESC, f.cluster, f.node, f.gpu, f.gpu_uuid, f.mig
