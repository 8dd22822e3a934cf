//! Pieces of readings folded into the columns of a rollup, and five minutes into hours.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, TimestampMillisecondArray,
    UInt32Array,
};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Float64Type, Int64Type, Schema, TimestampMillisecondType};
use arrow::error::ArrowError;

use super::cut::{Piece, Readings};
use crate::schema::rollup::{BIN, BITS};

/// Length of the longer bins in milliseconds.
const HOUR_MS: i64 = 3_600_000;

/// What the pieces of each row tell of one measure: the columns of `SUFFIXES`, in their order.
/// `values` are by row of a reading, NaN where unknown.
pub(super) fn measure(pieces: &[Piece], groups: &[Range<usize>], values: &[f64]) -> [ArrayRef; 5] {
    let mut columns: [Vec<Option<f64>>; 5] = Default::default();
    for group in groups {
        let mut told = None;
        for piece in &pieces[group.clone()] {
            let value = values[piece.row as usize];
            if !piece.valued || value.is_nan() {
                continue;
            }
            let seconds = piece.seconds();
            let (sum, squares, least, most, known) =
                told.unwrap_or((0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 0.0));
            told = Some((
                sum + value * seconds,
                squares + value * value * seconds,
                value.min(least),
                value.max(most),
                known + seconds,
            ));
        }
        columns[0].push(told.map(|told| told.0));
        columns[1].push(told.map(|told| told.1));
        columns[2].push(told.map(|told| told.2));
        columns[3].push(told.map(|told| told.3));
        columns[4].push(told.map(|told| told.4));
    }
    columns.map(|column| Arc::new(Float64Array::from(column)) as ArrayRef)
}

/// Bits that any piece of each row has set; `values` are by row of a reading.
pub(super) fn bits(pieces: &[Piece], groups: &[Range<usize>], values: &[Option<i64>]) -> ArrayRef {
    let set = groups.iter().map(|group| {
        let told = pieces[group.clone()].iter().filter(|piece| piece.valued);
        told.filter_map(|piece| values[piece.row as usize]).reduce(|all, one| all | one)
    });
    Arc::new(Int64Array::from_iter(set))
}

/// Power in W over the stretch of each reading: what the energy counter rose by since the reading
/// before, where that is where the stretch begins and the counter did not fall, else the power read.
pub(super) fn watts(
    readings: &Readings,
    order: &[u32],
    energy_j: &[f64],
    power_w: &[f64],
) -> Vec<f64> {
    let mut watts = power_w.to_vec();
    for pair in order.windows(2) {
        let (before, row) = (pair[0] as usize, pair[1] as usize);
        let (from_ms, until_ms) = (readings.sampled_ms[before], readings.sampled_ms[row]);
        let follows = readings.series[before] == readings.series[row]
            && readings.started_ms[row] == from_ms
            && from_ms < until_ms;
        let spent_j = energy_j[row] - energy_j[before];
        if follows && spent_j >= 0.0 {
            watts[row] = spent_j / ((until_ms - from_ms) as f64 / 1e3);
        }
    }
    watts
}

/// How a column of rows becomes one of longer rows.
#[derive(Debug, Clone, Copy)]
enum Fold {
    First,
    Bin,
    Sum,
    Least,
    Most,
    Bits,
}

impl Fold {
    fn of(column: &str, kind: &DataType) -> Self {
        match kind {
            _ if column == BIN => Self::Bin,
            _ if column == BITS => Self::Bits,
            DataType::Utf8 | DataType::Int16 => Self::First,
            _ if column.ends_with("_min") => Self::Least,
            _ if column.ends_with("_max") => Self::Most,
            _ => Self::Sum,
        }
    }
}

/// Rows of hours from the rows of five minutes, whose series and label are told beside them; they
/// are sorted by series, bin and label, and so are the hours.
pub(super) fn hours(rows: &RecordBatch, keys: &[(u32, u32)]) -> Result<RecordBatch, ArrowError> {
    let starts = rows[BIN].as_primitive::<TimestampMillisecondType>();
    let hour = |row: u32| starts.value(row as usize).div_euclid(HOUR_MS);
    let key = |row: &u32| {
        let (series, label) = keys[*row as usize];
        (series, hour(*row), label)
    };
    let mut order: Vec<u32> = (0..).take(rows.num_rows()).collect();
    order.sort_by_key(key);
    let groups: Vec<&[u32]> = order.chunk_by(|a, b| key(a) == key(b)).collect();
    let schema: Arc<Schema> = rows.schema();
    let columns =
        schema.fields().iter().zip(rows.columns()).map(|(field, column)| {
            match Fold::of(field.name(), field.data_type()) {
                Fold::Bin => {
                    let starts = groups.iter().map(|group| hour(group[0]) * HOUR_MS);
                    let starts = TimestampMillisecondArray::from_iter_values(starts);
                    Ok(Arc::new(starts.with_timezone("UTC")) as ArrayRef)
                }
                Fold::First => {
                    let first: UInt32Array = groups.iter().map(|group| group[0]).collect();
                    take(column, &first, None)
                }
                Fold::Bits => Ok(wholes(column, &groups, |a, b| a | b)),
                Fold::Sum if field.data_type() == &DataType::Int64 => {
                    Ok(wholes(column, &groups, |a, b| a + b))
                }
                Fold::Least if field.data_type() == &DataType::Int64 => {
                    Ok(wholes(column, &groups, i64::min))
                }
                Fold::Most if field.data_type() == &DataType::Int64 => {
                    Ok(wholes(column, &groups, i64::max))
                }
                Fold::Sum => reals(column, &groups, |a, b| a + b),
                Fold::Least => reals(column, &groups, f64::min),
                Fold::Most => reals(column, &groups, f64::max),
            }
        });
    RecordBatch::try_new(Arc::clone(&schema), columns.collect::<Result<_, ArrowError>>()?)
}

fn wholes(column: &ArrayRef, groups: &[&[u32]], fold: fn(i64, i64) -> i64) -> ArrayRef {
    let values = column.as_primitive::<Int64Type>();
    let known = |row: &&u32| values.is_valid(**row as usize);
    let folded = groups.iter().map(|group| {
        group.iter().filter(known).map(|row| values.value(*row as usize)).reduce(fold)
    });
    Arc::new(Int64Array::from_iter(folded))
}

fn reals(
    column: &ArrayRef,
    groups: &[&[u32]],
    fold: fn(f64, f64) -> f64,
) -> Result<ArrayRef, ArrowError> {
    let column = cast(column, &DataType::Float64)?;
    let values = column.as_primitive::<Float64Type>();
    let known = |row: &&u32| values.is_valid(**row as usize);
    let folded = groups.iter().map(|group| {
        group.iter().filter(known).map(|row| values.value(*row as usize)).reduce(fold)
    });
    Ok(Arc::new(Float64Array::from_iter(folded)))
}
