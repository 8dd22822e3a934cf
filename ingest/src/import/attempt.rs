//! Which attempt of its job a row is, where the ledger does not count restarts.
//!
//! The attempts of a job are told apart by submission and start, and numbered in that order among
//! the rows of the import and of the store. So a ledger that comes in parts, in whatever order,
//! makes the same table: a first attempt that comes last takes its place, and those after it move
//! on by one. A ledger's own count of restarts is kept as it is.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, RecordBatch};
use arrow::datatypes::{Int32Type, TimestampMillisecondType};
use arrow::error::ArrowError;

use crate::merge::comparable;

/// A row of a job: its batch and place, and what tells its attempt.
#[derive(Debug, Clone)]
struct Sight {
    batch: usize,
    row: usize,
    submitted_at: Option<i64>,
    started_at: Option<i64>,
    number: Option<i32>,
}

impl Sight {
    fn order(&self) -> (Option<i64>, i64) {
        (self.submitted_at.or(self.started_at), self.started_at.unwrap_or(i64::MAX))
    }

    /// Whether both are of one attempt: they started at once, or one was seen before its start.
    fn same(&self, other: &Self) -> bool {
        match (self.started_at, other.started_at) {
            (Some(one), Some(two)) => {
                let submitted = self.submitted_at.zip(other.submitted_at);
                one == two && submitted.is_none_or(|(one, two)| one == two)
            }
            _ => self.submitted_at == other.submitted_at,
        }
    }
}

/// Gives every row of `batches` a number, the first batch being what the store knows. Jobs all of
/// whose new rows are numbered stay as they are.
pub(super) fn number(batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>, ArrowError> {
    let unnumbered = |rows: &RecordBatch| rows["attempt"].null_count() > 0;
    if !batches.iter().any(unnumbered) {
        return Ok(batches);
    }
    let mut numbers: Vec<Vec<Option<i32>>> = batches.iter().map(numbers).collect();
    for mut sights in jobs(&batches)?.into_values() {
        if sights.iter().all(|sight| sight.number.is_some()) {
            continue;
        }
        sights.sort_by_key(|sight| (sight.order(), sight.batch, sight.row));
        for (sight, number) in numbered(&sights) {
            numbers[sight.batch][sight.row] = Some(number);
        }
    }
    let renumbered = batches.into_iter().zip(numbers).map(|(rows, numbers)| {
        let at = rows.schema().index_of("attempt")?;
        let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
        columns[at] = Arc::new(Int32Array::from(numbers));
        RecordBatch::try_new(rows.schema(), columns)
    });
    renumbered.collect()
}

fn numbers(rows: &RecordBatch) -> Vec<Option<i32>> {
    rows["attempt"].as_primitive::<Int32Type>().iter().collect()
}

/// The rows of each job, by its key.
fn jobs(batches: &[RecordBatch]) -> Result<HashMap<Box<[u8]>, Vec<Sight>>, ArrowError> {
    let mut jobs: HashMap<Box<[u8]>, Vec<Sight>> = HashMap::new();
    for (batch, rows) in batches.iter().enumerate() {
        let keys = comparable(rows, &["cluster", "job_id"])?;
        let instant = |name: &str, row: usize| {
            let column = rows[name].as_primitive::<TimestampMillisecondType>();
            column.is_valid(row).then(|| column.value(row))
        };
        let attempts = rows["attempt"].as_primitive::<Int32Type>();
        for row in 0..rows.num_rows() {
            jobs.entry(keys.row(row).as_ref().into()).or_default().push(Sight {
                batch,
                row,
                submitted_at: instant("submitted_at", row),
                started_at: instant("started_at", row),
                number: attempts.is_valid(row).then(|| attempts.value(row)),
            });
        }
    }
    Ok(jobs)
}

/// The attempt of each of a job's rows, which are in order of time.
fn numbered(sights: &[Sight]) -> Vec<(&Sight, i32)> {
    let mut attempts: Vec<Vec<&Sight>> = Vec::new();
    for sight in sights {
        // A row that has not started is of the latest attempt of its submission.
        let known = attempts.iter_mut().rev().find(|seen| seen.iter().any(|s| s.same(sight)));
        match known {
            Some(attempt) => attempt.push(sight),
            None => attempts.push(vec![sight]),
        }
    }
    let mut next = 0;
    let mut numbered = Vec::with_capacity(sights.len());
    for attempt in attempts {
        let known = attempt.iter().filter_map(|sight| sight.number).min();
        let number = known.unwrap_or(next).max(next);
        next = number.saturating_add(1);
        numbered.extend(attempt.into_iter().map(|sight| (sight, number)));
    }
    numbered
}
