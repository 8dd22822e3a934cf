//! Job rows on their way into batches of the `jobs` table.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, Int32Array, MapBuilder, MapFieldNames, RecordBatch, StringArray,
    StringBuilder, TimestampMillisecondArray,
};

use crate::error::IngestError;

/// One attempt of a job. Texts that repeat are shared.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct JobRow {
    pub(crate) job_id: String,
    /// Restarts before this attempt; `None` where the ledger does not count them.
    pub(crate) attempt: Option<i32>,
    pub(crate) cluster: Option<Arc<str>>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) user: Option<Arc<str>>,
    pub(crate) team: Option<Arc<str>>,
    pub(crate) project: Option<Arc<str>>,
    pub(crate) workload: Option<Arc<str>>,
    pub(crate) partition: Option<Arc<str>>,
    pub(crate) priority: Option<f64>,
    pub(crate) state: Option<Arc<str>>,
    pub(crate) submitted_at: Option<i64>,
    pub(crate) eligible_at: Option<i64>,
    pub(crate) started_at: Option<i64>,
    pub(crate) ended_at: Option<i64>,
    pub(crate) suspended_s: Option<f64>,
    pub(crate) gpus_requested: Option<f64>,
    pub(crate) gpus_allocated: Option<f64>,
    pub(crate) gpu_model_requested: Option<Arc<str>>,
    pub(crate) nodes: Option<Arc<str>>,
    pub(crate) time_limit_s: Option<f64>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) labels: Vec<(&'static str, Arc<str>)>,
}

/// Keeps one copy of each text.
#[derive(Debug, Default)]
pub(crate) struct Texts(HashSet<Arc<str>>);

impl Texts {
    pub(crate) fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = Arc::from(text);
        self.0.insert(Arc::clone(&text));
        text
    }
}

/// The rows as a batch with the types of the `jobs` table.
pub(crate) fn batch(rows: &[JobRow]) -> Result<RecordBatch, IngestError> {
    let text = |get: fn(&JobRow) -> Option<&str>| -> ArrayRef {
        Arc::new(rows.iter().map(get).collect::<StringArray>())
    };
    let number = |get: fn(&JobRow) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.iter().map(get).collect::<Float64Array>())
    };
    let instant = |get: fn(&JobRow) -> Option<i64>| -> ArrayRef {
        let millis: TimestampMillisecondArray = rows.iter().map(get).collect();
        Arc::new(millis.with_timezone("UTC"))
    };
    let attempt: Int32Array = rows.iter().map(|row| row.attempt).collect();
    let exit_code: Int32Array = rows.iter().map(|row| row.exit_code).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("job_id", text(|row| Some(&row.job_id))),
        ("attempt", Arc::new(attempt)),
        ("cluster", text(|row| row.cluster.as_deref())),
        ("name", text(|row| row.name.as_deref())),
        ("user", text(|row| row.user.as_deref())),
        ("team", text(|row| row.team.as_deref())),
        ("project", text(|row| row.project.as_deref())),
        ("workload", text(|row| row.workload.as_deref())),
        ("partition", text(|row| row.partition.as_deref())),
        ("priority", number(|row| row.priority)),
        ("state", text(|row| row.state.as_deref())),
        ("submitted_at", instant(|row| row.submitted_at)),
        ("eligible_at", instant(|row| row.eligible_at)),
        ("started_at", instant(|row| row.started_at)),
        ("ended_at", instant(|row| row.ended_at)),
        ("suspended_s", number(|row| row.suspended_s)),
        ("gpus_requested", number(|row| row.gpus_requested)),
        ("gpus_allocated", number(|row| row.gpus_allocated)),
        ("gpu_model_requested", text(|row| row.gpu_model_requested.as_deref())),
        ("nodes", text(|row| row.nodes.as_deref())),
        ("time_limit_s", number(|row| row.time_limit_s)),
        ("exit_code", Arc::new(exit_code)),
        ("labels", labels(rows.iter().map(|row| row.labels.iter().map(|(k, v)| (*k, &**v))))?),
    ];
    Ok(RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )?)
}

/// A map array of `labels`' type; a row without labels is NULL.
pub(crate) fn labels<'a, R>(rows: impl Iterator<Item = R>) -> Result<ArrayRef, IngestError>
where
    R: Iterator<Item = (&'a str, &'a str)>,
{
    let names =
        MapFieldNames { entry: "key_value".into(), key: "key".into(), value: "value".into() };
    let mut map = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    for row in rows {
        let mut any = false;
        for (key, value) in row {
            map.keys().append_value(key);
            map.values().append_value(value);
            any = true;
        }
        map.append(any)?;
    }
    Ok(Arc::new(map.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Table;

    #[test]
    fn every_column_has_the_type_of_the_table() {
        // Breaks when the store would have to refuse or convert the batch.
        let row = JobRow {
            job_id: "1".into(),
            labels: vec![("qos", Arc::from("high"))],
            ..JobRow::default()
        };
        let rows = batch(&[row, JobRow::default()]).unwrap();
        assert_eq!(rows.num_columns(), Table::Jobs.schema().fields().len());
        for field in Table::Jobs.schema().fields() {
            let found = rows.schema().field_with_name(field.name()).unwrap().clone();
            assert_eq!(found.data_type(), field.data_type(), "{}", field.name());
        }
        assert_eq!(rows.column_by_name("labels").unwrap().null_count(), 1);
    }
}
