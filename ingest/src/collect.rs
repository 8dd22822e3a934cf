//! Collecting: sources are read again and again, their rows kept in the write-ahead log, and moved
//! into the tables at intervals.
//!
//! Each source has a thread of its own, so that one that hangs stops no other. One thread writes:
//! what has come is appended together, with one `fsync`. Another moves rows into the tables and
//! keeps these in good order. What cannot be written waits in memory, up to a limit; past it the
//! oldest is dropped, counted and told.

mod gathered;
mod health;
mod inbox;
mod keeper;
mod pace;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::batch::Output;
use crate::error::IngestError;
use crate::retain::RetainSettings;
use crate::ship::Shipper;
use crate::store::Store;
use crate::wal::Wal;
pub use gathered::Gathered;
pub use health::{CollectorHealth, Health, ShipHealth, WriterHealth};
use inbox::Work;
pub use inbox::{Inbox, NotKept, Sender, inbox};
pub use pace::Stop;
pub(crate) use reader::in_one_line;

/// Something that is read again and again.
pub trait Collector: Send {
    /// Name in messages and in the health page: `nvml`, `dcgm gpu-017:9400`.
    fn name(&self) -> String;

    /// Time between two readings.
    fn interval(&self) -> Duration;

    /// Reads once. What was read before an error is kept.
    ///
    /// # Errors
    /// Why the source, or a part of it, could not be read; it is asked again at the next interval.
    fn collect(&mut self, now: DateTime<Utc>, out: &mut dyn Output) -> Result<(), IngestError>;
}

/// Settings of collecting.
#[derive(Debug, Clone)]
pub struct CollectSettings {
    /// Time between two moves of rows into the tables.
    pub flush_every: Duration,
    /// Bytes in the log at which rows are moved before that time.
    pub flush_bytes: u64,
    /// Time between two appends to the log: what comes within it is appended together.
    pub append_every: Duration,
    /// Bytes of rows that wait in memory while the log cannot be written.
    pub waiting_bytes_max: usize,
    /// Time between two compactions; none where it is zero.
    pub compact_every: Duration,
    /// How long replaced files stay for those who read them.
    pub grace: TimeDelta,
    /// Which days are taken out for their age; none without it.
    pub retention: Option<RetainSettings>,
}

impl Default for CollectSettings {
    fn default() -> Self {
        Self {
            flush_every: Duration::from_secs(300),
            flush_bytes: 64 << 20,
            append_every: Duration::from_secs(1),
            waiting_bytes_max: 32 << 20,
            compact_every: Duration::from_secs(3_600),
            grace: TimeDelta::days(1),
            retention: None,
        }
    }
}

/// Collects until `stop` is set; then what has come is written and moved.
///
/// # Errors
/// [`IngestError::Wal`] or [`IngestError::Store`] when the last rows could not be written or moved.
/// They are in the log or were counted as dropped; failures on the way are told to `health` and
/// tried again.
pub fn run(
    collectors: Vec<Box<dyn Collector>>,
    wal: Wal,
    store: &Store,
    settings: &CollectSettings,
    health: &Arc<Health>,
    stop: &Stop,
) -> Result<(), IngestError> {
    run_with(collectors, inbox().1, wal, store, settings, health, stop)
}

/// As [`run`], and keeps what is handed in by the [`Sender`] of `inbox` until `stop` is set.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    collectors: Vec<Box<dyn Collector>>,
    inbox: Inbox,
    mut wal: Wal,
    store: &Store,
    settings: &CollectSettings,
    health: &Arc<Health>,
    stop: &Stop,
) -> Result<(), IngestError> {
    // A table may have seen later segments than a copy of the log that was put back.
    wal.renew();
    let keep = |wal: &Mutex<Wal>, done: &Stop| keeper::keep(wal, store, settings, health, done);
    run_moving(collectors, inbox, wal, settings, health, stop, keep)
}

/// As [`run_with`], and the log is a spool: its rows are sent to a server instead of being moved
/// into tables here. What was not sent when `stop` is set is sent by the next run.
///
/// # Errors
/// [`IngestError::Wal`] when the last rows could not be written; they were counted as dropped.
pub fn run_shipping(
    collectors: Vec<Box<dyn Collector>>,
    inbox: Inbox,
    mut wal: Wal,
    shipper: Shipper,
    settings: &CollectSettings,
    health: &Arc<Health>,
    stop: &Stop,
) -> Result<(), IngestError> {
    // What is written from now on has not been sent by anybody, whatever copy of the spool this is.
    wal.renew();
    let ship = |wal: &Mutex<Wal>, done: &Stop| shipper.ship(wal, health, done);
    run_moving(collectors, inbox, wal, settings, health, stop, ship)
}

/// Collects, and has rows of the log moved on by `move_rows` until what it is handed is set.
fn run_moving(
    collectors: Vec<Box<dyn Collector>>,
    inbox: Inbox,
    wal: Wal,
    settings: &CollectSettings,
    health: &Arc<Health>,
    stop: &Stop,
    move_rows: impl FnOnce(&Mutex<Wal>, &Stop) -> Result<(), IngestError> + Send,
) -> Result<(), IngestError> {
    let wal = Arc::new(Mutex::new(wal));
    let Inbox { send, receive } = inbox;
    thread::scope(|scope| {
        let readers: Vec<_> = collectors
            .into_iter()
            .map(|collector| {
                let send = send.clone();
                scope.spawn(|| reader::read(collector, send, health, stop))
            })
            .collect();
        scope.spawn(move || {
            stop.wait();
            let ended: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
            // The writer is there until it has taken this.
            let _ = send.send(Work::End);
            if let Some(panic) = ended.into_iter().find_map(Result::err) {
                std::panic::resume_unwind(panic);
            }
        });
        let writer_done = Stop::default();
        let keeper = {
            let (wal, done) = (Arc::clone(&wal), writer_done.clone());
            scope.spawn(move || move_rows(&wal, &done))
        };
        let written = writer::write(&receive, &wal, settings, health);
        // Who still waits for an answer hears that there will be none.
        drop(receive);
        writer_done.set();
        let kept = keeper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written.and(kept)
    })
}
