//! Rollups: what the readings of each GPU told in five minutes and in an hour, kept as the tables
//! `gpu_5m` and `gpu_1h` (`schema/rollup.rs` says what their columns mean).
//!
//! A day is made from files of `samples`, and the names of its own files tell a fingerprint of them
//! (`sources.rs`): a day whose readings have changed since is *stale*. [`roll_up`] makes stale days
//! anew, each in one commit of a table, so that a reader sees the old rows or the new ones. Files
//! that were replaced stay for the time of grace. A day whose readings were dropped (`retain.rs`), or
//! of which none is left, stays as it is.
//!
//! # Why here and not in SQL
//! A collector rolls up within its memory: keys and instants of a day, then one measure at a time.
//! Readings are folded by series and instant, so that the same readings give the same bits.

mod cut;
mod day;
#[cfg(test)]
mod faults;
mod fold;
mod round;
mod sources;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use serde::Serialize;

use crate::error::IngestError;
use crate::schema::Table;
use crate::store::{Committed, Content, Effect, Purpose, Rewrite, Store, TableSnapshot, made_from};
use sources::Sources;

/// The tables that are made, shorter bins first.
pub const TABLES: [Table; 2] = [Table::Gpu5m, Table::Gpu1h];

/// Days that are committed together: each is there whole or not at all, and a long history does not
/// take a commit a day.
const DAYS_AT_ONCE: usize = 16;

/// Readings that are rolled up at once, about: a part of the series of a day. The fewer, the less
/// memory, and the more often the keys of a day are read.
const PART_ROWS: RangeInclusive<usize> = 1 << 16..=1 << 18;

/// Parts of a day before they grow.
const PARTS: u64 = 32;

/// How often days are made again when another rollup was committed meanwhile.
const TRIES: usize = 3;

/// Settings of a rollup.
#[derive(Debug, Clone, Default)]
pub struct RollupSettings {
    /// Make every day anew that still has readings.
    pub rebuild: bool,
    /// Tell what would be made and write nothing.
    pub dry_run: bool,
    /// Only days before this one, in UTC.
    pub before: Option<NaiveDate>,
}

/// One day that was rolled up, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RolledDay {
    /// UTC day.
    pub date: NaiveDate,
    /// Why: `new`, `changed` or `rebuilt`.
    pub reason: &'static str,
    /// Readings of the day, as far as its files tell.
    pub readings: u64,
    /// Rows of `gpu_5m`; `None` of a dry run.
    pub rows_5m: Option<u64>,
    /// Rows of `gpu_1h`; `None` of a dry run.
    pub rows_1h: Option<u64>,
}

/// Rolls up what is stale, oldest first. `begun` hears how many days there are, `progress` of every
/// day that is done.
///
/// # Errors
/// [`IngestError::Store`] or [`IngestError::Damaged`]; the days that were committed stay so.
pub async fn roll_up(
    store: &Store,
    settings: &RollupSettings,
    begun: impl FnOnce(usize),
    mut progress: impl FnMut(&RolledDay),
) -> Result<Vec<RolledDay>, IngestError> {
    let Some(samples) = store.snapshot(Table::Samples).await? else { return Ok(Vec::new()) };
    let sources = Sources::of(store, &samples)?;
    let kept_from = first_kept(store, Some(&samples)).await?;
    let work = Work { store, samples: &samples, sources: &sources, settings, kept_from };
    let made = Made::of(store).await?;
    let stale = work.stale(&made, sources.days());
    begun(stale.len());
    let mut done = Vec::new();
    for days in stale.chunks(DAYS_AT_ONCE) {
        let rolled = match settings.dry_run {
            true => days.iter().map(|(date, reason)| work.told(*date, reason)).collect(),
            false => work.settle(days, &mut progress).await?,
        };
        done.extend(rolled);
    }
    Ok(done)
}

/// Days before `before` whose rollup is not made from the readings of `samples`, oldest first.
pub(crate) async fn stale(
    store: &Store,
    samples: &TableSnapshot,
    before: NaiveDate,
) -> Result<Vec<NaiveDate>, IngestError> {
    let sources = &Sources::of(store, samples)?;
    let settings = &RollupSettings { before: Some(before), ..RollupSettings::default() };
    let kept_from = first_kept(store, Some(samples)).await?;
    let work = Work { store, samples, sources, settings, kept_from };
    let stale = work.stale(&Made::of(store).await?, sources.days());
    Ok(stale.into_iter().map(|(day, _)| day).collect())
}

/// The first day that is left of a table.
async fn first_kept(
    store: &Store,
    snapshot: Option<&TableSnapshot>,
) -> Result<NaiveDate, IngestError> {
    let dropped = match snapshot {
        Some(snapshot) => store.dropped(snapshot).await?,
        None => None,
    };
    Ok(dropped.map_or(NaiveDate::MIN, |dropped| dropped.before))
}

/// The rollups as they are.
struct Made {
    tables: [Option<TableSnapshot>; 2],
    /// What each day was made from, by table; `None` where its files do not agree.
    days: [BTreeMap<NaiveDate, Option<u64>>; 2],
    /// The first day that is left of each; those before it are not made again.
    kept_from: [NaiveDate; 2],
}

