//! The thread that moves rows into the tables and keeps these in good order.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use super::pace::Stop;
use super::reader::in_one_line;
use super::{CollectSettings, Health};
use crate::compact::{CompactSettings, SweepSettings, compact, sweep};
use crate::error::IngestError;
use crate::retain::retain;
use crate::rollup::{RollupSettings, roll_up};
use crate::store::Store;
use crate::wal::{Wal, flush};

/// Time between two looks at how full the log is.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Threads that read and write files for a move. The store reads its log's files all at once: left to
/// itself each would get a thread, and each thread keeps memory of its own. Some wait for others.
const FILE_THREADS: usize = 8;

/// Moves rows at intervals until `done` is set, and then a last time.
pub(super) fn keep(
    wal: &Mutex<Wal>,
    store: &Store,
    settings: &CollectSettings,
    health: &Health,
    done: &Stop,
) -> Result<(), IngestError> {
    // On a runtime of the calling thread alone the store would begin one of its own at each move.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .max_blocking_threads(FILE_THREADS)
        .build();
    let runtime = runtime.map_err(|source| IngestError::Wal {
        action: "begin to move",
        place: store.url().to_string(),
        source,
    })?;
    let mut flushed = Instant::now();
    let mut compacted = Instant::now();
    let mut failing = false;
    loop {
        let look = LOOK_EVERY.min(settings.flush_every);
        let ended = done.wait_until(Instant::now() + look);
        let (full, gone) = {
            let mut wal = wal.lock().unwrap_or_else(PoisonError::into_inner);
            // What keeps it from being seen is told when rows are appended.
            let _ = wal.look();
            (wal.bytes() >= settings.flush_bytes && !failing, wal.gone())
        };
        health.note_gone(gone);
        if !ended && !full && flushed.elapsed() < settings.flush_every {
            continue;
        }
        let moved = runtime.block_on(flush(wal, store));
        health.note_gone(wal.lock().unwrap_or_else(PoisonError::into_inner).gone());
        flushed = Instant::now();
        note(health, wal, &moved, failing);
        failing = moved.is_err();
        if ended {
            return moved.map(drop);
        }
        if !settings.compact_every.is_zero() && compacted.elapsed() >= settings.compact_every {
            compacted = Instant::now();
            if let Err(error) = runtime.block_on(tidy(store, settings, health, Utc::now())) {
                health.tell(&in_one_line(&error));
            }
        }
    }
}

async fn tidy(
    store: &Store,
    settings: &CollectSettings,
    health: &Health,
    now: DateTime<Utc>,
) -> Result<(), IngestError> {
    let compaction = CompactSettings { thrifty: true, ..CompactSettings::default() };
    let days = compact(store, &compaction, |_| ()).await?;
    health.note_writer(|known| known.days_compacted_total += days.len() as u64);
    // The day that goes on changes with every move.
    let rollup = RollupSettings { before: Some(now.date_naive()), ..Default::default() };
    roll_up(store, &rollup, |_| (), |_| ()).await?;
    if let Some(settings) = &settings.retention {
        for told in retain(store, settings, now).await?.iter().filter(|t| t.days > 0) {
            let (days, table, limit) = (told.days, told.table, told.limit);
            health.tell(&format!("{days} days of {table} from before {limit} were dropped"));
        }
    }
    let sweep_settings = SweepSettings { grace: settings.grace, dry_run: false };
    sweep(store, &sweep_settings, now).await.map(drop)
}

fn note(
    health: &Health,
    wal: &Mutex<Wal>,
    moved: &Result<crate::wal::Flushed, IngestError>,
    failing: bool,
) {
    let bytes = wal.lock().unwrap_or_else(PoisonError::into_inner).bytes();
    match moved {
        Ok(flushed) => {
            health.note_writer(|known| {
                known.flushes_total += u64::from(flushed.summary.is_some());
                known.last_flush_at = Some(Utc::now());
                known.segments_damaged_total += flushed.damaged.len() as u64;
                known.wal_bytes = bytes;
            });
            for number in &flushed.damaged {
                health.tell(&format!(
                    "some rows of segment {number} of the write-ahead log could not be read; it \
                     was set aside"
                ));
            }
            if failing {
                health.tell("rows are moved into the tables again");
            }
        }
        Err(error) => {
            health.note_writer(|known| known.flush_failures_total += 1);
            if !failing {
                health.tell(&format!("{}; rows stay in the log", in_one_line(error)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::{NaiveDate, TimeDelta};

    use super::*;
    use crate::import::tests::{import, readings, store};
    use crate::retain::RetainSettings;
    use crate::schema::Table;

    #[tokio::test]
    async fn a_keeper_rolls_up_days_that_are_over_and_drops_what_is_too_old_if_told_to() {
        // Breaks when a collector rolls up the day that goes on, or drops anything unasked.
        let (_folder, store) = store();
        let seconds: Vec<i64> = (1..432).map(|n| n * 600).collect();
        import(&store, vec![readings("GPU-a", &seconds)]).await;
        let days = async |table| {
            let snapshot = store.snapshot(table).await.unwrap().unwrap();
            snapshot.files.iter().filter_map(|file| file.date).collect::<Vec<_>>()
        };
        let date = |day| NaiveDate::from_ymd_opt(2026, 1, day).unwrap();
        let now = date(3).and_hms_opt(12, 0, 0).unwrap().and_utc();
        let health = Health::new(Box::new(|_| ()));
        let mut settings = CollectSettings::default();
        tidy(&store, &settings, &health, now).await.unwrap();
        assert_eq!(days(Table::Gpu5m).await, [date(1), date(2)]);
        assert_eq!(days(Table::Gpu1h).await, [date(1), date(2)]);
        assert_eq!(days(Table::Samples).await, [date(1), date(2), date(3)]);
        let ages = [(Table::Samples, TimeDelta::days(1))].into();
        settings.retention = Some(RetainSettings { ages, apply: true });
        tidy(&store, &settings, &health, now).await.unwrap();
        assert_eq!(days(Table::Samples).await, [date(2), date(3)]);
        assert_eq!(days(Table::Gpu5m).await, [date(1), date(2)]);
    }
}
