//! Everything a report shows, as plain numbers: the JSON form of the report, and what the page,
//! the Markdown and the charts are drawn from.

mod decision;
mod job;

use chrono::{DateTime, FixedOffset, NaiveDate};
use serde::Serialize;

use super::headroom::Headroom;
use super::lack::Lack;
use super::note::Note;
use super::planned::LoadBasis;
use super::tested::Tested;
pub use decision::{Action, Decision, PoolDecision};
pub use job::{JobEvidence, JobFinding, VerdictUse};

/// An instant with the offset that its zone has then: as JSON it is RFC 3339 with that offset.
pub type Local = DateTime<FixedOffset>;

/// A whole report. Shares are 0-1; `None` is "not known", never 0.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReportData {
    /// Start of the period, inclusive.
    pub from: Local,
    /// End of the period, exclusive.
    pub until: Local,
    /// IANA name of the zone of all local days and hours.
    pub timezone: String,
    /// ISO currency code of every amount.
    pub currency: String,
    /// The sums behind the first three answers.
    pub totals: Totals,
    /// Why nothing tells what jobs held; `None` where something does.
    pub lack_of_demand: Option<Lack>,
    /// One row a local day.
    pub days: Vec<DayUse>,
    /// One row a node, highest busy share first.
    pub nodes: Vec<NodeUse>,
    /// Who held GPUs, most GPU-hours first: teams, or users where no job names a team.
    pub teams: Vec<TeamUse>,
    /// What they are: `team` or `user`.
    pub teams_by: String,
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
    /// Readings of the period that were dropped for their age; `None` where none were.
    pub readings_dropped: Option<ReadingsDropped>,
}

/// Readings that are gone: what rests on them tells only of the time since.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ReadingsDropped {
    /// First instant of which readings are left.
    pub before: Local,
    /// When they were dropped.
    pub at: Local,
}

/// Sums over the period.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Totals {
    /// GPUs installed, mean over the period.
    pub gpus_installed: Option<f64>,
    /// How the number of GPUs is known: `inventory`, `counts`, `config` or `peak-held`.
    pub capacity_source: Option<String>,
    /// GPU-hours installed: held, free and down.
    pub gpu_hours_installed: Option<f64>,
    /// GPU-hours held beyond what is known to be installed and up.
    pub gpu_hours_excess: Option<f64>,
    /// GPU-hours held by jobs; unknown where neither a ledger nor a count tells them.
    pub gpu_hours_held: Option<f64>,
    /// GPU-hours that could have been given to jobs.
    pub gpu_hours_free: Option<f64>,
    /// GPU-hours of GPUs that were down.
    pub gpu_hours_down: Option<f64>,
    /// GPU-hours of which utilisation was read.
    pub gpu_hours_observed: Option<f64>,
    /// GPU-hours that readings of any kind cover.
    pub gpu_hours_seen: Option<f64>,
    /// GPU-hours in which a kernel ran; unknown without samples.
    pub gpu_hours_busy: Option<f64>,
    /// GPU-hours of jobs by the best signal of their activity.
    pub gpu_hours_effective: Option<f64>,
    /// That signal: activity, power or utilisation.
    pub effective_signal: Option<String>,
    /// GPU-hours held while idle.
    pub gpu_hours_idle_held: Option<f64>,
    /// What the idle-held GPU-hours cost.
    pub cost_idle_held: Option<f64>,
    /// What the held GPU-hours cost; unknown where one of them has no price.
    pub cost_held: Option<f64>,
    /// GPU-hours held of GPUs without a price.
    pub gpu_hours_unpriced: Option<f64>,
    /// Energy of the GPU boards in kWh, for the time in which their power was read.
    pub energy_kwh: Option<f64>,
    /// The same times the overhead of the site (PUE), which is 1 unless it is configured.
    pub energy_site_kwh: Option<f64>,
    /// The same in kg of CO2 equivalent.
    pub carbon_kg: Option<f64>,
    /// Share of the time in which GPUs were expected to report that readings cover.
    pub coverage_ratio: Option<f64>,
    /// Stretches in which a GPU was expected to report and did not.
    pub gaps: Option<u64>,
    /// GPU-hours in them.
    pub gpu_hours_gaps: Option<f64>,
    /// Hours of the longest.
    pub hours_longest_gap: Option<f64>,
    /// Job attempts that held a GPU; unknown where no ledger tells them.
    pub jobs: Option<u64>,
    /// GPU jobs submitted in the period.
    pub jobs_submitted: Option<u64>,
    /// Median queue time in seconds of the jobs submitted.
    pub queue_time_s_p50: Option<f64>,
    /// 90 % of jobs waited no longer than this, in seconds.
    pub queue_time_s_p90: Option<f64>,
    /// Jobs submitted in the period that still wait.
    pub jobs_waiting: Option<u64>,
    /// Failed jobs as a share of those that ended.
    pub failed_ratio: Option<f64>,
}

