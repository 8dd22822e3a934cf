//! Merges readings day by day: what the store has of a day with what has come, each reading once,
//! sorted, with the time that it stands for.
//!
//! A day of a large fleet is taken in parts, each with some of the series, so that memory holds one
//! part and not the day. Days are taken in order, so that each knows the last readings of the day
//! before; a stored day after a changed one is looked at too, since its first readings may stand
//! for less time than they did.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;
use chrono::{NaiveDate, NaiveTime};
use parquet::arrow::arrow_reader::RowSelection;

use super::buffer::Buffer;
use super::findings::Findings;
use super::hung::Told;
use super::outcome::Outcome;
use super::part::{Merger, Part, instants};
use super::series::{PARTS_MAX, Series};
use super::silence::{self, Tails};
use super::waiting::{narrow, numbers, union};
use crate::error::IngestError;
use crate::schema::Table;
use crate::store::{Content, FileEntry, OpenFile, Rewrite, Store, TableSnapshot, part_of};

const DAY_MS: i64 = 86_400_000;

/// Rows that are merged at once, about.
pub(crate) const PART_ROWS: usize = 1 << 20;

/// What is merged into what.
#[derive(Debug)]
pub(super) struct Days<'a> {
    pub(super) store: &'a Store,
    pub(super) table: Table,
    pub(super) base: Option<&'a TableSnapshot>,
    pub(super) buffer: &'a Buffer,
    pub(super) aim: Aim,
    pub(super) part_rows: usize,
    pub(super) findings: &'a Findings,
}

/// Why days are merged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Aim {
    /// New rows; `interval_s` is the sampling interval in seconds, where it is told.
    Rows { interval_s: Option<f64> },
    /// Fewer files, no value changed.
    Compaction,
}

