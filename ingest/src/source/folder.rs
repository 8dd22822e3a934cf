//! A folder into which others put files: each is read once, when it has stopped growing.
//!
//! A file whose size and time are as they were a round before is whole, and is read. One that
//! changes later is read again, which changes nothing in what it told before. What was read is
//! known until the program ends; after that all files are read once more.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde::Deserialize;

use super::input::Input;
use super::mapped::{self, MappedOptions, Mapping};
use super::once::Once;
use super::sacct::{self, SacctOptions};
use super::{dcgm, nvidia_smi};
use crate::batch::Output;
use crate::collect::Collector;
use crate::error::IngestError;
use crate::schema::Table;

/// Files that a failure names.
const NAMED_MAX: usize = 5;

/// Settings of watching a folder.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FolderSettings {
    /// The folder. Files whose names begin with a dot are not read, nor is what is in folders
    /// below it.
    pub path: PathBuf,
    /// Seconds between two looks, from 0.1 to 86400.
    pub interval_s: f64,
    /// Format as of `loadline import`: `sacct`, `nvidia-smi`, `dcgm`, or a table whose columns the
    /// files have, such as `jobs`.
    pub format: String,
    /// Mapping of columns to ours, where the format is a table.
    pub mapping: Option<PathBuf>,
    /// Zone of times without one; UTC without it.
    pub zone: Option<String>,
    /// Cluster of readings that name none.
    pub cluster: Option<String>,
    /// Node of readings that name none.
    pub node: Option<String>,
    /// Longest file in bytes; a longer one is left to `loadline import`.
    pub file_bytes_max: u64,
}

impl Default for FolderSettings {
    fn default() -> Self {
        Self {
            path: PathBuf::new(),
            interval_s: 30.0,
            format: "jobs".into(),
            mapping: None,
            zone: None,
            cluster: None,
            node: None,
            file_bytes_max: 256 << 20,
        }
    }
}

/// How a file is read.
#[derive(Debug)]
enum Format {
    Sacct(Box<SacctOptions>),
    NvidiaSmi(nvidia_smi::Options),
    Dcgm(dcgm::Options),
    Mapped(Table, Box<MappedOptions>),
}

/// What is known of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    bytes: u64,
    modified: Option<SystemTime>,
    read: bool,
    /// Why it could not be read.
    failed: Option<String>,
}

/// Watches a folder.
#[derive(Debug)]
pub struct FolderCollector {
    settings: FolderSettings,
    format: Format,
    files: BTreeMap<PathBuf, File>,
    said: Once,
}

impl FolderCollector {
    /// A collector of the files in a folder. What `options` say of a ledger and of the workloads
    /// of jobs holds for its files too.
    ///
    /// # Errors
    /// [`IngestError::Setting`] for a format or an interval that there is not, and for a mapping
    /// that does not fit; [`IngestError::Read`] for a mapping that cannot be read.
    pub fn new(settings: FolderSettings, options: &SacctOptions) -> Result<Self, IngestError> {
        let refuse = |what: &str, value: &str, reason: String| IngestError::Setting {
            what: format!("collect.folder.{what}"),
            value: value.to_owned(),
            reason,
        };
        if !(0.1..=86_400.0).contains(&settings.interval_s) {
            let reason = "must be from 0.1 to 86400 seconds".to_owned();
            return Err(refuse("interval_s", &settings.interval_s.to_string(), reason));
        }
        let zone = match &settings.zone {
            None => None,
            Some(name) => Some(name.parse::<Tz>().map_err(|_| {
                let reason = "not in the IANA list; for example `Asia/Shanghai` or `UTC`".into();
                refuse("zone", name, reason)
            })?),
        };
        let (cluster, node) = (settings.cluster.clone(), settings.node.clone());
        let format = match settings.format.as_str() {
            "sacct" => {
                let zone = zone.or(options.zone).or(Some(Tz::UTC));
                Format::Sacct(Box::new(SacctOptions { zone, ..options.clone() }))
            }
            "nvidia-smi" => Format::NvidiaSmi(nvidia_smi::Options {
                node,
                cluster,
                zone,
                ..nvidia_smi::Options::default()
            }),
            "dcgm" => {
                Format::Dcgm(dcgm::Options { node, cluster, zone, ..dcgm::Options::default() })
            }
            table => {
                let table: Table = table.parse().map_err(|_| {
                    let names = Table::ALL.into_iter().filter(|table| !table.derived());
                    let names = names.map(Table::name).collect::<Vec<_>>().join(", ");
                    let reason = format!("must be one of sacct, nvidia-smi, dcgm, {names}");
                    refuse("format", &settings.format, reason)
                })?;
                let mapping = match &settings.mapping {
                    None => Mapping::default(),
                    Some(path) => {
                        let name = path.to_string_lossy().into_owned();
                        let text = std::fs::read_to_string(path)
                            .map_err(|source| IngestError::Read { path: name.clone(), source })?;
                        Mapping::parse(&name, &text)?
                    }
                };
                if !mapping.files.is_empty() {
                    let reason = "files of a folder come one by one and cannot be joined".into();
                    return Err(refuse("mapping", "files", reason));
                }
                let rules = options.rules.clone();
                Format::Mapped(table, Box::new(MappedOptions { mapping, zone, rules }))
            }
        };
        Ok(Self { settings, format, files: BTreeMap::new(), said: Once::default() })
    }

