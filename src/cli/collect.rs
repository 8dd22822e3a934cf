//! Options of `collect`.

use std::path::PathBuf;

use clap::Args;

use super::CollectTask;
use crate::elapsed;

/// Options of `collect`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    loadline collect                                     # GPUs of this node, every 30 s\n  \
    loadline collect --scrape gpu-017:9400 --scrape gpu-018:9400 --interval 15s\n  \
    loadline collect --slurm --watch /var/spool/jobs --listen 127.0.0.1:9464\n  \
    loadline collect --for 1m                            # and stop, for a trial\n  \
    loadline collect --to grpc+tls://store.example.org:7047 --token-file /etc/loadline/token\n  \
    loadline collect --slurm install                     # as a systemd unit: shows it\n\n\
    What is set under [collect] in loadline.toml holds too. Rows can be asked at once; they wait in\n\
    a write-ahead log beside the tables and are moved into them every few minutes. Ctrl-C ends it in\n\
    good order, and nothing that was kept is lost where it ends in another way.\n\n\
    With --to, rows go to a `loadline serve` instead, and wait on disk here while that is away: in\n\
    loadline-spool/, at most `wal_bytes_max` bytes. When that is full the oldest go, which is told.")]
pub struct CollectArgs {
    /// Read the GPUs of this node through the driver; done where nothing else is asked for.
    #[arg(long)]
    pub nvml: bool,
    /// Read processors, memory, disks and network of this node.
    #[arg(long)]
    pub node_samples: bool,
    /// Fetch a Prometheus page: HOST:PORT or a URL. May be given several times.
    #[arg(long, value_name = "TARGET")]
    pub scrape: Vec<String>,
    /// Poll Slurm's ledger and queue.
    #[arg(long)]
    pub slurm: bool,
    /// Watch a folder for sacct output.
    #[arg(long, value_name = "DIR")]
    pub watch: Option<PathBuf>,
    /// Serve the health page (GET /metrics) and take remote-write (POST /api/v1/write) here.
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Time between two readings of GPUs, of the node and of pages.
    #[arg(long, value_name = "TIME", value_parser = elapsed::parse_interval)]
    pub interval: Option<f64>,
    /// Name of this node in every row; the host's by default.
    #[arg(long)]
    pub name: Option<String>,
    /// Cluster in every row that names none.
    #[arg(long)]
    pub cluster: Option<String>,
    /// Send rows to a `loadline serve`: grpc://HOST:PORT or grpc+tls://HOST:PORT.
    #[arg(long, value_name = "URL")]
    pub to: Option<String>,
    /// File with the token of that server.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificates, in PEM, by which that server is known; those of the system by default.
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Folder in which rows wait for that server.
    #[arg(long, value_name = "DIR")]
    pub spool: Option<PathBuf>,
    /// Stop after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = elapsed::parse)]
    pub lasting: Option<i64>,
    /// What to do instead.
    #[command(subcommand)]
    pub task: Option<CollectTask>,
}
