//! Everything a report shows, as plain numbers: the JSON form of the report, and what the page,
//! the Markdown and the charts are drawn from.

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;

/// A whole report. Shares are 0-1; `None` is "not known", never 0.
#[derive(Debug, Clone, Serialize)]
pub struct ReportData {
    /// Start of the period, inclusive.
    pub from: DateTime<Utc>,
    /// End of the period, exclusive.
    pub until: DateTime<Utc>,
    /// IANA name of the zone of all local days and hours.
    pub timezone: String,
    /// ISO currency code of every amount.
    pub currency: String,
    /// The sums behind the first three answers.
    pub totals: Totals,
    /// One row a local day.
    pub days: Vec<DayUse>,
    /// One row a node, highest busy share first.
    pub nodes: Vec<NodeUse>,
    /// One row a team, most GPU-hours held first.
    pub teams: Vec<TeamUse>,
    /// Baselines by workload, GPU model and working or other hours.
    pub baselines: Vec<BaselineUse>,
    /// Jobs and GPU-hours by verdict, most GPU-hours first.
    pub health: Vec<VerdictUse>,
    /// Jobs worth a look, most GPU-hours first.
    pub jobs: Vec<JobFinding>,
    /// GPUs worth a look.
    pub hardware: Vec<HardwareFinding>,
    /// Demand, its forecast and the capacity.
    pub outlook: Outlook,
    /// What to do.
    pub decision: Decision,
}

/// Sums over the period.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Totals {
    /// GPUs installed, mean over the period.
    pub gpus_installed: Option<f64>,
    /// How the number of GPUs is known: `inventory`, `counts`, `config` or `peak-held`.
    pub capacity_source: Option<String>,
    /// GPU-hours installed.
    pub gpu_hours_installed: Option<f64>,
    /// GPU-hours held by jobs.
    pub gpu_hours_held: f64,
    /// GPU-hours in which a kernel ran; unknown without samples.
    pub gpu_hours_busy: Option<f64>,
    /// GPU-hours held while idle.
    pub gpu_hours_idle_held: Option<f64>,
    /// What the idle-held GPU-hours cost.
    pub cost_idle_held: Option<f64>,
    /// What the held GPU-hours cost.
    pub cost_held: Option<f64>,
    /// Share of GPU time that samples cover.
    pub coverage_ratio: Option<f64>,
    /// Job attempts that held a GPU.
    pub jobs: u64,
    /// Median queue time in seconds.
    pub queue_time_s_p50: Option<f64>,
    /// 90 % of jobs waited no longer than this, in seconds.
    pub queue_time_s_p90: Option<f64>,
}

impl Totals {
    /// Held as a share of installed.
    #[must_use]
    pub fn held_ratio(&self) -> Option<f64> {
        let installed = self.gpu_hours_installed.filter(|hours| *hours > 0.0)?;
        Some(self.gpu_hours_held / installed)
    }

    /// Busy as a share of installed, scaled to what was seen.
    #[must_use]
    pub fn busy_ratio(&self) -> Option<f64> {
        let seen = self.gpu_hours_installed? * self.coverage_ratio?;
        (seen > 0.0).then_some(self.gpu_hours_busy? / seen)
    }
}

/// One local day of the fleet.
#[derive(Debug, Clone, Serialize)]
pub struct DayUse {
    /// Local day.
    pub day: NaiveDate,
    /// Held / installed.
    pub held_ratio: Option<f64>,
    /// Time-weighted utilisation of what was seen.
    pub busy_ratio: Option<f64>,
    /// Share of GPU time that samples cover.
    pub coverage_ratio: Option<f64>,
    /// Median queue time of the jobs submitted that day, in seconds.
    pub queue_time_s_p50: Option<f64>,
}

/// One node over the period.
#[derive(Debug, Clone, Serialize)]
pub struct NodeUse {
    /// Node name.
    pub node: String,
    /// Time-weighted utilisation.
    pub busy_ratio: Option<f64>,
    /// Share of its time that samples cover.
    pub coverage_ratio: Option<f64>,
}

