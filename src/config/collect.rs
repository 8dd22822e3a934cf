//! `[collect]` of `loadline.toml`: what is read on a node, how often, and where it waits.

use std::time::Duration;

use loadline_ingest::IngestError;
use loadline_ingest::collect::CollectSettings;
use loadline_ingest::ship::ShipSettings;
use loadline_ingest::source::folder::FolderSettings;
use loadline_ingest::source::remote_write::RemoteWriteSettings;
use loadline_ingest::source::scrape::ScrapeSettings;
use loadline_ingest::source::slurm::SlurmSettings;
use loadline_ingest::wal::WalSettings;
use serde::Deserialize;

use crate::serve::DoorSettings;

/// What is collected, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CollectConfig {
    /// Name of the node in every row, and of its write-ahead log; the host's without it.
    pub name: Option<String>,
    /// Cluster in every row that names none.
    pub cluster: Option<String>,
    /// Seconds between two readings of GPUs and of the node, from 0.1 to 3600.
    pub interval_s: f64,
    /// Seconds between two moves of rows from the log into the tables, from 1 to 86400.
    pub flush_s: f64,
    /// Bytes that the write-ahead log may hold.
    pub wal_bytes_max: u64,
    /// Read the GPUs of this node through the driver; without it, where nothing else is asked for.
    pub nvml: Option<bool>,
    /// Path of the driver's library, where the system does not find it.
    pub nvml_library: Option<std::path::PathBuf>,
    /// Read processors, memory, disks and network of this node.
    pub node: bool,
    /// Prometheus pages that are fetched.
    pub scrape: Option<ScrapeSettings>,
    /// Slurm's ledger and queue.
    pub slurm: Option<SlurmSettings>,
    /// Folders that are watched for files.
    pub folder: Vec<FolderSettings>,
    /// The door: health page, and remote-write where that is set.
    pub door: Option<DoorSettings>,
    /// Takes what a Prometheus sends to the door.
    pub remote_write: Option<RemoteWriteSettings>,
    /// Sends rows to a `loadline serve` instead of keeping them in a store here.
    pub ship: Option<ShipSettings>,
}

impl Default for CollectConfig {
    fn default() -> Self {
        Self {
            name: None,
            cluster: None,
            interval_s: 30.0,
            flush_s: 300.0,
            wal_bytes_max: 1 << 30,
            nvml: None,
            nvml_library: None,
            node: false,
            scrape: None,
            slurm: None,
            folder: Vec::new(),
            door: None,
            remote_write: None,
            ship: None,
        }
    }
}

impl CollectConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        for (name, value, least, most) in [
            ("interval_s", self.interval_s, 0.1, 3_600.0),
            ("flush_s", self.flush_s, 1.0, 86_400.0),
        ] {
            if !(least..=most).contains(&value) {
                return Err(format!(
                    "`collect.{name}` is {value}; it must be from {least} to {most} seconds"
                ));
            }
        }
        if self.wal_bytes_max < 1 << 20 {
            let bytes = self.wal_bytes_max;
            return Err(format!(
                "`collect.wal_bytes_max` is {bytes}; it must be at least 1048576 bytes"
            ));
        }
        match &self.ship {
            Some(ship) => ship.check().map_err(|error| match error {
                // Here no option was given: the key is what was written.
                IngestError::Setting { what, value, reason } => {
                    let key = if what.contains("every_s") { "every_s" } else { "to" };
                    format!("`collect.ship.{key}` is `{value}`; {reason}")
                }
                other => other.to_string(),
            }),
            None => Ok(()),
        }
    }

    /// Limits of the write-ahead log.
    #[must_use]
    pub fn wal_settings(&self) -> WalSettings {
        let usual = WalSettings::default();
        WalSettings {
            segment_bytes: usual.segment_bytes.min(self.wal_bytes_max / 8),
            bytes_max: self.wal_bytes_max,
        }
    }

    /// Time between two readings.
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.interval_s)
    }

    /// How rows are kept.
    #[must_use]
    pub fn settings(&self) -> CollectSettings {
        let defaults = CollectSettings::default();
        CollectSettings {
            flush_every: Duration::from_secs_f64(self.flush_s),
            flush_bytes: defaults.flush_bytes.min(self.wal_bytes_max / 2),
            ..defaults
        }
    }
}
