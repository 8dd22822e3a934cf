//! Silence that reaches over days: from what was known of a GPU to its first reading of an import,
//! and from its last one to what is stored after it.
//!
//! Gaps within a day, and over one midnight, are found where time is integrated. Here a reading
//! stands for what it stood for: a day that comes before or after others changes none of them.

use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, TimestampMillisecondType};

use super::inventory::Inventory;
use super::outcome::{index, text};
use super::waiting::numbers;
use crate::period::{Gap, HOLD_INTERVALS};

/// Last instant in milliseconds of each series, by its number.
pub(super) type Tails = HashMap<u32, i64>;

/// Silence before the first reading of each series of a day, in `rows` sorted by series and time.
/// `before` holds the series that the day before has, whose gaps are found elsewhere, and `known`
/// the last readings of earlier days.
pub(super) fn until(
    rows: &RecordBatch,
    keys: &RecordBatch,
    before: &Tails,
    known: &Tails,
    inventory: &Inventory,
) -> Vec<Gap> {
    let series = numbers(rows);
    let Some(instants) = rows.column_by_name("sampled_at") else { return Vec::new() };
    let instants = instants.as_primitive::<TimestampMillisecondType>();
    let mut gaps = Vec::new();
    let mut row = 0;
    for run in series.values().chunk_by(|a, b| a == b) {
        let (number, first) = (run[0], row);
        row += run.len();
        if before.contains_key(&number) {
            continue;
        }
        let until_ms = instants.value(first);
        let seen = [known.get(&number).copied(), last_sight(keys, number as usize, inventory)];
        let after_ms = seen.into_iter().flatten().filter(|at| *at < until_ms).max();
        gaps.extend(after_ms.and_then(|after_ms| gap(rows, first, after_ms, until_ms)));
    }
    gaps
}

/// Silence between `tails` and the first readings of a later day, in any order.
pub(super) fn after(tails: &Tails, later: &RecordBatch) -> Vec<Gap> {
    let Some(instants) = later.column_by_name("sampled_at") else { return Vec::new() };
    let instants = instants.as_primitive::<TimestampMillisecondType>();
    let mut first: HashMap<u32, usize> = HashMap::new();
    for (row, number) in numbers(later).values().iter().enumerate() {
        let known = first.entry(*number).or_insert(row);
        if instants.value(row) < instants.value(*known) {
            *known = row;
        }
    }
    let silent = first
        .into_iter()
        .filter_map(|(number, row)| gap(later, row, *tails.get(&number)?, instants.value(row)));
    silent.collect()
}

/// The gap before a row, where the silence is longer than a reading holds.
fn gap(rows: &RecordBatch, row: usize, after_ms: i64, until_ms: i64) -> Option<Gap> {
    let periods = rows.column_by_name("period_s")?.as_primitive_opt::<Float64Type>()?;
    let period_s = periods.is_valid(row).then(|| periods.value(row))?;
    let since_s = (until_ms - after_ms) as f64 / 1e3;
    let silent = since_s > period_s * HOLD_INTERVALS;
    silent.then_some(Gap { row, after_ms, until_ms, missing_s: since_s - period_s })
}

/// When the inventory saw the board of a series last; a slice may come and go.
fn last_sight(keys: &RecordBatch, series: usize, inventory: &Inventory) -> Option<i64> {
    if index(keys, "mig", series).is_some() {
        return None;
    }
    inventory.stored.get(&text(keys, "gpu_uuid", series)?)?.last_ms
}
