//! The thread of one source.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Instant;

use chrono::Utc;

use super::inbox::Work;
use super::pace::{Pace, Stop};
use super::{Collector, Gathered, Health};

/// Reads `collector` at its interval until `stop` is set.
pub(super) fn read(
    mut collector: Box<dyn Collector>,
    send: SyncSender<Work>,
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
        let failure = read.err().map(|error| in_one_line(&error));
        health.round(&name, &gathered, failure, began.elapsed());
        let rows = gathered.row_count();
        match send.try_send(Work::Round(gathered)) {
            Ok(()) => {}
            // The writer is behind by many rounds: this one is lost, and counted.
            Err(TrySendError::Full(_)) => {
                health.note_writer(|known| known.rows_dropped_total += rows);
                health.note(&name, |known| known.missed_total += 1);
            }
            Err(TrySendError::Disconnected(_)) => return,
        }
    }
}

/// An error and its causes.
pub(crate) fn in_one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