    /// Looks at the folder; the files that are whole and were not read.
    fn look(&mut self) -> Result<Vec<PathBuf>, IngestError> {
        let folder = &self.settings.path;
        let unreadable =
            |source| IngestError::Read { path: folder.to_string_lossy().into_owned(), source };
        let mut found = BTreeMap::new();
        let mut ready = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
            // One that went away meanwhile was not to be read.
            let Ok(about) = std::fs::metadata(&path) else { continue };
            if hidden || !about.is_file() {
                continue;
            }
            let (bytes, modified) = (about.len(), about.modified().ok());
            let known = self.files.remove(&path);
            let same = known.filter(|file| (file.bytes, file.modified) == (bytes, modified));
            let file = match same {
                Some(file) => {
                    if !file.read && file.failed.is_none() {
                        ready.push(path.clone());
                    }
                    file
                }
                None => File { bytes, modified, read: false, failed: None },
            };
            found.insert(path, file);
        }
        self.files = found;
        ready.sort();
        Ok(ready)
    }

    fn read(&mut self, input: Input, out: &mut dyn Output) -> Result<(), IngestError> {
        let inputs = [input];
        let mut out = self.said.over(out);
        match &self.format {
            Format::Sacct(options) => sacct::read(&inputs, options, &mut out),
            Format::NvidiaSmi(options) => nvidia_smi::read(&inputs, options, &mut out),
            Format::Dcgm(options) => dcgm::read(&inputs, options, &mut out),
            Format::Mapped(table, options) => mapped::read(&inputs, *table, options, &mut out),
        }
    }

    fn read_file(&mut self, path: &PathBuf, out: &mut dyn Output) -> Result<(), String> {
        let (bytes, most) = (self.files[path].bytes, self.settings.file_bytes_max);
        if bytes > most {
            return Err(format!(
                "{bytes} bytes are more than {most} (`file_bytes_max`): use `loadline import`"
            ));
        }
        self.read(Input::one(&path.to_string_lossy()), out).map_err(|error| match error {
            IngestError::Format { reason, .. } => reason,
            IngestError::Read { source, .. } => source.to_string(),
            other => other.to_string(),
        })
    }
}

impl Collector for FolderCollector {
    fn name(&self) -> String {
        format!("folder {}", self.settings.path.display())
    }

    fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.settings.interval_s)
    }

    fn collect(&mut self, _: DateTime<Utc>, out: &mut dyn Output) -> Result<(), IngestError> {
        for path in self.look()? {
            let failed = self.read_file(&path, out).err();
            if let Some(file) = self.files.get_mut(&path) {
                (file.read, file.failed) = (failed.is_none(), failed);
            }
        }
        // A file that cannot be read is told until it is mended or taken away.
        let failed: Vec<String> = self
            .files
            .iter()
            .filter_map(|(path, file)| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                Some(format!("`{name}`: {}", file.failed.as_ref()?))
            })
            .collect();
        if failed.is_empty() {
            return Ok(());
        }
        let mut reason = failed[..failed.len().min(NAMED_MAX)].join("; ");
        if let Some(more) = failed.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            reason += &format!("; and {more} more");
        }
        let from = format!("`{}`", self.settings.path.display());
        Err(IngestError::Collect { from, reason, hint: None })
    }
}

#[cfg(test)]
mod tests;
