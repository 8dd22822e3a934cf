//! One address that is asked for its page.

use std::collections::HashSet;
use std::path::PathBuf;

use url::{Host, Url};

use super::settings::{BasicAuth, ScrapeSettings, ScrapeTarget};
use crate::error::IngestError;

/// One address that is asked for its page.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Name in messages: host and port, and the path where it is not `/metrics`.
    pub(super) name: String,
    pub(super) url: Url,
    pub(super) node: Option<String>,
    pub(super) cluster: Option<String>,
    pub(super) bearer_token_file: Option<PathBuf>,
    pub(super) basic_auth: Option<BasicAuth>,
}

impl Target {
    /// Every target of `settings`, each once.
    ///
    /// # Errors
    /// [`IngestError::Setting`] for one that is no URL.
    pub(super) fn all(settings: &ScrapeSettings) -> Result<Vec<Self>, IngestError> {
        let plain = settings.targets.iter();
        let plain = plain.map(|url| ScrapeTarget { url: url.clone(), ..ScrapeTarget::default() });
        let mut seen = HashSet::new();
        let mut targets = Vec::new();
        for told in settings.target.iter().cloned().chain(plain) {
            let target = Self::of(told, settings)?;
            if seen.insert(target.url.clone()) {
                targets.push(target);
            }
        }
        Ok(targets)
    }

    fn of(told: ScrapeTarget, settings: &ScrapeSettings) -> Result<Self, IngestError> {
        let refuse = |reason: &str| IngestError::Setting {
            what: "target".into(),
            value: told.url.clone(),
            reason: reason.to_owned(),
        };
        let text = match told.url.contains("://") {
            true => told.url.clone(),
            false => format!("http://{}", told.url),
        };
        let mut url = Url::parse(&text).map_err(|error| refuse(&format!("no URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse("must begin with `http://` or `https://`"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("no user and password in it: name files under `basic_auth`"));
        }
        if matches!(url.path(), "" | "/") {
            url.set_path("/metrics");
        }
        url.set_fragment(None);
        let host = url.host().ok_or_else(|| refuse("it names no host"))?;
        let named = match &host {
            Host::Domain(name) if *name != "localhost" => Some((*name).to_owned()),
            _ => None,
        };
        let mut name = host.to_string();
        if let Some(port) = url.port() {
            name = format!("{name}:{port}");
        }
        if url.path() != "/metrics" {
            name += url.path();
        }
        // A target that has its own way in does not use the one for all.
        let own = told.bearer_token_file.is_some() || told.basic_auth.is_some();
        let of_all = (settings.bearer_token_file.clone(), settings.basic_auth.clone());
        let (bearer_token_file, basic_auth) =
            if own { (told.bearer_token_file, told.basic_auth) } else { of_all };
        let (node, cluster) = (told.node.or(named), told.cluster);
        Ok(Self { name, url, node, cluster, bearer_token_file, basic_auth })
    }
}