/// One team over the period.
#[derive(Debug, Clone, Serialize)]
pub struct TeamUse {
    /// Team; jobs without one are `(none)`.
    pub team: String,
    /// GPU-hours held.
    pub gpu_hours_held: f64,
    /// GPU-hours busy.
    pub gpu_hours_busy: Option<f64>,
    /// GPU-hours held while idle.
    pub gpu_hours_idle_held: Option<f64>,
    /// Cost of what was held.
    pub cost: Option<f64>,
}

/// One baseline.
#[derive(Debug, Clone, Serialize)]
pub struct BaselineUse {
    /// Workload type.
    pub workload: String,
    /// GPU model.
    pub gpu_model: String,
    /// `working` or `other`.
    pub hours: String,
    /// Time-weighted mean utilisation.
    pub gpu_util_ratio_mean: Option<f64>,
    /// 5 % of the time utilisation is below this.
    pub gpu_util_ratio_p5: Option<f64>,
    /// 95 % of the time utilisation is below this.
    pub gpu_util_ratio_p95: Option<f64>,
    /// Jobs behind it.
    pub jobs: u64,
    /// GPU-hours behind it.
    pub gpu_hours: f64,
}

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
#[derive(Debug, Clone, Serialize)]
pub struct JobFinding {
    /// Job.
    pub job_id: String,
    /// Team.
    pub team: String,
    /// User.
    pub user: String,
    /// Workload type.
    pub workload: String,
    /// Verdict.
    pub verdict: String,
    /// Measurement, limit and hours, in words.
    pub reason: String,
    /// GPU-hours seen.
    pub gpu_hours: f64,
}

/// One GPU worth a look.
#[derive(Debug, Clone, Serialize)]
pub struct HardwareFinding {
    /// Node.
    pub node: String,
    /// Index on the node.
    pub gpu: Option<i64>,
    /// What was seen.
    pub finding: String,
}

/// Demand in hours, what is expected and how much there is.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Outlook {
    /// Last weeks of demand.
    pub history: Vec<HourDemand>,
    /// Forecast steps.
    pub forecast: Vec<HourForecast>,
    /// GPUs available at the end of the period.
    pub capacity_gpus: Option<f64>,
    /// Name of the model behind the forecast.
    pub model: String,
    /// 1 - score / score of seasonal naive in the backtest; above 0 is better.
    pub skill_ratio: Option<f64>,
    /// Share of outcomes inside the 80 % interval in the backtest.
    pub interval_coverage_80_ratio: Option<f64>,
    /// Reasons and warnings in words.
    pub notes: Vec<String>,
}

/// Demand in one hour.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct HourDemand {
    /// Start of the hour.
    pub at: DateTime<Utc>,
    /// GPUs held plus waited for.
    pub gpus: f64,
}

/// Forecast of one hour.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct HourForecast {
    /// Start of the hour.
    pub at: DateTime<Utc>,
    /// Quantile at level 0.1.
    pub gpus_p10: f64,
    /// Median.
    pub gpus_p50: f64,
    /// Quantile at level 0.9.
    pub gpus_p90: f64,
}

/// The kind of decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Order GPUs.
    Buy,
    /// Turn GPUs on and off with demand.
    Scale,
    /// Take back what is held idle.
    CleanUp,
    /// Nothing to do now: a plan was made and demand stays below capacity.
    Nothing,
    /// No plan could be made, so no decision can rest on one.
    Undecided,
}

/// What to do, with the figures it rests on.
#[derive(Debug, Clone, Serialize)]
pub struct Decision {
    /// What to do first.
    pub action: Action,
    /// GPUs to order, if any.
    pub gpus_to_add: Option<f64>,
    /// Instant by which they must be ordered.
    pub order_by: Option<DateTime<Utc>>,
    /// Mean demand over the last day of the store, in GPUs.
    pub demand_gpus_last_day: Option<f64>,
    /// Instant at which demand meets capacity.
    pub full_at: Option<DateTime<Utc>>,
    /// GPUs that the idle-held GPU-hours would give back, on average.
    pub gpus_reclaimable: Option<f64>,
    /// Conclusion of the expansion rule, in words.
    pub expansion: Option<String>,
    /// Further lines of the plan, in words.
    pub notes: Vec<String>,
}

impl ReportData {
    /// Whether any sample was seen.
    #[must_use]
    pub fn sampled(&self) -> bool {
        self.totals.coverage_ratio.is_some_and(|ratio| ratio > 0.0)
    }
}
