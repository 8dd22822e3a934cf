//! Sending rows on: what a node collects goes to a `loadline serve` elsewhere, by Arrow Flight.
//!
//! # What holds
//! - Rows are in the write-ahead log of the node first: it is the spool. A segment is deleted when
//!   the server has said that all of its rows are in its own log, on its disk.
//! - The rows of a table arrive in the order in which they were read. A call that was not answered
//!   is sent again; the server knows how far it has each table of each log ([`crate::wal::Origin`]),
//!   so that each row is kept once.
//! - A log is one history. Each start of a collector begins a new one, so that a spool that was put
//!   back to an older copy, or copied to another machine, is never taken for what was sent before.
//!   Where a machine is put back or copied while it runs, the server answers that it had rows which
//!   were never sent: they are sent again under a new name, and an event tells so.
//! - The spool has a limit. When the server is away for longer, the oldest segment goes: the newest
//!   readings tell of what is now. What is lost is counted beside the segments, told, and an event
//!   in the store once the server is there.
//!
//! # Form
//! One call of `DoPut` for rows of one table with the same columns. Its descriptor is the path of
//! the table's name and the log's; each batch carries in `app_metadata` the [`Position`] at which
//! it ends. The answer carries that of the last one. A path of the table alone makes rows of which
//! nothing is remembered, from any client.

mod call;
mod client;
mod pace;
mod settings;
mod spool;
mod state;
#[cfg(test)]
mod tests;
mod token;
mod wire;
mod words;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::Utc;

use crate::collect::{Health, Stop, in_one_line};
use crate::error::IngestError;
use crate::event::{EventKind, batch};
use crate::schema::Table;
use crate::wal::{Position, Wal};
use client::Client;
use pace::Backoff;
pub use settings::ShipSettings;
use spool::Spool;
pub use token::token;
pub use wire::{CALL_BYTES_MAX, MESSAGE_BYTES_MAX, Put, PutError, descriptor, receive};

/// Header of an answer that tells how many rows of the call the server had before.
pub const KNOWN: &str = "loadline-rows-known";

/// Time between two looks at whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Time for a last word to the server when collecting has ended.
const LAST_WITHIN: Duration = Duration::from_secs(10);

/// Sends the rows of a log to a server.
#[derive(Debug)]
pub struct Shipper {
    client: Client,
    spool: Spool,
    every: Duration,
    backoff: Backoff,
    /// How far the server has each table.
    reached: BTreeMap<Table, Position>,
    /// How far rows were sent of which the server has not answered that it has them. It may.
    unanswered: BTreeMap<Table, Position>,
    /// The log as this process began it: nobody else has its name.
    own: String,
}

impl Shipper {
    /// A shipper of what `node` of `cluster` collects.
    ///
    /// # Errors
    /// [`IngestError::Setting`] for an address that is none, or a file that cannot be used.
    pub fn new(
        settings: &ShipSettings,
        node: &str,
        cluster: Option<&str>,
    ) -> Result<Self, IngestError> {
        settings.check()?;
        Ok(Self {
            client: Client::new(settings)?,
            spool: Spool::new(settings.to.clone(), node, cluster),
            every: settings.every(),
            backoff: Backoff::new(settings.every(), node),
            reached: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            own: String::new(),
        })
    }

