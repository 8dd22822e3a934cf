-- Is each job's use of its GPUs healthy? Its own readings against the baseline of its workload.
-- columns: cluster text, job_id text, attempt int32, user text, team text, project text,
--          workload text, partition text, gpu_model text, gpus int64, first_sampled_at timestamp,
--          last_sampled_at timestamp, verdict text, measurement text, level float64,
--          limit_level float64, gpu_hours_observed float64 [GPU·h],
--          gpu_hours_held float64 [GPU·h], coverage_ratio float64 [0-1], util_mean_ratio
--          float64 [0-1], util_p50_ratio float64 [0-1], mem_used_ratio float64 [0-1],
--          cpu_util_ratio float64 [0-1], idle_tail_hours float64 [h], baseline_p25_ratio
--          float64 [0-1], baseline_jobs int64, baseline_gpu_hours float64 [GPU·h], util_best_ratio
--          float64 [0-1], temp_max_c float64 [°C], span_hours float64 [h], hours_read float64 [h],
--          reason text
-- one row per job attempt with a reading that was taken while it held the GPU: one taken after it
-- left is of the next job, and judges nothing. Hours are less suspension (see job_samples). A
-- usable baseline of a labelled workload decides what is low: a job at or above its lower quartile
-- is not called low. Without one, fixed limits: below 0.05 is idle, below 0.2 under-used. First
-- that holds: failing-hardware (new uncorrected ECC errors or Xid, or hardware slowdown a tenth of
-- the time), hot (85 °C or thermal throttling a tenth of the time), not-enough-data (under 10
-- minutes read of each GPU, or under half of the hours held), unbalanced (idle GPUs beside one at
-- 0.3 or more), idle-held (was busy, then idle for an hour and half of its time), memory-only
-- (never busy for an hour or more, a tenth of memory loaded), idle-held (never busy for an hour or
-- more), starved-of-data (GPU below 0.5 with CPU at 0.9 or more), under-used, healthy. reason names
-- the measurement, its limit and the hours read. The baseline's lower quartiles of working and of
-- other hours are weighted by the hours of each that the job ran.
WITH cpu AS (
    SELECT n.cluster, n.node, date_bin(INTERVAL '5 minutes', n.sampled_at) AS bin_started_at,
        sum(n.cpu_util_ratio * n.period_s) / nullif(sum(n.period_s), 0) AS cpu_util_ratio
    FROM node_samples n
    WHERE n.cpu_util_ratio IS NOT NULL AND n.sampled_at <= as_of()
    GROUP BY n.cluster, n.node, date_bin(INTERVAL '5 minutes', n.sampled_at)
),
read AS (
    SELECT s.cluster, s.job_id, s.attempt, s.node, s.mig, s.gpu_model, s.started_at, s.ended_at,
        s.gpu_key,
        coalesce(s.period_s, 0) * s.used_ratio AS period_s, s.period_s * s.gpus AS weight_s,
        coalesce(s.period_s, 0) * (1 - s.used_ratio) AS suspended_s,
        s.util_ratio AS util,
        CAST(s.mem_used_bytes AS DOUBLE) / nullif(s.mem_total_bytes, 0) AS mem_ratio,
        s.temp_c, s.xid, s.throttle_reasons, s.ecc_uncorrected_total
    FROM job_readings s
    WHERE s.job_id IS NOT NULL AND s.ended_at = s.sampled_at
),
binned AS (
    SELECT r.cluster, r.job_id, r.attempt, r.node, r.gpu_key, r.mig,
        date_bin(INTERVAL '5 minutes', r.ended_at) AS bin_started_at,
        max(r.gpu_model) AS gpu_model,
        min(r.ended_at) AS first_at, max(r.ended_at) AS last_at,
        max(r.ended_at) FILTER (WHERE r.util >= 0.05) AS busy_at,
        min(date_part('epoch', r.started_at)) AS begun_s,
        sum(r.suspended_s) FILTER (WHERE r.util < 0.05) AS idle_suspended_s,
        sum(r.suspended_s) AS suspended_s, sum(r.period_s) AS period_s, sum(r.weight_s) AS weight_s,
        sum(r.period_s) FILTER (WHERE r.util IS NOT NULL) AS util_period_s,
        sum(r.weight_s) FILTER (WHERE r.util IS NOT NULL) AS util_weight_s,
        sum(r.weight_s * r.util) AS util_s,
        sum(r.weight_s) FILTER (WHERE r.mem_ratio IS NOT NULL) AS mem_weight_s,
        sum(r.weight_s * r.mem_ratio) AS mem_s,
        coalesce(sum(r.period_s) FILTER (
            WHERE r.temp_c >= 85 OR (r.throttle_reasons & 96) <> 0), 0) AS hot_s,
        coalesce(sum(r.period_s) FILTER (WHERE (r.throttle_reasons & 136) <> 0), 0) AS slowed_s,
        max(r.temp_c) AS temp_c,
        min(coalesce(r.xid, 0)) AS xid_min, max(coalesce(r.xid, 0)) AS xid_max,
        min(r.ecc_uncorrected_total) AS ecc_min, max(r.ecc_uncorrected_total) AS ecc_max
    FROM read r
    GROUP BY r.cluster, r.job_id, r.attempt, r.node, r.gpu_key, r.mig,
        date_bin(INTERVAL '5 minutes', r.ended_at)
),
per_gpu AS (
    SELECT b.cluster, b.job_id, b.attempt, b.node, b.gpu_key, b.mig,
        max(b.gpu_model) AS gpu_model, min(b.first_at) AS first_at, max(b.last_at) AS last_at,
        max(b.busy_at) AS busy_at, min(b.begun_s) AS begun_s, sum(b.period_s) AS period_s,
        coalesce(sum(b.idle_suspended_s), 0) AS idle_suspended_s,
        coalesce(sum(b.suspended_s), 0) AS suspended_s,
        coalesce(sum(b.util_period_s), 0) AS util_period_s, sum(b.weight_s) AS weight_s,
        sum(b.util_weight_s) AS util_weight_s, sum(b.util_s) AS util_s,
        sum(b.util_s) / nullif(sum(b.util_weight_s), 0) AS util_mean,
        sum(b.mem_weight_s) AS mem_weight_s, sum(b.mem_s) AS mem_s, sum(b.hot_s) AS hot_s,
        sum(b.slowed_s) AS slowed_s, max(b.temp_c) AS temp_c,
        CASE WHEN max(b.xid_max) > 0 AND min(b.xid_min) <> max(b.xid_max)
            THEN max(b.xid_max) END AS xid,
        max(b.ecc_max) - min(b.ecc_min) AS ecc_new,
        sum(c.cpu_util_ratio * b.weight_s) AS cpu_s,
        sum(b.weight_s) FILTER (WHERE c.cpu_util_ratio IS NOT NULL) AS cpu_weight_s,
        coalesce(sum(b.weight_s) FILTER (WHERE working_hours(b.bin_started_at)), 0) AS working_s
    FROM binned b
    LEFT JOIN cpu c
        ON c.node = b.node AND c.bin_started_at = b.bin_started_at
        AND (c.cluster IS NOT DISTINCT FROM b.cluster)
    GROUP BY b.cluster, b.job_id, b.attempt, b.node, b.gpu_key, b.mig
),
per_job AS (
    SELECT g.cluster, g.job_id, g.attempt, max(g.gpu_model) AS gpu_model, count(*) AS gpus,
        min(g.first_at) AS first_at, max(g.last_at) AS last_at, max(g.busy_at) AS busy_at,
        sum(g.period_s) AS period_s, sum(g.weight_s) AS weight_s,
        sum(g.util_s) / nullif(sum(g.util_weight_s), 0) AS util_mean,
        max(g.util_mean) AS util_best,
        count(*) FILTER (WHERE g.util_mean < 0.05) AS gpus_idle,
        sum(g.mem_s) / nullif(sum(g.mem_weight_s), 0) AS mem_ratio,
        sum(g.hot_s) / nullif(sum(g.period_s), 0) AS hot_ratio,
        sum(g.slowed_s) / nullif(sum(g.period_s), 0) AS slowed_ratio,
        max(g.temp_c) AS temp_c, max(g.xid) AS xid, sum(g.ecc_new) AS ecc_new,
        sum(g.cpu_s) / nullif(sum(g.cpu_weight_s), 0) AS cpu,
        sum(g.working_s) AS working_s, min(g.begun_s) AS begun_s,
        sum(g.util_period_s) / count(*) / 3600 AS read_hours,
        sum(g.idle_suspended_s) / count(*) / 3600 AS idle_suspended_hours,
        sum(g.suspended_s) / count(*) / 3600 AS suspended_hours
    FROM per_gpu g
    GROUP BY g.cluster, g.job_id, g.attempt
),
levels AS (
    SELECT r.cluster, r.job_id, r.attempt, round(r.util * 100) / 100 AS util_bin,
        sum(r.weight_s) AS weight_s
    FROM read r
    WHERE r.util IS NOT NULL
    GROUP BY r.cluster, r.job_id, r.attempt, round(r.util * 100) / 100
),
ranked AS (
    SELECT l.*,
        sum(l.weight_s) OVER (
            PARTITION BY l.cluster, l.job_id, l.attempt ORDER BY l.util_bin
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) / nullif(sum(l.weight_s) OVER (PARTITION BY l.cluster, l.job_id, l.attempt), 0) AS below
    FROM levels l
),
medians AS (
    SELECT r.cluster, r.job_id, r.attempt,
        min(r.util_bin) FILTER (WHERE r.below >= 0.5 - 1e-9) AS util_p50
    FROM ranked r
    GROUP BY r.cluster, r.job_id, r.attempt
),
held AS (
    SELECT h.cluster, h.job_id, h.attempt,
        sum((date_part('epoch', h.ended_at) - date_part('epoch', h.started_at)) / 3600 * h.gpus
            * h.used_ratio) AS gpu_hours
    FROM holdings h
    GROUP BY h.cluster, h.job_id, h.attempt
),
usual AS (
    SELECT b.workload, b.gpu_model,
        max(b.p25) FILTER (WHERE b.hours = 'working') AS p25_working,
        max(b.p25) FILTER (WHERE b.hours = 'other') AS p25_other,
        sum(b.gpu_hours) AS gpu_hours
    FROM baselines b
    WHERE b.measurement = 'gpu_util_ratio' AND b.usable AND b.workload <> 'unlabelled'
    GROUP BY b.workload, b.gpu_model
),
joined AS (
    SELECT p.*, j."user", j.team, j.project, coalesce(j.workload, 'unlabelled') AS workload,
        j."partition", m.util_p50, h.gpu_hours AS gpu_hours_held,
        p.weight_s / 3600 AS gpu_hours_observed,
        CASE WHEN h.gpu_hours > 0 THEN least(p.weight_s / 3600 / h.gpu_hours, 1) END
            AS coverage_ratio,
        CASE WHEN p.busy_at IS NULL THEN NULL
            ELSE greatest((date_part('epoch', p.last_at) - date_part('epoch', p.busy_at)) / 3600
                - p.idle_suspended_hours, 0)
        END AS idle_tail_hours,
        greatest((date_part('epoch', p.last_at) - p.begun_s) / 3600 - p.suspended_hours, 0)
            AS span_hours,
        CASE
            WHEN u.p25_working IS NULL THEN u.p25_other
            WHEN u.p25_other IS NULL THEN u.p25_working
            ELSE (u.p25_working * p.working_s + u.p25_other * (p.weight_s - p.working_s))
                / nullif(p.weight_s, 0)
        END AS p25,
        CASE WHEN u.gpu_hours IS NOT NULL THEN count(DISTINCT CASE WHEN p.util_mean IS NOT NULL
                AND p.last_at > as_of() - INTERVAL '28 days' THEN concat(p.cluster, '/', p.job_id)
            END) OVER (PARTITION BY coalesce(j.workload, 'unlabelled'), p.gpu_model)
        END AS baseline_jobs,
        u.gpu_hours AS baseline_gpu_hours
    FROM per_job p
    LEFT JOIN jobs j
        ON j.job_id = p.job_id AND (j.cluster IS NOT DISTINCT FROM p.cluster)
        AND coalesce(j.attempt, 0) = coalesce(p.attempt, 0)
    LEFT JOIN medians m
        ON m.job_id = p.job_id AND (m.cluster IS NOT DISTINCT FROM p.cluster)
        AND (m.attempt IS NOT DISTINCT FROM p.attempt)
    LEFT JOIN held h
        ON h.job_id = p.job_id AND (h.cluster IS NOT DISTINCT FROM p.cluster)
        AND coalesce(h.attempt, 0) = coalesce(p.attempt, 0)
    LEFT JOIN usual u
        ON u.workload = coalesce(j.workload, 'unlabelled') AND u.gpu_model = p.gpu_model
),
weighed AS (
    SELECT j.*, coalesce(j.util_p50 < j.p25, true) AS low
    FROM joined j
),
judged AS (
    SELECT w.*,
        CASE
            WHEN w.ecc_new > 0 OR w.xid IS NOT NULL OR w.slowed_ratio >= 0.1
                THEN 'failing-hardware'
            WHEN w.hot_ratio >= 0.1 THEN 'hot'
            WHEN w.util_mean IS NULL OR w.read_hours < 600.0 / 3600 OR w.coverage_ratio < 0.5
                THEN 'not-enough-data'
            WHEN w.gpus_idle > 0 AND w.util_best >= 0.3 THEN 'unbalanced'
            WHEN w.low AND w.idle_tail_hours >= 1 AND w.idle_tail_hours >= 0.5 * w.span_hours
                THEN 'idle-held'
            WHEN w.low AND w.busy_at IS NULL AND w.read_hours >= 1 AND w.mem_ratio >= 0.1
                THEN 'memory-only'
            WHEN w.low AND w.busy_at IS NULL AND w.read_hours >= 1 THEN 'idle-held'
            WHEN w.low AND w.util_mean < 0.5 AND w.cpu >= 0.9 THEN 'starved-of-data'
            WHEN w.low AND w.util_mean < coalesce(w.p25, 0.2) THEN 'under-used'
            ELSE 'healthy'
        END AS verdict
    FROM weighed w
),
measured AS (
    SELECT j.*,
        CASE j.verdict
            WHEN 'failing-hardware' THEN CASE WHEN j.ecc_new > 0 THEN 'ecc_uncorrected'
                WHEN j.xid IS NOT NULL THEN 'xid' ELSE 'hardware_slowdown_ratio' END
            WHEN 'hot' THEN 'hot_ratio'
            WHEN 'not-enough-data' THEN CASE WHEN j.coverage_ratio < 0.5 THEN 'coverage_ratio'
                ELSE 'hours_observed' END
            WHEN 'unbalanced' THEN 'gpus_idle'
            WHEN 'idle-held' THEN 'idle_hours'
            WHEN 'memory-only' THEN 'mem_used_ratio'
            WHEN 'starved-of-data' THEN 'cpu_util_ratio'
            ELSE 'gpu_util_ratio'
        END AS measurement
    FROM judged j
),
levelled AS (
    SELECT m.*,
        CASE m.measurement
            WHEN 'ecc_uncorrected' THEN CAST(m.ecc_new AS DOUBLE)
            WHEN 'xid' THEN CAST(m.xid AS DOUBLE)
            WHEN 'hardware_slowdown_ratio' THEN m.slowed_ratio
            WHEN 'hot_ratio' THEN m.hot_ratio
            WHEN 'coverage_ratio' THEN m.coverage_ratio
            WHEN 'hours_observed' THEN m.read_hours
            WHEN 'gpus_idle' THEN CAST(m.gpus_idle AS DOUBLE)
            WHEN 'idle_hours' THEN coalesce(m.idle_tail_hours, m.read_hours)
            WHEN 'mem_used_ratio' THEN m.mem_ratio
            WHEN 'cpu_util_ratio' THEN m.cpu
            ELSE m.util_mean
        END AS level,
        CASE m.measurement
            WHEN 'ecc_uncorrected' THEN 0.0 WHEN 'xid' THEN 0.0
            WHEN 'hardware_slowdown_ratio' THEN 0.1 WHEN 'hot_ratio' THEN 0.1
            WHEN 'coverage_ratio' THEN 0.5 WHEN 'hours_observed' THEN 600.0 / 3600
            WHEN 'gpus_idle' THEN 0.0 WHEN 'idle_hours' THEN 1.0
            WHEN 'mem_used_ratio' THEN 0.1 WHEN 'cpu_util_ratio' THEN 0.9
            ELSE coalesce(m.p25, 0.2)
        END AS limit_level
    FROM measured m
)
SELECT
    l.cluster, l.job_id, l.attempt, l."user", l.team, l.project, l.workload, l."partition",
    l.gpu_model, l.gpus, l.first_at AS first_sampled_at, l.last_at AS last_sampled_at,
    l.verdict, l.measurement, l.level, l.limit_level, l.gpu_hours_observed, l.gpu_hours_held,
    l.coverage_ratio, l.util_mean AS util_mean_ratio, l.util_p50 AS util_p50_ratio,
    l.mem_ratio AS mem_used_ratio, l.cpu AS cpu_util_ratio, l.idle_tail_hours,
    l.p25 AS baseline_p25_ratio, l.baseline_jobs, l.baseline_gpu_hours,
    l.util_best AS util_best_ratio, l.temp_c AS temp_max_c, l.span_hours,
    l.read_hours AS hours_read,
    concat(
        CASE l.verdict
            WHEN 'failing-hardware' THEN CASE l.measurement
                WHEN 'ecc_uncorrected' THEN concat(l.ecc_new,
                    ' new memory errors that could not be corrected, limit 0')
                WHEN 'xid' THEN concat('driver told Xid ', l.xid, ', limit none')
                ELSE concat('clocks lowered by the hardware for ',
                    CAST(round(l.slowed_ratio * 100) AS BIGINT), ' % of the time, limit 10 %') END
            WHEN 'hot' THEN concat('hot or throttled by heat for ',
                CAST(round(l.hot_ratio * 100) AS BIGINT), ' % of the time, limit 10 %; up to ',
                coalesce(CAST(CAST(round(l.temp_c) AS BIGINT) AS VARCHAR), 'unknown'), ' °C')
            WHEN 'not-enough-data' THEN CASE
                WHEN l.read_hours = 0 AND l.suspended_hours > 0
                    THEN 'suspended all the time that was read'
                WHEN l.util_mean IS NULL THEN 'utilisation was never read'
                WHEN l.coverage_ratio < 0.5 THEN concat('only ',
                    CAST(round(l.coverage_ratio * 100) AS BIGINT),
                    ' % of the hours held were read, 50 % needed')
                ELSE concat('only ', CAST(round(l.read_hours * 60) AS BIGINT),
                    ' minutes were read of each GPU, 10 needed') END
            WHEN 'unbalanced' THEN concat(l.gpus_idle, ' of ', l.gpus,
                CASE WHEN l.gpus_idle = 1 THEN ' GPUs stays' ELSE ' GPUs stay' END,
                ' below 5 % while the busiest is at ',
                CAST(round(l.util_best * 100) AS BIGINT), ' %, limit 30 %')
            WHEN 'idle-held' THEN CASE WHEN l.busy_at IS NULL
                THEN concat('below 5 % all the time, for ', round(l.level, 1), ' h, limit 1 h')
                ELSE concat('below 5 % for the last ', round(l.level, 1), ' h of ',
                    round(l.span_hours, 1), ' h, limit 1 h and half; busy before') END
            WHEN 'memory-only' THEN concat(CAST(round(l.mem_ratio * 100) AS BIGINT),
                ' % of memory is loaded, limit 10 %, and the GPU stays below 5 % for ',
                round(l.read_hours, 1), ' h, limit 1 h')
            WHEN 'starved-of-data' THEN concat('GPU at a mean of ',
                CAST(round(l.util_mean * 100) AS BIGINT), ' %, limit 50 %, while the CPUs are at ',
                CAST(round(l.cpu * 100) AS BIGINT), ' %, limit 90 %')
            ELSE concat('GPU at a mean of ', CAST(round(l.util_mean * 100) AS BIGINT),
                CASE WHEN l.p25 IS NULL THEN ' %, limit ' ELSE concat(' % and a median of ',
                    CAST(round(l.util_p50 * 100) AS BIGINT), ' %, limit of both ') END,
                CAST(round(l.limit_level * 100) AS BIGINT), ' %')
        END,
        CASE
            WHEN l.verdict IN ('failing-hardware', 'hot', 'not-enough-data', 'unbalanced') THEN ''
            WHEN l.p25 IS NULL THEN '; no usable baseline, fixed limits'
            ELSE concat('; the lower quartile of ', l.workload, ' on ', l.gpu_model,
                ' in the working and other hours that it ran is ',
                CAST(round(l.p25 * 100) AS BIGINT), ' % (', l.baseline_jobs, ' jobs, ',
                CAST(round(l.baseline_gpu_hours) AS BIGINT), ' GPU-hours)')
        END,
        '; ', round(l.gpu_hours_observed, 1), ' GPU-hours read'
    ) AS reason
FROM levelled l
