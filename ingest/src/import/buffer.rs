//! Rows that wait for their commit, by UTC day, in memory or in a temporary folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::PathBuf;

use arrow::array::{Array, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{cast, take_record_batch};
use arrow::datatypes::TimestampMillisecondType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use chrono::{DateTime, NaiveDate};

use crate::error::IngestError;
use crate::schema::{Table, instant};

const DAY_MS: i64 = 86_400_000;

/// Rows of one table, as they came.
#[derive(Debug)]
pub(super) struct Buffer {
    table: Table,
    days: BTreeMap<Option<NaiveDate>, Vec<RecordBatch>>,
    bytes: usize,
    spilled: BTreeMap<Option<NaiveDate>, Vec<PathBuf>>,
    rows: BTreeMap<Option<NaiveDate>, usize>,
    folder: Option<tempfile::TempDir>,
    files: usize,
}

impl Buffer {
    pub(super) fn new(table: Table) -> Self {
        Self {
            table,
            days: BTreeMap::new(),
            bytes: 0,
            spilled: BTreeMap::new(),
            rows: BTreeMap::new(),
            folder: None,
            files: 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, rows: RecordBatch) -> Result<(), IngestError> {
        let parts = match self.table.partitioned_by() {
            None => vec![(None, rows)],
            Some(column) => by_day(column, rows)?,
        };
        for (day, rows) in parts {
            self.bytes += rows.get_array_memory_size();
            *self.rows.entry(day).or_default() += rows.num_rows();
            self.days.entry(day).or_default().push(rows);
        }
        Ok(())
    }

    /// Moves what waits in memory to the temporary folder.
    pub(super) fn spill(&mut self) -> Result<(), IngestError> {
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => tempfile::tempdir().map_err(unwritable)?,
        };
        for (day, batches) in std::mem::take(&mut self.days) {
            for rows in batches.chunk_by(|a, b| a.schema() == b.schema()) {
                let path = folder.path().join(self.files.to_string());
                self.files += 1;
                let file = BufWriter::new(File::create(&path).map_err(unwritable)?);
                let mut writer = StreamWriter::try_new(file, &rows[0].schema())?;
                for batch in rows {
                    writer.write(batch)?;
                }
                writer.finish()?;
                self.spilled.entry(day).or_default().push(path);
            }
        }
        self.bytes = 0;
        self.folder = Some(folder);
        Ok(())
    }

    /// Frees memory before days are taken one by one, once anything has been spilled.
    pub(super) fn settle(&mut self) -> Result<(), IngestError> {
        if self.folder.is_some() { self.spill() } else { Ok(()) }
    }

    /// Days with rows, in order.
    pub(super) fn days(&self) -> BTreeSet<NaiveDate> {
        self.rows.keys().copied().flatten().collect()
    }

    /// Rows of a day.
    pub(super) fn rows(&self, day: Option<NaiveDate>) -> usize {
        self.rows.get(&day).copied().unwrap_or_default()
    }

    /// Hands the batches of a day to `each`, in the order of their arrival.
    pub(super) fn each(
        &self,
        day: Option<NaiveDate>,
        mut each: impl FnMut(RecordBatch) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        for path in self.spilled.get(&day).into_iter().flatten() {
            let file = BufReader::new(File::open(path).map_err(unwritable)?);
            for batch in StreamReader::try_new(file, None)? {
                each(batch?)?;
            }
        }
        self.days.get(&day).into_iter().flatten().try_for_each(|batch| each(batch.clone()))
    }
}

fn unwritable(source: std::io::Error) -> IngestError {
    IngestError::Read { path: std::env::temp_dir().to_string_lossy().into_owned(), source }
}

/// Splits rows by UTC day; rows without an instant cannot be placed and are an error of the
/// source, which must have kept them aside.
fn by_day(
    column: &'static str,
    rows: RecordBatch,
) -> Result<Vec<(Option<NaiveDate>, RecordBatch)>, IngestError> {
    let missing = || arrow::error::ArrowError::SchemaError(format!("rows without `{column}`"));
    let instants = cast(rows.column_by_name(column).ok_or_else(missing)?, &instant())?;
    let instants = instants.as_primitive::<TimestampMillisecondType>();
    if instants.null_count() > 0 {
        return Err(missing().into());
    }
    let mut days: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    let day_of = |millis: i64| millis.div_euclid(DAY_MS);
    let first = instants.values().first().copied().map(day_of);
    if instants.values().iter().all(|millis| Some(day_of(*millis)) == first) {
        return Ok(vec![(first.and_then(date), rows)]);
    }
    for (row, millis) in (0..).zip(instants.values()) {
        days.entry(day_of(*millis)).or_default().push(row);
    }
    days.into_iter()
        .map(|(day, indices)| {
            Ok((date(day), take_record_batch(&rows, &UInt32Array::from(indices))?))
        })
        .collect()
}

fn date(day: i64) -> Option<NaiveDate> {
    DateTime::from_timestamp(day * 86_400, 0).map(|at| at.date_naive())
}
