//! Many small files of a day become few, sorted as a reader wants them.
//!
//! Collectors add a file every few minutes. A day of many is read whole, sorted by series and
//! instant, and written again; no value changes. One commit a day of readings, so that what was
//! done stays done. Appends go on meanwhile: a compaction does not wait for them nor they for it.
//! Files that a compaction replaced stay for readers who opened an older version, until [`sweep()`]
//! deletes them.

mod sweep;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use serde::Serialize;

use crate::error::IngestError;
use crate::import::{Compaction, PART_ROWS, parts_within, rows_within};
use crate::schema::Table;
use crate::store::{FileEntry, Store, TableSnapshot};
pub use sweep::{SweepSettings, Swept, sweep};

/// Settings of a compaction.
#[derive(Debug, Clone)]
pub struct CompactSettings {
    /// Files of the latest day before it is compacted; earlier days are whenever they can be fewer.
    pub files_max: usize,
    /// Tell what would be done and write nothing.
    pub dry_run: bool,
    /// Take little memory: a day of a node becomes a file for each GPU, about.
    pub thrifty: bool,
}

impl Default for CompactSettings {
    fn default() -> Self {
        Self { files_max: 16, dry_run: false, thrifty: false }
    }
}

/// Parts of a day before they grow, where memory is to be small.
const PARTS: u64 = 32;

/// Rows of such a part. A series is never cut, so that fewer only keep two from the same part.
const THRIFTY_ROWS: RangeInclusive<usize> = 1 << 15..=PART_ROWS;

impl CompactSettings {
    fn part_rows(&self, rows: u64) -> usize {
        if self.thrifty { rows_within(rows, PARTS, THRIFTY_ROWS) } else { PART_ROWS }
    }

    /// Files that a day with so many rows has afterwards, at most.
    fn parts(&self, rows: u64) -> usize {
        let part_rows = self.part_rows(rows);
        parts_within(rows, 1, part_rows..=part_rows)
    }
}

/// One day of one table, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompactedDay {
    /// Table.
    pub table: &'static str,
    /// UTC day.
    pub date: NaiveDate,
    /// Files before.
    pub files_before: usize,
    /// Files after; of a dry run, at most.
    pub files_after: usize,
    /// Bytes before.
    pub bytes_before: u64,
    /// Bytes after; `None` of a dry run.
    pub bytes_after: Option<u64>,
}

/// Compacts what can be fewer files. `progress` hears of every day that is done.
///
/// # Errors
/// [`IngestError::Store`]; the days that were done stay so.
pub async fn compact(
    store: &Store,
    settings: &CompactSettings,
    mut progress: impl FnMut(&CompactedDay),
) -> Result<Vec<CompactedDay>, IngestError> {
    let mut done = Vec::new();
    let by_day = |table: &Table| table.partitioned_by().is_some() && !table.derived();
    for table in Table::ALL.into_iter().filter(by_day) {
        let Some(snapshot) = store.snapshot(table).await? else { continue };
        for (date, files) in scattered(&snapshot, settings) {
            let mut told = CompactedDay {
                table: table.name(),
                date,
                files_before: files.0,
                files_after: files.1,
                bytes_before: bytes(&snapshot, date),
                bytes_after: None,
            };
            if !settings.dry_run {
                let part_rows = settings.part_rows(rows(&snapshot, date));
                let day = Compaction { store, table, date, part_rows };
                let Some(after) = day.run().await? else { continue };
                let of_day = after.files.iter().filter(|file| file.date == Some(date));
                told.files_after = of_day.count();
                told.bytes_after = Some(bytes(&after, date));
            }
            progress(&told);
            done.push(told);
        }
    }
    Ok(done)
}

/// Days that can be fewer files, with how many they are and how many they would be at most.
fn scattered(
    snapshot: &TableSnapshot,
    settings: &CompactSettings,
) -> Vec<(NaiveDate, (usize, usize))> {
    let mut days: BTreeMap<NaiveDate, Vec<&FileEntry>> = BTreeMap::new();
    for file in &snapshot.files {
        if let Some(date) = file.date {
            days.entry(date).or_default().push(file);
        }
    }
    let latest = days.keys().next_back().copied();
    let counted = days.into_iter().map(|(date, files)| {
        let rows: u64 = files.iter().filter_map(|file| file.rows).sum();
        (date, (files.len(), settings.parts(rows)))
    });
    counted
        .filter(|(date, (files, parts))| {
            let few = if Some(*date) == latest { settings.files_max } else { *parts };
            *files > few.max(*parts)
        })
        .collect()
}

fn rows(snapshot: &TableSnapshot, date: NaiveDate) -> u64 {
    let of_day = snapshot.files.iter().filter(|file| file.date == Some(date));
    of_day.filter_map(|file| file.rows).sum()
}

fn bytes(snapshot: &TableSnapshot, date: NaiveDate) -> u64 {
    snapshot.files.iter().filter(|file| file.date == Some(date)).map(|file| file.size).sum()
}
