//! One part of a day: what the store has of some series merged with what has come of them.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{filter_record_batch, take_record_batch};
use arrow::datatypes::TimestampMillisecondType;
use arrow::error::ArrowError;

use super::days::Aim;
use super::hung::Told;
use super::silence::Tails;
use super::stale::{self, Hung};
use super::waiting::{numbers, periods, union, with_periods};
use crate::period::{Gap, Stands, integrate};
use crate::schema::Table;

/// One part of a day after new rows arrived.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) rows: RecordBatch,
    pub(super) added: u64,
    pub(super) duplicates: u64,
    pub(super) stale: RecordBatch,
    pub(super) hung: Vec<Hung>,
    pub(super) gaps: Vec<Gap>,
    pub(super) changed: bool,
}

/// How rows are merged.
#[derive(Debug)]
pub(super) struct Merger<'a> {
    pub(super) table: Table,
    pub(super) aim: Aim,
    /// Last readings of the day before.
    pub(super) before: &'a Tails,
    /// Hung drivers that events tell.
    pub(super) told: &'a Told,
    /// Up to when new readings go on with a run that was told, in milliseconds, by series.
    pub(super) going: &'a HashMap<u32, i64>,
}

impl Merger<'_> {
    /// Sorts rows by series and instant; of equal ones the first that came stays, and the store's
    /// `known` rows came before all. What it lacks is taken from those after it: a sender may tell
    /// one reading in several parts.
    pub(super) fn merge(
        &self,
        batches: Vec<RecordBatch>,
        known: usize,
        ranks: &[u32],
    ) -> Result<Part, ArrowError> {
        let all = union(self.table, batches)?;
        let (order, repeats) = order(&numbers(&all), instants(self.table, &all), ranks);
        let added = order.iter().filter(|row| **row as usize >= known).count();
        let duplicates = all.num_rows() - known - added;
        let (mut rows, filled) = take(all, &order, &repeats)?;
        let places = order.len();
        let (order, stale, hung) = self.set_aside(&mut rows, order, known)?;
        let fresh = order.iter().filter(|row| **row as usize >= known).count();
        let withdrawn = places - added > order.len() - fresh;
        let compaction = self.aim == Aim::Compaction;
        let mut changed = compaction || filled || withdrawn || fresh > 0;
        let mut gaps = Vec::new();
        let old = periods(&rows);
        if self.table.timed() && !(compaction && old.is_some()) {
            let instants: Vec<i64> = instants(self.table, &rows).collect();
            let series = numbers(&rows);
            let counts = self.table == Table::GpuCounts;
            let stands = if counts { Stands::After } else { Stands::Before };
            let interval_s = match self.aim {
                Aim::Rows { interval_s } => interval_s,
                Aim::Compaction => None,
            };
            let (new, found) =
                integrate(series.values(), &instants, self.before, interval_s, stands);
            changed |= old.is_none_or(|old| old.values()[..] != new[..]);
            (rows, gaps) = (with_periods(&rows, new)?, found);
        }
        Ok(Part {
            changed: changed && rows.num_rows() > 0,
            rows,
            added: fresh as u64,
            duplicates: duplicates as u64,
            stale,
            hung,
            gaps,
        })
    }

    /// Takes stale readings out of `rows`: the first of each run stays. What is stored of a run is
    /// stale too where new readings of its day make it long enough.
    fn set_aside(
        &self,
        rows: &mut RecordBatch,
        order: Vec<u32>,
        known: usize,
    ) -> Result<(Vec<u32>, RecordBatch, Vec<Hung>), ArrowError> {
        let none = rows.slice(0, 0);
        let nothing_new = order.iter().all(|row| (*row as usize) < known);
        if self.table != Table::Samples || self.aim == Aim::Compaction || nothing_new {
            return Ok((order, none, Vec::new()));
        }
        let series = numbers(rows);
        let mut hung = Vec::new();
        let goes_on = |(number, at)| self.going.get(number).is_some_and(|until| at <= *until);
        let mut going: Vec<usize> = Vec::new();
        if !self.going.is_empty() {
            let readings = series.values().iter().zip(instants(self.table, rows)).enumerate();
            going.extend(readings.filter(|(_, r)| goes_on(*r)).map(|(row, _)| row));
        }
        let mut stale = going.clone();
        for run in stale::runs(series.values(), rows, self.told)? {
            if going.binary_search(&run.rows.start).is_err() {
                hung.extend(run.hung(rows));
                stale.extend(run.rows.skip(1));
            }
        }
        if stale.is_empty() {
            return Ok((order, none, Vec::new()));
        }
        stale.sort_unstable();
        let mut keep = vec![true; rows.num_rows()];
        for row in &stale {
            keep[*row] = false;
        }
        let kept = order.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(row, _)| *row);
        let kept = kept.collect();
        let aside: UInt32Array = stale.iter().filter_map(|row| u32::try_from(*row).ok()).collect();
        let aside = take_record_batch(rows, &aside)?;
        *rows = filter_record_batch(rows, &BooleanArray::from(keep))?;
        Ok((kept, aside, hung))
    }
}

