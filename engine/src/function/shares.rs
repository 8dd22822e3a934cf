//! Which jobs does a reading belong to, and how much of it? `job_shares(...)`.
//!
//! A reading that names its jobs is split evenly between them. Any other goes to the allocations
//! that held the GPU at that instant, found by UUID, else by node and index; several share it by
//! what each was granted, and never get more than the whole. An allocation that names only a node
//! counts where it held all of that node's GPUs: otherwise nobody knows which were its own. A
//! reading of nobody has one row without a job.

mod index;

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanBuilder, Float64Builder, Int32Builder, ListBuilder, StringBuilder,
    StructBuilder, TimestampMillisecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::Result;

pub(super) use self::index::{ALLOCATIONS_SQL, HoldingIndex, JOBS_SQL, NODES_SQL};
use self::index::{Cluster, Reading};
use super::column::{smalls, texts};
use super::ledger::Ledger;
use super::{Body, at};

/// `job_shares(job_id, cluster, node, gpu, gpu_uuid, mig, sampled_at)`: the jobs of a reading.
pub(super) const JOB_SHARES: &str = "job_shares";

/// What is left of a share where the shares granted at once sum to `granted`.
pub(super) fn part(share_ratio: f64, granted: f64) -> f64 {
    share_ratio / granted.max(1.0)
}

/// The body of `job_shares`.
pub(super) fn body(ledger: Ledger) -> Body {
    Arc::new(move |args, rows| {
        if args.len() != 7 {
            return datafusion::common::exec_err!(
                "{JOB_SHARES} takes job_id, cluster, node, gpu, gpu_uuid, mig, sampled_at"
            );
        }
        shares(&ledger.holdings(), args, rows)
    })
}

fn shares(index: &HoldingIndex, args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (jobs, clusters) = (texts(&args[0])?, texts(&args[1])?);
    let (nodes, uuids) = (texts(&args[2])?, texts(&args[4])?);
    let (gpus, migs) = (smalls(&args[3])?, smalls(&args[5])?);
    let instants: TimestampMillisecondArray = at(args, 6)?;
    let mut lists = ListBuilder::new(StructBuilder::from_fields(share_fields(), rows));
    for row in 0..rows {
        if instants.is_valid(row) {
            let at = instants.value(row);
            let cluster = index.cluster(clusters.is_valid(row).then(|| clusters.value(row)));
            let told = if jobs.is_valid(row) { jobs.value(row) } else { "" };
            let named = names(index, told, cluster);
            if named.is_empty() {
                let reading = Reading {
                    cluster,
                    node: nodes.is_valid(row).then(|| nodes.value(row)),
                    gpu: gpus.is_valid(row).then(|| gpus.value(row)),
                    uuid: uuids.is_valid(row).then(|| uuids.value(row)),
                    mig: migs.is_valid(row).then(|| migs.value(row)),
                    at,
                };
                attributed(index, &reading, lists.values());
            }
            for id in &named {
                let share_ratio = Some(1.0 / named.len() as f64);
                let attempt = index.attempt(id, at, cluster);
                append(lists.values(), Some(*id), attempt, share_ratio, named.len() > 1);
            }
        }
        lists.append(true);
    }
    Ok(cast(&lists.finish(), &shares_type())?)
}

/// The jobs that a reading names, between commas. A comma may also stand inside an id: what the
/// ledger knows as one id stays one, the longest that begins at each place.
fn names<'a>(index: &HoldingIndex, told: &'a str, cluster: Cluster) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut rest = Some(told).filter(|told| !told.is_empty());
    while let Some(text) = rest {
        let commas: Vec<usize> = text.match_indices(',').map(|(place, _)| place).collect();
        let next = commas.first().copied().unwrap_or(text.len());
        let longer = commas.iter().skip(1).copied().chain([text.len()]);
        let longer: Vec<usize> = longer.filter(|end| *end > next).collect();
        let known = longer.into_iter().rev().find(|end| index.knows(text[..*end].trim(), cluster));
        let end = known.unwrap_or(next);
        found.push(text[..end].trim());
        rest = text.get(end + 1..);
    }
    found.retain(|id| !id.is_empty());
    found
}

fn attributed(index: &HoldingIndex, reading: &Reading<'_>, out: &mut StructBuilder) {
    let mut holders = index.holders(reading);
    holders.sort_by_key(|held| (held.job, held.attempt, held.started));
    if holders.is_empty() {
        append(out, None, None, None, false);
    }
    let granted: f64 = holders.iter().map(|held| held.share_ratio).sum();
    for held in &holders {
        let share_ratio = Some(part(held.share_ratio, granted));
        append(out, Some(index.job(held.job)), held.attempt, share_ratio, holders.len() > 1);
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
