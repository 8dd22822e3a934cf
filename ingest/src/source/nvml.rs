//! GPUs of this node, read through the driver's own library (NVML).
//!
//! Path of a round: [`NvmlCollector`] asks the thread of each place (`place.rs`), which reads its
//! board and slices (`board.rs`, `slices.rs`); the raw figures are checked and become rows and
//! events in `rows.rs`. The library is loaded at run time.
//!
//! Invariants:
//! - One GPU that fails or hangs in the driver holds up no other, and no round for longer than
//!   [`NvmlSettings::answer_within`].
//! - What the driver does not support is NULL, never 0.
//! - Power and energy stand in the row of the board only; a slice has memory and activity.
//! - That a board moved, was replaced or has a new driver is found when rows are moved into the
//!   tables, from the inventory rows that are given here.

mod activity;
mod board;
mod buffers;
mod cgroup;
mod driver;
mod fault;
mod held;
mod owners;
mod place;
mod rates;
mod reading;
mod rows;
mod slices;
#[cfg(test)]
mod tests;
mod unwrapped;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use self::driver::Driver;
use self::fault::Fault;
use self::held::Held;
use self::owners::Owners;
use self::place::Request;
use self::reading::Facts;
use super::sample::{Name, Names, Samples};
use crate::batch::Output;
use crate::collect::Collector;
use crate::error::IngestError;
use crate::event::{Event, EventKind};

/// Shortest time between two readings.
pub const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Time in milliseconds after which a driver is opened anew while a GPU is in trouble: the library
/// does not find a GPU again that was reset or replaced behind its back.
const REOPEN_MS: i64 = 60_000;

/// Time in milliseconds after which the inventory is told again where nothing has changed, so that
/// it says when each GPU was last seen.
const INVENTORY_MS: i64 = 600_000;

/// Settings of the collector.
#[derive(Debug, Clone)]
pub struct NvmlSettings {
    /// Cluster in every row.
    pub cluster: Option<String>,
    /// Name of this node in every row.
    pub node: String,
    /// Time between two readings, at least [`INTERVAL_MIN`].
    pub interval: Duration,
    /// Time after which a GPU that has not answered is told as lost.
    pub answer_within: Duration,
    /// Path of the library; `None` for what the loader finds.
    pub library: Option<PathBuf>,
    /// Folder of the processes.
    pub proc_root: PathBuf,
    /// File of the users' names.
    pub passwd: PathBuf,
}

impl NvmlSettings {
    /// Usual settings for `node`: every 30 s, the node's own driver and processes.
    #[must_use]
    pub fn new(node: impl Into<String>) -> Self {
        Self {
            cluster: None,
            node: node.into(),
            interval: Duration::from_secs(30),
            answer_within: Duration::from_secs(5),
            library: None,
            proc_root: "/proc".into(),
            passwd: "/etc/passwd".into(),
        }
    }
}

/// Reads the GPUs of this node again and again.
#[derive(Debug)]
pub struct NvmlCollector {
    settings: NvmlSettings,
    cluster: Name,
    node: Name,
    /// `None` while it cannot be opened.
    driver: Option<Driver>,
    /// Version of the driver that was last open.
    version: Name,
    opened_ms: Option<i64>,
    /// Whether a GPU was in trouble at the last round.
    troubled: bool,
    round: u64,
    samples: Samples,
    names: Names,
    owners: Owners,
    held: Held,
    /// What the inventory was told of each board: its place, and what stands fast.
    told: BTreeMap<Arc<str>, (u32, Arc<Facts>)>,
    inventory_due: bool,
    inventory_ms: i64,
}

impl NvmlCollector {
    /// Opens the driver.
    ///
    /// # Errors
    /// [`IngestError::Driver`] where its library is missing or does not answer, and
    /// [`IngestError::Setting`] for an interval that is too short.
    pub fn open(settings: NvmlSettings) -> Result<Self, IngestError> {
        if settings.interval < INTERVAL_MIN {
            return Err(IngestError::Setting {
                what: "interval".into(),
                value: format!("{:?}", settings.interval),
                reason: format!("the driver renews its figures no faster than {INTERVAL_MIN:?}"),
            });
        }
        let driver = Driver::open(&settings)?;
        Ok(Self {
            cluster: settings.cluster.as_deref().map(Arc::from),
            node: Some(Arc::from(settings.node.as_str())),
            version: driver.version.clone(),
            driver: Some(driver),
            opened_ms: None,
            troubled: false,
            round: 0,
            samples: Samples::default(),
            names: Names::default(),
            owners: Owners::new(settings.proc_root.clone(), settings.passwd.clone()),
            held: Held::default(),
            told: BTreeMap::new(),
            inventory_due: true,
            inventory_ms: i64::MIN,
            settings,
        })
    }

