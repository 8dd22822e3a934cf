//! What an import saw the names and the span of.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimestampMillisecondType};
use chrono::{DateTime, Utc};

use super::{Import, Waiting};
use crate::error::IngestError;
use crate::schema::{Table, instant};

impl Import {
    pub(super) fn note_names(&mut self, rows: &RecordBatch) -> Result<(), IngestError> {
        for (column, names) in
            [("node", &mut self.nodes), ("gpu_uuid", &mut self.gpus), ("job_id", &mut self.jobs)]
        {
            let Some(values) = rows.column_by_name(column) else { continue };
            let values = match values.as_any_dictionary_opt() {
                Some(dictionary) => Arc::clone(dictionary.values()),
                None => cast(values, &DataType::Utf8)?,
            };
            for name in values.as_string::<i32>().iter().flatten() {
                if !names.contains(name) {
                    names.insert(name.to_owned());
                }
            }
        }
        Ok(())
    }

    /// Names and clocks of the series that came.
    pub(super) fn note_series(
        &mut self,
        table: Table,
        waiting: &Waiting,
    ) -> Result<(), IngestError> {
        let Some(series) = &waiting.series else { return Ok(()) };
        self.nodes.extend(series.names("node")?);
        self.gpus.extend(series.names("gpu_uuid")?);
        if let Some((number, text)) = waiting.clock.told() {
            self.told(format!("{table} {}: {text}", series.label(number)?));
        }
        Ok(())
    }

    pub(super) fn note_span(
        &mut self,
        table: Table,
        rows: &RecordBatch,
    ) -> Result<(), IngestError> {
        let columns = ["submitted_at", "started_at", "ended_at"];
        for column in table.partitioned_by().iter().chain(&columns) {
            if let Some(values) = rows.column_by_name(column) {
                let values = cast(values, &instant())?;
                let values = values.as_primitive::<TimestampMillisecondType>();
                self.summary.note_span(extent(values));
            }
        }
        Ok(())
    }
}

fn extent(
    values: &arrow::array::TimestampMillisecondArray,
) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    let (low, high) = (arrow::compute::min(values)?, arrow::compute::max(values)?);
    Some((DateTime::from_timestamp_millis(low)?, DateTime::from_timestamp_millis(high)?))
}
