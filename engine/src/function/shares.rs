//! Which jobs does a reading belong to, and how much of it? `job_shares(...)`.
//!
//! A reading that names its jobs is split evenly between them. Any other goes to the allocations
//! that held the GPU at that instant, found by UUID, else by node and index; several share it by
//! what each was granted, and never get more than the whole. An allocation that names only a node
//! counts where it held all of that node's GPUs: otherwise nobody knows which were its own. A
//! reading of nobody has one row without a job.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBuilder, Float64Builder, Int16Array, Int32Builder,
    ListBuilder, RecordBatch, StringArray, StringBuilder, StructBuilder, TimestampMillisecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Float64Type, Int16Type, Int32Type};
use datafusion::common::Result;

use super::{Body, at};

/// Allocations by what they hold. Replaced as a whole.
pub(crate) type SharedHoldings = Arc<RwLock<Arc<HoldingIndex>>>;

/// Columns that [`HoldingIndex::build`] reads, in this order. An instant that is open is NULL.
pub(crate) const ALLOCATIONS_SQL: &str = "SELECT a.job_id, a.attempt, a.cluster, a.node, \
     a.gpu_uuid, a.gpu, a.mig, a.gpu_share_ratio, a.started_at, a.ended_at FROM allocations a \
     WHERE a.job_id IS NOT NULL AND a.started_at IS NOT NULL";
pub(crate) const JOBS_SQL: &str =
    "SELECT j.job_id, j.attempt, j.started_at, j.ended_at FROM jobs j WHERE j.job_id IS NOT NULL";
pub(crate) const NODES_SQL: &str = "SELECT g.node, CAST(count(*) AS DOUBLE) AS gpus FROM gpus g \
     WHERE g.node IS NOT NULL GROUP BY g.node";

/// One job attempt on one GPU from its grant to its release, in ms since 1970.
#[derive(Debug, Clone)]
struct Held {
    started: i64,
    ended: i64,
    job: u32,
    attempt: Option<i32>,
    mig: Option<i16>,
    share_ratio: f64,
}

/// Stretches sorted by start; `latest[i]` is the last end among the first `i + 1`.
#[derive(Debug, Default)]
struct Stretches {
    held: Vec<Held>,
    latest: Vec<i64>,
}

impl Stretches {
    fn sort(&mut self) {
        self.held.sort_by_key(|held| (held.started, held.ended, held.job));
        self.latest = self
            .held
            .iter()
            .scan(i64::MIN, |latest, held| {
                *latest = held.ended.max(*latest);
                Some(*latest)
            })
            .collect();
    }

    /// Those that held just before `at`: a reading stands for the time until it was taken.
    fn at(&self, at: i64) -> impl Iterator<Item = &Held> {
        let until = self.held.partition_point(|held| held.started < at);
        (0..until)
            .rev()
            .take_while(move |position| self.latest[*position] >= at)
            .map(|position| &self.held[position])
            .filter(move |held| held.ended >= at)
    }
}

/// Allocations by UUID, by node and index, and by node; attempts by job.
#[derive(Debug, Default)]
pub(crate) struct HoldingIndex {
    jobs: Vec<String>,
    by_uuid: HashMap<String, Stretches>,
    by_place: HashMap<(String, i16), Stretches>,
    by_node: HashMap<String, Stretches>,
    attempts: HashMap<String, Vec<(i64, i64, Option<i32>)>>,
    loaded: bool,
}

impl HoldingIndex {
    /// Reads the answers to the three statements above.
    pub(crate) fn build(
        allocations: &[RecordBatch],
        jobs: &[RecordBatch],
        nodes: &[RecordBatch],
    ) -> Result<Self> {
        let mut index = Self { loaded: true, ..Self::default() };
        let mut names = HashMap::new();
        let installed = gpus_by_node(nodes)?;
        for batch in allocations {
            index.add_allocations(batch, &installed, &mut names)?;
        }
        for batch in jobs {
            index.add_jobs(batch)?;
        }
        let stretches = index.by_uuid.values_mut();
        let stretches = stretches.chain(index.by_place.values_mut());
        stretches.chain(index.by_node.values_mut()).for_each(Stretches::sort);
        index.attempts.values_mut().for_each(|attempts| attempts.sort_unstable());
        Ok(index)
    }

    /// Whether it was built from tables.
    pub(crate) fn is_loaded(&self) -> bool {
        self.loaded
    }

