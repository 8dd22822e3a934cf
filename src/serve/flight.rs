//! Takes rows by Arrow Flight: what `loadline collect --to` sends, and any other client's.
//!
//! A call is answered when its rows are in the log here, on the disk. Calls that run at the same
//! time share one `fsync`. Connections are as many as those of the other door. Everything but `DoPut` is unknown here: questions go to the store.

mod incoming;
mod service;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use loadline_ingest::collect::Stop;
use loadline_ingest::ship::MESSAGE_BYTES_MAX;
use rustls::InconsistentKeys;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tonic::transport::{Identity, Server, ServerTlsConfig};

use super::token::Token;
use crate::failure::Failure;
pub use service::FlightDesk;

/// Calls of one connection at the same time.
const CALLS_OF_ONE_MAX: u32 = 4;

/// Time in which a call must be read and answered.
const CALL_WITHIN: Duration = Duration::from_secs(30);

/// Time for those that are connected to end, once it stops.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Where rows are taken, and from whom.
#[derive(Debug, Clone, Default)]
pub struct FlightSettings {
    /// Address to listen on; port 0 is any that is free.
    pub listen: String,
    /// File with the token that whoever sends rows must have.
    pub token_file: Option<PathBuf>,
    /// Files with the certificates and the key of this server, in PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Let anybody who reaches it send rows, also from other machines.
    pub insecure: bool,
}

/// An open door for rows.
#[derive(Debug)]
pub struct Flight {
    listener: TcpListener,
    address: SocketAddr,
    identity: Option<Identity>,
    token: Option<Token>,
}

impl Flight {
    /// Listens.
    ///
    /// # Errors
    /// An address that is none, is taken, or is open to other machines without a token; a file that
    /// cannot be used.
    pub fn open(settings: &FlightSettings) -> Result<Self, Failure> {
        let listen = &settings.listen;
        let token = settings.token_file.as_deref();
        let token = token.map(|path| Token::open(path, "--token-file")).transpose()?;
        let identity = settings.tls.as_ref().map(identity).transpose()?;
        let failed = |error: std::io::Error| {
            Failure::new(format!("could not listen on `{listen}`: {error}"))
                .hint("name an address that is free, such as `127.0.0.1:7048`")
        };
        let listener = TcpListener::bind(listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        if token.is_none() && !settings.insecure && !address.ip().is_loopback() {
            return Err(Failure::usage(format!(
                "anybody who reaches `{listen}` could write to the store"
            ))
            .hint("give --token-file FILE, or --insecure if the network is closed"));
        }
        Ok(Self { listener, address, identity, token })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that collectors are given, with the address as it was bound.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.identity.is_some() { "grpc+tls" } else { "grpc" };
        format!("{scheme}://{}", self.address)
    }

    /// Whether rows and token pass a network that others can read.
    #[must_use]
    pub fn in_the_open(&self) -> bool {
        self.identity.is_none() && !self.address.ip().is_loopback()
    }

    /// The token that is asked for.
    #[must_use]
    pub fn token(&self) -> Option<Token> {
        self.token.clone()
    }

    /// Takes rows until `stop` is set; calls that are under way are answered to their end.
    ///
    /// # Errors
    /// A certificate or key that is none, or a listener that broke.
    pub async fn serve(self, desk: FlightDesk, stop: &Stop) -> Result<(), Failure> {
        let failed = |error: tonic::transport::Error| Failure::from_error(&error);
        let mut server = Server::builder()
            .max_concurrent_streams(CALLS_OF_ONE_MAX)
            .timeout(CALL_WITHIN)
            .http2_keepalive_interval(Some(CALL_WITHIN));
        if let Some(identity) = self.identity {
            // The tree has two, and none is the one by itself. A second choice changes nothing.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let config = ServerTlsConfig::new().identity(identity).timeout(CALL_WITHIN);
            server = server.tls_config(config).map_err(failed)?;
        }
        let service = FlightServiceServer::new(desk).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let stopped = Arc::new(tokio::sync::Notify::new());
        let waits = {
            let (stop, stopped) = (stop.clone(), Arc::clone(&stopped));
            tokio::task::spawn_blocking(move || {
                stop.wait();
                stopped.notify_waiters();
                stopped.notify_one();
            })
        };
        let served = server
            .add_service(service)
            .serve_with_incoming_shutdown(incoming::incoming(listener), async {
                drop(waits.await)
            });
        let ended = async {
            stopped.notified().await;
            tokio::time::sleep(END_WITHIN).await;
        };
        tokio::select! {
            served = served => served.map_err(failed),
            () = ended => Ok(()),
        }
    }
}

/// The certificates and the key of this server, which belong together.
fn identity((cert, key): &(PathBuf, PathBuf)) -> Result<Identity, Failure> {
    let read = |path: &Path, option: &str| {
        std::fs::read(path).map_err(|error| {
            let path = path.display();
            Failure::new(format!("could not read `{path}`, which {option} names: {error}"))
        })
    };
    let unusable = |path: &Path, option: &str, why: &str| {
        Failure::new(format!("cannot use `{}`, which {option} names: {why}", path.display()))
    };
    let (certs_pem, key_pem) = (read(cert, "--tls-cert")?, read(key, "--tls-key")?);
    let certs: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certs_pem).collect();
    let certs =
        certs.map_err(|error| unusable(cert, "--tls-cert", &format!("it is no PEM: {error}")))?;
    if certs.is_empty() {
        let why = "it holds no certificate: those in PEM begin with `-----BEGIN CERTIFICATE-----`";
        return Err(unusable(cert, "--tls-cert", why));
    }
    let private = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|_| {
        let why = "it holds no key: those in PEM begin with `-----BEGIN PRIVATE KEY-----`";
        unusable(key, "--tls-key", why)
    })?;
    let provider = rustls::crypto::ring::default_provider();
    let signing = provider.key_provider.load_private_key(private);
    let signing = signing.map_err(|error| {
        unusable(key, "--tls-key", &format!("its key is of no known kind: {error}"))
    })?;
    match rustls::sign::CertifiedKey::new(certs, signing).keys_match() {
        // Some keys do not tell the public part.
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {
            Ok(Identity::from_pem(certs_pem, key_pem))
        }
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(Failure::new(format!(
                "the key in `{}` is not that of the first certificate in `{}`",
                key.display(),
                cert.display()
            ))
            .hint("give --tls-key the key with which the certificate was made"))
        }
        Err(error) => Err(unusable(
            cert,
            "--tls-cert",
            &format!("its first certificate cannot be read: {error}"),
        )),
    }
}