impl Totals {
    /// How many GPUs are installed is only known from below.
    #[must_use]
    pub fn capacity_is_floor(&self) -> bool {
        self.capacity_source.as_deref() == Some("peak-held")
    }

    /// Held as a share of installed, without what was held where nothing tells what is installed.
    #[must_use]
    pub fn held_ratio(&self) -> Option<f64> {
        let installed = self.gpu_hours_installed.filter(|hours| *hours > 0.0)?;
        Some((self.gpu_hours_held? - self.gpu_hours_excess.unwrap_or(0.0)) / installed)
    }

    /// Busy as a share of what was seen.
    #[must_use]
    pub fn busy_ratio(&self) -> Option<f64> {
        let seen = self.gpu_hours_observed.filter(|hours| *hours > 0.0)?;
        Some(self.gpu_hours_busy? / seen)
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
    /// GPU-hours of them that readings cover.
    pub gpu_hours_observed: Option<f64>,
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

/// One GPU worth a look.
#[derive(Debug, Clone, Serialize)]
pub struct HardwareFinding {
    /// Node.
    pub node: String,
    /// Index on the node.
    pub gpu: Option<i64>,
    /// UUID.
    pub gpu_uuid: Option<String>,
    /// Kind of problem: lost, ecc-uncorrected, xid, hot and so on.
    pub problem: String,
    /// How often it was seen.
    pub occurrences: Option<u64>,
    /// Hours of those readings.
    pub hours: Option<f64>,
    /// When it was last seen.
    pub last_seen_at: Option<Local>,
    /// What was seen, in words.
    pub reason: String,
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
    /// How that is known: config, inventory, counts or peak-held, which is a floor.
    pub capacity_source: Option<String>,
    /// How the forecast stands against them.
    pub headroom: Option<Headroom>,
    /// What the load of the plan is: `offered`, `held-and-waiting` or `both`.
    pub load_basis: Option<LoadBasis>,
    /// Name of the model behind the forecast.
    pub model: String,
    /// 1 - score / score of seasonal naive in the backtest; above 0 is better.
    pub skill_ratio: Option<f64>,
    /// Why none is stated; `None` where one is, and without a forecast.
    pub skill_reason: Option<String>,
    /// Share of outcomes inside the 80 % interval in the backtest.
    pub interval_coverage_80_ratio: Option<f64>,
    /// Why GPUs are not to be switched by the forecast alone; `None` where they can be.
    pub forecast_warning: Option<String>,
    /// What these rest on.
    #[serde(skip)]
    pub tested: Option<Tested>,
    /// Reasons and warnings.
    pub notes: Vec<Note>,
}

impl Outlook {
    /// The GPUs available are only known from below.
    #[must_use]
    pub fn capacity_is_floor(&self) -> bool {
        self.capacity_source.as_deref() == Some("peak-held")
    }
}

/// Demand in one hour.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct HourDemand {
    /// Start of the hour.
    pub at: Local,
    /// GPUs held plus waited for.
    pub gpus: f64,
}

/// Forecast of one hour.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct HourForecast {
    /// Start of the hour.
    pub at: Local,
    /// Quantile at level 0.1.
    pub gpus_p10: f64,
    /// Median.
    pub gpus_p50: f64,
    /// Quantile at level 0.9.
    pub gpus_p90: f64,
}

impl ReportData {
    /// Who held GPUs, where a ledger or a count names anybody.
    #[must_use]
    pub fn holders(&self) -> &[TeamUse] {
        let named = self.teams.iter().any(|team| team.team != "(none)");
        if named { &self.teams } else { &[] }
    }

    /// Whether any sample was seen.
    #[must_use]
    pub fn sampled(&self) -> bool {
        self.totals.coverage_ratio.is_some_and(|ratio| ratio > 0.0)
    }
}
