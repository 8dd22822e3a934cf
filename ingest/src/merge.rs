//! What becomes of rows that meet rows with the same key: readings are seen once, descriptions of
//! jobs and devices are brought up to date.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{cast, concat_batches, take_record_batch};
use arrow::datatypes::TimestampMillisecondType;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, Rows, SortField};

use crate::schema::{Table, instant};

/// Gives a batch every column of `table`, in order and with the table's types; a column that the
/// batch lacks is NULL.
///
/// # Errors
/// A column that cannot be cast.
pub(crate) fn conform(table: Table, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = table.schema();
    let columns: Result<Vec<ArrayRef>, ArrowError> = schema
        .fields()
        .iter()
        .map(|field| match batch.column_by_name(field.name()) {
            Some(column) if column.data_type() == field.data_type() => Ok(Arc::clone(column)),
            Some(column) => cast(column, field.data_type()),
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        })
        .collect();
    RecordBatch::try_new(schema, columns?)
}

/// Rows as comparable bytes of `columns`.
pub(crate) fn comparable(batch: &RecordBatch, columns: &[&str]) -> Result<Rows, ArrowError> {
    let arrays: Vec<ArrayRef> =
        columns.iter().filter_map(|name| batch.column_by_name(name).map(Arc::clone)).collect();
    let fields = arrays.iter().map(|array| SortField::new(array.data_type().clone())).collect();
    RowConverter::new(fields)?.convert_columns(&arrays)
}

/// The rows of one partition after new ones arrived.
#[derive(Debug)]
pub(crate) struct Merged {
    /// All rows, sorted by [`Table::sorted_by`], each key once.
    pub(crate) rows: RecordBatch,
    /// New rows whose key was there already, in the store or earlier in the import.
    pub(crate) duplicates: u64,
    /// Rows whose key is new.
    pub(crate) added: u64,
    /// Known rows that are no longer what they were.
    pub(crate) updated: u64,
}

/// Merges `new` into `known`; for equal keys the earlier row wins, or, for a table that
/// [`Table::updates`], the later row's values that are not NULL.
pub(crate) fn merge(
    table: Table,
    known: &RecordBatch,
    new: &[RecordBatch],
) -> Result<Merged, ArrowError> {
    let schema = table.schema();
    let all = concat_batches(&schema, std::iter::once(known).chain(new))?;
    let keys = comparable(&all, table.key())?;
    let mut order: Vec<u32> = (0..u32::try_from(all.num_rows()).map_err(too_many)?).collect();
    order.sort_by(|a, b| keys.row(*a as usize).cmp(&keys.row(*b as usize)));
    let mut groups: Vec<&[u32]> = Vec::with_capacity(order.len());
    for group in order.chunk_by(|a, b| keys.row(*a as usize) == keys.row(*b as usize)) {
        groups.push(group);
    }
    let known_rows = known.num_rows();
    let added = groups.iter().filter(|group| group[0] as usize >= known_rows).count() as u64;
    let duplicates = (all.num_rows() - known_rows) as u64 - added;
    let (rows, updated) = if table.updates() {
        latest(table, &all, &groups, known_rows)?
    } else {
        let first: UInt32Array = groups.iter().map(|group| group[0]).collect();
        (take_record_batch(&all, &first)?, 0)
    };
    Ok(Merged { rows: sorted(table, &rows)?, duplicates, added, updated })
}

fn too_many(_: std::num::TryFromIntError) -> ArrowError {
    ArrowError::InvalidArgumentError("more than 4 294 967 295 rows in one partition".into())
}

/// For each group and column the newest value that is not NULL; a first sight keeps the earliest
/// instant, a last sight the latest. Also counts the `known` rows that change.
fn latest(
    table: Table,
    all: &RecordBatch,
    groups: &[&[u32]],
    known: usize,
) -> Result<(RecordBatch, u64), ArrowError> {
    let schema = all.schema();
    let mut columns = Vec::with_capacity(all.num_columns());
    let mut changed = vec![false; groups.len()];
    let older = older_sights(table, all, groups);
    for (field, column) in schema.fields().iter().zip(all.columns()) {
        let pick = |group: &&[u32]| -> u32 {
            let seen = group.iter().copied().filter(|row| column.is_valid(*row as usize));
            let chosen = match (field.name().as_str(), field.data_type() == &instant()) {
                ("first_seen_at", true) => seen.min_by_key(|row| millis(column, *row)),
                ("last_seen_at", true) => seen.max_by_key(|row| millis(column, *row)),
                _ => seen.reduce(|chosen, row| if older[row as usize] { chosen } else { row }),
            };
            chosen.unwrap_or(group[0])
        };
        let rows: UInt32Array = groups.iter().map(pick).collect();
        for ((group, row), changed) in groups.iter().zip(rows.values()).zip(&mut changed) {
            let was = group[0] as usize;
            *changed |= was < known
                && *row as usize != was
                && column.slice(was, 1) != column.slice(*row as usize, 1);
        }
        columns.push(arrow::compute::take(column, &rows, None)?);
    }
    let updated = changed.iter().filter(|changed| **changed).count() as u64;
    Ok((RecordBatch::try_new(schema, columns)?, updated))
}

