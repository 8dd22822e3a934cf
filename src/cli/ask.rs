//! Options of the commands that ask: `sql`, `query`, `export`, `baseline`, `health`, `propose`.

use std::path::PathBuf;

use clap::Args;

/// Form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum OutputFormat {
    /// Aligned columns for people.
    #[default]
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON array.
    Json,
    /// One JSON object a line.
    Ndjson,
    /// Parquet.
    Parquet,
    /// Arrow IPC file.
    Arrow,
}

/// How a result is shown.
#[derive(Debug, Args, Clone)]
pub struct TableArgs {
    /// Form of the result.
    #[arg(long, short, value_enum, default_value_t)]
    pub format: OutputFormat,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write to this file instead of the terminal.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl TableArgs {
    /// The form asked for.
    #[must_use]
    pub fn form(&self) -> OutputFormat {
        if self.json { OutputFormat::Json } else { self.format }
    }
}

/// Options of `sql`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  loadline sql \"SELECT team, sum(gpus_held * hours) FROM demand_hourly GROUP BY team\"\n  loadline sql --format csv -o busy.csv \"SELECT ...\"\n  loadline sql            # a shell: \\d lists tables, \\d TABLE its columns, \\q leaves"
)]
pub struct SqlArgs {
    /// Query; a shell without one.
    pub query: Option<String>,
    /// How the result is shown.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Options of `query`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  loadline query\n  loadline query gpu_hours --show\n  loadline query gpu_hours --param by=team --param step=month"
)]
pub struct QueryArgs {
    /// Name of the question; all are listed without one.
    pub name: Option<String>,
    /// Value of a parameter.
    #[arg(long = "param", short, value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// Print the question itself: what it tells, its parameters and columns, and its SQL.
    #[arg(long)]
    pub show: bool,
    /// How the result is shown.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Form of exported files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ExportFormat {
    /// Parquet, compressed with zstd.
    #[default]
    Parquet,
    /// Comma-separated values with a header.
    Csv,
}

/// Options of `export`.
#[derive(Debug, Args)]
#[command(
    after_help = "Instants are written with the zone of loadline.toml, as local time with its offset; --local-times\nleaves zone and offset out.\n\nExamples:\n  loadline export usage_daily --to bi/usage --partition-by day_started_at\n  loadline export gpu_hours --param step=day --to bi/gpu-hours --replace --local-times\n  loadline export \"SELECT * FROM coverage_daily\" --to bi/coverage --format csv"
)]
pub struct ExportArgs {
    /// Name of a question, a view or a table, or a query in SQL.
    pub what: String,
    /// Folder to write; it appears whole or not at all.
    #[arg(long, value_name = "PATH")]
    pub to: PathBuf,
    /// Form of the files.
    #[arg(long, short, value_enum, default_value_t)]
    pub format: ExportFormat,
    /// Columns whose values become folders `column=value`, outermost first. A column of local days
    /// names them by the date.
    #[arg(long, value_delimiter = ',', value_name = "COLUMN")]
    pub partition_by: Vec<String>,
    /// Write instants as the wall clock of the calendar's zone, without a zone: for programs that
    /// ignore zones and would show the day before. The hour that the clock shows twice in autumn is
    /// then the same twice; leave it out where instants must stay apart.
    #[arg(long)]
    pub local_times: bool,
    /// Value of a parameter of the question.
    #[arg(long = "param", short, value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// Replace a folder that is there.
    #[arg(long)]
    pub replace: bool,
}

/// Options of `baseline`.
#[derive(Debug, Args)]
#[command(
    after_help = "A baseline is of the 28 days before now; --now gives that of an earlier day.\n\nExamples:\n  loadline baseline\n  loadline baseline --workload train --measurement all --json\n  loadline baseline --now 2026-03-01"
)]
pub struct BaselineArgs {
    /// Only this workload type.
    #[arg(long)]
    pub workload: Option<String>,
    /// Only GPU models that contain this text.
    #[arg(long)]
    pub model: Option<String>,
    /// Measurement, such as `gpu_util_ratio` or `power_w`, or `all`.
    #[arg(long, default_value = "gpu_util_ratio")]
    pub measurement: String,
    /// How the result is shown.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Options of `health`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  loadline health\n  loadline health --verdict idle-held --limit 50\n  loadline health 483920"
)]
pub struct HealthArgs {
    /// One job; all jobs with readings without it.
    pub job: Option<String>,
    /// Only jobs with this verdict.
    #[arg(long)]
    pub verdict: Option<String>,
    /// Start, inclusive: an instant or a local date; by default the start of the store.
    #[arg(long, value_name = "INSTANT")]
    pub from: Option<String>,
    /// End, exclusive; by default the end of the store.
    #[arg(long, value_name = "INSTANT")]
    pub to: Option<String>,
    /// Jobs shown at most in a table; other forms have all.
    #[arg(long, default_value_t = 20)]
    pub limit: usize,
    /// How the result is shown.
    #[command(flatten)]
    pub table: TableArgs,
}

/// A share of 1.
fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("must be a number from 0 to 1".to_owned()),
    }
}

/// Options of `propose`.
#[derive(Debug, Args)]
#[command(
    after_help = "Learned from the labelled jobs of the store, by what was read of their GPUs: 20 labelled jobs each of two workloads are needed. Each labelled job is also judged by what the others teach, which tells how often a proposal is right. Nothing is changed: rules to paste into loadline.toml come last.\n\nExamples:\n  loadline propose\n  loadline propose --min-sure 0.8 --limit 50\n  loadline propose --job 483920\n  loadline propose --format csv -o proposals.csv"
)]
pub struct ProposeArgs {
    /// Only this job.
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// Share, 0 to 1, below which a job is said to resemble none.
    #[arg(long, value_name = "SHARE", default_value_t = 0.8, value_parser = share)]
    pub min_sure: f64,
    /// Jobs shown at most in a table; other forms have all.
    #[arg(long, default_value_t = 20)]
    pub limit: usize,
    /// How the result is shown.
    #[command(flatten)]
    pub table: TableArgs,
}
