//! Fetching one page, within limits of time and size.

use std::error::Error;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING};
use reqwest::{Certificate, Client, redirect};

use super::settings::ScrapeSettings;
use super::target::Target;
use crate::error::IngestError;

/// Redirects that are followed; a token is not sent to another host.
const REDIRECTS_MAX: usize = 3;

/// The text format; other forms of a page are not read.
const ACCEPTED: &str = "text/plain;version=0.0.4,application/openmetrics-text;q=0.5,*/*;q=0.1";

/// Asks targets for their pages.
#[derive(Debug, Clone)]
pub(super) struct Fetcher {
    client: Client,
    timeout: Duration,
    bytes_max: u64,
}

impl Fetcher {
    pub(super) fn new(settings: &ScrapeSettings) -> Result<Self, IngestError> {
        let timeout = Duration::from_secs_f64(settings.timeout_s);
        // No connection is kept: between rounds nobody would hear that the other side closed it.
        let mut client = Client::builder()
            .user_agent(concat!("loadline/", env!("CARGO_PKG_VERSION")))
            .no_proxy()
            .redirect(redirect::Policy::limited(REDIRECTS_MAX))
            .pool_max_idle_per_host(0)
            .timeout(timeout);
        if let Some(path) = &settings.ca_file {
            let named = path.to_string_lossy().into_owned();
            let pem = std::fs::read(path)
                .map_err(|source| IngestError::Read { path: named.clone(), source })?;
            let refuse = |reason: String| IngestError::Setting {
                what: "collect.scrape.ca_file".into(),
                value: named.clone(),
                reason,
            };
            let found = Certificate::from_pem_bundle(&pem).map_err(|e| refuse(cause(&e)))?;
            if found.is_empty() {
                return Err(refuse("no certificate (PEM) in it".into()));
            }
            for certificate in found {
                client = client.add_root_certificate(certificate);
            }
        }
        let client = client.build().map_err(|error| IngestError::Collect {
            from: "any target".into(),
            reason: cause(&error),
            hint: None,
        })?;
        Ok(Self { client, timeout, bytes_max: settings.page_bytes_max })
    }

    /// The page of `target`, unpacked; why there is none.
    pub(super) async fn fetch(&self, target: &Target) -> Result<Vec<u8>, String> {
        let mut request = self
            .client
            .get(target.url.clone())
            .header(ACCEPT, ACCEPTED)
            .header(ACCEPT_ENCODING, "gzip")
            .header("X-Prometheus-Scrape-Timeout-Seconds", self.timeout.as_secs_f64().to_string());
        if let Some(path) = &target.bearer_token_file {
            request = request.bearer_auth(secret(path)?);
        } else if let Some(auth) = &target.basic_auth {
            request = request.basic_auth(&auth.user, Some(secret(&auth.password_file)?));
        }
        let mut response = request.send().await.map_err(|error| self.why(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("it answered {status}"));
        }
        if response.content_length().is_some_and(|bytes| bytes > self.bytes_max) {
            return Err(self.too_long());
        }
        let mut page = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.why(&error))? {
            if (page.len() + chunk.len()) as u64 > self.bytes_max {
                return Err(self.too_long());
            }
            page.extend_from_slice(&chunk);
        }
        self.unpacked(page)
    }

    /// Undoes gzip, told by its first two bytes.
    fn unpacked(&self, page: Vec<u8>) -> Result<Vec<u8>, String> {
        if !page.starts_with(&[0x1f, 0x8b]) {
            return Ok(page);
        }
        let mut plain = Vec::new();
        let mut limited = MultiGzDecoder::new(&page[..]).take(self.bytes_max + 1);
        match limited.read_to_end(&mut plain) {
            Ok(_) if plain.len() as u64 > self.bytes_max => Err(self.too_long()),
            Ok(_) => Ok(plain),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err("its page ends early".to_owned())
            }
            Err(error) => Err(format!("its page cannot be unpacked: {error}")),
        }
    }

    fn too_long(&self) -> String {
        format!("its page is longer than {} bytes (`page_bytes_max`)", self.bytes_max)
    }

    fn why(&self, error: &reqwest::Error) -> String {
        if error.is_timeout() {
            return format!("no whole answer within {} s", self.timeout.as_secs_f64());
        }
        cause(error)
    }
}

/// What is in a file that holds nothing else.
fn secret(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("could not read `{}`: {error}", path.display()))?;
    Ok(text.trim().to_owned())
}

/// The innermost cause, which says most.
fn cause(error: &dyn Error) -> String {
    let mut inner = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    inner.to_string()
}
