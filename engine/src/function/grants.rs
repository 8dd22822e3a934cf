//! How much of a GPU does each grant count for where several hold it at once?
//!
//! What was granted on one device never counts for more than the device. Where the shares granted
//! at an instant sum to more than 1, each counts its share / that sum, as readings are given to
//! jobs; slices are divided among theirs first, then the board among its slices. Such a grant is
//! cut where its part changes. A device that was never granted to two at once costs one look-up.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBuilder, Float64Array, Float64Builder,
    Int16Array, ListBuilder, RecordBatch, StringArray, StructBuilder, TimestampMillisecondBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Float64Type};
use datafusion::common::Result;
use loadline_ingest::schema::instant;

use super::column::{smalls, texts};
use super::ledger::Ledger;
use super::shares::part;
use super::{Body, at};

/// Columns that [`GrantIndex::build`] reads, in this order: what names a GPU.
pub(super) const GRANTS_SQL: &str = "SELECT a.cluster, a.node, a.gpu, a.gpu_uuid, a.mig, \
     a.gpu_share_ratio, a.started_at, a.ended_at FROM allocations a \
     WHERE a.started_at IS NOT NULL AND coalesce(a.ended_at > a.started_at, true) \
     AND (a.gpu_uuid IS NOT NULL OR a.node IS NOT NULL AND a.gpu IS NOT NULL)";

/// `gpu_shared(cluster, node, gpu, gpu_uuid)`: whether two grants ever held that GPU at once.
pub(super) const GPU_SHARED: &str = "gpu_shared";
/// `grant_parts(cluster, node, gpu, gpu_uuid, mig, gpu_share_ratio, started_at, ended_at)`: what
/// the grant counts for, stretch by stretch.
pub(super) const PARTS: &str = "grant_parts";

/// One grant on a device, in ms since 1970.
#[derive(Debug, Clone, Copy)]
struct Grant {
    started: i64,
    ended: i64,
    mig: Option<i16>,
    share_ratio: f64,
}

/// Until when something counts for `factor` of its share, and how many hold it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Part {
    mig: Option<i16>,
    factor: f64,
    holders: usize,
}

/// Who holds a device from an instant to the next: a part for each slice, and for the board.
#[derive(Debug)]
struct Stretch {
    from: i64,
    until: i64,
    parts: Vec<Part>,
}

/// Devices that several grants held at once, by cluster and UUID, else node and index.
#[derive(Debug, Default)]
pub(super) struct GrantIndex {
    devices: HashMap<String, Vec<Stretch>>,
}

impl GrantIndex {
    /// Reads the answer to [`GRANTS_SQL`].
    pub(super) fn build(batches: &[RecordBatch]) -> Result<Self> {
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut grants: Vec<Vec<Grant>> = Vec::new();
        let mut key = String::new();
        for batch in batches {
            let columns = Columns::read(batch.columns())?;
            let (started, ended) = (at(batch.columns(), 6)?, at(batch.columns(), 7)?);
            for row in 0..batch.num_rows() {
                if !columns.key(row, &mut key) {
                    continue;
                }
                let number = numbers.get(&key).copied().unwrap_or_else(|| {
                    numbers.insert(key.clone(), grants.len());
                    grants.push(Vec::new());
                    grants.len() - 1
                });
                let ended = if ended.is_valid(row) { ended.value(row) } else { i64::MAX };
                grants[number].push(Grant {
                    started: started.value(row),
                    ended,
                    mig: columns.mig(row),
                    share_ratio: columns.share(row),
                });
            }
        }
        let found = numbers.into_iter().filter_map(|(key, number)| {
            let stretches = stretches(std::mem::take(&mut grants[number]));
            (!stretches.is_empty()).then_some((key, stretches))
        });
        Ok(Self { devices: found.collect() })
    }
}

