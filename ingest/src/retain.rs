//! Retention: whole UTC days that are older than a table is to be kept are taken out of it.
//!
//! Days go oldest first and none is skipped, so that one date says what is gone: the commit that
//! takes them out marks the table with it ([`Store::dropped`]). Readings go only when `gpu_5m` and
//! `gpu_1h` tell of them as they are now, five minutes only when the hours are there; a day of which
//! that is not so stays, and the days after it wait for it. Files stay for the time of grace, as
//! after a compaction, for those who are reading them.
//!
//! Rows that come later, of a day that was dropped, can be asked until the next retention, which
//! takes them out again and tells how many they were: no rollup is made of them, since it would take
//! the place of one that was made of all.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, SubsecRound, TimeDelta, Utc};
use serde::Serialize;

use crate::error::IngestError;
use crate::rollup;
use crate::schema::Table;
use crate::store::{Committed, Dropped, Effect, FileEntry, Purpose, Rewrite, Store, TableSnapshot};

/// Tables that can lose days, in the order in which they do.
pub const TABLES: [Table; 6] = [
    Table::Samples,
    Table::NodeSamples,
    Table::GpuCounts,
    Table::Events,
    Table::Gpu5m,
    Table::Gpu1h,
];

/// How often days are looked at again when rows came meanwhile.
const TRIES: usize = 8;

/// Settings of a retention.
#[derive(Debug, Clone)]
pub struct RetainSettings {
    /// How long each table is kept; a table that is not named is kept for ever.
    pub ages: BTreeMap<Table, TimeDelta>,
    /// Take days out; without it they are only told.
    pub apply: bool,
}

impl Default for RetainSettings {
    fn default() -> Self {
        let ages = [(Table::Samples, 90), (Table::Gpu5m, 730)];
        let ages = ages.map(|(table, days)| (table, TimeDelta::days(days))).into();
        Self { ages, apply: false }
    }
}

/// What a table loses, or would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Retained {
    /// Table.
    pub table: &'static str,
    /// Days before this one are older than the table is to be kept.
    pub limit: NaiveDate,
    /// First and last of the days that go; `None` where none does.
    pub dropped: Option<(NaiveDate, NaiveDate)>,
    /// How many days go.
    pub days: u64,
    /// Their rows, as far as their files tell.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of the rows that came after their day was dropped; of readings no rollup tells of them.
    pub rows_late: u64,
    /// Days that are older than the limit and stay.
    pub kept: Vec<KeptDays>,
}

/// Days that are older than their table is to be kept and stay all the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptDays {
    /// The first of them.
    pub date: NaiveDate,
    /// How many there are.
    pub days: u64,
    /// Why they stay, and the way out.
    pub reason: String,
}

/// Takes days out of the tables of `store`, or tells which would go. `now` is the instant from which
/// ages are counted.
///
/// # Errors
/// [`IngestError::Store`] or [`IngestError::Damaged`]; tables that were done stay so.
pub async fn retain(
    store: &Store,
    settings: &RetainSettings,
    now: DateTime<Utc>,
) -> Result<Vec<Retained>, IngestError> {
    let mut told = Vec::new();
    for table in TABLES {
        let Some(age) = settings.ages.get(&table) else { continue };
        let Some(limit) = now.checked_sub_signed(*age).map(|limit| limit.date_naive()) else {
            continue;
        };
        told.extend(of_table(store, table, limit, settings.apply, now).await?);
    }
    Ok(told)
}

async fn of_table(
    store: &Store,
    table: Table,
    limit: NaiveDate,
    apply: bool,
    now: DateTime<Utc>,
) -> Result<Option<Retained>, IngestError> {
    let mut tried = None;
    for _ in 0..TRIES {
        let Some(base) = store.snapshot(table).await? else { return Ok(None) };
        let known = store.dropped(&base).await?;
        // The answer to a commit can be lost; the mark says that it landed.
        if let Some((mark, told)) = tried.take()
            && known == Some(mark)
        {
            return Ok(Some(told));
        }
        let (days, kept) = plan(store, &base, limit).await?;
        let gone = |file: &&FileEntry| file.date.is_some_and(|date| days.contains(&date));
        let late = |file: &&FileEntry| known.is_some_and(|known| file.date < Some(known.before));
        let told = Retained {
            table: table.name(),
            limit,
            dropped: days.first().copied().zip(days.last().copied()),
            days: days.len() as u64,
            rows: base.files.iter().filter(gone).filter_map(|file| file.rows).sum(),
            bytes: base.files.iter().filter(gone).map(|file| file.size).sum(),
            rows_late: base.files.iter().filter(gone).filter(late).filter_map(|f| f.rows).sum(),
            kept,
        };
        let Some((_, last)) = told.dropped.filter(|_| apply) else { return Ok(Some(told)) };
        let before = last + TimeDelta::days(1);
        let before = known.map_or(before, |known| known.before.max(before));
        // As the mark has it.
        let at = now.trunc_subsecs(3);
        let purpose = Purpose::Drop { before, at };
        let mut rewrite = Rewrite::new(store, table, Some(&base), Effect::Commit(purpose));
        days.iter().for_each(|day| rewrite.clear(Some(*day)));
        if let Committed::Version(_) = rewrite.commit().await? {
            return Ok(Some(told));
        }
        tried = Some((Dropped { before, at }, told));
    }
    let reason = format!("rows came {TRIES} times meanwhile: try again");
    let kept = vec![KeptDays { date: limit, days: 0, reason }];
    let table = table.name();
    let (days, rows, bytes, rows_late) = (0, 0, 0, 0);
    Ok(Some(Retained { table, limit, dropped: None, days, rows, bytes, rows_late, kept }))
}

/// The days before `limit` that go, and those that stay.
async fn plan(
    store: &Store,
    base: &TableSnapshot,
    limit: NaiveDate,
) -> Result<(BTreeSet<NaiveDate>, Vec<KeptDays>), IngestError> {
    let days: BTreeSet<NaiveDate> =
        base.files.iter().filter_map(|file| file.date).filter(|date| *date < limit).collect();
    let blocked = match base.table {
        Table::Samples => rollup::stale(store, base, limit).await?.into_iter().next(),
        Table::Gpu5m => without_hours(store, &days).await?,
        _ => None,
    };
    // What was dropped once goes again, whatever tells of it.
    let late = store.dropped(base).await?.map_or(NaiveDate::MIN, |dropped| dropped.before);
    let first = blocked.unwrap_or(limit).max(late);
    let (go, wait): (BTreeSet<_>, BTreeSet<_>) = days.into_iter().partition(|day| *day < first);
    let lacking = if base.table == Table::Samples { "gpu_5m and gpu_1h" } else { "gpu_1h" };
    let reason = format!("{lacking} do not tell of {first} as it is now: run `loadline rollup`");
    let kept = wait.first().map(|date| KeptDays { date: *date, days: wait.len() as u64, reason });
    Ok((go, kept.into_iter().collect()))
}

/// The first of `days` of five minutes that has no hours.
async fn without_hours(
    store: &Store,
    days: &BTreeSet<NaiveDate>,
) -> Result<Option<NaiveDate>, IngestError> {
    let Some(hours) = store.snapshot(Table::Gpu1h).await? else { return Ok(days.first().copied()) };
    let dropped = store.dropped(&hours).await?.map(|dropped| dropped.before);
    let there: BTreeSet<NaiveDate> = hours.files.iter().filter_map(|file| file.date).collect();
    let lacks =
        |day: &&NaiveDate| !there.contains(day) && dropped.is_none_or(|before| **day >= before);
    Ok(days.iter().find(lacks).copied())
}