/// Instants of rows in milliseconds.
pub(super) fn instants(table: Table, rows: &RecordBatch) -> impl Iterator<Item = i64> + '_ {
    let name = table.partitioned_by().expect("only tables kept by day are merged by day");
    let column = rows.column_by_name(name);
    let values = column.map(|column| column.as_primitive::<TimestampMillisecondType>().values());
    values.into_iter().flat_map(|values| values.iter().copied())
}

/// A place in the new order, and the row that tells of the same reading again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Repeat {
    place: usize,
    row: u32,
}

/// Rows sorted by series and instant, each reading once, and where each was in `batches`.
pub(super) fn sorted(
    table: Table,
    batches: Vec<RecordBatch>,
    ranks: &[u32],
) -> Result<(RecordBatch, Vec<u32>), ArrowError> {
    let all = union(table, batches)?;
    let (order, repeats) = order(&numbers(&all), instants(table, &all), ranks);
    let (rows, _) = take(all, &order, &repeats)?;
    Ok((rows, order))
}

/// Positions of the rows that stay, sorted by series and instant, and the others.
fn order(
    numbers: &UInt32Array,
    instants: impl Iterator<Item = i64>,
    ranks: &[u32],
) -> (Vec<u32>, Vec<Repeat>) {
    let reading = |series: u32, at: i64| {
        u128::from(ranks[series as usize]) << 96 | u128::from(at.cast_unsigned() ^ 1 << 63) << 32
    };
    let readings = numbers.values().iter().zip(instants);
    let mut keys: Vec<u128> = readings
        .zip(0_u32..)
        .map(|((series, at), row)| reading(*series, at) | u128::from(row))
        .collect();
    keys.sort_unstable();
    let row = |key: u128| (key & u128::from(u32::MAX)) as u32;
    let mut order = Vec::with_capacity(keys.len());
    let mut repeats = Vec::new();
    let mut last = None;
    for key in keys {
        if last == Some(key >> 32) {
            repeats.push(Repeat { place: order.len() - 1, row: row(key) });
        } else {
            last = Some(key >> 32);
            order.push(row(key));
        }
    }
    (order, repeats)
}

/// Rows in another order, each with what it lacks taken from its repeats, and whether there was
/// any; each column is let go as soon as the next form of it is there.
fn take(
    all: RecordBatch,
    order: &[u32],
    repeats: &[Repeat],
) -> Result<(RecordBatch, bool), ArrowError> {
    if order.len() == all.num_rows() && order.iter().zip(0..).all(|(row, place)| *row == place) {
        return Ok((all, false));
    }
    let plain = UInt32Array::from(order.to_vec());
    let mut filled = false;
    let (schema, columns, _) = all.into_parts();
    let columns = schema.fields().iter().zip(columns).map(|(field, column)| {
        // How long a reading stands is worked out anew.
        let fill = if field.name() == "period_s" { None } else { fill(&column, order, repeats) };
        filled |= fill.is_some();
        arrow::compute::take(&column, fill.as_ref().unwrap_or(&plain), None)
    });
    let columns = columns.collect::<Result<_, _>>()?;
    Ok((RecordBatch::try_new(schema, columns)?, filled))
}

/// The order in which a column is taken where a repeat knows what the first row lacks.
fn fill(column: &ArrayRef, order: &[u32], repeats: &[Repeat]) -> Option<UInt32Array> {
    if column.null_count() == 0 {
        return None;
    }
    let mut filled: Option<Vec<u32>> = None;
    for Repeat { place, row } in repeats {
        let now = filled.as_deref().unwrap_or(order)[*place];
        if column.is_null(now as usize) && column.is_valid(*row as usize) {
            filled.get_or_insert_with(|| order.to_vec())[*place] = *row;
        }
    }
    filled.map(UInt32Array::from)
}
