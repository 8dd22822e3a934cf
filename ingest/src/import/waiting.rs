//! The form in which readings wait: the number of the series for the key, texts as dictionaries,
//! only columns with a value.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, RecordBatch, UInt32Array, new_null_array,
};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Float64Type, UInt32Type};
use arrow::error::ArrowError;

use super::series::{self, Series};
use crate::schema::Table;

/// Column that holds the number of the series.
pub(super) const SERIES: &str = "series";

/// Gives rows of `table` the form in which they wait.
pub(super) fn narrow(
    table: Table,
    series: &mut Series,
    rows: &RecordBatch,
) -> Result<RecordBatch, ArrowError> {
    let keys: Vec<&str> = series::columns(table).collect();
    let mut columns: Vec<(String, ArrayRef)> =
        vec![(SERIES.into(), Arc::new(series.number(rows)?))];
    for field in table.schema().fields() {
        let Some(column) = rows.column_by_name(field.name()) else { continue };
        if keys.contains(&field.name().as_str()) || column.null_count() == column.len() {
            continue;
        }
        let kind = waiting_type(field.data_type());
        let same = *column.data_type() == kind;
        let column = if same { Arc::clone(column) } else { cast(column, &kind)? };
        columns.push((field.name().clone(), column));
    }
    nullable(columns)
}

/// One batch of all, with every column that any of them has. The columns of `batches` are let go
/// one by one, so that memory holds the rows once and not twice.
pub(super) fn union(table: Table, batches: Vec<RecordBatch>) -> Result<RecordBatch, ArrowError> {
    let schema = table.schema();
    let known = schema
        .fields()
        .iter()
        .map(|field| (field.name().as_str(), waiting_type(field.data_type())));
    let mut batches: Vec<Apart> = batches.into_iter().map(Apart::from).collect();
    let mut columns = Vec::new();
    for (name, kind) in std::iter::once((SERIES, DataType::UInt32)).chain(known) {
        let parts: Vec<Option<ArrayRef>> =
            batches.iter_mut().map(|batch| batch.columns.remove(name)).collect();
        if parts.iter().all(Option::is_none) {
            continue;
        }
        let parts: Vec<ArrayRef> = parts
            .into_iter()
            .zip(&batches)
            .map(|(part, batch)| part.unwrap_or_else(|| new_null_array(&kind, batch.rows)))
            .collect();
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        columns.push((name.to_owned(), concat(&parts)?));
    }
    if columns.is_empty() {
        let none: ArrayRef = Arc::new(UInt32Array::from(Vec::<u32>::new()));
        columns.push((SERIES.into(), none));
    }
    nullable(columns)
}

/// A batch whose columns can be taken out one by one.
struct Apart {
    columns: HashMap<String, ArrayRef>,
    rows: usize,
}

impl From<RecordBatch> for Apart {
    fn from(batch: RecordBatch) -> Self {
        let (schema, columns, rows) = batch.into_parts();
        let names = schema.fields().iter().map(|field| field.name().clone());
        Self { columns: names.zip(columns).collect(), rows }
    }
}

fn waiting_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Utf8 => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        kind => kind.clone(),
    }
}

fn nullable(columns: Vec<(String, ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
}

/// The series of each row.
pub(super) fn numbers(rows: &RecordBatch) -> UInt32Array {
    let column = rows.column_by_name(SERIES).expect("waiting rows carry their series");
    column.as_primitive::<UInt32Type>().clone()
}

/// What each row stands for, where all rows have been told.
pub(super) fn periods(rows: &RecordBatch) -> Option<Float64Array> {
    let column = rows.column_by_name("period_s")?.as_primitive::<Float64Type>();
    (column.null_count() == 0).then(|| column.clone())
}

/// The rows with these periods.
pub(super) fn with_periods(
    rows: &RecordBatch,
    periods: Vec<f64>,
) -> Result<RecordBatch, ArrowError> {
    let schema = rows.schema();
    let others = schema.fields().iter().zip(rows.columns());
    let others = others.filter(|(field, _)| field.name() != "period_s");
    let mut columns: Vec<(String, ArrayRef)> =
        others.map(|(field, column)| (field.name().clone(), Arc::clone(column))).collect();
    columns.push(("period_s".into(), Arc::new(Float64Array::from(periods))));
    nullable(columns)
}
