//! Where rows are sent to.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use url::Url;

use crate::error::IngestError;

/// Where rows are sent to, and where they wait until then.
///
/// ```toml
/// [collect.ship]
/// to = "grpc+tls://store.example.org:7047"
/// token_file = "/etc/loadline/token"
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShipSettings {
    /// `grpc://HOST:PORT`, or `grpc+tls://HOST:PORT`.
    pub to: String,
    /// File with the token of the server; read at every connection.
    pub token_file: Option<PathBuf>,
    /// Certificates in PEM by which the server is known, instead of those of this system.
    pub ca_file: Option<PathBuf>,
    /// Folder of the spool.
    pub spool: PathBuf,
    /// Seconds between two turns of sending, from 0.1 to 3600.
    pub every_s: f64,
}

impl Default for ShipSettings {
    fn default() -> Self {
        Self {
            to: String::new(),
            token_file: None,
            ca_file: None,
            spool: "loadline-spool".into(),
            every_s: 5.0,
        }
    }
}

impl ShipSettings {
    /// Whether it can be meant.
    ///
    /// # Errors
    /// [`IngestError::Setting`] that names the rule.
    pub fn check(&self) -> Result<(), IngestError> {
        self.url()?;
        if !(0.1..=3_600.0).contains(&self.every_s) {
            return Err(IngestError::Setting {
                what: "`collect.ship.every_s`".into(),
                value: self.every_s.to_string(),
                reason: "it must be from 0.1 to 3600 seconds".into(),
            });
        }
        Ok(())
    }

    pub(super) fn every(&self) -> Duration {
        Duration::from_secs_f64(self.every_s)
    }

    /// The address in the scheme of HTTP, and whether it is encrypted.
    pub(super) fn url(&self) -> Result<(String, bool), IngestError> {
        let refuse = |reason: &str| IngestError::Setting {
            what: "`--to` (`collect.ship.to`)".into(),
            value: self.to.clone(),
            reason: reason.into(),
        };
        let form = "give `grpc://HOST:PORT`, or `grpc+tls://HOST:PORT`";
        let (scheme, place) = self.to.split_once("://").ok_or_else(|| refuse(form))?;
        let tls = match scheme {
            "grpc" | "grpc+tcp" => false,
            "grpc+tls" => true,
            _ => return Err(refuse(form)),
        };
        let scheme = if tls { "https" } else { "http" };
        let url = Url::parse(&format!("{scheme}://{place}")).map_err(|_| refuse(form))?;
        if !place.trim_end_matches('/').ends_with(|c: char| c.is_ascii_digit())
            || url.host_str().is_none()
            || !matches!(url.path(), "" | "/")
            || url.query().is_some()
            || !place.contains(':')
        {
            return Err(refuse(form));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("a URL holds no secrets: give the token in a file"));
        }
        Ok((format!("{scheme}://{}", place.trim_end_matches('/')), tls))
    }

    /// Whether the connection is encrypted.
    pub(super) fn tls(&self) -> bool {
        self.url().is_ok_and(|(_, tls)| tls)
    }

    /// The server's name or address.
    pub(super) fn host(&self) -> Option<String> {
        let (url, _) = self.url().ok()?;
        Some(Url::parse(&url).ok()?.host_str()?.to_owned())
    }

    /// Whether rows and token pass a network that others can read.
    #[must_use]
    pub fn in_the_open(&self) -> bool {
        let Ok((url, false)) = self.url() else { return false };
        let url = Url::parse(&url).ok();
        let own = url.as_ref().and_then(Url::host).is_some_and(|host| match host {
            url::Host::Domain(name) => name == "localhost",
            url::Host::Ipv4(address) => address.is_loopback(),
            url::Host::Ipv6(address) => address.is_loopback(),
        });
        !own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_how_and_where() {
        let url = |to: &str| ShipSettings { to: to.into(), ..ShipSettings::default() }.url();
        assert_eq!(url("grpc://store:7047").unwrap(), ("http://store:7047".into(), false));
        assert_eq!(url("grpc+tls://10.0.0.1:443/").unwrap(), ("https://10.0.0.1:443".into(), true));
        assert_eq!(url("grpc://[::1]:80").unwrap(), ("http://[::1]:80".into(), false));
        for wrong in ["", "store:7047", "http://a:1", "grpc://a", "grpc://:1", "grpc://a:1/b"] {
            let told = url(wrong).unwrap_err().to_string();
            assert!(told.contains("give `grpc://HOST:PORT`"), "{wrong}: {told}");
        }
        let told = url("grpc://me:secret@a:1").unwrap_err().to_string();
        assert!(told.contains("in a file"), "{told}");
    }

    #[test]
    fn rows_in_the_open_are_those_that_leave_the_machine_unencrypted() {
        for (to, open) in [
            ("grpc://127.0.0.1:1", false),
            ("grpc://[::1]:1", false),
            ("grpc://localhost:1", false),
            ("grpc://store:1", true),
            ("grpc+tls://store:1", false),
        ] {
            let settings = ShipSettings { to: to.into(), ..ShipSettings::default() };
            assert_eq!(settings.in_the_open(), open, "{to}");
        }
    }
}