/// Stretches in which more than one grant holds a device, or more than all of it is granted.
fn stretches(mut grants: Vec<Grant>) -> Vec<Stretch> {
    grants.sort_by_key(|grant| (grant.started, grant.ended));
    let mut cuts: Vec<i64> = grants.iter().flat_map(|grant| [grant.started, grant.ended]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut found = Vec::new();
    let (mut active, mut next) = (Vec::new(), 0);
    for cut in cuts.windows(2) {
        active.retain(|grant: &Grant| grant.ended > cut[0]);
        while let Some(grant) = grants.get(next).filter(|grant| grant.started <= cut[0]) {
            active.push(*grant);
            next += 1;
        }
        if active.len() > 1 || active.iter().any(|grant| grant.share_ratio > 1.0) {
            found.push(Stretch { from: cut[0], until: cut[1], parts: parts(&active) });
        }
    }
    found
}

/// The part of each slice that is granted, and of the board as such.
fn parts(active: &[Grant]) -> Vec<Part> {
    let mut migs: Vec<Option<i16>> = active.iter().map(|grant| grant.mig).collect();
    migs.push(None);
    migs.sort_unstable();
    migs.dedup();
    let granted = |mig: Option<i16>| -> f64 {
        active.iter().filter(|grant| grant.mig == mig).map(|grant| grant.share_ratio).sum()
    };
    let count = |mig: Option<i16>| active.iter().filter(|grant| grant.mig == mig).count();
    // Of what is granted on a slice, what is left of it: at most the slice.
    let slice = |mig: Option<i16>| if mig.is_some() { factor(granted(mig)) } else { 1.0 };
    let board = factor(migs.iter().map(|mig| granted(*mig) * slice(*mig)).sum());
    let part = |mig: Option<i16>| Part {
        mig,
        factor: slice(mig) * board,
        holders: if mig.is_some() { count(mig) + count(None) } else { active.len() },
    };
    migs.into_iter().map(part).collect()
}

/// What a whole share counts for where `granted` are granted in all.
fn factor(granted: f64) -> f64 {
    // Three thirds are one, whatever their sum is to the last digit.
    if granted <= 1.0 + 1e-9 { 1.0 } else { part(1.0, granted) }
}

/// Where and what a grant is.
struct Columns {
    clusters: StringArray,
    nodes: StringArray,
    gpus: Int16Array,
    uuids: StringArray,
    migs: Option<Int16Array>,
    shares: Option<Float64Array>,
}

impl Columns {
    fn read(columns: &[ArrayRef]) -> Result<Self> {
        let shares = columns.get(5).map(|column| cast(column, &DataType::Float64)).transpose()?;
        Ok(Self {
            clusters: texts(&columns[0])?,
            nodes: texts(&columns[1])?,
            gpus: smalls(&columns[2])?,
            uuids: texts(&columns[3])?,
            migs: columns.get(4).map(smalls).transpose()?,
            shares: shares.map(|shares| shares.as_primitive::<Float64Type>().clone()),
        })
    }

    /// Writes the key of a row's device; whether it names one.
    fn key(&self, row: usize, key: &mut String) -> bool {
        key.clear();
        if self.clusters.is_valid(row) {
            key.push_str(self.clusters.value(row));
        }
        if self.uuids.is_valid(row) {
            key.push('\n');
            key.push_str(self.uuids.value(row));
            return true;
        }
        if self.nodes.is_null(row) || self.gpus.is_null(row) {
            return false;
        }
        key.push('\n');
        key.push_str(self.nodes.value(row));
        key.push('\n');
        key.push_str(&self.gpus.value(row).to_string());
        true
    }

    fn mig(&self, row: usize) -> Option<i16> {
        self.migs.as_ref().filter(|migs| migs.is_valid(row)).map(|migs| migs.value(row))
    }

    fn share(&self, row: usize) -> f64 {
        self.shares.as_ref().filter(|all| all.is_valid(row)).map_or(1.0, |all| all.value(row))
    }
}

/// The body of `gpu_shared`.
pub(super) fn shared_body(ledger: Ledger) -> Body {
    Arc::new(move |args, rows| {
        if args.len() != 4 {
            return datafusion::common::exec_err!(
                "{GPU_SHARED} takes cluster, node, gpu, gpu_uuid"
            );
        }
        let index = ledger.grants();
        if index.devices.is_empty() {
            return Ok(Arc::new(BooleanArray::from(vec![false; rows])) as ArrayRef);
        }
        let columns = Columns::read(args)?;
        let mut key = String::new();
        let found = (0..rows)
            .map(|row| Some(columns.key(row, &mut key) && index.devices.contains_key(&key)));
        Ok(Arc::new(found.collect::<BooleanArray>()) as ArrayRef)
    })
}

/// The body of `grant_parts`.
pub(super) fn parts_body(ledger: Ledger) -> Body {
    Arc::new(move |args, rows| {
        if args.len() != 8 {
            return datafusion::common::exec_err!(
                "{PARTS} takes cluster, node, gpu, gpu_uuid, mig, gpu_share_ratio, started_at, \
                 ended_at"
            );
        }
        let index = ledger.grants();
        let columns = Columns::read(args)?;
        let (started, ended) = (at(args, 6)?, at(args, 7)?);
        let mut lists = ListBuilder::new(StructBuilder::from_fields(part_fields(), rows));
        let mut key = String::new();
        for row in 0..rows {
            if started.is_valid(row) && ended.is_valid(row) {
                let grant = Grant {
                    started: started.value(row),
                    ended: ended.value(row),
                    mig: columns.mig(row),
                    share_ratio: columns.share(row),
                };
                let named = columns.key(row, &mut key);
                let stretches = index.devices.get(&key).filter(|_| named);
                cut(grant, stretches.map_or(&[][..], Vec::as_slice), lists.values());
            }
            lists.append(true);
        }
        Ok(cast(&lists.finish(), &parts_type())?)
    })
}

/// Writes a grant cut where its part of the device changes.
fn cut(grant: Grant, stretches: &[Stretch], out: &mut StructBuilder) {
    let alone = (1.0, false);
    let mut told = (grant.started, alone);
    let first = stretches.partition_point(|stretch| stretch.until <= grant.started);
    let mut met = |at: i64, (factor, shared): (f64, bool)| {
        let (from, (known, _)) = told;
        if at <= from {
            told.1 = (factor, shared);
        } else if (factor - known).abs() < 1e-9 {
            told.1.1 |= shared;
        } else {
            append(out, from, at, grant.share_ratio * known, told.1.1);
            told = (at, (factor, shared));
        }
    };
    let mut reached = grant.started;
    for stretch in &stretches[first..] {
        if stretch.from >= grant.ended {
            break;
        }
        if stretch.from > reached {
            met(reached, alone);
        }
        let part = stretch.parts.iter().find(|part| part.mig == grant.mig);
        let part = part.map_or(alone, |part| (part.factor, part.holders > 1));
        met(stretch.from.max(grant.started), part);
        reached = stretch.until;
    }
    if reached < grant.ended {
        met(reached, alone);
    }
    let (from, (factor, shared)) = told;
    if grant.ended > from {
        append(out, from, grant.ended, grant.share_ratio * factor, shared);
    }
}

fn append(out: &mut StructBuilder, from: i64, until: i64, gpus: f64, shared: bool) {
    let made = "the builder was made from these fields";
    for (field, at) in [(0, from), (1, until)] {
        out.field_builder::<TimestampMillisecondBuilder>(field).expect(made).append_value(at);
    }
    out.field_builder::<Float64Builder>(2).expect(made).append_value(gpus);
    out.field_builder::<BooleanBuilder>(3).expect(made).append_value(shared);
    out.append(true);
}

fn part_fields() -> Fields {
    Fields::from(vec![
        Field::new("started_at", instant(), true),
        Field::new("ended_at", instant(), true),
        Field::new("gpus", DataType::Float64, true),
        Field::new("shared", DataType::Boolean, true),
    ])
}

pub(super) fn parts_type() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Struct(part_fields()), true)))
}

#[cfg(test)]
mod tests;
