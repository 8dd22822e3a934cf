//! When was a suspended attempt suspended? Of that a ledger tells only how long in all.
//!
//! An attempt is taken to have been suspended first while others held a GPU of its own, then evenly
//! over the rest of its time; of what was read of that rest, first where its GPUs were idle.

use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Float64Type;
use datafusion::common::Result;

use super::at;
use super::column::{integers, texts};

/// Columns that [`Suspensions::read`] reads, in this order.
pub(super) const SUSPENDED_SQL: &str = "SELECT a.job_id, a.attempt, a.cluster, a.used_ratio, \
     a.started_at, coalesce(a.ended_at, as_of()) AS ended_at FROM attempts a \
     WHERE a.job_id IS NOT NULL AND a.used_ratio < 1";

/// Two rows that name a cluster may be of one where these are equal, or one names none.
pub(super) fn meet<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    one.is_none() || other.is_none() || one == other
}

/// Attempts that were suspended for part of their time, by job.
#[derive(Debug, Clone, Default)]
pub(super) struct Suspensions {
    jobs: HashMap<String, Vec<usize>>,
    all: Vec<Suspension>,
}

/// One attempt, from its start to its end in ms since 1970, and how much of it is no suspension.
#[derive(Debug, Clone, Default)]
pub(super) struct Suspension {
    attempt: i32,
    cluster: Option<String>,
    started: i64,
    ended: i64,
    /// Share of its whole time, 0 to 1.
    used_ratio: f64,
    /// Stretches in which others held a GPU of its own, in order and apart.
    taken: Vec<(i64, i64)>,
    used_taken_ratio: f64,
    used_else_ratio: f64,
    /// Of what was read outside of them, the share below the limit of idle; NULL where unread.
    idle_ratio: Option<f64>,
}

impl Suspensions {
    /// Reads the answer to [`SUSPENDED_SQL`].
    pub(super) fn read(batches: &[RecordBatch]) -> Result<Self> {
        let mut read = Self::default();
        for batch in batches {
            let (job_ids, clusters) = (texts(batch.column(0))?, texts(batch.column(2))?);
            let attempts = integers(batch.column(1))?;
            let ratios = batch.column(3).as_primitive::<Float64Type>();
            let (started, ended) = (at(batch.columns(), 4)?, at(batch.columns(), 5)?);
            for row in 0..batch.num_rows() {
                let used_ratio = ratios.value(row);
                read.jobs.entry(job_ids.value(row).to_owned()).or_default().push(read.all.len());
                read.all.push(Suspension {
                    attempt: if attempts.is_valid(row) { attempts.value(row) } else { 0 },
                    cluster: clusters.is_valid(row).then(|| clusters.value(row).to_owned()),
                    started: started.value(row),
                    ended: ended.value(row),
                    used_ratio,
                    used_taken_ratio: used_ratio,
                    used_else_ratio: used_ratio,
                    ..Suspension::default()
                });
            }
        }
        Ok(read)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// From the first start to the last end, in ms since 1970; `None` where none was suspended.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        let from = self.all.iter().map(|one| one.started).min()?;
        Some((from, self.all.iter().map(|one| one.ended).max()?))
    }

    /// The number of an attempt, where it was suspended.
    pub(super) fn number(
        &self,
        job_id: &str,
        attempt: Option<i32>,
        cluster: Option<&str>,
    ) -> Option<usize> {
        let of = |number: &&usize| {
            let one = &self.all[**number];
            one.attempt == attempt.unwrap_or(0) && meet(one.cluster.as_deref(), cluster)
        };
        self.jobs.get(job_id)?.iter().find(of).copied()
    }

    /// An attempt by its number.
    pub(super) fn get(&self, number: usize) -> &Suspension {
        &self.all[number]
    }

    /// Tells when others held a GPU of an attempt: `taken` holds its number and the stretch.
    pub(super) fn take(&mut self, taken: Vec<(usize, (i64, i64))>) {
        for (number, (from, until)) in taken {
            let one = &mut self.all[number];
            let stretch = (from.max(one.started), until.min(one.ended));
            if stretch.0 < stretch.1 {
                one.taken.push(stretch);
            }
        }
        self.all.iter_mut().for_each(Suspension::settle);
    }

