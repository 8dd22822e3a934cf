//! A believable GPU fleet, written as the files that real fleets write.
//!
//! [`write_fleet`] fills a folder with query logs of nvidia-smi (one a node), `sacct` output, what
//! a scheduler prolog records about GPUs, an inventory, node readings, Xid events and a
//! `loadline.toml`. They are imported like anybody's files: nothing downstream knows that the
//! fleet was made up.
//!
//! Path: `fleet` (GPUs, nodes, what breaks when) -> `arrivals` and `story` (who submits what) ->
//! `queue` (first in, first out with backfill over the GPUs there are) -> `signal` (what each GPU
//! reads) -> `files`.
//!
//! # Why no `exp`, `ln` or `sin`
//! They differ by platform in the last digit. The fleet is made with the four operations on
//! numbers drawn from ChaCha alone, so a seed gives the same bytes on every machine, whatever its
//! number of cores.

mod arrivals;
mod config;
mod dice;
mod files;
mod fleet;
mod ledger;
mod local;
mod notebooks;
mod queue;
mod signal;
mod story;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use chrono_tz::Tz;

pub use config::config_toml;
pub use notebooks::write_notebooks_data;

/// Name of the made-up cluster.
pub const CLUSTER: &str = "harbour";

/// Size and seed of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// GPUs: a multiple of 8, from 8 to 4096.
    pub gpus: u32,
    /// Weeks of history, from 1 to 104.
    pub weeks: u32,
    /// The same seed makes the same files.
    pub seed: u64,
    /// Seconds between two readings of a GPU, from 10 to 3600.
    pub interval_s: u32,
    /// First local day.
    pub start: NaiveDate,
    /// Zone whose clock the teams live by.
    pub zone: Tz,
}

impl Default for Options {
    fn default() -> Self {
        let start = NaiveDate::from_ymd_opt(2026, 2, 23).expect("a day of the calendar");
        Self { gpus: 64, weeks: 8, seed: 7, interval_s: 300, start, zone: Tz::Asia__Shanghai }
    }
}

/// How far the writing has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Readings of GPUs written so far.
    pub samples_done: u64,
    /// Readings of GPUs that will have been written, gaps included.
    pub samples_total: u64,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Query logs of nvidia-smi, one a node, times in UTC; the file's stem is the node.
    pub nvidia_smi: Vec<PathBuf>,
    /// `sacct --parsable2` output, times in UTC.
    pub sacct: PathBuf,
    /// Which attempt held which GPU: `allocations` with the table's own column names.
    pub allocations: PathBuf,
    /// Inventory: `gpus` with the table's own column names.
    pub gpus: PathBuf,
    /// Readings of nodes: `node_samples` with the table's own column names.
    pub node_samples: PathBuf,
    /// Xid errors from the kernel logs: `samples` with the table's own column names.
    pub xid_events: PathBuf,
    /// The site's configuration.
    pub config: PathBuf,
    /// Readings of GPUs written.
    pub samples: u64,
    /// Job attempts written.
    pub attempts: u64,
}

/// Why no fleet was written.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// An option is outside its range.
    #[error("cannot make a fleet with {option} = {value}: must be {range}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// What was asked for.
        value: String,
        /// What can be asked for.
        range: &'static str,
    },
    /// A file could not be written.
    #[error("could not write `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A Parquet file could not be written.
    #[error("could not write `{}`", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the writer said.
        #[source]
        source: parquet::errors::ParquetError,
    },
}

impl DemoError {
    fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }
}

/// Writes the files of a fleet into `dir`, which is made where it is missing.
///
/// # Errors
/// An option outside its range, or a file that could not be written.
pub fn write_fleet(
    dir: &Path,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Written, DemoError> {
    let scene = Scene::new(options)?;
    files::write(dir, &scene, progress)
}

/// Everything that was decided before the first reading is written.
#[derive(Debug)]
struct Scene {
    options: Options,
    local: local::Local,
    fleet: fleet::Fleet,
    jobs: Vec<arrivals::Job>,
    attempts: Vec<queue::Attempt>,
}

impl Scene {
    fn new(options: &Options) -> Result<Self, DemoError> {
        check(options)?;
        let local = local::Local::new(options);
        let mut fleet = fleet::Fleet::new(options, &local);
        let mut jobs = arrivals::draw(options, &local, &fleet);
        jobs.extend(story::jobs(options, &local, &fleet));
        jobs.sort_by_key(|job| (job.submitted, job.order));
        let (attempts, lost) = queue::run(&jobs, &fleet, &local);
        fleet.failing = lost;
        Ok(Self { options: options.clone(), local, fleet, jobs, attempts })
    }
}

fn check(options: &Options) -> Result<(), DemoError> {
    let refuse = |option, value: u32, range| {
        Err(DemoError::Option { option, value: value.to_string(), range })
    };
    if !(8..=4096).contains(&options.gpus) || !options.gpus.is_multiple_of(8) {
        return refuse("gpus", options.gpus, "a multiple of 8 from 8 to 4096");
    }
    if !(1..=104).contains(&options.weeks) {
        return refuse("weeks", options.weeks, "from 1 to 104");
    }
    if !(10..=3600).contains(&options.interval_s) {
        return refuse("interval_s", options.interval_s, "from 10 to 3600");
    }
    Ok(())
}
