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

/// Options of `rollup`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    loadline rollup\n  \
    echo '\\d gpu_5m' | loadline sql    # what the columns are\n  \
    loadline sql \"SELECT node, sum(power_w_sum) / sum(power_w_known_s) AS power_w FROM gpu_1h \
    GROUP BY node\"")]
pub struct RollupArgs {
    /// Make every day anew that still has readings, not only those whose readings have changed.
    #[arg(long)]
    pub rebuild: bool,
    /// Tell what would be made and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print what was made as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `retain`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    loadline rollup && loadline retain\n  \
    loadline retain --apply\n\n\
    How long each table is kept stands under [retention] in loadline.toml: readings for 90 days,\n\
    gpu_5m for 730, all else for ever. Ages count back from the latest instant in the store, or from\n\
    --now. Readings go only when gpu_5m and gpu_1h tell of them as they are. Files are\n\
    deleted by `loadline compact` or a collector after the time of grace.")]
pub struct RetainArgs {
    /// Take them out; without it they are only told.
    #[arg(long)]
    pub apply: bool,
    /// Print what goes and what stays as JSON.
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
