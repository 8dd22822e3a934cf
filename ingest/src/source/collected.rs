//! For tests: an output that keeps all it is given, and the real data where it is present.

use std::path::PathBuf;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float64Type, Int32Type, TimestampMillisecondType};

use crate::batch::{Notice, Output, Reject};
use crate::error::IngestError;
use crate::schema::Table;
use crate::source::input::Input;

#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) batches: Vec<(Table, RecordBatch)>,
    pub(crate) read: u64,
    pub(crate) rejects: Vec<Reject>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) nulled: Vec<(&'static str, u64)>,
}

impl Output for Collected {
    fn rows(&mut self, table: Table, rows: RecordBatch) -> Result<(), IngestError> {
        self.batches.push((table, rows));
        Ok(())
    }

    fn read(&mut self, rows: u64) {
        self.read += rows;
    }

    fn reject(&mut self, reject: Reject) {
        self.rejects.push(reject);
    }

    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    fn nulled(&mut self, column: &'static str, values: u64) {
        self.nulled.push((column, values));
    }
}

impl Collected {
    /// All rows of `table` as one batch.
    pub(crate) fn table(&self, table: Table) -> RecordBatch {
        let of_table: Vec<&RecordBatch> =
            self.batches.iter().filter(|(t, _)| *t == table).map(|(_, rows)| rows).collect();
        let first = of_table.first().expect("some rows were read");
        concat_batches(&first.schema(), of_table.iter().copied()).unwrap()
    }
}

pub(crate) fn texts(rows: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let array = rows.column_by_name(column).unwrap().as_string::<i32>();
    array.iter().map(|text| text.map(str::to_owned)).collect()
}

pub(crate) fn numbers(rows: &RecordBatch, column: &str) -> Vec<Option<f64>> {
    rows.column_by_name(column).unwrap().as_primitive::<Float64Type>().iter().collect()
}

pub(crate) fn integers(rows: &RecordBatch, column: &str) -> Vec<Option<i32>> {
    rows.column_by_name(column).unwrap().as_primitive::<Int32Type>().iter().collect()
}

pub(crate) fn millis(rows: &RecordBatch, column: &str) -> Vec<Option<i64>> {
    rows.column_by_name(column).unwrap().as_primitive::<TimestampMillisecondType>().iter().collect()
}

/// GPU-hours of `jobs` the plain way: GPUs times held time without suspension.
pub(crate) fn gpu_hours(jobs: &RecordBatch) -> f64 {
    let gpus = numbers(jobs, "gpus_allocated");
    let (started, ended) = (millis(jobs, "started_at"), millis(jobs, "ended_at"));
    let suspended = jobs
        .column_by_name("suspended_s")
        .map_or_else(|| vec![None; gpus.len()], |_| numbers(jobs, "suspended_s"));
    (0..jobs.num_rows())
        .filter_map(|row| {
            let held_s = (ended[row]? - started[row]?) as f64 / 1000.0;
            Some(gpus[row]? * (held_s - suspended[row].unwrap_or(0.0)) / 3600.0)
        })
        .sum()
}

/// A file of the real data, or `None` (and a word about it) where the folder is absent.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
    let root = std::env::var_os("LOADLINE_SHARED").map_or_else(|| default.into(), PathBuf::from);
    let path = root.join("data").join(path);
    let there = path.exists() || path.to_string_lossy().contains('*');
    if !there || !root.join("data").exists() {
        println!("skipped: ../shared/data is absent");
        return None;
    }
    Some(path)
}

pub(crate) fn inputs(path: &std::path::Path) -> Vec<Input> {
    Input::expand(&[path.to_string_lossy()]).unwrap()
}
