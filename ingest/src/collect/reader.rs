//! The thread of one source.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Instant;

use chrono::Utc;

use super::pace::{Pace, Stop};
use super::{Collector, Gathered, Health};
use crate::error::IngestError;

/// Reads `collector` at its interval until `stop` is set.
pub(super) fn read(
    mut collector: Box<dyn Collector>,
    send: SyncSender<Gathered>,
    health: &Health,
    stop: &Stop,
) {
    let name = collector.name();
    let mut pace = Pace::new(collector.interval());
    loop {
        let (at, missed) = pace.next();
        health.note(&name, |known| known.missed_total += missed);
        if stop.wait_until(at) {
            return;
        }
        let began = Instant::now();
        let mut gathered = Gathered::default();
        let read = collector.collect(Utc::now(), &mut gathered);
        note(health, &name, &gathered, read, began);
        match send.try_send(gathered) {
            Ok(()) => {}
            // The writer is behind by many rounds: this one is lost, and counted.
            Err(TrySendError::Full(lost)) => {
                health.note_writer(|known| known.rows_dropped_total += lost.row_count());
                health.note(&name, |known| known.missed_total += 1);
            }
            Err(TrySendError::Disconnected(_)) => return,
        }
    }
}

/// Counts a round, and tells when a source begins to fail or is well again.
fn note(
    health: &Health,
    name: &str,
    gathered: &Gathered,
    read: Result<(), IngestError>,
    began: Instant,
) {
    let failure = read.err().map(|error| in_one_line(&error));
    let mut news = None;
    health.note(name, |known| {
        known.rounds_total += 1;
        known.rows_total += gathered.row_count();
        known.nulled_total += gathered.nulled;
        known.rejects_total += gathered.rejects.len() as u64;
        known.last_round_s = began.elapsed().as_secs_f64();
        news = match (&known.last_failure, &failure) {
            (None, Some(failure)) => Some(format!("{name}: {failure}")),
            (Some(before), Some(failure)) if before != failure => {
                Some(format!("{name}: {failure}"))
            }
            (Some(_), None) => Some(format!("{name}: well again")),
            _ => None,
        };
        match &failure {
            Some(_) => known.failures_total += 1,
            None => known.last_success_at = Some(Utc::now()),
        }
        known.last_failure.clone_from(&failure);
    });
    for text in news.iter().chain(gathered.notices.iter().map(|notice| &notice.text)) {
        health.tell(text);
    }
}

/// An error and its causes.
pub(super) fn in_one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
