//! One day of one table, written again in as few files as an import would.

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

/// Files that a day with so many rows has after an import or compaction, at most.
pub(crate) fn parts(rows: u64) -> usize {
    parts_by(rows, PART_ROWS)
}

/// Parts of about `part_rows` in which so many rows of a day are taken.
pub(crate) fn parts_by(rows: u64, part_rows: usize) -> usize {
    parts_of(usize::try_from(rows).unwrap_or(usize::MAX), part_rows)
}

/// A day to be compacted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compaction<'a> {
    pub(crate) store: &'a Store,
    pub(crate) table: Table,
    pub(crate) date: NaiveDate,
}

impl Compaction<'_> {
    /// Compacts the day. The table afterwards; `None` where late rows changed the day each time
    /// while it was being compacted.
    pub(crate) async fn run(self) -> Result<Option<TableSnapshot>, IngestError> {
        let Self { store, table, date } = self;
        for _ in 0..TRIES {
            let Some(base) = store.snapshot(table).await? else { return Ok(None) };
            let mut rewrite =
                Rewrite::new(store, table, Some(&base), Effect::Commit(Purpose::Compaction));
            let mut series = Series::new(table)?;
            let buffer = &Buffer::new(table);
            let (aim, part_rows) = (Aim::Compaction, PART_ROWS);
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