/// Rows of an older sight than one before them in their group: an old log or listing does not undo
/// a new one, it only fills in what that lacks. None where rows do not tell how old they are: of a
/// device when it was last seen, of a job whether it has started or ended, and when it started.
fn older_sights(table: Table, all: &RecordBatch, groups: &[&[u32]]) -> Vec<bool> {
    let told = |name: &str, row: u32| {
        let column = all.column_by_name(name).filter(|column| column.is_valid(row as usize))?;
        Some(millis(column, row))
    };
    let age = |row: u32| match table {
        Table::Jobs => {
            let started_at = told("started_at", row);
            let ended = told("ended_at", row).is_some();
            Some((i64::from(started_at.is_some()) + i64::from(ended), started_at))
        }
        _ => told("last_seen_at", row).map(|seen_at| (seen_at, None)),
    };
    let mut older = vec![false; all.num_rows()];
    for group in groups.iter().filter(|group| group.len() > 1) {
        let mut latest = None;
        for row in *group {
            if let Some(age) = age(*row) {
                older[*row as usize] = Some(age) < latest;
                latest = latest.max(Some(age));
            }
        }
    }
    older
}

fn millis(column: &ArrayRef, row: u32) -> i64 {
    column.as_primitive::<TimestampMillisecondType>().value(row as usize)
}

/// Sorts rows as a file of `table` holds them; equal sort keys are put apart by the row key.
pub(crate) fn sorted(table: Table, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    if table.sorted_by() == table.key() {
        return Ok(rows.clone());
    }
    let mut columns = table.sorted_by().to_vec();
    columns.extend(table.key().iter().filter(|key| !table.sorted_by().contains(key)));
    let keys = comparable(rows, &columns)?;
    let mut order: Vec<u32> = (0..u32::try_from(rows.num_rows()).map_err(too_many)?).collect();
    order.sort_by(|a, b| keys.row(*a as usize).cmp(&keys.row(*b as usize)));
    take_record_batch(rows, &UInt32Array::from(order))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, StringArray, TimestampMillisecondArray};

    use super::*;

    #[test]
    fn an_older_log_does_not_undo_what_a_newer_one_told() {
        // Breaks when a board goes back to where it was because an old file is imported late.
        let at = |values: Vec<Option<i64>>| {
            Arc::new(TimestampMillisecondArray::from(values).with_timezone("UTC")) as ArrayRef
        };
        let gpus = |node: Option<&str>, driver: &str, seen: Option<i64>| {
            let text = |text: Option<&str>| Arc::new(StringArray::from(vec![text])) as ArrayRef;
            let columns = [
                ("gpu_uuid", text(Some("GPU-a"))),
                ("node", text(node)),
                ("driver_version", text(Some(driver))),
                ("last_seen_at", at(vec![seen])),
            ];
            let columns = columns.into_iter().map(|(n, a)| (n, a, true));
            let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
            conform(Table::Gpus, &batch).unwrap()
        };
        let told = |known: RecordBatch, new: RecordBatch| {
            let rows = merge(Table::Gpus, &known, &[new]).unwrap().rows;
            ["node", "driver_version"].map(|name| {
                rows.column_by_name(name).unwrap().as_string::<i32>().value(0).to_owned()
            })
        };
        let new = gpus(None, "570", Some(20));
        assert_eq!(told(new.clone(), gpus(Some("n1"), "550", Some(10))), ["n1", "570"]);
        assert_eq!(told(gpus(Some("n1"), "550", Some(10)), new.clone()), ["n1", "570"]);
        // A row without a sight is a correction.
        assert_eq!(told(new, gpus(Some("n2"), "580", None)), ["n2", "580"]);
    }

    fn jobs(rows: &[(&str, Option<i64>, Option<i64>)]) -> RecordBatch {
        let at = |values: Vec<Option<i64>>| {
            Arc::new(TimestampMillisecondArray::from(values).with_timezone("UTC")) as ArrayRef
        };
        let batch = RecordBatch::try_from_iter([
            (
                "job_id",
                Arc::new(rows.iter().map(|r| Some(r.0)).collect::<StringArray>()) as ArrayRef,
            ),
            ("started_at", at(rows.iter().map(|r| r.1).collect())),
            ("ended_at", at(rows.iter().map(|r| r.2).collect())),
        ]);
        conform(Table::Jobs, &batch.unwrap()).unwrap()
    }

    #[test]
    fn a_finished_job_replaces_the_running_one_and_keeps_what_it_lacks() {
        let known = jobs(&[("7", Some(10), None), ("8", Some(11), None)]);
        let merged = merge(Table::Jobs, &known, &[jobs(&[("7", None, Some(99))])]).unwrap();
        assert_eq!((merged.rows.num_rows(), merged.added, merged.duplicates), (2, 0, 1));
        assert_eq!(merged.updated, 1);
        let ended = merged.rows.column_by_name("ended_at").unwrap();
        let started = merged.rows.column_by_name("started_at").unwrap();
        assert_eq!((millis(started, 0), millis(ended, 0)), (10, 99));
    }

    #[test]
    fn a_reading_is_seen_once_and_the_first_stays() {
        let reading = |power: f64| {
            let at = TimestampMillisecondArray::from(vec![5]).with_timezone("UTC");
            let batch = RecordBatch::try_from_iter([
                ("sampled_at", Arc::new(at) as ArrayRef),
                ("power_w", Arc::new(Float64Array::from(vec![power])) as ArrayRef),
            ]);
            conform(Table::Samples, &batch.unwrap()).unwrap()
        };
        let merged = merge(Table::Samples, &reading(1.0), &[reading(2.0), reading(3.0)]).unwrap();
        assert_eq!((merged.rows.num_rows(), merged.added, merged.duplicates), (1, 0, 2));
        let power = merged.rows.column_by_name("power_w").unwrap();
        assert!(
            (power.as_primitive::<arrow::datatypes::Float64Type>().value(0) - 1.0).abs() < 1e-12
        );
    }
}
