//! What `[collect.scrape]` of the configuration says.

use std::path::PathBuf;

use serde::Deserialize;

use crate::error::IngestError;
use crate::source::dcgm::MetricMap;

/// Settings of scraping.
///
/// # Example
/// ```
/// use loadline_ingest::source::scrape::{ScrapeCollector, ScrapeSettings};
///
/// let settings: ScrapeSettings = toml::from_str(
///     r#"
///     interval_s = 15
///     targets = ["gpu-017:9400", "https://gpu-018:9400/metrics"]
///     [[target]]
///     url = "http://10.0.0.4:9100/metrics"
///     node = "gpu-019"
///     [[map]]
///     metric = "my_gpu_power_watts"
///     column = "power_w"
///     labels = { gpu = "gpu", gpu_uuid = "uuid" }
///     "#,
/// )?;
/// assert!(ScrapeCollector::new(&settings).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScrapeSettings {
    /// Seconds between two rounds, from 0.1 to 86400.
    pub interval_s: f64,
    /// Seconds after which a target has not answered, page included; from 0.1 to 600.
    pub timeout_s: f64,
    /// Longest page in bytes, as it is sent and unpacked; from 1 KiB to 1 GiB.
    pub page_bytes_max: u64,
    /// Seconds that the times on a page may be off the scrape before that is a failure.
    pub stale_after_s: f64,
    /// What is asked: `HOST:PORT`, which is `http://HOST:PORT/metrics`, or a URL.
    pub targets: Vec<String>,
    /// Targets of which more is to be said.
    pub target: Vec<ScrapeTarget>,
    /// File with a token, which is read in every round.
    pub bearer_token_file: Option<PathBuf>,
    /// User and password, where there is no token.
    pub basic_auth: Option<BasicAuth>,
    /// Certificates (PEM) that are trusted beside those of the system.
    pub ca_file: Option<PathBuf>,
    /// Metrics that are none of DCGM, and what they fill.
    pub map: Vec<MetricMap>,
}

/// A target of which more is to be said.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScrapeTarget {
    /// `HOST:PORT` or a URL.
    pub url: String,
    /// Node of series that name none; without it the host, where that is a name.
    pub node: Option<String>,
    /// Cluster of series that name none.
    pub cluster: Option<String>,
    /// File with a token, in place of that for all.
    pub bearer_token_file: Option<PathBuf>,
    /// User and password, in place of those for all.
    pub basic_auth: Option<BasicAuth>,
}

/// User and password.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BasicAuth {
    /// User.
    pub user: String,
    /// File with the password, which is read in every round.
    pub password_file: PathBuf,
}

impl Default for ScrapeSettings {
    fn default() -> Self {
        Self {
            interval_s: 15.0,
            timeout_s: 10.0,
            page_bytes_max: 16 << 20,
            stale_after_s: 300.0,
            targets: Vec::new(),
            target: Vec::new(),
            bearer_token_file: None,
            basic_auth: None,
            ca_file: None,
            map: Vec::new(),
        }
    }
}

impl ScrapeSettings {
    /// Checks the limits.
    ///
    /// # Errors
    /// [`IngestError::Setting`] with the range.
    pub(super) fn check(&self) -> Result<(), IngestError> {
        let refuse = |what: &str, value: String, reason: &str| {
            Err(IngestError::Setting {
                what: format!("collect.scrape.{what}"),
                value,
                reason: reason.to_owned(),
            })
        };
        if !(0.1..=86_400.0).contains(&self.interval_s) {
            let value = self.interval_s.to_string();
            return refuse("interval_s", value, "must be from 0.1 to 86400 seconds");
        }
        if !(0.1..=600.0).contains(&self.timeout_s) || self.timeout_s > self.interval_s.max(10.0) {
            let reason = "must be from 0.1 to 600 seconds, and at most 10 or the interval";
            return refuse("timeout_s", self.timeout_s.to_string(), reason);
        }
        if !(1.0..=1e9).contains(&self.stale_after_s) {
            let value = self.stale_after_s.to_string();
            return refuse("stale_after_s", value, "must be from 1 to 1000000000 seconds");
        }
        if !(1 << 10..=1 << 30).contains(&self.page_bytes_max) {
            let value = self.page_bytes_max.to_string();
            return refuse("page_bytes_max", value, "must be from 1024 to 1073741824 bytes");
        }
        if self.targets.is_empty() && self.target.is_empty() {
            let reason = "name at least one `HOST:PORT` or URL";
            return refuse("targets", String::new(), reason);
        }
        Ok(())
    }
}
