//! One day of one table, written again in as few files as an import would.

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
use crate::store::{Committed, Effect, Purpose, Rewrite, Store, TableSnapshot};

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
        let Self { store, table, date, part_rows } = self;
        for _ in 0..TRIES {
            let Some(base) = store.snapshot(table).await? else { return Ok(None) };
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
