//! The thread that appends to the log.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::inbox::{Answer, Work};
use super::reader::in_one_line;
use super::{CollectSettings, Gathered, Health};
use crate::error::IngestError;
use crate::source::text::counted;
use crate::wal::Wal;

/// How long rows whose sender waits are held, to be appended together with others.
const ASKED_EVERY: Duration = Duration::from_millis(10);

/// Rows that wait for the log.
#[derive(Debug, Default)]
struct Waiting {
    rounds: VecDeque<Gathered>,
    /// Rows whose senders wait for the answer.
    asked: Vec<(Gathered, SyncSender<Answer>)>,
    bytes: usize,
}

impl Waiting {
    fn push(&mut self, gathered: Gathered) {
        if !gathered.rows.is_empty() {
            self.bytes += gathered.bytes();
            self.rounds.push_back(gathered);
        }
    }

    /// Tells those who wait; `known` is how many rows of each batch had come before, in the order
    /// of [`Waiting::all`]. A sender that has gone hears nothing.
    fn answer(&mut self, kept: Result<&[u64], &IngestError>, batches_of_rounds: usize) {
        let mut known = kept.map(|known| known.get(batches_of_rounds..).unwrap_or_default());
        for (gathered, sender) in self.asked.drain(..) {
            let answer: Answer = match &mut known {
                Ok(left) => {
                    let (own, rest) = left.split_at(gathered.rows.len().min(left.len()));
                    *left = rest;
                    Ok(own.iter().sum())
                }
                Err(error) => Err(in_one_line(*error)),
            };
            let _ = sender.try_send(answer);
        }
    }

    fn all(&self) -> impl Iterator<Item = &Gathered> {
        self.rounds.iter().chain(self.asked.iter().map(|(gathered, _)| gathered))
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

/// Appends what comes, until the end is told.
pub(super) fn write(
    receive: &Receiver<Work>,
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
                let rows = counted(dropped, "row");
                health.tell(&format!("{rows} dropped: memory for rows that wait is full"));
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

/// Takes what comes until `until`, or a moment after rows whose sender waits. Whether the end was
/// told.
fn gather(receive: &Receiver<Work>, waiting: &mut Waiting, mut until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match receive.recv_timeout(left) {
            Ok(Work::Round(gathered)) => waiting.push(gathered),
            Ok(Work::Asked(gathered, answer)) => {
                until = until.min(Instant::now() + ASKED_EVERY);
                waiting.asked.push((gathered, answer));
            }
            Ok(Work::End) => {
                while let Ok(Work::Asked(gathered, answer)) = receive.try_recv() {
                    waiting.asked.push((gathered, answer));
                }
                return true;
            }
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => return true,
        }
    }
}

/// Appends all that waits, and answers those who wait for that. Rows that were not kept stay with
/// those who sent them, and come again.
fn append(waiting: &mut Waiting, wal: &Mutex<Wal>, health: &Health) -> Result<(), IngestError> {
    let pieces: Vec<_> = waiting.all().flat_map(Gathered::pieces).collect();
    if pieces.is_empty() {
        return Ok(());
    }
    let mut wal = wal.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = wal.append_pieces(&pieces);
    let (bytes, gone) = (wal.bytes(), wal.gone());
    drop(wal);
    health.note_gone(gone);
    let of_rounds = waiting.rounds.iter().map(|round| round.rows.len()).sum();
    let rows: u64 = waiting.all().map(Gathered::row_count).sum();
    waiting.answer(kept.as_deref(), of_rounds);
    let repeated: u64 = kept?.iter().sum();
    (waiting.rounds, waiting.bytes) = (VecDeque::new(), 0);
    health.note_writer(|known| {
        known.rows_appended_total += rows - repeated;
        known.rows_repeated_total += repeated;
        known.wal_bytes = bytes;
    });
    Ok(())
}
