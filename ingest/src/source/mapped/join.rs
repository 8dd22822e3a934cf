//! Rows of several files that hold some columns each, joined on the table's key.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::{concat_batches, interleave};
use arrow::row::{OwnedRow, RowConverter, SortField};

use crate::error::IngestError;
use crate::schema::Table;

/// Joins the rows of `groups` (one batch list a group of files) on the key of `table`. A key that
/// only one group has keeps its row; columns of the others are NULL there. Rows come in the order
/// in which their keys were first seen. Of two rows with one key in a group the first counts.
pub(crate) fn join(
    table: Table,
    groups: Vec<Vec<RecordBatch>>,
) -> Result<Option<RecordBatch>, IngestError> {
    let mut parts = Vec::new();
    for batches in groups {
        if let Some(first) = batches.first() {
            parts.push(concat_batches(&first.schema(), &batches)?);
        }
    }
    let Some(first) = parts.first() else { return Ok(None) };
    let keys: Vec<&str> = table
        .key()
        .iter()
        .copied()
        .filter(|key| parts.iter().all(|part| part.column_by_name(key).is_some()))
        .collect();
    let fields = keys.iter().map(|key| {
        let array = first.column_by_name(key).expect("every part has the key");
        SortField::new(array.data_type().clone())
    });
    let converter = RowConverter::new(fields.collect())?;
    let places = places(&parts, &keys, &converter)?;
    merged(&parts, &places).map(Some)
}

/// For each key the row of each part that has it.
fn places(
    parts: &[RecordBatch],
    keys: &[&str],
    converter: &RowConverter,
) -> Result<Vec<Vec<Option<usize>>>, IngestError> {
    let mut of_key: HashMap<OwnedRow, usize> = HashMap::new();
    let mut places: Vec<Vec<Option<usize>>> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let columns: Vec<ArrayRef> = keys
            .iter()
            .map(|key| part.column_by_name(key).expect("every part has the key").clone())
            .collect();
        let rows = converter.convert_columns(&columns)?;
        for (row, key) in rows.iter().enumerate() {
            let place = *of_key.entry(key.owned()).or_insert_with(|| {
                places.push(vec![None; parts.len()]);
                places.len() - 1
            });
            places[place][at].get_or_insert(row);
        }
    }
    Ok(places)
}

/// The first value that is not NULL among the parts, for each column and key.
fn merged(
    parts: &[RecordBatch],
    places: &[Vec<Option<usize>>],
) -> Result<RecordBatch, IngestError> {
    let mut names: Vec<String> = Vec::new();
    for part in parts {
        for field in part.schema().fields() {
            if !names.contains(field.name()) {
                names.push(field.name().clone());
            }
        }
    }
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let arrays: Vec<Option<&ArrayRef>> =
            parts.iter().map(|part| part.column_by_name(&name)).collect();
        let kind = arrays.iter().flatten().next().expect("some part has it").data_type();
        let nothing = new_null_array(kind, 1);
        let sources: Vec<&dyn Array> = arrays
            .iter()
            .map(|array| array.map_or(nothing.as_ref(), |array| array.as_ref()))
            .chain([nothing.as_ref()])
            .collect();
        let pick = |rows: &Vec<Option<usize>>| {
            let found = arrays.iter().zip(rows).enumerate().find_map(|(part, (array, row))| {
                let (array, row) = ((*array)?, (*row)?);
                array.is_valid(row).then_some((part, row))
            });
            found.unwrap_or((arrays.len(), 0))
        };
        let picked: Vec<(usize, usize)> = places.iter().map(pick).collect();
        columns.push((name, interleave(&sources, &picked)?, true));
    }
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}
