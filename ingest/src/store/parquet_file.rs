//! One sorted Parquet file of one partition, with the statistics that Delta's log carries.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{cast, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use chrono::{NaiveDate, Utc};
use deltalake::kernel::Add;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;

use super::Cause;
use super::delta::DATE;
use crate::merge::conform;
use crate::schema::Table;

mod encoding;
mod stats;
#[cfg(test)]
mod tests;

/// Rows that get their absent columns at once: NULLs take room only while they are encoded.
const SLICE_ROWS: usize = 1 << 15;

/// Rows of one file, sorted, with any subset of the table's columns.
#[derive(Debug)]
pub(crate) struct Content {
    /// UTC day of a partitioned table.
    pub(crate) date: Option<NaiveDate>,
    /// Which part of the day's series this is, and of how many.
    pub(crate) part: (usize, usize),
    /// Columns.
    pub(crate) rows: RecordBatch,
    /// Key columns by series, and the series of each row, where they are kept apart.
    pub(crate) series: Option<(RecordBatch, UInt32Array)>,
    /// What the rows of a derived table were made from, as a fingerprint; its file's name tells it.
    pub(crate) made_from: Option<u64>,
}

impl Content {
    /// Memory that the rows take, of arrays that share some only their own.
    pub(super) fn bytes(&self) -> usize {
        let columns = self.rows.columns().iter();
        columns.map(|column| column.to_data().get_slice_memory_size().unwrap_or(0)).sum()
    }

    /// The rows with every column of `table`.
    pub(crate) fn conformed(&self, table: Table) -> Result<RecordBatch, ArrowError> {
        conformed(table, self, 0, self.rows.num_rows())
    }
}

/// The part and number of parts that a file's name tells.
pub(crate) fn part_of(path: &str) -> Option<(usize, usize)> {
    let name = path.rsplit('/').next()?;
    let mut words = name.split('-').skip(1);
    let part = words.next()?.parse().ok()?;
    (words.next()? == "of").then_some(())?;
    Some((part, words.next()?.parse().ok()?))
}

/// What the rows of a derived table's file were made from, as its name tells.
pub(crate) fn made_from(path: &str) -> Option<u64> {
    let (_, rest) = path.rsplit_once("-from-")?;
    u64::from_str_radix(rest.get(..16)?, 16).ok()
}

/// The CRC-32 of a file's bytes that its name tells.
pub(crate) fn sum_of(path: &str) -> Option<u32> {
    let name = path.rsplit('/').next()?.strip_suffix(".parquet")?;
    let mut words = name.rsplit('-');
    let sum = words.next().filter(|sum| sum.len() == 8)?;
    (words.next()?.len() == 16).then(|| u32::from_str_radix(sum, 16).ok())?
}

/// Encodes and describes one file. Its name is drawn, since two imports must never share a file:
/// the one that fails deletes its own.
pub(super) fn encode(table: Table, content: &Content) -> Result<(Add, Vec<u8>), Cause> {
    let schema = file_schema(table);
    let options = ArrowWriterOptions::new()
        .with_properties(encoding::properties(table, &content.rows)?)
        .with_skip_arrow_metadata(true);
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, Arc::clone(&schema), options)?;
    let mut stats = stats::Stats::new(table, &schema);
    let mut start = 0;
    while start < content.rows.num_rows() {
        let rows = slice(table, &schema, content, start)?;
        start += rows.num_rows();
        stats.take(&rows);
        writer.write(&rows)?;
    }
    writer.close()?;
    let add = Add {
        path: path(content, crc32fast::hash(&bytes)),
        partition_values: content
            .date
            .map(|date| (DATE.to_owned(), Some(date.to_string())))
            .into_iter()
            .collect(),
        size: i64::try_from(bytes.len())?,
        modification_time: Utc::now().timestamp_millis(),
        data_change: true,
        stats: Some(stats.json().to_string()),
        ..Add::default()
    };
    Ok((add, bytes))
}

fn path(content: &Content, sum: u32) -> String {
    let draw = || RandomState::new().build_hasher().finish();
    let (part, parts) = content.part;
    let from = content.made_from.map_or_else(String::new, |from| format!("from-{from:016x}-"));
    let name = format!("part-{part}-of-{parts}-{from}{:016x}-{sum:08x}.parquet", draw());
    match content.date {
        Some(date) => format!("{DATE}={date}/{name}"),
        None => name,
    }
}

/// The table's columns as Delta has them: its timestamps are microseconds.
fn file_schema(table: Table) -> SchemaRef {
    let micros = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let schema = table.schema();
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Timestamp(_, _) => Field::new(field.name(), micros.clone(), true),
        _ => field.as_ref().clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn slice(
    table: Table,
    schema: &SchemaRef,
    content: &Content,
    start: usize,
) -> Result<RecordBatch, ArrowError> {
    let length = SLICE_ROWS.min(content.rows.num_rows() - start);
    let rows = conformed(table, content, start, length)?;
    let columns: Result<Vec<ArrayRef>, ArrowError> = schema
        .fields()
        .iter()
        .zip(rows.columns())
        .map(|(field, column)| match field.data_type() {
            kind @ DataType::Timestamp(_, _) => cast(column, kind),
            _ => Ok(Arc::clone(column)),
        })
        .collect();
    RecordBatch::try_new(Arc::clone(schema), columns?)
}

fn conformed(
    table: Table,
    content: &Content,
    start: usize,
    length: usize,
) -> Result<RecordBatch, ArrowError> {
    let mut rows = content.rows.slice(start, length);
    if let Some((keys, series)) = &content.series {
        let keys = take_record_batch(keys, &series.slice(start, length))?;
        let (left, right) = (keys.schema(), rows.schema());
        let fields: Vec<_> = left.fields().iter().chain(right.fields()).cloned().collect();
        let columns = keys.columns().iter().chain(rows.columns()).cloned().collect();
        rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    }
    conform(table, &rows)
}
