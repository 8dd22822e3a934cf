//! Options of `collect install`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What to do instead of collecting.
#[derive(Debug, Subcommand)]
pub enum CollectTask {
    /// Print a systemd unit that collects with the options before this word; with --write put it
    /// in its place.
    Install(InstallArgs),
}

/// Options of `collect install`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    loadline collect install                                  # look at it\n  \
    loadline --config /etc/loadline.toml collect --slurm install --write\n  \
    loadline collect --to grpc+tls://store.example.org:7047 --token-file /etc/loadline/token \\\n    \
    install --write\n\n\
    It keeps its files in /var/lib/loadline, begins again when it fails, and is held to a quarter of\n\
    one core and 256 MB. Only the unit is written, and only with --write; systemctl is left to you.")]
pub struct InstallArgs {
    /// Write the unit; without it nothing changes.
    #[arg(long)]
    pub write: bool,
    /// Folder of units.
    #[arg(long, value_name = "DIR", default_value = "/etc/systemd/system")]
    pub unit_dir: PathBuf,
    /// Who runs it: only root sees which processes of others are on a GPU.
    #[arg(long, default_value = "root")]
    pub user: String,
    /// Replace a unit that is there and differs.
    #[arg(long)]
    pub force: bool,
}
