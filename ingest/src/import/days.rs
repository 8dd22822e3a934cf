//! Merges readings day by day: what the store has of a day with what has come, each reading once,
//! sorted, with the time that it stands for.
//!
//! A day of a large fleet is taken in parts, each with some of the series, so that memory holds one
//! part and not the day. Days are taken in order, so that each knows the last readings of the day
//! before; a stored day after a changed one is looked at too, since its first readings may stand
//! for less time than they did.

use std::collections::{BTreeSet, HashMap};

use arrow::array::{AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{filter_record_batch, take_record_batch};
use arrow::datatypes::TimestampMillisecondType;
use arrow::error::ArrowError;
use chrono::NaiveDate;

use super::buffer::Buffer;
use super::outcome::Outcome;
use super::series::{PARTS_MAX, Series};
use super::stale;
use super::waiting::{narrow, numbers, periods, union, with_periods};
use crate::error::IngestError;
use crate::period::{Gap, Stands, integrate};
use crate::schema::Table;
use crate::store::{Content, Rewrite, Store, TableSnapshot, part_of};

/// Rows that are merged at once, about.
pub(super) const PART_ROWS: usize = 1 << 20;

/// Last instant in milliseconds of each series, by its number.
type Tails = HashMap<u32, i64>;

/// What is merged into what.
#[derive(Debug)]
pub(super) struct Days<'a> {
    pub(super) store: &'a Store,
    pub(super) table: Table,
    pub(super) base: Option<&'a TableSnapshot>,
    pub(super) buffer: &'a Buffer,
    pub(super) interval_s: Option<f64>,
    pub(super) part_rows: usize,
}

