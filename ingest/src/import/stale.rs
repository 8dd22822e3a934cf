//! Readings that a hung driver publishes again and again: staleness, not data.
//!
//! A live GPU's power wanders in its decimals. Where every measurement, a power with decimals among
//! them, stays the same for [`STALE_READINGS`] readings in a row, the sensor is not being read. A
//! GPU that idles at whole watts, or tells little besides power, is left alone.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Float64Type};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

/// Equal readings in a row that make a run of them stale; the first of the run is kept.
pub const STALE_READINGS: usize = 10;

/// Measurements, besides power, that must be known before equality means anything.
const WITNESSES: usize = 2;

/// Columns that describe and do not measure.
const CONSTANT: [&str; 5] = ["sampled_at", "gpu_model", "job_id", "mem_total_bytes", "period_s"];

/// Runs of stale readings of rows sorted by series and instant, each with its first, good reading.
pub(super) fn runs(series: &[u32], rows: &RecordBatch) -> Result<Vec<Range<usize>>, ArrowError> {
    let Some(power) = rows.column_by_name("power_w") else { return Ok(Vec::new()) };
    let power = power.as_primitive::<Float64Type>();
    let same = |row: usize| {
        series[row] == series[row - 1]
            && power.is_valid(row)
            && power.is_valid(row - 1)
            && power.value(row).to_bits() == power.value(row - 1).to_bits()
    };
    let mut found = Vec::new();
    let mut start = 0;
    for row in 1..=rows.num_rows() {
        if row < rows.num_rows() && same(row) {
            continue;
        }
        let with_decimals = power.is_valid(start) && power.value(start).fract() != 0.0;
        if row - start >= STALE_READINGS && with_decimals {
            found.extend(equal(rows, start..row)?);
        }
        start = row;
    }
    Ok(found)
}

/// Long enough runs within `range` in which every measurement stays the same.
fn equal(rows: &RecordBatch, range: Range<usize>) -> Result<Vec<Range<usize>>, ArrowError> {
    let measured: Vec<ArrayRef> = rows
        .schema()
        .fields()
        .iter()
        .zip(rows.columns())
        .filter(|(field, _)| !CONSTANT.contains(&field.name().as_str()))
        .filter(|(field, _)| {
            field.data_type().is_numeric() && field.name() != super::waiting::SERIES
        })
        .map(|(_, column)| column.slice(range.start, range.len()))
        .collect();
    let known = measured.iter().filter(|column| column.is_valid(0)).count();
    if known < WITNESSES + 1 {
        return Ok(Vec::new());
    }
    let field = |kind: &DataType| SortField::new_with_options(kind.clone(), SortOptions::default());
    let fields = measured.iter().map(|column| field(column.data_type())).collect();
    let keys = RowConverter::new(fields)?.convert_columns(&measured)?;
    let mut found = Vec::new();
    let mut start = 0;
    for row in 1..=range.len() {
        if row < range.len() && keys.row(row) == keys.row(row - 1) {
            continue;
        }
        if row - start >= STALE_READINGS {
            found.push(range.start + start..range.start + row);
        }
        start = row;
    }
    Ok(found)
}
