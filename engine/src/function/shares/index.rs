//! Allocations by what they hold, and attempts by job, for the readings that are given to them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;

use super::super::at;
use super::super::column::{integers, smalls, texts};
use super::super::suspension::{Suspensions, meet};
use super::installed::Installed;
use super::stretches::{Held, Stretches};

/// Columns that [`HoldingIndex::build`] reads, in this order. An instant that is open is NULL.
pub(in crate::function) const ALLOCATIONS_SQL: &str = "SELECT a.job_id, a.attempt, a.cluster, a.node, \
     a.gpu_uuid, a.gpu, a.mig, a.gpu_share_ratio, a.started_at, a.ended_at FROM allocation_shares a \
     WHERE a.job_id IS NOT NULL AND a.started_at IS NOT NULL";
pub(in crate::function) const JOBS_SQL: &str = "SELECT j.job_id, j.attempt, j.started_at, j.ended_at, \
     j.cluster, j.nodes, j.gpus_allocated FROM jobs j WHERE j.job_id IS NOT NULL";
/// A cluster by its number; `None` where no source names one, which may be any.
pub(super) type Cluster = Option<u32>;

/// When an attempt ran; one that never began starts at the end of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Attempt {
    started: i64,
    ended: i64,
    number: Option<i32>,
    cluster: Cluster,
    suspended: Option<usize>,
    /// Whether an allocation tells it, which goes before what the job tells.
    granted: bool,
}

impl Attempt {
    /// Whether both are of one attempt.
    fn is(&self, other: &Self) -> bool {
        self.number.unwrap_or(0) == other.number.unwrap_or(0) && meet(self.cluster, other.cluster)
    }
}

/// Sorts the attempts of one job; one that has allocations held GPUs while they last.
fn settle(attempts: &mut Vec<Attempt>) {
    let granted: Vec<Attempt> = attempts.iter().filter(|one| one.granted).copied().collect();
    attempts.retain(|one| one.granted || !granted.iter().any(|other| one.is(other)));
    attempts.sort_unstable();
    attempts.dedup();
}

/// Allocations by UUID, by node and index, and by node; attempts by job.
#[derive(Debug, Default)]
pub(in crate::function) struct HoldingIndex {
    jobs: Vec<String>,
    clusters: HashMap<String, u32>,
    by_uuid: HashMap<String, Stretches>,
    by_place: HashMap<(String, i16), Stretches>,
    by_node: HashMap<String, Stretches>,
    attempts: HashMap<String, Vec<Attempt>>,
    suspensions: Arc<Suspensions>,
}

impl HoldingIndex {
    /// Reads the answers to the two statements above and to [`super::NODES_SQL`], in that order.
    pub(in crate::function) fn build(
        [allocations, jobs, nodes]: [&[RecordBatch]; 3],
        suspensions: Arc<Suspensions>,
    ) -> Result<Self> {
        let mut index = Self { suspensions, ..Self::default() };
        let mut names = HashMap::new();
        let installed = Installed::read(nodes, &mut index)?;
        for batch in allocations {
            index.add_allocations(batch, &installed, &mut names)?;
        }
        for batch in jobs {
            index.add_jobs(batch, &installed, &mut names)?;
        }
        let stretches = index.by_uuid.values_mut();
        let stretches = stretches.chain(index.by_place.values_mut());
        stretches.chain(index.by_node.values_mut()).for_each(Stretches::sort);
        index.attempts.values_mut().for_each(settle);
        Ok(index)
    }

    /// The number of a cluster of the ledger. One that the ledger does not know is like no other.
    pub(super) fn cluster(&self, name: Option<&str>) -> Cluster {
        name.map(|name| self.clusters.get(name).copied().unwrap_or(u32::MAX))
    }

    pub(super) fn add_cluster(&mut self, name: Option<&str>) -> Cluster {
        let next = u32::try_from(self.clusters.len()).expect("fewer clusters than 2^32");
        let name = name?;
        if let Some(known) = self.clusters.get(name) {
            return Some(*known);
        }
        self.clusters.insert(name.to_owned(), next);
        Some(next)
    }

