-- Hot, throttled, failing and lost GPUs, with what was seen and when it was last seen.
-- parameters: $from timestamp, $until timestamp, $hot_c float64 = 85, $lost_s float64 = 900
-- columns:    cluster text, node text, gpu int16, gpu_uuid text, gpu_model text, problem text,
--             occurrences int64, hours float64 [h], worst float64, unit text,
--             first_seen_at timestamp, last_seen_at timestamp, reason text
-- one row per GPU and problem; readings after $from up to $until, as each stands for the time
-- before it. Ordered by severity (lost, ecc-uncorrected, xid,
-- hardware-slowdown, thermal-throttle, hot, ecc-corrected, state), then last_seen_at (latest
-- first), cluster, node, GPU. occurrences: readings (hot, throttled), errors (ECC) or times a new
-- Xid was told. A counter that falls was reset, and counts from 0. hours: time covered by those
-- readings.
-- lost: silent for more than $lost_s seconds, and three periods, behind the newest reading of its
-- cluster; hours is the silence up to that reading. state: the inventory says that the GPU, or its
-- node, cannot run a job; from when it says so to the end of the asked time, clipped to it.
WITH read AS (
    SELECT
        s.cluster, s.node, s.gpu, s.gpu_uuid, s.mig, s.gpu_model, s.sampled_at,
        coalesce(s.period_s, 0) AS period_s, s.temp_c, s.xid, s.throttle_reasons,
        s.ecc_corrected_total AS corrected, s.ecc_uncorrected_total AS uncorrected,
        lag(s.ecc_corrected_total) OVER each AS corrected_before,
        lag(s.ecc_uncorrected_total) OVER each AS uncorrected_before,
        lag(s.xid) OVER each AS xid_before
    FROM samples s
    WHERE s.sampled_at <= least($until, as_of())
    WINDOW each AS (
        PARTITION BY coalesce(s.gpu_uuid, concat(s.node, '/', s.gpu)), s.mig ORDER BY s.sampled_at
    )
),
stepped AS (
    SELECT
        r.*,
        CASE WHEN r.corrected < r.corrected_before THEN r.corrected
            ELSE r.corrected - r.corrected_before END AS corrected_new,
        CASE WHEN r.uncorrected < r.uncorrected_before THEN r.uncorrected
            ELSE r.uncorrected - r.uncorrected_before END AS uncorrected_new
    FROM read r
    WHERE r.sampled_at > $from
),
troubled AS (
    SELECT r.* FROM stepped r
    WHERE r.temp_c >= $hot_c OR (r.throttle_reasons & 232) <> 0 OR r.xid > 0
        OR r.uncorrected_new > 0 OR r.corrected_new > 0
),
seen AS (
    SELECT r.*, p.problem,
        CASE p.problem WHEN 'ecc-uncorrected' THEN r.uncorrected_new
            WHEN 'ecc-corrected' THEN r.corrected_new ELSE 1 END AS occurrences,
        CASE p.problem WHEN 'hardware-slowdown' THEN CAST(r.throttle_reasons AS DOUBLE)
            WHEN 'xid' THEN CAST(r.xid AS DOUBLE)
            WHEN 'ecc-uncorrected' THEN CAST(r.uncorrected AS DOUBLE)
            WHEN 'ecc-corrected' THEN CAST(r.corrected AS DOUBLE)
            ELSE r.temp_c END AS worst
    FROM troubled r
    CROSS JOIN (
        SELECT unnest(make_array('hot', 'thermal-throttle', 'hardware-slowdown', 'xid',
            'ecc-uncorrected', 'ecc-corrected')) AS problem
    ) p
    WHERE CASE p.problem
        WHEN 'hot' THEN r.temp_c >= $hot_c
        WHEN 'thermal-throttle' THEN (r.throttle_reasons & 96) <> 0
        WHEN 'hardware-slowdown' THEN (r.throttle_reasons & 136) <> 0
        WHEN 'xid' THEN r.xid > 0 AND coalesce(r.xid_before <> r.xid, true)
        WHEN 'ecc-uncorrected' THEN r.uncorrected_new > 0
        ELSE r.corrected_new > 0 END
),
last_reading AS (
    SELECT r.cluster, r.node, r.gpu, r.gpu_uuid, max(r.gpu_model) AS gpu_model,
        max(r.sampled_at) AS last_at, avg(r.period_s) AS period_s
    FROM read r
    WHERE r.sampled_at > $from
    GROUP BY r.cluster, r.node, r.gpu, r.gpu_uuid
),
newest AS (
    SELECT l.*,
        max(l.last_at) OVER (PARTITION BY l.cluster) AS cluster_at,
        max(l.last_at) OVER (PARTITION BY l.cluster, l.node) AS node_at,
        lead(l.last_at) OVER (
            PARTITION BY l.cluster, l.node, l.gpu ORDER BY l.last_at, l.gpu_uuid
        ) AS replaced_at,
        lead(l.last_at) OVER (PARTITION BY l.gpu_uuid ORDER BY l.last_at, l.node, l.gpu) AS moved_at
    FROM last_reading l
),
told AS (
    SELECT
        s.cluster, s.node, s.gpu, s.gpu_uuid, max(s.gpu_model) AS gpu_model, s.problem,
        sum(s.occurrences) AS occurrences, sum(s.period_s) / 3600 AS hours, max(s.worst) AS worst,
        CASE s.problem WHEN 'hot' THEN '°C' WHEN 'thermal-throttle' THEN '°C'
            WHEN 'hardware-slowdown' THEN 'mask' WHEN 'xid' THEN 'Xid' ELSE 'errors' END AS unit,
        min(s.sampled_at) AS first_seen_at, max(s.sampled_at) AS last_seen_at,
        CASE s.problem
            WHEN 'hot' THEN concat('at or above ', $hot_c, ' °C')
            WHEN 'thermal-throttle' THEN 'clocks lowered by heat'
            WHEN 'hardware-slowdown' THEN 'clocks lowered by the hardware (power brake or slowdown)'
            WHEN 'xid' THEN concat('driver told Xid ', array_to_string(
                array_sort(array_agg(DISTINCT s.xid)), ', '))
            WHEN 'ecc-uncorrected' THEN 'memory errors that could not be corrected'
            ELSE 'memory errors that were corrected'
        END AS reason
    FROM seen s
    GROUP BY s.cluster, s.node, s.gpu, s.gpu_uuid, s.problem
    UNION ALL
    SELECT
        n.cluster, n.node, n.gpu, n.gpu_uuid, n.gpu_model, 'lost' AS problem, 1 AS occurrences,
        (date_part('epoch', n.cluster_at) - date_part('epoch', n.last_at)) / 3600 AS hours,
        (date_part('epoch', n.cluster_at) - date_part('epoch', n.last_at)) AS worst, 's' AS unit,
        n.last_at AS first_seen_at, n.last_at AS last_seen_at,
        CASE WHEN n.node_at > n.last_at THEN 'silent while other GPUs of its node report'
            ELSE 'the whole node is silent' END AS reason
    FROM newest n
    LEFT JOIN gpus g ON g.gpu_uuid = n.gpu_uuid
    WHERE (date_part('epoch', n.cluster_at) - date_part('epoch', n.last_at))
            > greatest($lost_s, 3 * n.period_s)
        AND n.replaced_at IS NULL AND n.moved_at IS NULL
        AND coalesce(lower(g.state), '') NOT IN ('retired', 'removed', 'replaced')
    UNION ALL
    SELECT
        v.cluster, v.node, v.gpu, v.gpu_uuid, v.gpu_model, 'state' AS problem,
        1 AS occurrences,
        (date_part('epoch', v.down_until_at) - date_part('epoch', v.down_from_at)) / 3600 AS hours,
        CAST(NULL AS DOUBLE) AS worst, CAST(NULL AS VARCHAR) AS unit,
        v.down_from_at AS first_seen_at, v.down_until_at AS last_seen_at,
        concat('inventory says `', v.down_state, '`') AS reason
    FROM (
        SELECT d.cluster, d.node, d.gpu, d.gpu_uuid, d.gpu_model, d.down_state,
            greatest(d.down_from_at, $from) AS down_from_at,
            least(coalesce(d.installed_until_at, as_of()), as_of(), $until) AS down_until_at
        FROM gpu_service d
        WHERE d.down_state IS NOT NULL
    ) v
    WHERE v.down_from_at <= v.down_until_at
)
SELECT
    t.cluster, t.node, t.gpu, t.gpu_uuid, t.gpu_model, t.problem, t.occurrences, t.hours,
    t.worst, t.unit, t.first_seen_at, t.last_seen_at, t.reason
FROM told t
ORDER BY
    CASE t.problem WHEN 'lost' THEN 0 WHEN 'ecc-uncorrected' THEN 1 WHEN 'xid' THEN 2
        WHEN 'hardware-slowdown' THEN 3 WHEN 'thermal-throttle' THEN 4 WHEN 'hot' THEN 5
        WHEN 'ecc-corrected' THEN 6 ELSE 7 END,
    t.last_seen_at DESC, t.cluster, t.node, t.gpu, t.gpu_uuid