impl Made {
    async fn of(store: &Store) -> Result<Self, IngestError> {
        let tables = [store.snapshot(TABLES[0]).await?, store.snapshot(TABLES[1]).await?];
        let days = tables.each_ref().map(|snapshot| {
            let mut days: BTreeMap<NaiveDate, Option<u64>> = BTreeMap::new();
            for file in snapshot.iter().flat_map(|snapshot| &snapshot.files) {
                let from = made_from(&file.path);
                let Some(date) = file.date else { continue };
                days.entry(date)
                    .and_modify(|f| *f = f.filter(|f| Some(*f) == from))
                    .or_insert(from);
            }
            days
        });
        let [five_minutes, hours] = tables.each_ref().map(Option::as_ref);
        let kept_from = [first_kept(store, five_minutes).await?, first_kept(store, hours).await?];
        Ok(Self { tables, days, kept_from })
    }

    fn is_made(&self, table: usize, day: NaiveDate, from: u64) -> bool {
        day < self.kept_from[table] || self.days[table].get(&day) == Some(&Some(from))
    }
}

/// What is to be rolled up, and how.
struct Work<'a> {
    store: &'a Store,
    samples: &'a TableSnapshot,
    sources: &'a Sources<'a>,
    settings: &'a RollupSettings,
    /// The first day of which all readings are left.
    kept_from: NaiveDate,
}

impl Work<'_> {
    /// Days to be made, with the reason.
    fn stale(
        &self,
        made: &Made,
        days: impl Iterator<Item = NaiveDate>,
    ) -> Vec<(NaiveDate, &'static str)> {
        let wanted = |day: &NaiveDate| {
            *day >= self.kept_from && self.settings.before.is_none_or(|before| *day < before)
        };
        let reason = |day: NaiveDate| {
            let from = self.sources.fingerprint(day);
            if self.settings.rebuild {
                return Some((day, "rebuilt"));
            }
            let current = (0..TABLES.len()).all(|table| made.is_made(table, day, from));
            let known = made.days.iter().any(|days| days.contains_key(&day));
            (!current).then_some((day, if known { "changed" } else { "new" }))
        };
        days.filter(wanted).filter_map(reason).collect()
    }

    fn told(&self, date: NaiveDate, reason: &'static str) -> RolledDay {
        let own = self.sources.files(date).iter().filter(|file| file.date == Some(date));
        let readings = own.filter_map(|file| file.rows).sum();
        RolledDay { date, reason, readings, rows_5m: None, rows_1h: None }
    }

    /// Makes some days and commits them. Those that another rollup made meanwhile are left to it.
    async fn settle(
        &self,
        days: &[(NaiveDate, &'static str)],
        progress: &mut impl FnMut(&RolledDay),
    ) -> Result<Vec<RolledDay>, IngestError> {
        for attempt in 0..TRIES {
            let made = Made::of(self.store).await?;
            let outdated = self.stale(&made, days.iter().map(|(day, _)| *day));
            let reasons: BTreeMap<_, _> = days.iter().copied().collect();
            let mut rewrites = TABLES.map(|table| {
                let base = made.tables[usize::from(table == TABLES[1])].as_ref();
                Rewrite::new(self.store, table, base, Effect::Commit(Purpose::Rows(None)))
            });
            let mut done = Vec::new();
            for (day, _) in outdated {
                match self.day(&made, day, &mut rewrites).await {
                    Ok((rows_5m, rows_1h)) => {
                        let told = self.told(day, reasons[&day]);
                        let rows = (Some(rows_5m), Some(rows_1h));
                        let rolled = RolledDay { rows_5m: rows.0, rows_1h: rows.1, ..told };
                        if attempt == 0 {
                            progress(&rolled);
                        }
                        done.push(rolled);
                    }
                    Err(error) => {
                        for rewrite in rewrites {
                            rewrite.abandon().await;
                        }
                        return Err(error);
                    }
                }
            }
            let mut outrun = false;
            let [five_minutes, hours] = rewrites;
            for rewrite in [five_minutes, hours] {
                if rewrite.partitions() > 0 {
                    outrun |= rewrite.commit().await? == Committed::Outrun;
                }
            }
            if !outrun {
                return Ok(done);
            }
        }
        Ok(Vec::new())
    }

    /// Rows of a day, put into the tables that lack them; how many there are.
    async fn day(
        &self,
        made: &Made,
        day: NaiveDate,
        rewrites: &mut [Rewrite<'_>; 2],
    ) -> Result<(u64, u64), IngestError> {
        let from = self.sources.fingerprint(day);
        let stored = self.told(day, "").readings;
        let parts = crate::import::parts_within(stored, PARTS, PART_ROWS);
        let lacking: Vec<usize> = (0..TABLES.len())
            .filter(|table| day >= made.kept_from[*table])
            .filter(|table| self.settings.rebuild || !made.is_made(*table, day, from))
            .collect();
        lacking.iter().for_each(|table| rewrites[*table].clear(Some(day)));
        let mut rows = (0, 0);
        for part in 0..parts {
            let rolled =
                day::roll(self.store, self.samples, self.sources, day, (part, parts)).await?;
            rows.0 += rolled.five_minutes.num_rows() as u64;
            rows.1 += rolled.hours.num_rows() as u64;
            let contents = [rolled.five_minutes, rolled.hours];
            for (table, content) in contents.into_iter().enumerate() {
                // A day of which nothing is told has a file all the same: it says so.
                let told =
                    content.num_rows() > 0 || part + 1 == parts && [rows.0, rows.1][table] == 0;
                if lacking.contains(&table) && told {
                    rewrites[table]
                        .put(Content {
                            date: Some(day),
                            part: (part, parts),
                            series: None,
                            made_from: Some(from),
                            rows: content,
                        })
                        .await?;
                }
            }
        }
        Ok(rows)
    }
}
