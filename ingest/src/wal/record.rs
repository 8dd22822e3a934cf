//! What one call of `append` puts into the log: rows of some tables, as one piece.
//!
//! Form: bytes of the body (u32), CRC-32 of the body (u32), body. Body: for each table, length and
//! text of its name (u8, UTF-8), bytes of the rows (u32), the rows as an Arrow IPC stream. A table
//! named `@` is none: it tells how far the rows of another log are known. Numbers are
//! little-endian.

use std::io::Cursor;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::TimestampMillisecondType;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use super::origin::{self, Position, Source};
use crate::error::IngestError;
use crate::schema::Table;

/// Name that stands where a table's would.
const REACHED: &str = "@";

/// The first instant that no day of the store has: year 10000. None is before year 1.
const INSTANTS_MS: std::ops::Range<i64> = -62_135_596_800_000..253_402_300_800_000;

/// Bytes before the body.
pub(super) const HEAD_BYTES: usize = 8;

/// Bytes of a body, at most.
const BODY_BYTES_MAX: u32 = 256 << 20;

/// One record from rows, each table's columns a subset of its own, and how far other logs are
/// known with them.
///
/// # Errors
/// [`IngestError::Arrow`] for rows that could not be moved into the table later on.
pub(super) fn encode<'r>(
    rows: &[(Table, RecordBatch)],
    reached: impl IntoIterator<Item = (&'r Source, &'r Position)>,
) -> Result<Vec<u8>, IngestError> {
    let mut record = vec![0; HEAD_BYTES];
    for (table, rows) in rows.iter().filter(|(_, rows)| rows.num_rows() > 0) {
        check(*table, rows)?;
        entry(&mut record, table.name(), |record| {
            let mut writer = StreamWriter::try_new(record, &rows.schema())?;
            writer.write(rows)?;
            writer.finish()
        })?;
    }
    for ((log, table), until) in reached {
        entry(&mut record, REACHED, |record| {
            record.extend_from_slice(&origin::bytes_of(log, *table, *until));
            Ok(())
        })?;
    }
    let body = length(record.len() - HEAD_BYTES)?;
    let sum = crc32fast::hash(&record[HEAD_BYTES..]);
    record[..4].copy_from_slice(&body.to_le_bytes());
    record[4..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
    Ok(record)
}

fn entry(
    record: &mut Vec<u8>,
    name: &str,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), ArrowError>,
) -> Result<(), ArrowError> {
    record.push(name.len() as u8);
    record.extend_from_slice(name.as_bytes());
    let length_at = record.len();
    record.extend_from_slice(&[0; 4]);
    write(record)?;
    let length = length(record.len() - length_at - 4)?;
    record[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

fn length(bytes: usize) -> Result<u32, ArrowError> {
    u32::try_from(bytes).ok().filter(|bytes| *bytes <= BODY_BYTES_MAX).ok_or_else(|| {
        let text = format!("{bytes} bytes of rows at once: at most {BODY_BYTES_MAX} are taken");
        ArrowError::InvalidArgumentError(text)
    })
}

/// Rows that a flush could not place must not get into the log: they would stay for ever.
///
/// # Errors
/// A column that the table has not or has with another type, and rows without an instant or with
/// one that no calendar has.
pub fn check(table: Table, rows: &RecordBatch) -> Result<(), ArrowError> {
    let schema = table.schema();
    if rows.num_columns() == 0 {
        let text = format!("{} rows of `{table}` without columns", rows.num_rows());
        return Err(ArrowError::SchemaError(text));
    }
    for (field, column) in rows.schema().fields().iter().zip(rows.columns()) {
        let known = schema.field_with_name(field.name()).map_err(|_| {
            ArrowError::SchemaError(format!("`{table}` has no column `{}`", field.name()))
        })?;
        if known.data_type() != column.data_type() {
            return Err(ArrowError::SchemaError(format!(
                "column `{}` of `{table}` is {}, not {}",
                field.name(),
                known.data_type(),
                column.data_type()
            )));
        }
    }
    let Some(instant) = table.partitioned_by() else { return Ok(()) };
    let instants = match rows.column_by_name(instant) {
        Some(column) if column.null_count() == 0 => {
            column.as_primitive::<TimestampMillisecondType>()
        }
        _ => return Err(ArrowError::SchemaError(format!("rows of `{table}` without `{instant}`"))),
    };
    match instants.values().iter().find(|at| !INSTANTS_MS.contains(at)) {
        None => Ok(()),
        Some(at) => Err(ArrowError::SchemaError(format!(
            "rows of `{table}` with {at} ms since 1970 for `{instant}`: years 1 to 9999 are taken"
        ))),
    }
}

/// How far the bytes at the start of `bytes` are a record: its length, if it is whole and sound.
pub(super) fn whole(bytes: &[u8]) -> Option<usize> {
    let body = claimed(bytes)?;
    let sum = u32::from_le_bytes(bytes.get(4..HEAD_BYTES)?.try_into().ok()?);
    let end = HEAD_BYTES + body;
    (crc32fast::hash(bytes.get(HEAD_BYTES..end)?) == sum).then_some(end)
}

/// Bytes of the body that a head tells, if they can be true.
pub(super) fn claimed(bytes: &[u8]) -> Option<usize> {
    let body = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
    (body > 0 && body <= BODY_BYTES_MAX).then_some(body as usize)
}

/// Rows of a whole record.
///
/// # Errors
/// [`ArrowError`] for what another version wrote and this one does not know.
pub(super) fn decode(record: &[u8]) -> Result<Vec<(Table, RecordBatch)>, ArrowError> {
    let mut found = Vec::new();
    entries(record, |name, rows| {
        if name == REACHED {
            return Ok(());
        }
        let table: Table = name.parse().map_err(ArrowError::SchemaError)?;
        for batch in StreamReader::try_new(Cursor::new(rows), None)? {
            found.push((table, batch?));
        }
        Ok(())
    })?;
    Ok(found)
}

/// How far other logs are known with a whole record.
///
/// # Errors
/// As [`decode`].
pub(super) fn reached(record: &[u8]) -> Result<Vec<(Source, Position)>, ArrowError> {
    let mut found = Vec::new();
    entries(record, |name, bytes| {
        if name == REACHED {
            found.push(origin::of_bytes(bytes)?);
        }
        Ok(())
    })?;
    Ok(found)
}

fn entries(
    record: &[u8],
    mut each: impl FnMut(&str, &[u8]) -> Result<(), ArrowError>,
) -> Result<(), ArrowError> {
    let mut rest = record.get(HEAD_BYTES..).unwrap_or_default();
    while let Some((length, after)) = rest.split_first() {
        let (name, after) = part(after, usize::from(*length))?;
        let (length, after) = part(after, 4)?;
        let length = u32::from_le_bytes(length.try_into().map_err(|_| short())?);
        let (content, after) = part(after, length as usize)?;
        each(std::str::from_utf8(name).map_err(|_| short())?, content)?;
        rest = after;
    }
    Ok(())
}

fn part(bytes: &[u8], length: usize) -> Result<(&[u8], &[u8]), ArrowError> {
    bytes.split_at_checked(length).ok_or_else(short)
}

fn short() -> ArrowError {
    ArrowError::ParseError("the record does not hold what it tells".into())
}
