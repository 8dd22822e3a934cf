//! Which jobs does a reading belong to, and how much of it? `job_shares(...)`.
//!
//! A reading stands for the time before it. It is cut where a grant on its GPU, or an attempt of a
//! job that it names, begins or ends, so that no job is read for longer than it held.
//! A piece is split evenly between the jobs that the reading names, those left out that the ledger
//! knows to have run at other times. Any other piece goes to the allocations that held the GPU
//! then, found by UUID, else by node and index; several share it by what each was granted, less
//! suspension, and never get more than the whole. What a suspended job leaves is nobody's, if not
//! another's. An allocation that names only a node counts where it held all of that node's GPUs, as
//! does a job without allocations that lists its nodes: otherwise nobody knows which were its own. What is nobody's has one row without a job.

mod index;
mod installed;
mod stretches;

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBuilder, Float64Builder, Int32Builder, ListBuilder,
    StringBuilder, StructBuilder, TimestampMillisecondArray, TimestampMillisecondBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Float64Type};
use datafusion::common::Result;
use loadline_ingest::schema::instant;

pub(super) use self::index::{ALLOCATIONS_SQL, HoldingIndex, JOBS_SQL};
use self::index::{Cluster, Reading};
pub(super) use self::installed::NODES_SQL;
use self::stretches::Held;
use super::column::{smalls, texts};
use super::ledger::Ledger;
use super::{Body, at};

/// `job_shares(job_id, cluster, node, gpu, gpu_uuid, mig, sampled_at, period_s, activity_ratio)`: the
/// jobs of a reading, piece by piece of the time that it stands for; those of its instant come last.
pub(super) const JOB_SHARES: &str = "job_shares";

/// Asks how much of what was read of each suspended attempt was idle, while no other held its GPUs;
/// `from` and `until`, in ms since 1970, are the first start and the last end among them.
pub(super) fn idle_sql((from, until): (i64, i64)) -> String {
    let at = |ms: i64| format!("arrow_cast({ms}, 'Timestamp(Millisecond, Some(\"UTC\"))')");
    format!(
        "SELECT s.share['job_id'] AS job_id, s.share['attempt'] AS attempt, s.cluster, \
         coalesce(sum(s.weight_s) FILTER (WHERE s.activity_ratio < {IDLE_BELOW_RATIO}), 0) \
             / sum(s.weight_s) AS idle_ratio \
         FROM (SELECT r.*, r.share['share_ratio'] * r.share['period_s'] AS weight_s FROM ( \
             SELECT d.cluster, coalesce(d.gpu_util_ratio, d.sm_active_ratio) AS activity_ratio, \
                 unnest(job_shares(d.job_id, d.cluster, d.node, d.gpu, d.gpu_uuid, d.mig, \
                     d.sampled_at, d.period_s, NULL)) AS share \
             FROM samples d WHERE d.sampled_at > {} AND d.sampled_at <= {} + INTERVAL '1 day' \
                 AND d.sampled_at BETWEEN span_started_at() AND as_of()) r \
             WHERE r.share['suspended'] AND NOT r.share['taken']) s \
         WHERE s.weight_s > 0 AND s.activity_ratio IS NOT NULL \
         GROUP BY s.share['job_id'], s.share['attempt'], s.cluster",
        at(from),
        at(until)
    )
}

/// Activity below it is idle.
const IDLE_BELOW_RATIO: f64 = 0.05;

