//! Rows of an answer, read by column name.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, TimeUnit, TimestampMillisecondType};
use chrono::{DateTime, Utc};
use loadline_engine::Answer;

/// One row; an unknown column or a NULL reads as `None`.
#[derive(Debug, Clone)]
pub(super) struct Row {
    columns: Arc<Vec<(String, ArrayRef)>>,
    row: usize,
}

/// Rows of an answer, in its order.
pub(super) fn rows(answer: &Answer) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in &answer.batches {
        let schema = batch.schema();
        let named = schema.fields().iter().zip(batch.columns());
        let named = named.map(|(field, column)| (field.name().clone(), Arc::clone(column)));
        let columns = Arc::new(named.collect::<Vec<_>>());
        rows.extend((0..batch.num_rows()).map(|row| Row { columns: Arc::clone(&columns), row }));
    }
    rows
}

impl Row {
    fn value(&self, column: &str, kind: &DataType) -> Option<ArrayRef> {
        let (_, values) = self.columns.iter().find(|(name, _)| name == column)?;
        let value = cast(&values.slice(self.row, 1), kind).ok()?;
        value.is_valid(0).then_some(value)
    }

    /// A number; one that is not finite is none.
    pub(super) fn number(&self, column: &str) -> Option<f64> {
        let value = self.value(column, &DataType::Float64)?;
        Some(value.as_primitive::<Float64Type>().value(0)).filter(|value| value.is_finite())
    }

    /// A count.
    pub(super) fn count(&self, column: &str) -> Option<u64> {
        self.number(column).filter(|value| *value >= 0.0).map(|value| value as u64)
    }

    /// A text.
    pub(super) fn text(&self, column: &str) -> Option<String> {
        let value = self.value(column, &DataType::Utf8)?;
        Some(value.as_string::<i32>().value(0).to_owned())
    }

    /// An instant.
    pub(super) fn instant(&self, column: &str) -> Option<DateTime<Utc>> {
        let kind = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
        let value = self.value(column, &kind)?;
        DateTime::from_timestamp_millis(value.as_primitive::<TimestampMillisecondType>().value(0))
    }
}