    /// Sends until `done` is set, and then what is left, as far as that takes not too long.
    pub(crate) fn ship(
        mut self,
        wal: &Mutex<Wal>,
        health: &Health,
        done: &Stop,
    ) -> Result<(), IngestError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| IngestError::Ship {
            to: self.client.to().to_owned(),
            reason: error.to_string(),
        })?;
        health.note_ship(|_| ());
        self.own = locked(wal).application();
        self.spool.begin(&locked(wal), health);
        runtime.block_on(async {
            while !done.is_set() {
                // A server that does not answer holds up no end: what was under way is sent again.
                let rest = tokio::select! {
                    rest = self.turn(wal, health, done) => rest,
                    () = ended(done) => Duration::ZERO,
                };
                let next = Instant::now() + rest;
                while !done.is_set() && Instant::now() < next {
                    self.spool.fit(&mut locked(wal), &self.reached, health);
                    let left = next.saturating_duration_since(Instant::now());
                    tokio::time::sleep(left.min(LOOK_EVERY)).await;
                }
            }
            let never = Stop::default();
            // What is not sent in time stays in the spool.
            let _ = tokio::time::timeout(LAST_WITHIN, self.turn(wal, health, &never)).await;
        });
        let bytes = locked(wal).bytes();
        health.note_ship(|known| known.spool_bytes = bytes);
        Ok(())
    }

    /// Sends all that waits, unless it fails or `done` is set. Time until the next turn.
    async fn turn(&mut self, wal: &Mutex<Wal>, health: &Health, done: &Stop) -> Duration {
        loop {
            self.spool.fit(&mut locked(wal), &self.reached, health);
            let sent = match self.tell_lost(wal, health).await {
                Ok(()) => self.segment(wal, health).await,
                Err(error) => Err(error),
            };
            let bytes = locked(wal).bytes();
            health.note_ship(|known| known.spool_bytes = bytes);
            match sent {
                Ok(true) if !done.is_set() => {}
                Ok(_) => return self.every,
                Err(error) => {
                    self.failed(&error, health);
                    return self.backoff.next();
                }
            }
        }
    }

    /// Tells the server of rows that were lost. That is in no segment, and is not lost with one.
    async fn tell_lost(&mut self, wal: &Mutex<Wal>, health: &Health) -> Result<(), IngestError> {
        let Some(event) = self.spool.next_word(&locked(wal))? else { return Ok(()) };
        self.client.put(call::alone(Table::Events, event)?, "").await?;
        self.spool.has_told(&locked(wal));
        self.backoff.reset();
        self.well(1, health);
        Ok(())
    }

    /// Sends the oldest segment, and deletes it. Whether there was one.
    async fn segment(&mut self, wal: &Mutex<Wal>, health: &Health) -> Result<bool, IngestError> {
        let (segment, log) = {
            let mut wal = locked(wal);
            // Segments stay as large as they grow while older ones wait.
            if wal.waiting().next().is_none() {
                wal.close();
            }
            let Some(place) = wal.waiting().next() else { return Ok(false) };
            let segment = wal.read(place)?;
            health.note_gone(wal.gone());
            let log = self.spool.state.name_of(&wal.log_of(&segment));
            (segment, log)
        };
        let (parts, mut damaged) = call::parts(&segment);
        damaged |= !segment.damaged_at.is_empty();
        for call in call::calls(&parts, &self.reached, &log)? {
            let before = self.unanswered.insert(call.table, call.until);
            let known = self.client.put(call.messages, &call.until.to_string()).await?;
            self.unanswered.remove(&call.table);
            // What an earlier run sent, or what was not answered, the server may well have. Other
            // rows of a log that is this run's own it can only have from somebody else.
            if known > 0 && before.is_none() && log == self.own {
                self.rename(wal, &log, health)?;
                return Ok(true);
            }
            self.reached.insert(call.table, call.until);
            self.backoff.reset();
            self.well(call.rows, health);
        }
        let aside = if damaged { vec![segment.number] } else { Vec::new() };
        if damaged {
            health.note_ship(|known| known.segments_damaged_total += 1);
            health.tell(&format!(
                "some rows of segment {} of the spool could not be read; it was set aside",
                segment.number
            ));
        }
        locked(wal).forget(segment.number, &aside)?;
        Ok(true)
    }

    /// Goes on under another name, because somebody else sends other rows under `log`.
    fn rename(&mut self, wal: &Mutex<Wal>, log: &str, health: &Health) -> Result<(), IngestError> {
        let mut wal = locked(wal);
        wal.renew();
        self.own = wal.application();
        self.spool.state.renamed.insert(log.to_owned(), self.own.clone());
        self.spool.keep(&wal);
        let detail = "another collector, or this machine before it was put back to an older copy, \
                      has sent other rows under the name of this spool: those here are sent again \
                      under a new one";
        health.tell(detail);
        let now = Utc::now().timestamp_millis();
        let event = self.spool.event(EventKind::SpoolCopied, now, detail.to_owned());
        wal.append(&[(Table::Events, batch(&[event])?)])
    }

    fn well(&mut self, rows: u64, health: &Health) {
        let mut again = false;
        health.note_ship(|known| {
            known.rows_shipped_total += rows;
            known.last_success_at = Some(Utc::now());
            again = known.last_failure.take().is_some();
        });
        if again {
            health.tell(&format!("{} takes rows again", self.client.to()));
            self.spool.told(health);
        }
    }

    fn failed(&mut self, error: &IngestError, health: &Health) {
        let failure = in_one_line(error);
        let mut news = false;
        health.note_ship(|known| {
            known.failures_total += 1;
            news = known.last_failure.as_ref() != Some(&failure);
            known.last_failure = Some(failure.clone());
        });
        if news {
            health.tell(&format!("{failure}; rows wait in the spool"));
        }
    }
}

async fn ended(done: &Stop) {
    while !done.is_set() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn locked(wal: &Mutex<Wal>) -> MutexGuard<'_, Wal> {
    wal.lock().unwrap_or_else(PoisonError::into_inner)
}
