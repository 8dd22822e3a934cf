//! The thread that appends to the log.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::reader::in_one_line;
use super::{CollectSettings, Gathered, Health};
use crate::error::IngestError;
use crate::wal::Wal;

/// Rows that wait for the log.
#[derive(Debug, Default)]
struct Waiting {
    rounds: VecDeque<Gathered>,
    bytes: usize,
}

impl Waiting {
    fn push(&mut self, gathered: Gathered) {
        if !gathered.rows.is_empty() {
            self.bytes += gathered.bytes();
            self.rounds.push_back(gathered);
        }
    }

    /// Drops the oldest rounds until the rest has room. Rows that were dropped.
    fn fit(&mut self, bytes_max: usize) -> u64 {
        let mut dropped = 0;
        while self.bytes > bytes_max
            && let Some(oldest) = self.rounds.pop_front()
        {
            self.bytes -= oldest.bytes();
            dropped += oldest.row_count();
        }
        dropped
    }

    fn rows(&self) -> u64 {
        self.rounds.iter().map(Gathered::row_count).sum()
    }
}

/// Appends what comes, until all sources have ended.
pub(super) fn write(
    receive: &Receiver<Gathered>,
    wal: &Mutex<Wal>,
    settings: &CollectSettings,
    health: &Health,
) -> Result<(), IngestError> {
    let mut waiting = Waiting::default();
    let mut failing = false;
    loop {
        let until = Instant::now() + settings.append_every;
        let ended = gather(receive, &mut waiting, until);
        let appended = append(&mut waiting, wal, health);
        if let Err(error) = &appended {
            health.note_writer(|known| known.append_failures_total += 1);
            if !failing {
                health.tell(&format!("{}; rows wait in memory", in_one_line(error)));
            }
            let dropped = waiting.fit(settings.waiting_bytes_max);
            if dropped > 0 {
                health.note_writer(|known| known.rows_dropped_total += dropped);
                health.tell(&format!("{dropped} rows were dropped: memory for them is full"));
            }
        } else if failing {
            health.tell("the write-ahead log takes rows again");
        }
        failing = appended.is_err();
        let rows = waiting.rows();
        health.note_writer(|known| known.rows_waiting = rows);
        if ended {
            if appended.is_err() {
                health.note_writer(|known| known.rows_dropped_total += rows);
            }
            return appended;
        }
    }
}

/// Takes what comes until `until`. Whether all sources have ended.
fn gather(receive: &Receiver<Gathered>, waiting: &mut Waiting, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match receive.recv_timeout(left) {
            Ok(gathered) => waiting.push(gathered),
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => return true,
        }
    }
}

fn append(waiting: &mut Waiting, wal: &Mutex<Wal>, health: &Health) -> Result<(), IngestError> {
    if waiting.rounds.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> =
        waiting.rounds.iter().flat_map(|gathered| gathered.rows.iter().cloned()).collect();
    let mut wal = wal.lock().unwrap_or_else(PoisonError::into_inner);
    wal.append(&rows)?;
    let (appended, bytes) = (waiting.rows(), wal.bytes());
    drop(wal);
    *waiting = Waiting::default();
    health.note_writer(|known| {
        known.rows_appended_total += appended;
        known.wal_bytes = bytes;
    });
    Ok(())
}
