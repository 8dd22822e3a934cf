//! Verdicts on jobs, with what they rest on.

use serde::Serialize;

/// Jobs of one verdict.
#[derive(Debug, Clone, Serialize)]
pub struct VerdictUse {
    /// Verdict.
    pub verdict: String,
    /// Jobs.
    pub jobs: u64,
    /// GPU-hours seen of them.
    pub gpu_hours: f64,
}

/// One job worth a look.
#[derive(Debug, Clone, Default, Serialize)]
pub struct JobFinding {
    /// Job.
    pub job_id: String,
    /// Team.
    pub team: String,
    /// User.
    pub user: String,
    /// Workload type.
    pub workload: String,
    /// GPU model.
    pub gpu_model: String,
    /// Verdict.
    pub verdict: String,
    /// Measurement that decided.
    pub measurement: String,
    /// What it was.
    pub level: Option<f64>,
    /// The limit it is held against.
    pub limit_level: Option<f64>,
    /// Measurement, limit and hours, in words.
    pub reason: String,
    /// GPU-hours seen.
    pub gpu_hours: f64,
    /// What else the reason tells.
    #[serde(flatten)]
    pub evidence: JobEvidence,
}

/// What stands beside the measurement that decided.
#[derive(Debug, Clone, Default, Serialize)]
pub struct JobEvidence {
    /// GPUs read.
    pub gpus: Option<u64>,
    /// Time-weighted mean utilisation.
    pub util_mean_ratio: Option<f64>,
    /// Time-weighted median utilisation.
    pub util_p50_ratio: Option<f64>,
    /// The mean of the busiest GPU.
    pub util_best_ratio: Option<f64>,
    /// Highest temperature.
    pub temp_max_c: Option<f64>,
    /// Hours idle since it was last busy; `None` where it never was.
    pub idle_tail_hours: Option<f64>,
    /// Hours from the first reading to the last.
    pub span_hours: Option<f64>,
    /// Hours read of each GPU.
    pub hours_read: Option<f64>,
    /// Lower quartile of the baseline.
    pub baseline_p25_ratio: Option<f64>,
    /// Jobs behind the baseline.
    pub baseline_jobs: Option<u64>,
    /// GPU-hours behind the baseline.
    pub baseline_gpu_hours: Option<f64>,
}
