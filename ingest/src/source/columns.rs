//! Rows gathered column by column until they become a batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray};

use crate::error::IngestError;

/// Columns of a batch in the making. A column that a row does not set is NULL there.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    rows: usize,
    texts: BTreeMap<&'static str, Vec<Option<String>>>,
    numbers: BTreeMap<&'static str, Vec<Option<f64>>>,
    instants: BTreeMap<&'static str, Vec<Option<i64>>>,
}

impl Columns {
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn text(&mut self, column: &'static str, value: Option<String>) {
        set(&mut self.texts, self.rows, column, value);
    }

    pub(crate) fn number(&mut self, column: &'static str, value: Option<f64>) {
        set(&mut self.numbers, self.rows, column, value);
    }

    /// Milliseconds since 1970.
    pub(crate) fn instant(&mut self, column: &'static str, value: Option<i64>) {
        set(&mut self.instants, self.rows, column, value);
    }

    /// Ends the row that was being set.
    pub(crate) fn end_row(&mut self) {
        self.rows += 1;
    }

    /// The rows as a batch; the columns begin anew.
    pub(crate) fn take(&mut self) -> Result<RecordBatch, IngestError> {
        let Self { rows, texts, numbers, instants } = std::mem::take(self);
        let mut arrays: Vec<(&str, ArrayRef)> = Vec::new();
        for (name, mut values) in texts {
            values.resize(rows, None);
            arrays.push((name, Arc::new(StringArray::from(values))));
        }
        for (name, mut values) in numbers {
            values.resize(rows, None);
            arrays.push((name, Arc::new(Float64Array::from(values))));
        }
        for (name, mut values) in instants {
            values.resize(rows, None);
            let values = TimestampMillisecondArray::from(values).with_timezone("UTC");
            arrays.push((name, Arc::new(values)));
        }
        Ok(RecordBatch::try_from_iter(arrays)?)
    }
}

fn set<V: Clone>(
    columns: &mut BTreeMap<&'static str, Vec<Option<V>>>,
    row: usize,
    column: &'static str,
    value: Option<V>,
) {
    let values = columns.entry(column).or_default();
    values.resize(row, None);
    values.push(value);
}
