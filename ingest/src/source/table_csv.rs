//! CSV whose columns carry the names of the table: inventories, allocations, counts, and whatever
//! a site writes for us.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::compute::{cast, filter_record_batch, is_not_null};

use super::input::Input;
use crate::batch::{Output, Reject};
use crate::error::IngestError;
use crate::schema::Table;

const BATCH_ROWS: usize = 65_536;

/// Reads files into `table`; columns that the table does not have are passed over.
///
/// # Errors
/// A file that cannot be read, or that shares no column with the table.
pub fn read(paths: &[String], table: Table, out: &mut dyn Output) -> Result<(), IngestError> {
    for input in Input::expand(paths)? {
        read_one(&input, table, out)?;
    }
    Ok(())
}

fn read_one(input: &Input, table: Table, out: &mut dyn Output) -> Result<(), IngestError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(input.open()?);
    let unreadable = |error: csv::Error| input.unreadable(std::io::Error::other(error));
    let header = reader.headers().map_err(unreadable)?.clone();
    let schema = table.schema();
    let wanted: Vec<Option<usize>> = header
        .iter()
        .map(|name| schema.index_of(name.trim_start_matches('\u{feff}').trim()).ok())
        .collect();
    if wanted.iter().all(Option::is_none) {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        return Err(IngestError::Format {
            path: input.name().to_owned(),
            format: table.name(),
            reason: format!("no column is one of {}", names.join(", ")),
            hint: None,
        });
    }
    let mut cells: Vec<Vec<Option<String>>> = vec![Vec::new(); header.len()];
    let mut rows = 0;
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        out.read(1);
        if record.len() != header.len() {
            out.reject(Reject {
                file: input.name().to_owned(),
                line: record.position().map(csv::Position::line),
                reason: format!("{} fields, {} expected", record.len(), header.len()),
                text: record.iter().collect::<Vec<_>>().join(",").chars().take(200).collect(),
            });
            continue;
        }
        for (column, cell) in cells.iter_mut().zip(&record) {
            column.push((!cell.is_empty()).then(|| cell.to_owned()));
        }
        rows += 1;
        if rows == BATCH_ROWS {
            hand_on(input, table, &wanted, &mut cells, out)?;
            rows = 0;
        }
    }
    hand_on(input, table, &wanted, &mut cells, out)
}

fn hand_on(
    input: &Input,
    table: Table,
    wanted: &[Option<usize>],
    cells: &mut [Vec<Option<String>>],
    out: &mut dyn Output,
) -> Result<(), IngestError> {
    let schema = table.schema();
    let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
    for (column, target) in cells.iter_mut().zip(wanted) {
        let texts = StringArray::from(std::mem::take(column));
        let Some(target) = target else { continue };
        let field = schema.field(*target);
        let Ok(typed) = cast(&texts, field.data_type()) else { continue };
        let lost = typed.null_count() - texts.null_count();
        if lost > 0 {
            out.reject(Reject {
                file: input.name().to_owned(),
                line: None,
                reason: format!(
                    "{lost} values of `{}` are no {}; they are NULL",
                    field.name(),
                    field.data_type()
                ),
                text: String::new(),
            });
        }
        columns.push((field.name(), typed));
    }
    let rows = RecordBatch::try_from_iter(columns)?;
    match table.partitioned_by() {
        None => out.rows(table, rows),
        Some(instant) => {
            let Some(instants) = rows.column_by_name(instant).map(Arc::clone) else {
                return Err(IngestError::Format {
                    path: input.name().to_owned(),
                    format: table.name(),
                    reason: format!("column `{instant}` is missing"),
                    hint: None,
                });
            };
            out.rows(table, filter_record_batch(&rows, &is_not_null(&instants)?)?)
        }
    }
}