    fn add_allocations(
        &mut self,
        batch: &RecordBatch,
        installed: &HashMap<String, f64>,
        names: &mut HashMap<String, u32>,
    ) -> Result<()> {
        let (job_ids, nodes, uuids) = (texts(batch, 0)?, texts(batch, 3)?, texts(batch, 4)?);
        let (gpus, migs) = (smalls(batch, 5)?, smalls(batch, 6)?);
        let shares = cast(batch.column(7), &DataType::Float64)?;
        let shares = shares.as_primitive::<Float64Type>();
        let attempts = cast(batch.column(1), &DataType::Int32)?;
        let attempts = attempts.as_primitive::<Int32Type>();
        let (started, ended) = (at(batch.columns(), 8)?, at(batch.columns(), 9)?);
        for row in 0..batch.num_rows() {
            let job_id = job_ids.value(row);
            let job = *names.entry(job_id.to_owned()).or_insert_with(|| {
                self.jobs.push(job_id.to_owned());
                u32::try_from(self.jobs.len() - 1).expect("fewer jobs than 2^32")
            });
            let held = Held {
                started: started.value(row),
                ended: if ended.is_valid(row) { ended.value(row) } else { i64::MAX },
                job,
                attempt: attempts.is_valid(row).then(|| attempts.value(row)),
                mig: migs.is_valid(row).then(|| migs.value(row)),
                share_ratio: if shares.is_valid(row) { shares.value(row) } else { 1.0 },
            };
            let place = nodes.is_valid(row) && gpus.is_valid(row);
            let found = self.attempts.entry(job_id.to_owned()).or_default();
            found.push((held.started, held.ended, held.attempt));
            if uuids.is_valid(row) {
                self.by_uuid.entry(uuids.value(row).to_owned()).or_default().held.push(held);
            } else if place {
                let place = (nodes.value(row).to_owned(), gpus.value(row));
                self.by_place.entry(place).or_default().held.push(held);
            } else if nodes.is_valid(row) {
                let node = nodes.value(row);
                if installed.get(node).is_some_and(|gpus| held.share_ratio >= *gpus) {
                    let held = Held { share_ratio: 1.0, ..held };
                    self.by_node.entry(node.to_owned()).or_default().held.push(held);
                }
            }
        }
        Ok(())
    }

    fn add_jobs(&mut self, batch: &RecordBatch) -> Result<()> {
        let job_ids = texts(batch, 0)?;
        let attempts = cast(batch.column(1), &DataType::Int32)?;
        let attempts = attempts.as_primitive::<Int32Type>();
        let (started, ended) = (at(batch.columns(), 2)?, at(batch.columns(), 3)?);
        for row in 0..batch.num_rows() {
            if started.is_null(row) {
                continue;
            }
            let ended = if ended.is_valid(row) { ended.value(row) } else { i64::MAX };
            let attempt = attempts.is_valid(row).then(|| attempts.value(row));
            let found = self.attempts.entry(job_ids.value(row).to_owned()).or_default();
            found.push((started.value(row), ended, attempt));
        }
        Ok(())
    }

    /// The attempt of a named job that ran until `at`, else the last one begun before: what the
    /// label says and the ledger does not is that job all the same.
    fn attempt(&self, job_id: &str, at: i64) -> Option<i32> {
        let attempts = self.attempts.get(job_id)?;
        let begun = attempts.partition_point(|(started, ..)| *started < at);
        let running = attempts[..begun].iter().rev().find(|(_, ended, _)| *ended >= at);
        running.or_else(|| attempts[..begun].last()).or_else(|| attempts.first())?.2
    }

    fn holders<'a>(&'a self, reading: &Reading<'_>) -> Vec<&'a Held> {
        let fits = |held: &&Held| held.mig.is_none() || held.mig == reading.mig;
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
            found = whole.into_iter().flat_map(|held| held.at(reading.at)).collect();
        }
        found
    }
}

/// What a sample says of where and when it was read.
struct Reading<'a> {
    node: Option<&'a str>,
    gpu: Option<i16>,
    uuid: Option<&'a str>,
    mig: Option<i16>,
    at: i64,
}

