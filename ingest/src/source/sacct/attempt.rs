//! Which attempt of its job a row is.
//!
//! The ledger's own count of restarts decides where it is present: it stays the same however often
//! and in whatever part the ledger is read again. Without it, the attempts of a job are numbered by
//! submission and start among the rows of one import, so an import that leaves the first attempt
//! out numbers the second one 0: ask sacct for `Restarts`.

use std::collections::HashMap;

use super::row::JobRow;

/// Numbers the attempts of each job from 0. Two rows with the same submission and start (or one
/// that has not started yet) are the same attempt seen twice.
pub(crate) fn number_attempts(rows: &mut [JobRow]) {
    let mut of_job: HashMap<(Option<&str>, &str), Vec<usize>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        of_job.entry((row.cluster.as_deref(), &row.job_id)).or_default().push(at);
    }
    let mut numbers = vec![0; rows.len()];
    for mut places in of_job.into_values() {
        if places.len() > 1 {
            places.sort_by_key(|at| {
                let row = &rows[*at];
                (row.submitted_at, row.started_at.unwrap_or(i64::MAX), *at)
            });
            rank(rows, &places, &mut numbers);
        }
    }
    for (row, number) in rows.iter_mut().zip(numbers) {
        row.attempt = row.restarts.unwrap_or(number);
    }
}

fn rank(rows: &[JobRow], places: &[usize], numbers: &mut [i32]) {
    let mut number = 0;
    for pair in places.windows(2) {
        let (before, after) = (&rows[pair[0]], &rows[pair[1]]);
        let same_start = match (before.started_at, after.started_at) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        if before.submitted_at != after.submitted_at || !same_start {
            number += 1;
        }
        numbers[pair[1]] = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(job_id: &str, submitted_at: i64, started_at: Option<i64>) -> JobRow {
        JobRow {
            job_id: job_id.into(),
            submitted_at: Some(submitted_at),
            started_at,
            ..JobRow::default()
        }
    }

    fn attempts(mut rows: Vec<JobRow>) -> Vec<i32> {
        number_attempts(&mut rows);
        rows.iter().map(|row| row.attempt).collect()
    }

    #[test]
    fn attempts_follow_submission_and_a_row_seen_twice_is_one() {
        // Breaks when a requeued attempt overwrites the first, or a second look adds one.
        let rows = vec![
            row("7", 200, Some(210)),
            row("7", 100, Some(110)),
            row("8", 100, None),
            row("7", 200, Some(210)),
            row("8", 100, Some(150)),
            row("7", 200, Some(300)),
        ];
        assert_eq!(attempts(rows), [1, 0, 0, 1, 0, 2]);
    }

    #[test]
    fn the_count_of_restarts_decides() {
        // Breaks when reading only the latest attempt again renumbers it.
        let again = JobRow { restarts: Some(2), ..row("7", 900, Some(910)) };
        assert_eq!(attempts(vec![again]), [2]);
    }
}
