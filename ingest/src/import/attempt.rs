//! Which attempt of its job a row is.
//!
//! Two rows are of one attempt where they started at once, or where one was seen before its start
//! and nothing else sets them apart. A ledger's own count of restarts is kept where each attempt has
//! another; it does not tell attempts apart by itself, since a job id that is used again begins anew
//! at 0, and some ledgers write 0 for all. Where two attempts have the same count, or one has none,
//! they are numbered in order of submission and start among the rows of the import and of the store.
//! So a ledger that comes in parts, in whatever order, makes the same table: a first attempt that
//! comes last takes its place, and those after it move on by one.

use std::collections::{HashMap, HashSet};
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
    ended: bool,
    number: Option<i32>,
}

impl Sight {
    fn order(&self) -> (Option<i64>, i64) {
        (self.submitted_at.or(self.started_at), self.started_at.unwrap_or(i64::MAX))
    }

    fn submitted_with(&self, other: &Self) -> bool {
        let both = self.submitted_at.zip(other.submitted_at);
        both.is_none_or(|(one, two)| one == two)
    }
}

/// The rows of one attempt.
#[derive(Debug)]
struct Attempt<'s>(Vec<&'s Sight>);

impl Attempt<'_> {
    /// The number in the store, or else what the ledger counts.
    fn number(&self) -> Option<i32> {
        let numbered = self.0.iter().filter(|sight| sight.number.is_some());
        numbered.min_by_key(|sight| (sight.batch, sight.number)).and_then(|sight| sight.number)
    }

    fn order(&self) -> (Option<(Option<i64>, i64)>, Option<i32>) {
        (self.0.iter().map(|sight| sight.order()).min(), self.number())
    }

    /// When it started; of starts that were told, the latest.
    fn started_at(&self) -> Option<i64> {
        self.0.iter().filter_map(|sight| sight.started_at).max()
    }

    fn ended(&self) -> bool {
        self.0.iter().any(|sight| sight.ended)
    }

    fn submitted_with(&self, sight: &Sight) -> bool {
        self.0.iter().all(|known| known.submitted_with(sight))
    }

    /// Whether `sight` is of the same start.
    fn starts_as(&self, sight: &Sight) -> bool {
        sight.started_at.is_some()
            && self.0.iter().any(|known| known.started_at == sight.started_at)
            && self.submitted_with(sight)
    }

    /// Whether `sight`, which has the same number, may be of this attempt. The start of one that goes
    /// on can move: Slurm counts it anew when the nodes have come up.
    fn may_hold(&self, sight: &Sight) -> bool {
        let going_on = match (self.started_at(), sight.started_at) {
            (Some(known), Some(told)) if known < told => !self.ended(),
            (Some(known), Some(told)) if known > told => !sight.ended,
            _ => true,
        };
        going_on && self.submitted_with(sight)
    }

    /// Whether one of both was seen before its start, and they were submitted at once.
    fn waits_as(&self, sight: &Sight) -> bool {
        (sight.started_at.is_none() || self.started_at().is_none())
            && self.0.iter().any(|known| known.submitted_at == sight.submitted_at)
    }
}

/// Gives every row of `batches` a number, the first batch being what the store knows.
pub(super) fn number(batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>, ArrowError> {
    let mut numbers: Vec<Vec<Option<i32>>> = batches.iter().map(numbers).collect();
    let mut moved = vec![false; batches.len()];
    for mut sights in jobs(&batches)?.into_values() {
        sights.sort_by_key(|sight| (sight.batch > 0, sight.order(), sight.batch, sight.row));
        for (sight, number) in numbered(&sights) {
            if sight.number != Some(number) {
                numbers[sight.batch][sight.row] = Some(number);
                moved[sight.batch] = true;
            }
        }
    }
    let renumbered = batches.into_iter().zip(numbers).zip(moved).map(|((rows, numbers), moved)| {
        if !moved {
            return Ok(rows);
        }
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

/// The rows of each job that has new ones, by its key.
fn jobs(batches: &[RecordBatch]) -> Result<HashMap<Box<[u8]>, Vec<Sight>>, ArrowError> {
    let mut jobs: HashMap<Box<[u8]>, Vec<Sight>> = HashMap::new();
    // What is stored last: of it only the jobs that have come again.
    for (batch, rows) in batches.iter().enumerate().rev() {
        let keys = comparable(rows, &["cluster", "job_id"])?;
        let instant = |name: &str, row: usize| {
            let column = rows[name].as_primitive::<TimestampMillisecondType>();
            column.is_valid(row).then(|| column.value(row))
        };
        let attempts = rows["attempt"].as_primitive::<Int32Type>();
        for row in 0..rows.num_rows() {
            let sight = || Sight {
                batch,
                row,
                submitted_at: instant("submitted_at", row),
                started_at: instant("started_at", row),
                ended: instant("ended_at", row).is_some(),
                number: attempts.is_valid(row).then(|| attempts.value(row)),
            };
            let key = keys.row(row);
            match jobs.get_mut(key.as_ref()) {
                Some(sights) => sights.push(sight()),
                None if batch > 0 => drop(jobs.insert(key.as_ref().into(), vec![sight()])),
                None => {}
            }
        }
    }
    Ok(jobs)
}

/// The attempt of each of a job's rows: those of the store first, each part in order of time.
fn numbered(sights: &[Sight]) -> Vec<(&Sight, i32)> {
    let mut attempts: Vec<Attempt<'_>> = Vec::new();
    for sight in sights {
        // Each stored row is an attempt.
        let known = if sight.batch == 0 { None } else { attempt_of(sight, &attempts) };
        match known {
            Some(at) => attempts[at].0.push(sight),
            None => attempts.push(Attempt(vec![sight])),
        }
    }
    let mut taken = HashSet::new();
    let apart = attempts.iter().all(|a| a.number().is_some_and(|number| taken.insert(number)));
    if !apart {
        attempts.sort_by_key(Attempt::order);
    }
    let mut next = 0;
    let mut numbered = Vec::with_capacity(sights.len());
    for attempt in attempts {
        let number = match attempt.number() {
            Some(number) if apart => number,
            number => number.unwrap_or(next).max(next),
        };
        next = number.saturating_add(1);
        numbered.extend(attempt.0.into_iter().map(|sight| (sight, number)));
    }
    numbered
}

/// Which of `attempts` a row is of; of several the latest.
fn attempt_of(sight: &Sight, attempts: &[Attempt<'_>]) -> Option<usize> {
    let find = |is: &dyn Fn(&Attempt<'_>) -> bool| attempts.iter().rposition(is);
    let counts = |attempt: &Attempt<'_>| {
        sight.number.is_some() && attempt.0.iter().any(|known| known.number == sight.number)
    };
    // A count that another attempt has, or none, leaves the submission to tell.
    let moved_on = |attempt: &Attempt<'_>| {
        let told = sight.number.is_some() && attempt.number().is_some();
        !told || attempts.iter().any(|other| counts(other) && !other.may_hold(sight))
    };
    find(&|attempt| attempt.starts_as(sight))
        .or_else(|| find(&|attempt| counts(attempt) && attempt.may_hold(sight)))
        .or_else(|| find(&|attempt| attempt.waits_as(sight) && moved_on(attempt)))
}
