//! What can be typed: every command, its options and examples.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::{Args, Parser, Subcommand};

use crate::report::{Format, Language};

/// Time-series analytics and forecasting for fleets of GPUs.
#[derive(Debug, Parser)]
#[command(
    name = "loadline",
    version,
    about,
    propagate_version = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Folder or URL of the store.
    #[arg(
        long,
        global = true,
        default_value = "loadline-data",
        value_name = "URL",
        env = "LOADLINE_STORE"
    )]
    pub store: String,
    /// Configuration file; `loadline.toml` is read when it is there.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Instant that counts as now (RFC 3339); by default the latest one in the store.
    #[arg(long, global = true, value_name = "INSTANT")]
    pub now: Option<DateTime<Utc>>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a fleet, import it, and write its report: the whole path in one go.
    Demo(DemoArgs),
    /// Write a commented loadline.toml.
    Init(InitArgs),
    /// Read files of a fleet into the store.
    Import(ImportArgs),
    /// Answer a query, or open a shell.
    Sql(SqlArgs),
    /// Run a named question, or list them.
    Query(QueryArgs),
    /// Quantiles of demand, beside the seasonal-naive benchmark.
    Forecast(ForecastArgs),
    /// When demand meets capacity, how many GPUs by when, and what could be had back first.
    Plan(PlanArgs),
    /// One page that answers: how much is used, by whom, is it healthy, what to do.
    Report(ReportArgs),
}

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

/// Options of `demo`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  loadline demo --gpus 128 --weeks 12 --seed 7")]
pub struct DemoArgs {
    /// GPUs of the fleet, in nodes of eight.
    #[arg(long, default_value_t = 64)]
    pub gpus: u32,
    /// Weeks of history.
    #[arg(long, default_value_t = 8)]
    pub weeks: u32,
    /// Seed: the same seed makes the same fleet.
    #[arg(long, default_value_t = 7)]
    pub seed: u64,
    /// Seconds between two readings of a GPU.
    #[arg(long, default_value_t = 300)]
    pub interval: u32,
    /// Folder for the fleet's files and its store.
    #[arg(long, default_value = "loadline-demo", value_name = "DIR")]
    pub dir: PathBuf,
    /// Where to write the report.
    #[arg(long, default_value = "report.html", value_name = "FILE")]
    pub report: PathBuf,
    /// Only write the fleet's files; import nothing.
    #[arg(long)]
    pub files_only: bool,
}

/// Options of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// File to write.
    #[arg(default_value = "loadline.toml")]
    pub path: PathBuf,
    /// Replace it where it exists.
    #[arg(long)]
    pub force: bool,
}

/// Options of `import`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    loadline import nvidia-smi gpu-*.csv.gz --node gpu-017 --zone Asia/Shanghai\n  \
    sacct --allusers --allocations --duplicates --parsable2 -S 2026-01-01 | loadline import sacct -\n  \
    loadline import jobs philly.csv.gz --mapping examples/mappings/philly.toml --dry-run")]
pub struct ImportArgs {
    /// Format of the files.
    #[arg(value_enum)]
    pub format: ImportFormat,
    /// Files, globs, or `-` for standard input; `.gz` is unpacked.
    #[arg(required = true)]
    pub paths: Vec<String>,
    /// Tell what would happen and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Cluster of the rows, where the file does not tell.
    #[arg(long)]
    pub cluster: Option<String>,
    /// Node of the readings, where the file does not tell.
    #[arg(long)]
    pub node: Option<String>,
    /// Time zone of times without one, such as `Asia/Shanghai`.
    #[arg(long)]
    pub zone: Option<chrono_tz::Tz>,
    /// Instant of readings without one (`nvidia-smi`).
    #[arg(long, value_name = "INSTANT")]
    pub time: Option<DateTime<Utc>>,
    /// Seconds between two readings of a GPU; by default the median of what is read.
    #[arg(long, value_name = "SECONDS")]
    pub interval: Option<f64>,
    /// Mapping of columns to ours, in TOML (`jobs`, `samples` and the other tables); without one,
    /// columns are taken by our names.
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,
    /// Column names of a file without header, comma-separated (`sacct`).
    #[arg(long, value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Delimiter (`sacct`); told from the header, else `|`.
    #[arg(long)]
    pub delimiter: Option<char>,
    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Format of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ImportFormat {
    /// Query CSV logs, whole outputs, or `-q -x` XML.
    NvidiaSmi,
    /// Slurm's accounting, as `sacct --parsable2` prints it.
    Sacct,
    /// Jobs, from CSV with our column names, as all that follow.
    Jobs,
    /// Readings of GPUs.
    Samples,
    /// Readings of nodes.
    NodeSamples,
    /// Inventory of GPUs.
    Gpus,
    /// Inventory of nodes.
    Nodes,
    /// Which job held which GPU.
    Allocations,
    /// GPUs held, waiting and installed.
    GpuCounts,
}

/// Options of `sql`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  loadline sql \"SELECT team, sum(gpus_held) FROM demand_hourly GROUP BY team\"\n  loadline sql --format csv -o busy.csv \"SELECT ...\"\n  loadline sql            # a shell: \\d lists tables, \\q leaves"
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
    after_help = "Examples:\n  loadline query\n  loadline query gpu_hours --param by=team --param per=month"
)]
pub struct QueryArgs {
    /// Name of the question; all are listed without one.
    pub name: Option<String>,
    /// Value of a parameter.
    #[arg(long = "param", short, value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// How the result is shown.
    #[command(flatten)]
    pub table: TableArgs,
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
    /// Column of `demand_hourly`.
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
#[command(after_help = "Example:\n  loadline forecast --by team --horizon 7d  --json")]
pub struct ForecastArgs {
    /// One series for each of these; the whole fleet without it.
    #[arg(long, value_enum)]
    pub by: Option<SplitBy>,
    /// How far ahead, such as `24h` or `7d`.
    #[arg(long, default_value = "7d", value_parser = crate::elapsed::parse)]
    pub horizon: i64,
    /// How the result is shown.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Options of `plan`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  loadline plan --quantile 0.95 --lead-time-days 60 --growth 0.2"
)]
pub struct PlanArgs {
    /// Demand must stay below capacity with this probability.
    #[arg(long, default_value_t = 0.9)]
    pub quantile: f64,
    /// Days from ordering GPUs to their being allocatable.
    #[arg(long, default_value_t = 60)]
    pub lead_time_days: u32,
    /// What if: GPUs added now.
    #[arg(long, default_value_t = 0.0)]
    pub add_gpus: f64,
    /// What if: demand grows by this share a year on top of the trend seen.
    #[arg(long, default_value_t = 0.0)]
    pub growth: f64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `report`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  loadline report --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z --lang zh -o january.html"
)]
pub struct ReportArgs {
    /// Start, inclusive; by default the start of the store.
    #[arg(long, value_name = "INSTANT")]
    pub from: Option<DateTime<Utc>>,
    /// End, exclusive; by default the end of the store.
    #[arg(long, value_name = "INSTANT")]
    pub to: Option<DateTime<Utc>>,
    /// Language.
    #[arg(long, value_enum, default_value_t)]
    pub lang: Language,
    /// Form.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// File to write; by default report.html, report.md or report.json. `-` is standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
