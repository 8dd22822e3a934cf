-- Readings by the job that held the GPU, with the job's share of it.
-- columns: every column of samples with job_id the one job's, attempt int32,
--          share_ratio float64 [0-1], used_ratio float64 [0-1], shared boolean,
--          started_at timestamp, ended_at timestamp
-- one row per reading in [span_started_at(), as_of()], job and piece of the time that the reading
-- stands for; one with job_id NULL for a piece in which nobody held the GPU. A reading is cut where
-- a job gets or leaves the GPU: started_at, ended_at and period_s are those of the piece, and the
-- pieces sum to the reading. The piece that ends at sampled_at is of those who held the GPU
-- when it was read. A source's own label goes first, while the ledger does not say that the job ran
-- at other times; then the allocations. Shares of one piece sum to 1 at most: jobs that hold one
-- GPU together without stated shares have equal parts and are marked shared, as their readings
-- cannot be told apart. used_ratio is the part of the piece in which a suspended job is taken to
-- have run, and its share is less for it: it was suspended first while others held a GPU of its
-- own, then while its GPUs were idle, else evenly. What it leaves, if not another's, is a row of
-- nobody.
SELECT s.sampled_at, s.cluster, s.node, s.gpu, s.gpu_uuid, s.mig, s.gpu_model, s.gpu_util_ratio,
    s.mem_copy_util_ratio, s.mem_used_bytes, s.mem_total_bytes, s.power_w, s.energy_j, s.temp_c,
    s.mem_temp_c, s.fan_ratio, s.sm_clock_mhz, s.mem_clock_mhz, s.pcie_rx_bytes_per_s,
    s.pcie_tx_bytes_per_s, s.nvlink_rx_bytes_per_s, s.nvlink_tx_bytes_per_s, s.sm_active_ratio,
    s.sm_occupancy_ratio, s.tensor_active_ratio, s.dram_active_ratio, s.fp64_active_ratio,
    s.fp32_active_ratio, s.fp16_active_ratio, s.ecc_corrected_total, s.ecc_uncorrected_total,
    s.xid, s.throttle_reasons, s.processes, s.gpu_util_min_ratio, s.gpu_util_max_ratio,
    s.power_min_w, s.power_max_w, s.share['period_s'] AS period_s,
    s.share['job_id'] AS job_id, s.share['attempt'] AS attempt,
    s.share['share_ratio'] * s.share['used_ratio'] AS share_ratio,
    s.share['used_ratio'] AS used_ratio,
    s.share['shared'] AS shared,
    s.share['started_at'] AS started_at, s.share['ended_at'] AS ended_at
FROM (
    SELECT r.*, unnest(job_shares(r.job_id, r.cluster, r.node, r.gpu, r.gpu_uuid, r.mig,
        r.sampled_at, r.period_s, coalesce(r.gpu_util_ratio, r.sm_active_ratio))) AS share
    FROM samples r
    WHERE r.sampled_at BETWEEN span_started_at() AND as_of()
) s