/// `job_shares(job_id, cluster, node, gpu, gpu_uuid, mig, sampled_at)`.
pub(super) fn body(holdings: SharedHoldings) -> Body {
    Arc::new(move |args, rows| {
        if args.len() != 7 {
            return datafusion::common::exec_err!(
                "job_shares takes job_id, cluster, node, gpu, gpu_uuid, mig, sampled_at"
            );
        }
        let index =
            Arc::clone(&*holdings.read().unwrap_or_else(std::sync::PoisonError::into_inner));
        shares(&index, args, rows)
    })
}

fn shares(index: &HoldingIndex, args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let text = |position: usize| -> Result<StringArray> {
        Ok(cast(&args[position], &DataType::Utf8)?.as_string::<i32>().clone())
    };
    let small = |position: usize| -> Result<Int16Array> {
        Ok(cast(&args[position], &DataType::Int16)?.as_primitive::<Int16Type>().clone())
    };
    let (jobs, nodes, uuids) = (text(0)?, text(2)?, text(4)?);
    let (gpus, migs) = (small(3)?, small(5)?);
    let instants: TimestampMillisecondArray = at(args, 6)?;
    let mut lists = ListBuilder::new(StructBuilder::from_fields(share_fields(), rows));
    for row in 0..rows {
        if instants.is_valid(row) {
            let at = instants.value(row);
            if jobs.is_valid(row) {
                named(index, jobs.value(row), at, lists.values());
            } else {
                let reading = Reading {
                    node: nodes.is_valid(row).then(|| nodes.value(row)),
                    gpu: gpus.is_valid(row).then(|| gpus.value(row)),
                    uuid: uuids.is_valid(row).then(|| uuids.value(row)),
                    mig: migs.is_valid(row).then(|| migs.value(row)),
                    at,
                };
                attributed(index, &reading, lists.values());
            }
        }
        lists.append(true);
    }
    Ok(cast(&lists.finish(), &shares_type())?)
}

fn named(index: &HoldingIndex, ids: &str, at: i64, out: &mut StructBuilder) {
    let ids: Vec<&str> = ids.split(',').map(str::trim).filter(|id| !id.is_empty()).collect();
    for id in &ids {
        let part = 1.0 / ids.len() as f64;
        append(out, Some(id), index.attempt(id, at), Some(part), ids.len() > 1);
    }
}

fn attributed(index: &HoldingIndex, reading: &Reading<'_>, out: &mut StructBuilder) {
    let mut holders = index.holders(reading);
    holders.sort_by_key(|held| (held.job, held.attempt, held.started));
    if holders.is_empty() {
        append(out, None, None, None, false);
    }
    let whole = holders.iter().map(|held| held.share_ratio).sum::<f64>().max(1.0);
    for held in &holders {
        let share_ratio = held.share_ratio / whole;
        let job = &index.jobs[held.job as usize];
        append(out, Some(job), held.attempt, Some(share_ratio), holders.len() > 1);
    }
}

fn append(
    out: &mut StructBuilder,
    job: Option<&str>,
    attempt: Option<i32>,
    share_ratio: Option<f64>,
    shared: bool,
) {
    let made = "the builder was made from these fields";
    out.field_builder::<StringBuilder>(0).expect(made).append_option(job);
    out.field_builder::<Int32Builder>(1).expect(made).append_option(attempt);
    out.field_builder::<Float64Builder>(2).expect(made).append_option(share_ratio);
    out.field_builder::<BooleanBuilder>(3).expect(made).append_value(shared);
    out.append(true);
}

fn share_fields() -> Fields {
    Fields::from(vec![
        Field::new("job_id", DataType::Utf8, true),
        Field::new("attempt", DataType::Int32, true),
        Field::new("share_ratio", DataType::Float64, true),
        Field::new("shared", DataType::Boolean, true),
    ])
}

pub(super) fn shares_type() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Struct(share_fields()), true)))
}

fn gpus_by_node(batches: &[RecordBatch]) -> Result<HashMap<String, f64>> {
    let mut gpus = HashMap::new();
    for batch in batches {
        let nodes = texts(batch, 0)?;
        let counts = batch.column(1).as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            gpus.insert(nodes.value(row).to_owned(), counts.value(row));
        }
    }
    Ok(gpus)
}

fn texts(batch: &RecordBatch, column: usize) -> Result<StringArray> {
    Ok(cast(batch.column(column), &DataType::Utf8)?.as_string::<i32>().clone())
}

fn smalls(batch: &RecordBatch, column: usize) -> Result<Int16Array> {
    Ok(cast(batch.column(column), &DataType::Int16)?.as_primitive::<Int16Type>().clone())
}
