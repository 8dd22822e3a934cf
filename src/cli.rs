//! What can be typed: every command, its options and examples.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::{Args, Parser, Subcommand};

mod ask;
mod collect;
mod install;
mod keep;
mod outlook;
mod serve;

pub use ask::{
    BaselineArgs, ExportArgs, ExportFormat, HealthArgs, OutputFormat, ProposeArgs, QueryArgs,
    SqlArgs, TableArgs,
};
pub use collect::CollectArgs;
pub use install::{CollectTask, InstallArgs};
pub use keep::{CompactArgs, DoctorArgs, RetainArgs, RollupArgs};
pub use outlook::{ForecastArgs, PlanArgs, ReportArgs, ScaleArgs, SplitBy};
pub use serve::ServeArgs;

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
    /// Instant or local date that counts as now; by default the latest instant in the store.
    #[arg(long, global = true, value_name = "INSTANT")]
    pub now: Option<String>,
    /// Folder of questions of your own (`NAME.sql`), beside or instead of those that come along.
    #[arg(long, global = true, value_name = "DIR", env = "LOADLINE_QUERIES")]
    pub queries: Option<PathBuf>,
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
    /// Write the answer of a question or a query as files that BI tools read.
    Export(ExportArgs),
    /// What is usual for each workload and GPU model, in working and in other hours.
    Baseline(BaselineArgs),
    /// Judge jobs against the baselines, in words and numbers.
    Health(HealthArgs),
    /// Which workload each unlabelled job resembles, and how sure that is.
    Propose(ProposeArgs),
    /// Quantiles of demand, beside the seasonal-naive benchmark.
    Forecast(ForecastArgs),
    /// When demand meets capacity, how many GPUs by when, and what could be had back first.
    Plan(PlanArgs),
    /// GPUs that should be on in each of the next hours.
    Scale(ScaleArgs),
    /// One page that answers: how much is used, by whom, is it healthy, what to do.
    Report(ReportArgs),
    /// Read GPUs, nodes, pages and ledgers again and again, and keep what they tell.
    Collect(CollectArgs),
    /// Take the rows that collectors elsewhere send, into the store here.
    Serve(ServeArgs),
    /// Make many small files few, and delete those that no version of a table needs.
    Compact(CompactArgs),
    /// Sum up readings in five minutes and hours, where they have changed.
    Rollup(RollupArgs),
    /// Take days out that are older than their table is to be kept; told first, done with --apply.
    Retain(RetainArgs),
    /// Is the store what its logs say? Find damage, and mend it.
    Doctor(DoctorArgs),
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
    /// Only write the small fleet that notebooks read into this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["files_only", "gpus", "weeks", "seed", "interval"])]
    pub notebooks_data: Option<PathBuf>,
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

/// Seconds between two readings: a day is the longest that makes sense.
fn interval(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("must be a number of seconds from 0.001 to 86400".to_owned()),
    }
}

/// Shards that make a GPU.
fn shards(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(shards) if (1.0..=1e6).contains(&shards) => Ok(shards),
        _ => Err("must be a number from 1 to 1000000".to_owned()),
    }
}

/// Options of `import`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    loadline import nvidia-smi gpu-*.csv.gz --node gpu-017 --zone Asia/Shanghai\n  \
    curl -s http://gpu-017:9400/metrics | loadline import dcgm - --time \"$(date -u +%FT%TZ)\"\n  \
    TZ=UTC sacct --allusers --allocations --duplicates --parsable2 -S 2026-01-01 \\\n    \
    -o JobID,JobIDRaw,Cluster,Account,User,Partition,ReqTRES,AllocTRES,Submit,Eligible,Start,End,\\\n\
    Suspended,State,Restarts,NodeList,Timelimit,ExitCode,JobName | loadline import sacct -\n  \
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
    /// Instant of readings without one (`nvidia-smi`, `dcgm`).
    #[arg(long, value_name = "INSTANT")]
    pub time: Option<DateTime<Utc>>,
    /// Seconds between two readings of a GPU; by default the median of what is read.
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
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
    /// Shards that a GPU is cut into, where jobs hold `gres/shard` (`sacct`).
    #[arg(long, value_name = "SHARDS", value_parser = shards)]
    pub shards_per_gpu: Option<f64>,
    /// What a numeric resource is, such as `1003=gres/gpu:h100`; may be given again (`sacct`).
    #[arg(long, value_name = "ID=NAME", value_parser = crate::config::tres_id)]
    pub tres_id: Vec<(u32, String)>,
    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Format of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ImportFormat {
    /// Query CSV logs, whole outputs, or `-q -x` XML.
    NvidiaSmi,
    /// Pages of dcgm-exporter, or answers of the Prometheus API over its series.
    Dcgm,
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
    /// What happened to GPUs.
    Events,
}
