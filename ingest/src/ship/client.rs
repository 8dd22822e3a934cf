//! The connection to a server.

use std::path::Path;
use std::time::Duration;

use arrow_flight::FlightData;
use arrow_flight::flight_service_client::FlightServiceClient;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status};

use super::settings::ShipSettings;
use super::token::token;
use super::{KNOWN, words};
use crate::error::IngestError;

/// Time in which a connection must be there.
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);

/// Time in which a call must be answered.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// The option that names the file with the token.
const TOKEN_FILE: &str = "--token-file (`collect.ship.token_file`)";

/// A connection that is made when there is something to send.
#[derive(Debug)]
pub(super) struct Client {
    settings: ShipSettings,
    endpoint: Endpoint,
    open: Option<(FlightServiceClient<Channel>, Option<MetadataValue<Ascii>>)>,
    /// Whether the server has ever answered.
    answered: bool,
}

impl Client {
    pub(super) fn new(settings: &ShipSettings) -> Result<Self, IngestError> {
        let to = settings.to.clone();
        let unusable = |error: tonic::transport::Error| IngestError::Ship {
            to: to.clone(),
            reason: words::of_connection(&error, settings),
        };
        let (url, tls) = settings.url()?;
        let mut endpoint = Endpoint::from_shared(url)
            .map_err(unusable)?
            .connect_timeout(CONNECTED_WITHIN)
            .timeout(ANSWERED_WITHIN)
            .http2_keep_alive_interval(ANSWERED_WITHIN);
        if tls {
            let config = match &settings.ca_file {
                Some(path) => ClientTlsConfig::new().ca_certificate(certificates(path)?),
                None => ClientTlsConfig::new().with_native_roots(),
            };
            let own = settings.ca_file.is_none();
            endpoint = endpoint.tls_config(config).map_err(|error| match own {
                true => IngestError::Ship {
                    to: to.clone(),
                    reason: format!(
                        "this system has no certificates by which to know a server ({}): install \
                         them (`ca-certificates`), or name those of its signer with --ca-file",
                        words::of_connection(&error, settings)
                    ),
                },
                false => unusable(error),
            })?;
        } else if let Some(path) = &settings.ca_file {
            return Err(refused(
                path,
                "a `grpc://` connection has none: give `grpc+tls://HOST:PORT`",
            ));
        }
        if let Some(path) = &settings.token_file {
            token(path, TOKEN_FILE)?;
        }
        Ok(Self { settings: settings.clone(), endpoint, open: None, answered: false })
    }

    /// URL of the server.
    pub(super) fn to(&self) -> &str {
        &self.settings.to
    }

    /// Returns when the server has the rows on its disk, up to `until`: how many of them it had
    /// before.
    pub(super) async fn put(
        &mut self,
        messages: Vec<FlightData>,
        until: &str,
    ) -> Result<u64, IngestError> {
        let put = self.answer(messages, until);
        let answer = tokio::time::timeout(ANSWERED_WITHIN + CONNECTED_WITHIN, put).await;
        let failed = match answer {
            Ok(Ok(known)) => {
                self.answered = true;
                return Ok(known);
            }
            Ok(Err(error)) => error,
            Err(_) => self.failed(format!("no answer in {} s", ANSWERED_WITHIN.as_secs())),
        };
        self.open = None;
        Err(failed)
    }

    async fn answer(&mut self, messages: Vec<FlightData>, until: &str) -> Result<u64, IngestError> {
        let (mut client, token) = match &self.open {
            Some(open) => open.clone(),
            None => self.connect().await?,
        };
        let mut request = Request::new(futures::stream::iter(messages));
        if let Some(token) = token {
            request.metadata_mut().insert("authorization", token);
        }
        let answered = async {
            let answer = client.do_put(request).await?;
            let known = answer.metadata().get(KNOWN).and_then(|known| known.to_str().ok());
            let known = known.and_then(|known| known.parse().ok()).unwrap_or(0);
            let mut answer = answer.into_inner();
            let mut last = None;
            while let Some(result) = answer.message().await? {
                last = Some(result.app_metadata);
            }
            Ok::<_, Status>((last, known))
        };
        let (last, known) = answered.await.map_err(|status| {
            self.failed(words::of_call(&status, &self.settings, self.answered))
        })?;
        match last {
            Some(told) if *told == *until.as_bytes() => Ok(known),
            _ => Err(self.failed("it does not say how far it has the rows".into())),
        }
    }

    async fn connect(
        &mut self,
    ) -> Result<(FlightServiceClient<Channel>, Option<MetadataValue<Ascii>>), IngestError> {
        let token = match &self.settings.token_file {
            None => None,
            Some(path) => {
                let bearer = format!("Bearer {}", token(path, TOKEN_FILE)?).parse();
                let mut bearer: MetadataValue<Ascii> =
                    bearer.map_err(|_| self.failed(format!("no token in `{}`", path.display())))?;
                bearer.set_sensitive(true);
                Some(bearer)
            }
        };
        let channel = self.endpoint.connect().await;
        let channel =
            channel.map_err(|error| self.failed(words::of_connection(&error, &self.settings)))?;
        let open = (FlightServiceClient::new(channel), token);
        self.open = Some(open.clone());
        Ok(open)
    }

    fn failed(&self, reason: String) -> IngestError {
        IngestError::Ship { to: self.settings.to.clone(), reason }
    }
}

/// The certificates of a file.
fn certificates(path: &Path) -> Result<Certificate, IngestError> {
    let pem = std::fs::read(path).map_err(|error| refused(path, &error.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(refused(
            path,
            "it holds no certificate: those in PEM begin with `-----BEGIN CERTIFICATE-----`",
        )),
        Ok(_) => Ok(Certificate::from_pem(pem)),
        Err(error) => Err(refused(path, &format!("it is no PEM: {error}"))),
    }
}

fn refused(path: &Path, reason: &str) -> IngestError {
    IngestError::Setting {
        what: "--ca-file (`collect.ship.ca_file`)".into(),
        value: path.display().to_string(),
        reason: reason.into(),
    }
}