    fn add_allocations(
        &mut self,
        batch: &RecordBatch,
        installed: &Installed,
        names: &mut HashMap<String, u32>,
    ) -> Result<()> {
        let (job_ids, clusters) = (texts(batch.column(0))?, texts(batch.column(2))?);
        let (nodes, uuids) = (texts(batch.column(3))?, texts(batch.column(4))?);
        let (gpus, migs) = (smalls(batch.column(5))?, smalls(batch.column(6))?);
        let shares = cast(batch.column(7), &DataType::Float64)?;
        let shares = shares.as_primitive::<Float64Type>();
        let attempts = integers(batch.column(1))?;
        let (started, ended) = (at(batch.columns(), 8)?, at(batch.columns(), 9)?);
        for row in 0..batch.num_rows() {
            let job_id = job_ids.value(row);
            let job = self.name(job_id, names);
            let attempt = attempts.is_valid(row).then(|| attempts.value(row));
            let cluster = clusters.is_valid(row).then(|| clusters.value(row));
            let held = Held {
                started: started.value(row),
                ended: if ended.is_valid(row) { ended.value(row) } else { i64::MAX },
                job,
                attempt,
                cluster: self.add_cluster(cluster),
                mig: migs.is_valid(row).then(|| migs.value(row)),
                share_ratio: if shares.is_valid(row) { shares.value(row) } else { 1.0 },
                suspended: self.suspensions.number(job_id, attempt, cluster),
            };
            self.attempts.entry(job_id.to_owned()).or_default().push(Attempt {
                started: held.started,
                ended: held.ended,
                number: held.attempt,
                cluster: held.cluster,
                suspended: held.suspended,
                granted: true,
            });
            let place = nodes.is_valid(row) && gpus.is_valid(row);
            if uuids.is_valid(row) {
                self.by_uuid.entry(uuids.value(row).to_owned()).or_default().held.push(held);
            } else if place {
                let place = (nodes.value(row).to_owned(), gpus.value(row));
                self.by_place.entry(place).or_default().held.push(held);
            } else if nodes.is_valid(row) {
                let node = nodes.value(row);
                if installed.gpus(node, held.cluster).is_some_and(|gpus| held.share_ratio >= gpus) {
                    let held = Held { share_ratio: 1.0, ..held };
                    self.by_node.entry(node.to_owned()).or_default().held.push(held);
                }
            }
        }
        Ok(())
    }