impl Days<'_> {
    /// Merges every day with new rows, and puts what has changed into `rewrite`.
    pub(super) async fn settle(
        &self,
        series: &mut Series,
        rewrite: &mut Rewrite<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), IngestError> {
        let stored: BTreeSet<NaiveDate> =
            self.base.into_iter().flat_map(|b| b.files.iter().filter_map(|f| f.date)).collect();
        let mut days = self.buffer.days();
        let after: Vec<NaiveDate> = days.iter().filter_map(NaiveDate::succ_opt).collect();
        days.extend(after.into_iter().filter(|day| stored.contains(day)));
        let mut last: Option<(NaiveDate, Tails)> = None;
        let mut known = Tails::new();
        for day in days.iter().copied() {
            let before = match last.take() {
                Some((date, tails)) if date.succ_opt() == Some(day) => tails,
                _ => match stored.range(..day).next_back().filter(|_| self.table.timed()) {
                    Some(date) => self.tails(*date, series).await?,
                    None => Tails::new(),
                },
            };
            known.extend(before.iter().map(|(series, at)| (*series, *at)));
            if self.table == Table::Samples {
                before.iter().for_each(|(series, at)| outcome.stays.saw(*series, *at, *at));
            }
            // Only the day before says for how long the first readings of a day stand.
            let midnight = day.and_time(NaiveTime::MIN).and_utc().timestamp_millis();
            let mut before = before;
            before.retain(|_, at| *at >= midnight - DAY_MS);
            let tails = match self.appends(day, &before, series).await? {
                Some(end) => self.append(day, (end, &known), series, rewrite, outcome).await?,
                None => self.day(day, (&before, &known), series, rewrite, outcome).await?,
            };
            known.extend(tails.iter().map(|(series, at)| (*series, *at)));
            let next = stored.range((Bound::Excluded(day), Bound::Unbounded)).next();
            let next = next.filter(|next| !days.contains(next) && self.buffer.rows(Some(day)) > 0);
            if let (Some(next), Table::Samples) = (next, self.table) {
                self.silence_until(*next, &tails, series, outcome).await?;
            }
            last = Some((day, tails));
        }
        Ok(())
    }

    /// Counts the silence from the last readings of a day to those of the next that is stored.
    async fn silence_until(
        &self,
        next: NaiveDate,
        tails: &Tails,
        series: &mut Series,
        outcome: &mut Outcome,
    ) -> Result<(), IngestError> {
        let Some(base) = self.base else { return Ok(()) };
        let mut columns = self.table.key().to_vec();
        columns.push("period_s");
        let mut later = Vec::new();
        for file in self.files(next) {
            for batch in self.store.read_file(base, file, Some(&columns)).await? {
                later.push(narrow(self.table, series, &batch)?);
            }
        }
        let later = union(self.table, later)?;
        let gaps = silence::after(tails, &later);
        outcome.gaps(self.table, &series.keys()?, &numbers(&later), &gaps);
        Ok(())
    }

    pub(super) async fn day(
        &self,
        day: NaiveDate,
        (before, known): (&Tails, &Tails),
        series: &mut Series,
        rewrite: &mut Rewrite<'_>,
        outcome: &mut Outcome,
    ) -> Result<Tails, IngestError> {
        let stored: u64 = self.files(day).filter_map(|file| file.rows).sum();
        let rows = usize::try_from(stored).unwrap_or(usize::MAX) + self.buffer.rows(Some(day));
        let parts = parts_of(rows, self.part_rows);
        let told = match self.aim {
            Aim::Rows { .. } if self.buffer.rows(Some(day)) > 0 => self.told(day, series).await?,
            _ => Told::new(),
        };
        let mut first = None;
        let mut changed = false;
        for part in 0..parts {
            let merged = self.part(day, (part, parts), (before, &told), series).await?;
            changed = merged.changed;
            if changed || parts == 1 {
                first = Some((part, merged));
                break;
            }
        }
        if changed {
            rewrite.clear(Some(day));
        }
        let mut tails = Tails::new();
        for part in 0..parts {
            let merged = match first.take_if(|(done, _)| *done == part) {
                Some((_, merged)) => merged,
                None => self.part(day, (part, parts), (before, &told), series).await?,
            };
            let keys = series.keys()?;
            let numbers = numbers(&merged.rows);
            tails.extend(numbers.values().iter().copied().zip(instants(self.table, &merged.rows)));
            self.note_gaps(day, (before, known), &keys, &merged, outcome);
            outcome.aside(&keys, &merged.stale, &merged.hung);
            if self.table == Table::Samples {
                outcome.look(&keys, &merged.rows, &self.findings.distress);
            }
            outcome.rows_added += merged.added;
            outcome.rows_known += merged.duplicates;
            if changed && merged.rows.num_rows() > 0 {
                let content = Content {
                    date: Some(day),
                    part: (part, parts),
                    series: Some((keys, numbers)),
                    made_from: None,
                    rows: merged.rows,
                };
                rewrite.put(content).await?;
            }
        }
        Ok(tails)
    }

    /// Counts the gaps of a part of a day; of a day without new rows those that a late day before
    /// it ends with.
    pub(super) fn note_gaps(
        &self,
        day: NaiveDate,
        (before, known): (&Tails, &Tails),
        keys: &RecordBatch,
        merged: &Part,
        outcome: &mut Outcome,
    ) {
        if self.table != Table::Samples {
            return;
        }
        let numbers = numbers(&merged.rows);
        if self.buffer.rows(Some(day)) > 0 {
            outcome.gaps(self.table, keys, &numbers, &merged.gaps);
            let inventory = &self.findings.inventory;
            let gaps = silence::until(&merged.rows, keys, before, known, inventory);
            outcome.gaps(self.table, keys, &numbers, &gaps);
        } else {
            let midnight = day.and_time(NaiveTime::MIN).and_utc().timestamp_millis();
            let over = merged.gaps.iter().filter(|gap| gap.after_ms < midnight).cloned();
            outcome.gaps(self.table, keys, &numbers, &over.collect::<Vec<_>>());
        }
    }

    async fn part(
        &self,
        day: NaiveDate,
        part: (usize, usize),
        (before, told): (&Tails, &Told),
        series: &mut Series,
    ) -> Result<Part, IngestError> {
        let mut batches = Vec::new();
        if let Some(base) = self.base {
            for file in self.files(day) {
                if part_of(&file.path).is_some_and(|told| told.1 == part.1 && told.0 != part.0) {
                    continue;
                }
                let open = self.store.open_file(base, file).await?;
                let rows = match part.1 {
                    1 => None,
                    _ => Some(self.selection(&open, part, series).await?),
                };
                if rows.as_ref().is_some_and(|rows| !rows.selects_any()) {
                    continue;
                }
                open.each(None, rows.as_ref(), |batch| {
                    batches.push(narrow(self.table, series, &batch)?);
                    Ok(())
                })
                .await?;
            }
        }
        let known = batches.iter().map(RecordBatch::num_rows).sum();
        self.buffer.each(Some(day), |batch| {
            batches.extend(within(series, part, batch)?);
            Ok(())
        })?;
        let going = &HashMap::new();
        let merger = Merger { table: self.table, aim: self.aim, before, told, going };
        Ok(merger.merge(batches, known, &series.ranks())?)
    }

    /// The rows of a file whose series are in `part`: the others are not decoded.
    async fn selection(
        &self,
        open: &OpenFile<'_>,
        part: (usize, usize),
        series: &mut Series,
    ) -> Result<RowSelection, IngestError> {
        let mut masks = Vec::new();
        open.each(Some(self.table.key()), None, |batch| {
            let numbers = series.number(&batch)?;
            let mine = numbers.values().iter().map(|number| Some(series.within(*number, part)));
            masks.push(mine.collect::<BooleanArray>());
            Ok(())
        })
        .await?;
        Ok(RowSelection::from_filters(&masks))
    }

    /// The last reading of each series on a stored day.
    async fn tails(&self, day: NaiveDate, series: &mut Series) -> Result<Tails, IngestError> {
        let files: Vec<&FileEntry> = self.files(day).collect();
        self.tails_of(&files, series).await
    }

    /// The last reading of each series in some files.
    pub(super) async fn tails_of(
        &self,
        files: &[&FileEntry],
        series: &mut Series,
    ) -> Result<Tails, IngestError> {
        let mut tails = Tails::new();
        let Some(base) = self.base else { return Ok(tails) };
        let mut columns = self.table.key().to_vec();
        columns.extend(self.table.partitioned_by());
        for file in files {
            let open = self.store.open_file(base, file).await?;
            open.each(Some(&columns), None, |batch| {
                let batch = narrow(self.table, series, &batch)?;
                let instants: Vec<i64> = instants(self.table, &batch).collect();
                for (number, at) in numbers(&batch).values().iter().zip(instants) {
                    tails.entry(*number).and_modify(|last| *last = at.max(*last)).or_insert(at);
                }
                Ok(())
            })
            .await?;
        }
        Ok(tails)
    }

    pub(super) fn files(&self, day: NaiveDate) -> impl Iterator<Item = &FileEntry> {
        let files = self.base.map(|base| base.files.as_slice()).unwrap_or_default();
        files.iter().filter(move |file| file.date == Some(day))
    }
}

/// Files of a day with so many rows.
pub(super) fn parts_of(rows: usize, part_rows: usize) -> usize {
    rows.div_ceil(part_rows).clamp(1, PARTS_MAX)
}

/// The rows of `batch` whose series are in `part`.
fn within(
    series: &Series,
    part: (usize, usize),
    batch: RecordBatch,
) -> Result<Option<RecordBatch>, ArrowError> {
    if part.1 == 1 {
        return Ok(Some(batch));
    }
    let numbers = numbers(&batch);
    let mine = numbers.values().iter().map(|number| Some(series.within(*number, part)));
    let mine: BooleanArray = mine.collect();
    let rows = filter_record_batch(&batch, &mine)?;
    Ok((rows.num_rows() > 0).then_some(rows))
}
