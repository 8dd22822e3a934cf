//! One day of one table, written again in as few files as an import would; or its small files only.
//!
//! An import that leaves more than [`FILES_MAX`] files of a day folds the smallest into one, in a
//! commit of its own. A file is folded only with smaller ones that have as many rows together, so
//! each row is written again once for each doubling of its file: the work stays small however many
//! imports a day has.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use chrono::NaiveDate;

use super::buffer::Buffer;
use super::days::{Aim, Days, PART_ROWS, parts_of};
use super::findings::Findings;
use super::outcome::Outcome;
use super::series::Series;
use super::silence::Tails;
use crate::error::IngestError;
use crate::schema::Table;
use crate::store::{Committed, Effect, FileEntry, Purpose, Rewrite, Store, TableSnapshot};

/// Files of a day that imports leave, at most, unless they hold more rows than so many files have.
pub const FILES_MAX: usize = 16;

/// How often a compaction is done anew when late rows changed the day meanwhile.
const TRIES: usize = 3;

/// Rows of a part of a day with so many, where memory must be small on a node and parts few on a
/// large fleet: so many `parts`, of as many rows as lie within `part_rows`.
pub(crate) fn rows_within(rows: u64, parts: u64, part_rows: RangeInclusive<usize>) -> usize {
    let even = usize::try_from(rows.div_ceil(parts)).unwrap_or(usize::MAX);
    even.clamp(*part_rows.start(), *part_rows.end())
}

/// Parts in which so many rows of a day are taken, as [`rows_within`].
pub(crate) fn parts_within(rows: u64, parts: u64, part_rows: RangeInclusive<usize>) -> usize {
    let part_rows = rows_within(rows, parts, part_rows);
    parts_of(usize::try_from(rows).unwrap_or(usize::MAX), part_rows)
}

/// A day to be compacted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compaction<'a> {
    pub(crate) store: &'a Store,
    pub(crate) table: Table,
    pub(crate) date: NaiveDate,
    /// Rows that are merged at once, about.
    pub(crate) part_rows: usize,
}

impl Compaction<'_> {
    /// Compacts the day. The table afterwards; `None` where late rows changed the day each time
    /// while it was being compacted.
    pub(crate) async fn run(self) -> Result<Option<TableSnapshot>, IngestError> {
        self.rewrite(|_| None).await
    }

    /// Folds the day's small files, if it has more than [`FILES_MAX`]. The table afterwards; `None`
    /// where there was nothing to fold, or late rows came first each time.
    pub(crate) async fn fold(self) -> Result<Option<TableSnapshot>, IngestError> {
        self.rewrite(|files| Some(small(files))).await
    }

    /// Writes those files of the day again that `chosen` picks, or all; none where it picks none.
    async fn rewrite(
        self,
        chosen: impl Fn(&[&FileEntry]) -> Option<HashSet<String>>,
    ) -> Result<Option<TableSnapshot>, IngestError> {
        let Self { store, table, date, part_rows } = self;
        for _ in 0..TRIES {
            let Some(mut base) = store.snapshot(table).await? else { return Ok(None) };
            let of_day = base.files.iter().filter(|file| file.date == Some(date));
            if let Some(chosen) = chosen(&of_day.collect::<Vec<_>>()) {
                if chosen.is_empty() {
                    return Ok(None);
                }
                base.keep_files(&chosen);
            }
            let mut rewrite =
                Rewrite::new(store, table, Some(&base), Effect::Commit(Purpose::Compaction));
            if part_rows < PART_ROWS {
                rewrite = rewrite.one_by_one();
            }
            let mut series = Series::new(table)?;
            let buffer = &Buffer::new(table);
            let aim = Aim::Compaction;
            let findings = &Findings::default();
            let days = Days { store, table, base: Some(&base), buffer, aim, part_rows, findings };
            let none = (&Tails::new(), &Tails::new());
            let mut outcome = Outcome::default();
            let done = days.day(date, none, &mut series, &mut rewrite, &mut outcome).await;
            if let Err(error) = done {
                rewrite.abandon().await;
                return Err(error);
            }
            if let Committed::Version(_) = rewrite.commit().await? {
                return store.snapshot(table).await;
            }
        }
        Ok(None)
    }
}

/// Paths of the small files of a day that are to be one.
fn small(files: &[&FileEntry]) -> HashSet<String> {
    let mut files: Vec<(u64, &str)> =
        files.iter().map(|file| (file.rows.unwrap_or(u64::MAX), file.path.as_str())).collect();
    files.sort_unstable();
    let rows: Vec<u64> = files.iter().map(|(rows, _)| *rows).collect();
    let folded = files.into_iter().take(folded(&rows));
    folded.map(|(_, path)| path.to_owned()).collect()
}

/// How many of a day's files, with so many rows each in ascending order, are to be one: enough that
/// no more than [`FILES_MAX`] are left, and those that are no larger than all before them.
fn folded(rows: &[u64]) -> usize {
    let Some(least) = (rows.len() + 1).checked_sub(FILES_MAX).filter(|least| *least > 1) else {
        return 0;
    };
    let mut sum = 0_u64;
    let mut files = 0;
    for rows in rows {
        let all = sum.saturating_add(*rows);
        if all > PART_ROWS as u64 || files >= least && *rows > sum {
            break;
        }
        (sum, files) = (all, files + 1);
    }
    if files > 1 { files } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_are_folded_and_large_ones_left() {
        // Breaks when every import of a large day writes the day again, or files pile up.
        assert_eq!(folded(&[1; 16]), 0);
        assert_eq!(folded(&[1; 17]), 17);
        let with = |small: usize, large: &[u64]| [&vec![1; small][..], large].concat();
        assert_eq!(folded(&with(16, &[17])), 16);
        assert_eq!(folded(&with(16, &[16])), 17);
        // Each more than all before it: the fewest that leave 16.
        let doubling: Vec<u64> = (0..17).map(|n| 1 << n).collect();
        assert_eq!(folded(&doubling), 2);
        // No file grows past what is taken at once.
        let part = PART_ROWS as u64;
        assert_eq!(folded(&with(0, &[part; 20])), 0);
        assert_eq!(folded(&with(0, &[part / 4; 20])), 4);
    }

    #[test]
    fn a_row_is_written_again_a_few_times_however_many_imports_there_are() {
        // Breaks when the cost of an import grows with those before it: 2000 imports of a row each
        // write fewer than 2000 x log2(2000) = 22 000 rows again.
        let mut files: Vec<u64> = Vec::new();
        let mut written = 0;
        for _ in 0..2_000 {
            files.insert(0, 1);
            files.sort_unstable();
            let small: u64 = files.drain(..folded(&files)).sum();
            written += small;
            files.extend((small > 0).then_some(small));
            files.sort_unstable();
            assert!(files.len() <= FILES_MAX);
        }
        assert_eq!(files.iter().sum::<u64>(), 2_000);
        assert!(written < 22_000, "{written}");
    }
}