/// The body of `job_shares`.
pub(super) fn body(ledger: Ledger) -> Body {
    Arc::new(move |args, rows| {
        if args.len() != 9 {
            return datafusion::common::exec_err!(
                "{JOB_SHARES} takes job_id, cluster, node, gpu, gpu_uuid, mig, sampled_at, \
                 period_s, activity_ratio"
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
    let periods = cast(&args[7], &DataType::Float64)?;
    let periods = periods.as_primitive::<Float64Type>();
    let activities = cast(&args[8], &DataType::Float64)?;
    let activities = activities.as_primitive::<Float64Type>();
    let mut lists = ListBuilder::new(StructBuilder::from_fields(share_fields(), rows));
    for row in 0..rows {
        if instants.is_valid(row) {
            let cluster = index.cluster(clusters.is_valid(row).then(|| clusters.value(row)));
            let reading = Reading {
                cluster,
                node: nodes.is_valid(row).then(|| nodes.value(row)),
                gpu: gpus.is_valid(row).then(|| gpus.value(row)),
                uuid: uuids.is_valid(row).then(|| uuids.value(row)),
                mig: migs.is_valid(row).then(|| migs.value(row)),
                at: instants.value(row),
                idle: activities.is_valid(row).then(|| activities.value(row) < IDLE_BELOW_RATIO),
            };
            let told = if jobs.is_valid(row) { jobs.value(row) } else { "" };
            let named = names(index, told, cluster);
            let period_s = periods.is_valid(row).then(|| periods.value(row));
            write(index, &reading, &named, period_s, lists.values());
        }
        lists.append(true);
    }
    Ok(cast(&lists.finish(), &shares_type())?)
}

/// What one job has of a GPU; a GPU of nobody has one without a job.
#[derive(Debug, PartialEq)]
struct Share<'a> {
    job: Option<&'a str>,
    attempt: Option<i32>,
    share_ratio: Option<f64>,
    shared: bool,
    used_ratio: f64,
    suspended: Option<usize>,
    /// Whether others hold a GPU of a suspended attempt.
    taken: bool,
}

impl Share<'_> {
    const NOBODY: Self = Self {
        job: None,
        attempt: None,
        share_ratio: None,
        shared: false,
        used_ratio: 1.0,
        suspended: None,
        taken: false,
    };
}

/// Writes a reading cut where those who hold the GPU change. The pieces sum to its period.
fn write(
    index: &HoldingIndex,
    reading: &Reading<'_>,
    named: &[&str],
    period_s: Option<f64>,
    out: &mut StructBuilder,
) {
    let from = reading.at - (period_s.unwrap_or(0.0).max(0.0) * 1000.0).round() as i64;
    let mut cuts = Vec::new();
    index.cuts(reading, from, &mut cuts);
    for id in named {
        index.attempt_cuts(id, reading.cluster, (from, reading.at), &mut cuts);
    }
    cuts.push(reading.at);
    cuts.sort_unstable();
    cuts.dedup();
    let mut piece = (from, held(index, &Reading { at: cuts[0], ..*reading }, named));
    for ends in cuts.windows(2) {
        let next = held(index, &Reading { at: ends[1], ..*reading }, named);
        if next != piece.1 {
            let period_s = (ends[0] - piece.0) as f64 / 1000.0;
            append(out, &piece.1, (piece.0, ends[0]), Some(period_s));
            piece = (ends[0], next);
        }
    }
    let cut_s = (reading.at - piece.0) as f64 / 1000.0;
    let rest_s = if piece.0 == from { period_s } else { Some(cut_s) };
    append(out, &piece.1, (piece.0, reading.at), rest_s);
}

/// Who had the GPU just before the instant of `reading`, and how much of the time. What suspended
/// jobs leave comes first.
fn held<'a>(index: &'a HoldingIndex, reading: &Reading<'_>, named: &[&'a str]) -> Vec<Share<'a>> {
    let mut found = named_by(index, reading, named);
    if found.is_empty() {
        found = granted(index, reading);
    }
    if found.is_empty() {
        return vec![Share::NOBODY];
    }
    for share in &mut found {
        share.used_ratio = index.used_ratio(share.suspended, reading);
        share.taken = index.is_taken(share.suspended, reading.at);
    }
    let nominal = |share: &Share<'_>| share.share_ratio.unwrap_or(1.0);
    let used: f64 = found.iter().map(|share| nominal(share) * share.used_ratio).sum();
    let several = found.iter().filter(|share| share.used_ratio > 0.0).count() > 1;
    let whole = found.iter().map(nominal).sum::<f64>().min(1.0);
    for share in &mut found {
        share.share_ratio = Some(nominal(share) / used.max(1.0));
        share.shared = several;
    }
    let rest_ratio = whole - used.min(1.0);
    if rest_ratio > 1e-9 {
        let used_ratio = rest_ratio / whole;
        let share_ratio = Some(whole);
        found.insert(0, Share { share_ratio, shared: several, used_ratio, ..Share::NOBODY });
    }
    found
}

/// The jobs that the reading names and that may have run just before it, each of the whole GPU.
fn named_by<'a>(index: &HoldingIndex, reading: &Reading<'_>, named: &[&'a str]) -> Vec<Share<'a>> {
    let of = |id: &&'a str| {
        let (attempt, suspended) = index.attempt(id, reading.at, reading.cluster)?;
        let share_ratio = Some(1.0);
        Some(Share { job: Some(id), attempt, share_ratio, suspended, ..Share::NOBODY })
    };
    named.iter().filter_map(of).collect()
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

/// The jobs that the ledger says, each of what it was granted.
fn granted<'a>(index: &'a HoldingIndex, reading: &Reading<'_>) -> Vec<Share<'a>> {
    let mut holders = index.holders(reading);
    holders.sort_by_key(|held| (held.job, held.attempt, held.started));
    let of = |held: &Held| Share {
        job: Some(index.job(held.job)),
        attempt: held.attempt,
        share_ratio: Some(held.share_ratio),
        suspended: held.suspended,
        ..Share::NOBODY
    };
    holders.into_iter().map(of).collect()
}

fn append(
    out: &mut StructBuilder,
    shares: &[Share<'_>],
    (from, until): (i64, i64),
    period_s: Option<f64>,
) {
    let made = "the builder was made from these fields";
    for share in shares {
        out.field_builder::<StringBuilder>(0).expect(made).append_option(share.job);
        out.field_builder::<Int32Builder>(1).expect(made).append_option(share.attempt);
        out.field_builder::<Float64Builder>(2).expect(made).append_option(share.share_ratio);
        out.field_builder::<BooleanBuilder>(3).expect(made).append_value(share.shared);
        for (field, at) in [(4, from), (5, until)] {
            out.field_builder::<TimestampMillisecondBuilder>(field).expect(made).append_value(at);
        }
        out.field_builder::<Float64Builder>(6).expect(made).append_option(period_s);
        out.field_builder::<Float64Builder>(7).expect(made).append_value(share.used_ratio);
        for (field, told) in [(8, share.suspended.is_some()), (9, share.taken)] {
            out.field_builder::<BooleanBuilder>(field).expect(made).append_value(told);
        }
        out.append(true);
    }
}

fn share_fields() -> Fields {
    Fields::from(vec![
        Field::new("job_id", DataType::Utf8, true),
        Field::new("attempt", DataType::Int32, true),
        Field::new("share_ratio", DataType::Float64, true),
        Field::new("shared", DataType::Boolean, true),
        Field::new("started_at", instant(), true),
        Field::new("ended_at", instant(), true),
        Field::new("period_s", DataType::Float64, true),
        Field::new("used_ratio", DataType::Float64, true),
        Field::new("suspended", DataType::Boolean, true),
        Field::new("taken", DataType::Boolean, true),
    ])
}

pub(super) fn shares_type() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Struct(share_fields()), true)))
}
