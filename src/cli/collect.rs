//! Options of `collect`.

use std::path::PathBuf;

use clap::Args;

use crate::elapsed;

/// Options of `collect`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    loadline collect                                     # GPUs of this node, every 30 s\n  \
    loadline collect --scrape gpu-017:9400 --scrape gpu-018:9400 --interval 15s\n  \
    loadline collect --slurm --watch /var/spool/jobs --listen 127.0.0.1:9464\n  \
    loadline collect --for 1m                            # and stop, for a trial\n\n\
    What is set under [collect] in loadline.toml holds too. Rows can be asked at once; they wait in\n\
    a write-ahead log beside the tables and are moved into them every few minutes. Ctrl-C ends it in\n\
    good order, and nothing that was kept is lost where it ends in another way.")]
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
    #[arg(long, value_name = "TIME", value_parser = elapsed::parse)]
    pub interval: Option<i64>,
    /// Name of this node in every row; the host's by default.
    #[arg(long)]
    pub name: Option<String>,
    /// Cluster in every row that names none.
    #[arg(long)]
    pub cluster: Option<String>,
    /// Stop after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = elapsed::parse)]
    pub lasting: Option<i64>,
}
