//! The connection to a server.

use std::path::PathBuf;
use std::time::Duration;

use arrow_flight::FlightData;
use arrow_flight::flight_service_client::FlightServiceClient;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

use super::settings::ShipSettings;
use crate::collect::in_one_line;
use crate::error::IngestError;
use crate::wal::Position;

/// Time in which a connection must be there.
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);

/// Time in which a call must be answered.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// A connection that is made when there is something to send.
#[derive(Debug)]
pub(super) struct Client {
    to: String,
    endpoint: Endpoint,
    token_file: Option<PathBuf>,
    open: Option<(FlightServiceClient<Channel>, Option<MetadataValue<Ascii>>)>,
}

impl Client {
    pub(super) fn new(settings: &ShipSettings) -> Result<Self, IngestError> {
        let to = settings.to.clone();
        let unusable = |error: tonic::transport::Error| IngestError::Ship {
            to: to.clone(),
            reason: in_one_line(&error),
        };
        let (url, tls) = settings.url()?;
        let mut endpoint = Endpoint::from_shared(url)
            .map_err(unusable)?
            .connect_timeout(CONNECTED_WITHIN)
            .timeout(ANSWERED_WITHIN)
            .http2_keep_alive_interval(ANSWERED_WITHIN);
        let ca = settings.ca_file.as_ref();
        let ca = ca.map(|path| std::fs::read(path).map_err(|source| unreadable(path, source)));
        if tls {
            let config = match ca.transpose()? {
                Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
                None => ClientTlsConfig::new().with_native_roots(),
            };
            endpoint = endpoint.tls_config(config).map_err(unusable)?;
        } else if let Some(path) = ca.and(settings.ca_file.as_ref()) {
            return Err(IngestError::Setting {
                what: "certificates".into(),
                value: path.display().to_string(),
                reason: "a `grpc://` connection has none: give `grpc+tls://HOST:PORT`".into(),
            });
        }
        let token_file = settings.token_file.clone();
        Ok(Self { to: settings.to.clone(), endpoint, token_file, open: None })
    }

    /// URL of the server.
    pub(super) fn to(&self) -> &str {
        &self.to
    }

    /// Returns when the server has the rows on its disk, up to `until`.
    pub(super) async fn put(
        &mut self,
        messages: Vec<FlightData>,
        until: Position,
    ) -> Result<(), IngestError> {
        let put = self.answer(messages, until);
        let answer = tokio::time::timeout(ANSWERED_WITHIN + CONNECTED_WITHIN, put).await;
        let failed = match answer {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(_) => self.failed(format!("no answer in {} s", ANSWERED_WITHIN.as_secs())),
        };
        self.open = None;
        Err(failed)
    }

    async fn answer(
        &mut self,
        messages: Vec<FlightData>,
        until: Position,
    ) -> Result<(), IngestError> {
        let (mut client, token) = match &self.open {
            Some(open) => open.clone(),
            None => self.connect().await?,
        };
        let mut request = Request::new(futures::stream::iter(messages));
        if let Some(token) = token {
            request.metadata_mut().insert("authorization", token);
        }
        let answered = async {
            let mut answer = client.do_put(request).await?.into_inner();
            let mut last = None;
            while let Some(result) = answer.message().await? {
                last = Some(result.app_metadata);
            }
            Ok::<_, Status>(last)
        };
        let last = answered.await.map_err(|status| self.refused(&status))?;
        match last {
            Some(told) if *told == *until.to_string().as_bytes() => Ok(()),
            _ => Err(self.failed("it does not say how far it has the rows".into())),
        }
    }

    async fn connect(
        &mut self,
    ) -> Result<(FlightServiceClient<Channel>, Option<MetadataValue<Ascii>>), IngestError> {
        let token = match &self.token_file {
            None => None,
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|e| unreadable(path, e))?;
                let mut token =
                    format!("Bearer {}", text.trim())
                        .parse::<MetadataValue<Ascii>>()
                        .map_err(|_| self.failed(format!("no token in `{}`", path.display())))?;
                token.set_sensitive(true);
                Some(token)
            }
        };
        let channel = self.endpoint.connect().await;
        let channel = channel.map_err(|error| self.failed(in_one_line(&error)))?;
        let open = (FlightServiceClient::new(channel), token);
        self.open = Some(open.clone());
        Ok(open)
    }

    fn refused(&self, status: &Status) -> IngestError {
        let said = status.message();
        self.failed(match (status.code(), &self.token_file) {
            (Code::Unauthenticated, Some(path)) => {
                format!("it does not know the token in `{}`: {said}", path.display())
            }
            (Code::Unauthenticated, None) => format!("it asks for a token: {said}"),
            (Code::Unimplemented, _) => format!("it takes no rows: {said}"),
            (Code::Unavailable | Code::Unknown, _) => in_one_line(status),
            (code, _) => format!("{said} ({code:?})"),
        })
    }

    fn failed(&self, reason: String) -> IngestError {
        IngestError::Ship { to: self.to.clone(), reason }
    }
}

fn unreadable(path: &std::path::Path, source: std::io::Error) -> IngestError {
    IngestError::Read { path: path.display().to_string(), source }
}