    /// Adds attempts, and of those without allocations the nodes of which they hold every GPU.
    fn add_jobs(
        &mut self,
        batch: &RecordBatch,
        installed: &Installed,
        names: &mut HashMap<String, u32>,
    ) -> Result<()> {
        let (job_ids, clusters) = (texts(batch.column(0))?, texts(batch.column(4))?);
        let attempts = integers(batch.column(1))?;
        let (started, ended) = (at(batch.columns(), 2)?, at(batch.columns(), 3)?);
        let (nodes, gpus) = (texts(batch.column(5))?, cast(batch.column(6), &DataType::Float64)?);
        let gpus = gpus.as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            let job_id = job_ids.value(row);
            let number = attempts.is_valid(row).then(|| attempts.value(row));
            let cluster = clusters.is_valid(row).then(|| clusters.value(row));
            let suspended = self.suspensions.number(job_id, number, cluster);
            let cluster = self.add_cluster(cluster);
            let attempt = Attempt {
                started: if started.is_valid(row) { started.value(row) } else { i64::MAX },
                ended: if ended.is_valid(row) { ended.value(row) } else { i64::MAX },
                number,
                cluster,
                suspended,
                granted: false,
            };
            let known = self.attempts.entry(job_id.to_owned()).or_default();
            let granted = known.iter().any(|other| other.granted && other.is(&attempt));
            known.push(attempt);
            if granted || nodes.is_null(row) || gpus.is_null(row) || attempt.started == i64::MAX {
                continue;
            }
            let whole = installed.whole(nodes.value(row), gpus.value(row), cluster);
            let job = self.name(job_id, names);
            for node in whole {
                self.by_node.entry(node.to_owned()).or_default().held.push(Held {
                    started: attempt.started,
                    ended: attempt.ended,
                    job,
                    attempt: number,
                    cluster,
                    mig: None,
                    share_ratio: 1.0,
                    suspended,
                });
            }
        }
        Ok(())
    }

    /// The number of a job by its id.
    fn name(&mut self, job_id: &str, names: &mut HashMap<String, u32>) -> u32 {
        if let Some(known) = names.get(job_id) {
            return *known;
        }
        let next = u32::try_from(self.jobs.len()).expect("fewer jobs than 2^32");
        self.jobs.push(job_id.to_owned());
        names.insert(job_id.to_owned(), next);
        next
    }

    /// The share of the time just before a reading in which an attempt was not suspended, 0 to 1.
    pub(super) fn used_ratio(&self, suspended: Option<usize>, reading: &Reading<'_>) -> f64 {
        suspended.map_or(1.0, |one| self.suspensions.get(one).read_ratio(reading.at, reading.idle))
    }

    /// Whether others held a GPU of an attempt just before a reading.
    pub(super) fn is_taken(&self, suspended: Option<usize>, at: i64) -> bool {
        suspended.is_some_and(|one| self.suspensions.get(one).is_taken(at))
    }

    /// The id of a job by its number in [`Held`].
    pub(super) fn job(&self, number: u32) -> &str {
        &self.jobs[number as usize]
    }

    /// Whether the ledger has a job of exactly this id.
    pub(super) fn knows(&self, job_id: &str, cluster: Cluster) -> bool {
        let attempts = self.attempts.get(job_id);
        attempts.is_some_and(|all| all.iter().any(|found| meet(found.cluster, cluster)))
    }

    /// The attempt of a named job that ran until `at`, with its number among the suspended. `None` where the ledger knows when the job
    /// ran and that it did not then; no number where it knows no time of the job: what the
    /// label says and the ledger does not is that job all the same.
    pub(super) fn attempt(
        &self,
        job_id: &str,
        at: i64,
        cluster: Cluster,
    ) -> Option<(Option<i32>, Option<usize>)> {
        let attempts = self.attempts.get(job_id).map_or(&[][..], Vec::as_slice);
        let mut ours = attempts.iter().filter(|attempt| meet(attempt.cluster, cluster)).rev();
        let running = ours.clone().find(|attempt| attempt.started < at && attempt.ended >= at);
        if let Some(running) = running {
            return Some((running.number, running.suspended));
        }
        let timed = ours.clone().any(|attempt| attempt.started < i64::MAX);
        (!timed).then(|| (ours.next().and_then(|attempt| attempt.number), None))
    }

    /// Adds where an attempt of a named job begins or ends inside `(from, until)`.
    pub(super) fn attempt_cuts(
        &self,
        job_id: &str,
        cluster: Cluster,
        (from, until): (i64, i64),
        found: &mut Vec<i64>,
    ) {
        let attempts = self.attempts.get(job_id).into_iter().flatten();
        for attempt in attempts.filter(|attempt| meet(attempt.cluster, cluster)) {
            let ends = [attempt.started, attempt.ended];
            found.extend(ends.into_iter().filter(|at| *at > from && *at < until));
            if let Some(number) = attempt.suspended {
                self.suspensions.get(number).cuts((from, until), found);
            }
        }
    }

    /// Adds where what is held of the GPU that was read changes between `from` and the reading.
    pub(super) fn cuts(&self, reading: &Reading<'_>, from: i64, found: &mut Vec<i64>) {
        let within = (from, reading.at);
        let ours = |held: &Held| meet(held.cluster, reading.cluster);
        let fits = |held: &Held| ours(held) && (held.mig.is_none() || held.mig == reading.mig);
        if let Some(known) = reading.uuid.and_then(|uuid| self.by_uuid.get(uuid)) {
            known.cuts(within, fits, &self.suspensions, found);
        }
        let Some(node) = reading.node else { return };
        if let (Some(gpu), false) = (reading.gpu, self.by_place.is_empty())
            && let Some(known) = self.by_place.get(&(node.to_owned(), gpu))
        {
            known.cuts(within, fits, &self.suspensions, found);
        }
        if let Some(known) = self.by_node.get(node) {
            known.cuts(within, ours, &self.suspensions, found);
        }
    }

    /// Who held the GPU just before the instant of the reading.
    pub(super) fn holders<'a>(&'a self, reading: &Reading<'_>) -> Vec<&'a Held> {
        let ours = |held: &&Held| meet(held.cluster, reading.cluster);
        let fits = |held: &&Held| ours(held) && (held.mig.is_none() || held.mig == reading.mig);
        let uuid = reading.uuid.and_then(|uuid| self.by_uuid.get(uuid));
        let mut found: Vec<&Held> =
            uuid.into_iter().flat_map(|held| held.at(reading.at)).filter(fits).collect();
        let (Some(node), true) = (reading.node, found.is_empty()) else {
            return found;
        };
        if let Some(gpu) = reading.gpu {
            let place = self.by_place.get(&(node.to_owned(), gpu));
            found = place.into_iter().flat_map(|held| held.at(reading.at)).filter(fits).collect();
        }
        if found.is_empty() {
            let whole = self.by_node.get(node);
            found = whole.into_iter().flat_map(|held| held.at(reading.at)).filter(ours).collect();
        }
        found
    }
}

/// What a sample says of where and when it was read.
pub(super) struct Reading<'a> {
    pub(super) cluster: Cluster,
    pub(super) node: Option<&'a str>,
    pub(super) gpu: Option<i16>,
    pub(super) uuid: Option<&'a str>,
    pub(super) mig: Option<i16>,
    pub(super) at: i64,
    /// Whether the GPU was idle; `None` where its activity was not read.
    pub(super) idle: Option<bool>,
}