    /// Reads how much of what was read of attempts outside of those stretches was idle: job,
    /// attempt, cluster, and the ratio, 0 to 1.
    pub(super) fn set_idle(&mut self, batches: &[RecordBatch]) -> Result<()> {
        for batch in batches {
            let (job_ids, clusters) = (texts(batch.column(0))?, texts(batch.column(2))?);
            let attempts = integers(batch.column(1))?;
            let ratios = batch.column(3).as_primitive::<Float64Type>();
            for row in 0..batch.num_rows() {
                let attempt = attempts.is_valid(row).then(|| attempts.value(row));
                let cluster = clusters.is_valid(row).then(|| clusters.value(row));
                if let Some(number) = self.number(job_ids.value(row), attempt, cluster) {
                    self.all[number].idle_ratio = Some(ratios.value(row));
                }
            }
        }
        Ok(())
    }
}

impl Suspension {
    /// Joins what others took and lays the suspension there first, the rest over all other time.
    fn settle(&mut self) {
        self.taken.sort_unstable();
        let mut joined: Vec<(i64, i64)> = Vec::new();
        for (from, until) in self.taken.drain(..) {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                _ => joined.push((from, until)),
            }
        }
        self.taken = joined;
        let elapsed = (self.ended - self.started) as f64;
        let taken: f64 = self.taken.iter().map(|(from, until)| (until - from) as f64).sum();
        let suspended = (elapsed * (1.0 - self.used_ratio)).round();
        if taken > 0.0 {
            self.used_taken_ratio = 1.0 - (suspended / taken).min(1.0);
            let rest = (suspended - taken).max(0.0);
            self.used_else_ratio =
                if elapsed > taken { 1.0 - rest / (elapsed - taken) } else { 0.0 };
        }
    }

    /// Whether others held a GPU of the attempt just before `at`.
    pub(super) fn is_taken(&self, at: i64) -> bool {
        let first = self.taken.partition_point(|(_, until)| *until < at);
        self.taken.get(first).is_some_and(|(from, _)| *from < at)
    }

    /// The share of the time just before `at` in which the attempt was not suspended, 0 to 1.
    pub(super) fn used_ratio(&self, at: i64) -> f64 {
        if self.is_taken(at) { self.used_taken_ratio } else { self.used_else_ratio }
    }

    /// The same of a reading, which was idle or not, or that nobody knows of.
    pub(super) fn read_ratio(&self, at: i64, idle: Option<bool>) -> f64 {
        let used_ratio = self.used_ratio(at);
        let (Some(idle_ratio), Some(idle), false) = (self.idle_ratio, idle, self.is_taken(at))
        else {
            return used_ratio;
        };
        let suspended_ratio = 1.0 - used_ratio;
        match (idle, suspended_ratio <= idle_ratio) {
            (true, true) => 1.0 - suspended_ratio / idle_ratio.max(f64::MIN_POSITIVE),
            (false, true) => 1.0,
            (true, false) => 0.0,
            (false, false) => used_ratio / (1.0 - idle_ratio).max(f64::MIN_POSITIVE),
        }
    }

    /// Whether others held a GPU of the attempt at some time.
    pub(super) fn was_taken(&self) -> bool {
        !self.taken.is_empty()
    }

    /// Adds the instants inside `(from, until)` at which others got or left a GPU of the attempt.
    pub(super) fn cuts(&self, (from, until): (i64, i64), found: &mut Vec<i64>) {
        let first = self.taken.partition_point(|(_, ended)| *ended <= from);
        let within = self.taken[first..].iter().take_while(|(begun, _)| *begun < until);
        let ends = within.flat_map(|(begun, ended)| [*begun, *ended]);
        found.extend(ends.filter(|at| *at > from && *at < until));
    }
}

#[cfg(test)]
mod tests;
