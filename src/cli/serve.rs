//! Options of `serve`.

use std::path::PathBuf;

use clap::Args;

use crate::elapsed;

/// Options of `serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    loadline serve                                       # for collectors on this machine\n  \
    openssl rand -hex 32 > token; chmod 600 token\n  \
    loadline serve --listen 0.0.0.0:7047 --token-file token --tls-cert cert.pem --tls-key key.pem\n  \
    loadline collect --to grpc+tls://store.example.org:7047 --token-file token   # on each node\n\n\
    Rows are answered for when they are in the write-ahead log beside the tables, and are moved into\n\
    these every few minutes, as those of `loadline collect`. Each reading is kept once, however often\n\
    it is sent. Any client of Arrow Flight can put rows: the path of its descriptor is the table.")]
pub struct ServeArgs {
    /// Take rows here; only this machine reaches the loopback.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7047")]
    pub listen: String,
    /// File with the token that whoever sends rows must have.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificates of this server, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Key of the first certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Let anybody who reaches it write to the store.
    #[arg(long)]
    pub insecure: bool,
    /// Serve the health page (GET /metrics) here.
    #[arg(long, value_name = "HOST:PORT")]
    pub health: Option<String>,
    /// Name of the write-ahead log, where several servers share a store.
    #[arg(long, default_value = "serve")]
    pub name: String,
    /// Stop after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = elapsed::parse)]
    pub lasting: Option<i64>,
}
