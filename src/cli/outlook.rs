//! Options of the commands that look ahead: `forecast`, `plan`, `scale`, `report`.

use std::path::PathBuf;

use clap::Args;

use super::TableArgs;
use crate::report::{Format, Language};

/// A probability that a forecast has a quantile of.
fn quantile(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(level) if (0.001..=0.999).contains(&level) => Ok(level),
        _ => Err("must be a number from 0.001 to 0.999".to_owned()),
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
        _ => Err("must be a number from 0 to 1".to_owned()),
    }
}

/// What a forecast is split by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SplitBy {
    /// A series for each team.
    Team,
    /// A series for each pool (partition).
    Pool,
    /// A series for each workload type.
    Workload,
}

impl SplitBy {
    /// Name in the questions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Team => "team",
            Self::Pool => "pool",
            Self::Workload => "workload",
        }
    }

    /// Column of `demand_hourly` and `offered_hourly`.
    #[must_use]
    pub const fn column(self) -> &'static str {
        match self {
            Self::Team => "team",
            Self::Pool => "partition",
            Self::Workload => "workload",
        }
    }
}

/// Options of `forecast`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  loadline forecast --by team --horizon 7d --json\n  loadline forecast --step 1d --horizon 4w"
)]
pub struct ForecastArgs {
    /// One series for each of these; the whole fleet without it.
    #[arg(long, value_enum)]
    pub by: Option<SplitBy>,
    /// How far ahead, such as `24h` or `7d`.
    #[arg(long, default_value = "7d", value_parser = crate::elapsed::parse)]
    pub horizon: i64,
    /// Length of a step in whole hours that divide a day, such as `1h`, `6h` or `1d`.
    #[arg(long, default_value = "1h", value_parser = crate::elapsed::parse_step)]
    pub step: u32,
    /// How the result is shown.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Options of `plan`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  loadline plan --quantile 0.95 --lead-time-days 60\n  loadline plan --growth 0.2 --reclaim-idle       # what if\n  loadline plan --add-gpus 64 --json"
)]
pub struct PlanArgs {
    /// The load must stay below capacity with this probability.
    #[arg(long, default_value_t = 0.9, value_parser = quantile)]
    pub quantile: f64,
    /// Days from ordering GPUs to their being allocatable.
    #[arg(long, default_value_t = 60, allow_negative_numbers = true)]
    pub lead_time_days: u32,
    /// Weeks ahead; never further than the history is long.
    #[arg(long, default_value_t = 26)]
    pub weeks: usize,
    /// What if: GPUs added now, to the fleet or to the pool of --pool.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    pub add_gpus: f64,
    /// What if: the load grows by this share a year on top of the trend seen.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    pub growth: f64,
    /// What if: GPUs that jobs held while idle in the last four weeks are given back.
    #[arg(long)]
    pub reclaim_idle: bool,
    /// Only this pool; the fleet and every pool without it.
    #[arg(long)]
    pub pool: Option<String>,
    /// Weeks in a row that the expansion rule asks for.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=520))]
    pub expansion_weeks: u32,
    /// Share of capacity that the expansion rule asks for, 0 to 1.
    #[arg(long, default_value_t = 0.7, value_parser = ratio)]
    pub expansion_ratio: f64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `scale`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  loadline scale --hours 12 --min 8 --max 64 --unit 8\n  loadline scale --pool inference --lead-time 2h --json"
)]
pub struct ScaleArgs {
    /// Hours ahead.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=168))]
    pub hours: u32,
    /// Quantile of demand that must be served.
    #[arg(long, default_value_t = 0.9, value_parser = quantile)]
    pub quantile: f64,
    /// Share kept free on top of it.
    #[arg(long, default_value_t = 0.1, allow_negative_numbers = true)]
    pub headroom: f64,
    /// Never fewer GPUs than this.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub min: u32,
    /// Never more GPUs than this; by default those that are available.
    #[arg(long, allow_negative_numbers = true)]
    pub max: Option<u32>,
    /// Time from switching a GPU on to its serving, in whole hours.
    #[arg(long, default_value = "1h", value_parser = crate::elapsed::parse)]
    pub lead_time: i64,
    /// Hours of lower need before GPUs go off.
    #[arg(long, default_value_t = 2)]
    pub cooldown: usize,
    /// GPUs that are switched together, such as those of a node.
    #[arg(long, default_value_t = 1)]
    pub unit: u32,
    /// GPUs that are on now; by default those that are available.
    #[arg(long)]
    pub on: Option<u32>,
    /// Only this pool; the whole fleet without it.
    #[arg(long)]
    pub pool: Option<String>,
    /// How the result is shown.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Options of `report`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  loadline report --from 2026-01-01 --to 2026-02-01 --lang zh -o january.html"
)]
pub struct ReportArgs {
    /// Start, inclusive: an instant or a local date; by default the start of the store.
    #[arg(long, value_name = "INSTANT")]
    pub from: Option<String>,
    /// End, exclusive; by default the end of the store.
    #[arg(long, value_name = "INSTANT")]
    pub to: Option<String>,
    /// Days from ordering GPUs to their being allocatable.
    #[arg(long, default_value_t = 60, allow_negative_numbers = true)]
    pub lead_time_days: u32,
    /// Language.
    #[arg(long, value_enum, default_value_t)]
    pub lang: Language,
    /// Form.
    #[arg(long, short, value_enum, default_value_t)]
    pub format: Format,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// File to write; by default report.html, report.md or report.json. `-` is standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