    /// Opens the driver anew where it is time.
    fn reopen(&mut self, now_ms: i64) -> Result<(), IngestError> {
        let opened_ms = *self.opened_ms.get_or_insert(now_ms);
        let old = !(0..REOPEN_MS).contains(&now_ms.saturating_sub(opened_ms));
        if self.driver.is_some() && !(self.troubled && old) {
            return Ok(());
        }
        let mut before = Vec::new();
        if let Some(driver) = self.driver.take() {
            // One that hangs keeps the session open: another would find what this one does, and
            // hang as well.
            if driver.hangs() {
                self.driver = Some(driver);
                return Ok(());
            }
            before = driver.close();
        }
        self.opened_ms = Some(now_ms);
        let mut driver = Driver::open(&self.settings)?;
        for (place, facts) in driver.places.iter_mut().zip(before) {
            place.facts = facts;
        }
        if self.version != driver.version {
            // What is told of the boards begins anew; their troubles go on until they are read.
            self.samples.troubles = std::mem::take(&mut self.samples).troubles;
            self.told.clear();
            self.version.clone_from(&driver.version);
        }
        self.driver = Some(driver);
        Ok(())
    }

    fn read(&mut self, now_ms: i64, out: &mut dyn Output) -> Result<(), IngestError> {
        let Some(driver) = &mut self.driver else { return Ok(()) };
        self.round += 1;
        let limit = self.settings.answer_within;
        let mut readings = driver.read(Request { round: self.round, now_ms }, limit).into_iter();
        driver.forget_moved();
        let mut next = readings.next();
        let places: Vec<_> =
            driver.places.iter().map(|place| (place.index, place.facts.clone())).collect();
        self.owners.round(now_ms);
        let mut faults: Vec<(u32, Option<Arc<Facts>>, Fault)> = Vec::new();
        for (index, facts) in &places {
            let fault = match next.take_if(|reading| reading.index == *index) {
                Some(reading) => {
                    next = readings.next();
                    self.take(reading, facts.as_deref(), now_ms, out)?
                }
                None => Some(Fault::silent(limit.as_millis())),
            };
            if let Some(fault) = fault {
                self.trouble(*index, facts.as_deref(), &fault, now_ms);
                faults.push((*index, facts.clone(), fault));
            }
        }
        self.troubled = !faults.is_empty();
        let well = places.len() - faults.len();
        match faults.into_iter().next() {
            None => Ok(()),
            Some((index, facts, fault)) => Err(self.unread(index, facts.as_deref(), fault, well)),
        }
    }

    fn unread(&self, index: u32, facts: Option<&Facts>, fault: Fault, well: usize) -> IngestError {
        let node = &self.settings.node;
        let what = match facts {
            Some(facts) => format!("GPU {index} `{}` on node `{node}`", facts.uuid),
            None => format!("GPU {index} on node `{node}`"),
        };
        IngestError::Unread { what, reason: fault.words, well }
    }

    /// Hands over what the round gave.
    fn finish(&mut self, now_ms: i64, out: &mut dyn Output) -> Result<(), IngestError> {
        let since_ms = now_ms.saturating_sub(self.inventory_ms);
        let inventory = self.inventory_due || !(0..INVENTORY_MS).contains(&since_ms);
        self.samples.round(inventory, out)?;
        if inventory {
            (self.inventory_due, self.inventory_ms) = (false, now_ms);
        }
        Ok(())
    }

    /// That the driver as a whole does not answer.
    fn failed(&mut self, now_ms: i64, detail: String) {
        self.samples.troubles.begin(Event {
            event_at_ms: now_ms,
            cluster: self.cluster.clone(),
            node: self.node.clone(),
            gpu: None,
            gpu_uuid: None,
            mig: None,
            kind: EventKind::DriverFailed,
            detail,
        });
    }
}

impl Collector for NvmlCollector {
    fn name(&self) -> String {
        "nvml".into()
    }

    fn interval(&self) -> Duration {
        self.settings.interval
    }

    fn collect(&mut self, now: DateTime<Utc>, out: &mut dyn Output) -> Result<(), IngestError> {
        let now_ms = now.timestamp_millis();
        let read = match self.reopen(now_ms) {
            Ok(()) => self.read(now_ms, out),
            Err(error) => {
                self.failed(now_ms, error.to_string());
                Err(error)
            }
        };
        self.finish(now_ms, out)?;
        read
    }
}

/// Whole milliseconds of a time.
fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
