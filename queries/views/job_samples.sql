-- Readings by the job that held the GPU, with the job's share of it.
-- columns: sampled_at timestamp, cluster text, node text, gpu int16, gpu_uuid text, mig int16,
--          gpu_model text, job_id text, attempt int32, share_ratio float64 [0-1], shared boolean,
--          and every measurement of samples
-- one row per reading and job; one with job_id NULL where nobody held the GPU. A source's own label
-- goes first, then the allocations: a reading stands for the time before it, so it belongs to what
-- was held until it. Shares of one reading sum to 1 at most: jobs that hold one GPU together
-- without stated shares have equal parts and are marked shared, as their readings cannot be told
-- apart.
WITH granted AS (
    SELECT a.job_id, a.attempt,
        coalesce(a.gpu_uuid, g.gpu_uuid, concat(a.node, '/', a.gpu)) AS device,
        coalesce(a.mig, -1) AS slice, coalesce(a.gpu_share_ratio, 1.0) AS share,
        unnest(split_bins(a.started_at, coalesce(a.ended_at, as_of()), 'day')) AS piece,
        a.started_at AS held_from, coalesce(a.ended_at, as_of()) AS held_until
    FROM allocations a
    LEFT JOIN gpus g
        ON a.gpu_uuid IS NULL AND g.node = a.node AND g.gpu = a.gpu
        AND coalesce(g.cluster, '') = coalesce(a.cluster, '')
    WHERE a.gpu_uuid IS NOT NULL OR a.gpu IS NOT NULL
),
piece AS (
    SELECT d.job_id, d.attempt, d.device, d.slice, d.share,
        d.piece['bin_started_at'] AS day_at,
        greatest(d.held_from, d.piece['bin_started_at']) AS from_at,
        least(d.held_until, d.piece['bin_ended_at']) AS until_at
    FROM granted d
),
turn AS (
    SELECT p.device, p.slice, p.day_at, p.from_at AS turn_at FROM piece p
    UNION
    SELECT p.device, p.slice, p.day_at, p.until_at AS turn_at FROM piece p
),
segment AS (
    SELECT t.device, t.slice, t.day_at, t.turn_at AS from_at,
        lead(t.turn_at) OVER (
            PARTITION BY t.device, t.slice, t.day_at ORDER BY t.turn_at
        ) AS until_at
    FROM turn t
),
holder AS (
    SELECT s.device, s.slice, s.day_at, s.from_at, s.until_at, p.job_id, p.attempt, p.share,
        sum(p.share) OVER (PARTITION BY s.device, s.slice, s.from_at) AS shares,
        count(*) OVER (PARTITION BY s.device, s.slice, s.from_at) AS holders
    FROM segment s
    JOIN piece p
        ON p.device = s.device AND p.slice = s.slice AND p.day_at = s.day_at
        AND p.from_at <= s.from_at AND p.until_at >= s.until_at
    WHERE s.until_at IS NOT NULL
),
labelled AS (
    SELECT l.sampled_at, l.cluster, l.node, l.gpu, l.gpu_uuid, l.mig, l.gpu_model, l.job_id AS label,
        l.gpu_util_ratio, l.mem_copy_util_ratio, l.mem_used_bytes, l.mem_total_bytes, l.power_w,
        l.energy_j, l.temp_c, l.mem_temp_c, l.fan_ratio, l.sm_clock_mhz, l.mem_clock_mhz,
        l.pcie_rx_bytes_per_s, l.pcie_tx_bytes_per_s, l.nvlink_rx_bytes_per_s,
        l.nvlink_tx_bytes_per_s, l.sm_active_ratio, l.sm_occupancy_ratio, l.tensor_active_ratio,
        l.dram_active_ratio, l.fp64_active_ratio, l.fp32_active_ratio, l.fp16_active_ratio,
        l.ecc_corrected_total, l.ecc_uncorrected_total, l.xid, l.throttle_reasons, l.processes,
        l.period_s
    FROM samples l
    WHERE l.job_id IS NOT NULL
),
split AS (
    SELECT l.*, unnest(string_to_array(l.label, ',')) AS one,
        1.0 / array_length(string_to_array(l.label, ',')) AS part
    FROM labelled l
)
SELECT
    s.sampled_at, s.cluster, s.node, s.gpu, s.gpu_uuid, s.mig, s.gpu_model,
    h.job_id, h.attempt, h.share / greatest(h.shares, 1.0) AS share_ratio,
    coalesce(h.holders > 1, false) AS shared,
    s.gpu_util_ratio, s.mem_copy_util_ratio, s.mem_used_bytes, s.mem_total_bytes, s.power_w,
    s.energy_j, s.temp_c, s.mem_temp_c, s.fan_ratio, s.sm_clock_mhz, s.mem_clock_mhz,
    s.pcie_rx_bytes_per_s, s.pcie_tx_bytes_per_s, s.nvlink_rx_bytes_per_s,
    s.nvlink_tx_bytes_per_s, s.sm_active_ratio, s.sm_occupancy_ratio, s.tensor_active_ratio,
    s.dram_active_ratio, s.fp64_active_ratio, s.fp32_active_ratio, s.fp16_active_ratio,
    s.ecc_corrected_total, s.ecc_uncorrected_total, s.xid, s.throttle_reasons, s.processes,
    s.period_s
FROM samples s
LEFT JOIN holder h
    ON h.device = coalesce(s.gpu_uuid, concat(s.node, '/', s.gpu))
    AND h.slice = coalesce(s.mig, -1)
    AND h.day_at = local_day(s.sampled_at - INTERVAL '1 millisecond')
    AND s.sampled_at > h.from_at AND s.sampled_at <= h.until_at
WHERE s.job_id IS NULL
UNION ALL
SELECT
    p.sampled_at, p.cluster, p.node, p.gpu, p.gpu_uuid, p.mig, p.gpu_model,
    p.one AS job_id, j.attempt, p.part AS share_ratio, p.part < 1 AS shared,
    p.gpu_util_ratio, p.mem_copy_util_ratio, p.mem_used_bytes, p.mem_total_bytes, p.power_w,
    p.energy_j, p.temp_c, p.mem_temp_c, p.fan_ratio, p.sm_clock_mhz, p.mem_clock_mhz,
    p.pcie_rx_bytes_per_s, p.pcie_tx_bytes_per_s, p.nvlink_rx_bytes_per_s,
    p.nvlink_tx_bytes_per_s, p.sm_active_ratio, p.sm_occupancy_ratio, p.tensor_active_ratio,
    p.dram_active_ratio, p.fp64_active_ratio, p.fp32_active_ratio, p.fp16_active_ratio,
    p.ecc_corrected_total, p.ecc_uncorrected_total, p.xid, p.throttle_reasons, p.processes,
    p.period_s
FROM split p
LEFT JOIN jobs j
    ON j.job_id = p.one AND coalesce(j.cluster, '') = coalesce(p.cluster, '')
    AND p.sampled_at > j.started_at AND p.sampled_at <= coalesce(j.ended_at, as_of())
