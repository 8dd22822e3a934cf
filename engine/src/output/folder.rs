//! Which folder does a row go to? `column=value`, as Hive, Spark, DuckDB and Polars read it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use chrono::NaiveDate;
use chrono_tz::Tz;

use crate::answer::per_second;
use crate::calendar::{BinUnit, LocalBin, to_local};

/// Folder name of rows whose partition column is NULL, as Hive and Spark write it.
const NULL_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// A column whose values name folders, and how they do.
struct Named<'a> {
    name: &'a str,
    column: &'a ArrayRef,
    dates: Option<Vec<Option<NaiveDate>>>,
    shown: ArrayFormatter<'a>,
}

/// Row numbers by the folder that they go to. `rows` are as they are written, `zoned` the same with
/// the zones of their instants.
pub(super) fn folders(
    rows: &RecordBatch,
    zoned: &RecordBatch,
    by: &[usize],
) -> Result<BTreeMap<PathBuf, Vec<u32>>, ArrowError> {
    let schema = rows.schema();
    let options = FormatOptions::default();
    let named = by.iter().map(|column| {
        Ok(Named {
            name: schema.field(*column).name(),
            column: rows.column(*column),
            dates: days(zoned.column(*column))?,
            shown: ArrayFormatter::try_new(rows.column(*column), &options)?,
        })
    });
    let named = named.collect::<Result<Vec<_>, ArrowError>>()?;
    let mut folders: BTreeMap<PathBuf, Vec<u32>> = BTreeMap::new();
    if named.is_empty() {
        folders.insert(PathBuf::new(), Vec::new());
    }
    for row in 0..rows.num_rows() {
        let folder: PathBuf =
            named.iter().map(|column| format!("{}={}", column.name, column.value(row))).collect();
        let row = u32::try_from(row).expect("an answer in memory has fewer than 2^32 rows");
        folders.entry(folder).or_default().push(row);
    }
    Ok(folders)
}

impl Named<'_> {
    fn value(&self, row: usize) -> String {
        if self.column.is_null(row) {
            return NULL_PARTITION.to_owned();
        }
        match self.dates.as_ref().and_then(|dates| dates[row]) {
            Some(date) => date.to_string(),
            None => escaped(&self.shown.value(row).to_string()),
        }
    }
}

/// The local date of each instant, where the column holds instants and all of them begin a local
/// day: its midnight or, where the clock skips that, the first instant after it.
fn days(column: &ArrayRef) -> Result<Option<Vec<Option<NaiveDate>>>, ArrowError> {
    let DataType::Timestamp(unit, zone) = column.data_type() else { return Ok(None) };
    let Ok(zone) = zone.as_deref().map_or(Ok(Tz::UTC), str::parse::<Tz>) else { return Ok(None) };
    let second = per_second(*unit);
    let numbers = cast(column, &DataType::Int64)?;
    let date = |at: i64| {
        let at = (at % second == 0).then_some(at / second)?.checked_mul(1_000)?;
        let begins = LocalBin::start(BinUnit::DAY, zone, at) == at;
        begins.then(|| to_local(zone, at).0.date())
    };
    let numbers = numbers.as_primitive::<Int64Type>().iter();
    Ok(numbers.map(|at| at.map_or(Some(None), |at| date(at).map(Some))).collect())
}

/// Letters, digits and what is harmless in a file name as they are, the rest as `%XX`.
fn escaped(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b' ' => {
                name.push(char::from(byte));
            }
            other => write!(name, "%{other:02X}").expect("a string takes any text"),
        }
    }
    name
}
