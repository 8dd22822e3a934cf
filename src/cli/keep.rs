//! Options of the commands that keep a store in good order.

use chrono::TimeDelta;
use clap::Args;

use crate::elapsed;

/// Options of `compact`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    loadline compact --dry-run\n  \
    loadline compact --files-max 4 --grace 3d")]
pub struct CompactArgs {
    /// Files that the latest day may have before it is compacted; earlier days always are.
    #[arg(long, default_value_t = 16, value_name = "FILES")]
    pub files_max: usize,
    /// How long replaced files stay for those who read them, at most 7d.
    #[arg(long, default_value = "1d", value_parser = grace)]
    pub grace: TimeDelta,
    /// Tell what would be done and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print what was done as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    loadline doctor\n  \
    loadline doctor --repair\n\n\
    The exit code is 0 where all is well or was mended, else 1.")]
pub struct DoctorArgs {
    /// Mend what can be mended: a damaged file is moved to `quarantine/`, never deleted.
    #[arg(long)]
    pub repair: bool,
    /// How long a file that no version needs may stay, at most 7d.
    #[arg(long, default_value = "1d", value_parser = grace)]
    pub grace: TimeDelta,
    /// Print what was found as JSON.
    #[arg(long)]
    pub json: bool,
}

fn grace(text: &str) -> Result<TimeDelta, String> {
    elapsed::parse(text).map(TimeDelta::seconds)
}
