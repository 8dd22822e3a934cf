-- Readings by the job that held the GPU, with who ran it and how much of the board was its own.
-- columns: every column of device_readings with job_id the one job's, ended_at timestamp,
--          attempt int32, shared boolean, gpus float64, used_ratio float64 [0-1], user text,
--          team text, project text, workload text, partition text, job_cluster text,
--          ledgered boolean
-- one row per reading, job and piece of the time that the reading stands for; one with job_id NULL
-- for a piece in which nobody held the GPU. started_at, ended_at and period_s are those of the
-- piece, cut where a job gets or leaves the GPU; pieces sum to the reading. gpus is the part
-- of one board that the job had, so the parts of jobs on a board never sum to more than 1; less
-- suspension (see job_samples). ledgered tells whether the jobs table knows the job.
WITH shared AS (
    SELECT d.*,
        unnest(job_shares(d.job_id, d.cluster, d.node, d.gpu, d.gpu_uuid, d.mig, d.sampled_at,
            d.period_s, d.util_ratio)) AS share
    FROM device_readings d
),
split AS (
    SELECT s.sampled_at, s.share['started_at'] AS started_at, s.share['ended_at'] AS ended_at,
        s.share['period_s'] AS period_s, s.cluster, s.node, s.gpu, s.gpu_uuid, s.mig,
        s.gpu_key, s.gpu_model, s.share['job_id'] AS job_id, s.share['attempt'] AS attempt,
        s.share['shared'] AS shared,
        s.share['used_ratio'] * CASE
            WHEN s.mig IS NULL OR s.share['share_ratio'] IS NULL OR s.share['shared']
                THEN s.board_ratio * coalesce(s.share['share_ratio'], 1)
            ELSE least(s.board_ratio, s.share['share_ratio'])
        END AS gpus, s.share['used_ratio'] AS used_ratio,
        s.util_ratio, s.effective_ratio, s.effective_signal, s.sm_active_ratio, s.mem_used_bytes,
        s.mem_total_bytes, s.temp_c, s.xid, s.throttle_reasons, s.ecc_uncorrected_total,
        s.power_read_w, s.power_w, s.power_source
    FROM shared s
)
SELECT r.*, j."user", j.team, j.project, j.workload,
    coalesce(j."partition", 'default') AS "partition",
    j.cluster AS job_cluster, j.job_id IS NOT NULL AS ledgered
FROM split r
LEFT JOIN jobs j
    ON j.job_id = r.job_id AND coalesce(j.attempt, 0) = coalesce(r.attempt, 0)
    AND (j.cluster = r.cluster OR j.cluster IS NULL OR r.cluster IS NULL)