/// One part of a day after new rows arrived.
#[derive(Debug)]
struct Part {
    rows: RecordBatch,
    added: u64,
    duplicates: u64,
    stale: RecordBatch,
    gaps: Vec<Gap>,
    changed: bool,
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
        for day in days {
            let before = match last.take() {
                Some((date, tails)) if date.succ_opt() == Some(day) => tails,
                _ => match day.pred_opt().filter(|date| stored.contains(date)) {
                    Some(date) => self.tails(date, series).await?,
                    None => Tails::new(),
                },
            };
            let tails = self.day(day, &before, series, rewrite, outcome).await?;
            last = Some((day, tails));
        }
        Ok(())
    }

    async fn day(
        &self,
        day: NaiveDate,
        before: &Tails,
        series: &mut Series,
        rewrite: &mut Rewrite<'_>,
        outcome: &mut Outcome,
    ) -> Result<Tails, IngestError> {
        let known: u64 = self.files(day).filter_map(|file| file.rows).sum();
        let rows = usize::try_from(known).unwrap_or(usize::MAX) + self.buffer.rows(Some(day));
        let parts = rows.div_ceil(self.part_rows).clamp(1, PARTS_MAX);
        let mut first = None;
        let mut changed = false;
        for part in 0..parts {
            let merged = self.part(day, (part, parts), before, series).await?;
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
                None => self.part(day, (part, parts), before, series).await?,
            };
            let keys = series.keys()?;
            let numbers = numbers(&merged.rows);
            tails.extend(numbers.values().iter().copied().zip(self.instants(&merged.rows)));
            if self.buffer.rows(Some(day)) > 0 {
                outcome.gaps(self.table, &keys, &numbers, &merged.gaps);
            }
            outcome.aside(&keys, &merged.stale);
            outcome.rows_added += merged.added;
            outcome.rows_known += merged.duplicates;
            if changed && merged.rows.num_rows() > 0 {
                let content = Content {
                    date: Some(day),
                    part: (part, parts),
                    series: Some((keys, numbers)),
                    rows: merged.rows,
                };
                rewrite.put(content).await?;
            }
        }
        Ok(tails)
    }

    async fn part(
        &self,
        day: NaiveDate,
        part: (usize, usize),
        before: &Tails,
        series: &mut Series,
    ) -> Result<Part, IngestError> {
        let mut batches = Vec::new();
        if let Some(base) = self.base {
            for file in self.files(day) {
                if part_of(&file.path).is_some_and(|told| told.1 == part.1 && told.0 != part.0) {
                    continue;
                }
                for batch in self.store.read_file(base, file, None).await? {
                    let batch = narrow(self.table, series, &batch)?;
                    batches.extend(within(series, part, batch)?);
                }
            }
        }
        let known = batches.iter().map(RecordBatch::num_rows).sum();
        self.buffer.each(Some(day), |batch| {
            batches.extend(within(series, part, batch)?);
            Ok(())
        })?;
        Ok(self.merge(batches, known, before, &series.ranks())?)
    }

    /// Sorts rows by series and instant; of equal ones the first that came stays, and the store's
    /// `known` rows came before all.
    fn merge(
        &self,
        batches: Vec<RecordBatch>,
        known: usize,
        before: &Tails,
        ranks: &[u32],
    ) -> Result<Part, ArrowError> {
        let all = union(self.table, batches)?;
        let order = order(&numbers(&all), self.instants(&all), ranks);
        let added = order.iter().filter(|row| **row as usize >= known).count();
        let duplicates = all.num_rows() - known - added;
        let mut rows = take(all, &order)?;
        let (order, stale) = self.set_aside(&mut rows, order, known)?;
        let old = periods(&rows);
        let instants: Vec<i64> = self.instants(&rows).collect();
        let counts = self.table == Table::GpuCounts;
        let stands = if counts { Stands::After } else { Stands::Before };
        let (new, gaps) =
            integrate(numbers(&rows).values(), &instants, before, self.interval_s, stands);
        let fresh = order.iter().any(|row| *row as usize >= known);
        let changed = fresh || old.is_none_or(|old| old.values()[..] != new[..]);
        Ok(Part {
            changed: changed && rows.num_rows() > 0,
            rows: with_periods(&rows, new)?,
            added: (added - stale.num_rows()) as u64,
            duplicates: duplicates as u64,
            stale,
            gaps,
        })
    }

    /// Takes stale readings that are new out of `rows`. One that is in the store stays: it was
    /// fresh when it was alone.
    fn set_aside(
        &self,
        rows: &mut RecordBatch,
        order: Vec<u32>,
        known: usize,
    ) -> Result<(Vec<u32>, RecordBatch), ArrowError> {
        let none = rows.slice(0, 0);
        if self.table != Table::Samples {
            return Ok((order, none));
        }
        let runs = stale::runs(numbers(rows).values(), rows)?;
        let new = |row: &usize| order[*row] as usize >= known;
        let stale: Vec<usize> = runs.into_iter().flat_map(|run| run.skip(1)).filter(new).collect();
        if stale.is_empty() {
            return Ok((order, none));
        }
        let mut keep = vec![true; rows.num_rows()];
        for row in &stale {
            keep[*row] = false;
        }
        let kept = order.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(row, _)| *row);
        let kept = kept.collect();
        let aside: UInt32Array = stale.iter().filter_map(|row| u32::try_from(*row).ok()).collect();
        let aside = take_record_batch(rows, &aside)?;
        *rows = filter_record_batch(rows, &BooleanArray::from(keep))?;
        Ok((kept, aside))
    }

    /// The last reading of each series on a stored day.
    async fn tails(&self, day: NaiveDate, series: &mut Series) -> Result<Tails, IngestError> {
        let mut tails = Tails::new();
        let Some(base) = self.base else { return Ok(tails) };
        let mut columns = self.table.key().to_vec();
        columns.extend(self.table.partitioned_by());
        for file in self.files(day) {
            for batch in self.store.read_file(base, file, Some(&columns)).await? {
                let batch = narrow(self.table, series, &batch)?;
                let instants: Vec<i64> = self.instants(&batch).collect();
                for (number, at) in numbers(&batch).values().iter().zip(instants) {
                    tails.entry(*number).and_modify(|last| *last = at.max(*last)).or_insert(at);
                }
            }
        }
        Ok(tails)
    }

    fn files(&self, day: NaiveDate) -> impl Iterator<Item = &crate::store::FileEntry> {
        let files = self.base.map(|base| base.files.as_slice()).unwrap_or_default();
        files.iter().filter(move |file| file.date == Some(day))
    }

    fn instants<'r>(&self, rows: &'r RecordBatch) -> impl Iterator<Item = i64> + 'r {
        let name = self.table.partitioned_by().expect("only readings are merged by day");
        let column = rows.column_by_name(name);
        let values =
            column.map(|column| column.as_primitive::<TimestampMillisecondType>().values());
        values.into_iter().flat_map(|values| values.iter().copied())
    }
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

/// Positions of the rows that stay, sorted by series and instant.
fn order(numbers: &UInt32Array, instants: impl Iterator<Item = i64>, ranks: &[u32]) -> Vec<u32> {
    let reading = |series: u32, at: i64| {
        u128::from(ranks[series as usize]) << 96 | u128::from(at.cast_unsigned() ^ 1 << 63) << 32
    };
    let readings = numbers.values().iter().zip(instants);
    let mut keys: Vec<u128> = readings
        .zip(0_u32..)
        .map(|((series, at), row)| reading(*series, at) | u128::from(row))
        .collect();
    keys.sort_unstable();
    keys.dedup_by_key(|key| *key >> 32);
    keys.into_iter().map(|key| (key & u128::from(u32::MAX)) as u32).collect()
}

/// Rows in another order; each column is let go as soon as the next form of it is there.
fn take(all: RecordBatch, order: &[u32]) -> Result<RecordBatch, ArrowError> {
    if order.len() == all.num_rows() && order.iter().zip(0..).all(|(row, place)| *row == place) {
        return Ok(all);
    }
    let order = UInt32Array::from(order.to_vec());
    let (schema, columns, _) = all.into_parts();
    let columns = columns.into_iter().map(|column| arrow::compute::take(&column, &order, None));
    RecordBatch::try_new(schema, columns.collect::<Result<_, _>>()?)
}
