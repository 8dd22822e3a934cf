//! `gpu_shared` and `grant_parts`, row by row.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, BooleanBuilder, Float64Builder, ListBuilder, StructBuilder,
    TimestampMillisecondBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields};
use loadline_ingest::schema::instant;

use super::super::ledger::Ledger;
use super::super::suspension::Suspensions;
use super::super::{Body, at};
use super::device::{Columns, Grant};
use super::{GPU_SHARED, PARTS, Stretch};

/// The body of `gpu_shared`.
pub(in crate::function) fn shared_body(ledger: Ledger) -> Body {
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
pub(in crate::function) fn parts_body(ledger: Ledger) -> Body {
    Arc::new(move |args, rows| {
        if args.len() != 10 {
            return datafusion::common::exec_err!(
                "{PARTS} takes cluster, node, gpu, gpu_uuid, mig, gpu_share_ratio, started_at, \
                 ended_at, job_id, attempt"
            );
        }
        let index = ledger.grants();
        let columns = Columns::read(args)?;
        let (started, ended) = (at(args, 6)?, at(args, 7)?);
        let mut lists = ListBuilder::new(StructBuilder::from_fields(part_fields(), rows));
        let mut key = String::new();
        for row in 0..rows {
            if started.is_valid(row) && ended.is_valid(row) {
                let suspensions = &index.suspensions;
                let stretch = (started.value(row), ended.value(row));
                let grant = columns.grant(row, stretch, suspensions);
                let named = columns.key(row, &mut key);
                let stretches = index.devices.get(&key).filter(|_| named);
                let stretches = stretches.map_or(&[][..], Vec::as_slice);
                for piece in cut(grant, stretches, suspensions) {
                    append(lists.values(), &piece);
                }
            }
            lists.append(true);
        }
        Ok(cast(&lists.finish(), &parts_type())?)
    })
}

/// A stretch of a grant, in ms since 1970, in which it counts for the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Piece {
    pub(super) from: i64,
    pub(super) until: i64,
    pub(super) gpus: f64,
    pub(super) shared: bool,
    pub(super) used_ratio: f64,
}

/// A grant cut where its part of the device, or of it what is not suspended, changes.
pub(super) fn cut(grant: Grant, stretches: &[Stretch], suspensions: &Suspensions) -> Vec<Piece> {
    let within = (grant.started, grant.ended);
    let suspension = grant.suspended.map(|number| suspensions.get(number));
    let first = stretches.partition_point(|stretch| stretch.until <= grant.started);
    let met = stretches[first..].iter().take_while(|stretch| stretch.from < grant.ended);
    let mut borders: Vec<i64> = met.flat_map(|stretch| [stretch.from, stretch.until]).collect();
    if let Some(suspension) = suspension {
        suspension.cuts(within, &mut borders);
    }
    borders.retain(|at| (grant.started + 1..grant.ended).contains(at));
    borders.push(grant.ended);
    borders.sort_unstable();
    borders.dedup();
    let (mut pieces, mut from, mut next) = (Vec::<Piece>::new(), grant.started, first);
    for until in borders.into_iter().filter(|until| *until > grant.started) {
        while stretches.get(next).is_some_and(|stretch| stretch.until <= from) {
            next += 1;
        }
        let stretch = stretches.get(next).filter(|stretch| stretch.from <= from);
        let part = stretch.and_then(|stretch| stretch.parts.iter().find(|p| p.mig == grant.mig));
        let piece = Piece {
            from,
            until,
            gpus: grant.share_ratio * part.map_or(1.0, |part| part.factor),
            shared: part.is_some_and(|part| part.holders > 1),
            used_ratio: suspension.map_or(1.0, |suspension| suspension.used_ratio(until)),
        };
        match pieces.last_mut() {
            Some(last) if last.counts_as(&piece) => {
                last.until = until;
                last.shared |= piece.shared;
            }
            _ => pieces.push(piece),
        }
        from = until;
    }
    pieces
}

impl Piece {
    fn counts_as(&self, other: &Self) -> bool {
        let same = |one: f64, other: f64| (one - other).abs() < 1e-9;
        same(self.gpus, other.gpus) && same(self.used_ratio, other.used_ratio)
    }
}

fn append(out: &mut StructBuilder, piece: &Piece) {
    let made = "the builder was made from these fields";
    for (field, at) in [(0, piece.from), (1, piece.until)] {
        out.field_builder::<TimestampMillisecondBuilder>(field).expect(made).append_value(at);
    }
    for (field, number) in [(2, piece.gpus), (4, piece.used_ratio)] {
        out.field_builder::<Float64Builder>(field).expect(made).append_value(number);
    }
    out.field_builder::<BooleanBuilder>(3).expect(made).append_value(piece.shared);
    out.append(true);
}

fn part_fields() -> Fields {
    Fields::from(vec![
        Field::new("started_at", instant(), true),
        Field::new("ended_at", instant(), true),
        Field::new("gpus", DataType::Float64, true),
        Field::new("shared", DataType::Boolean, true),
        Field::new("used_ratio", DataType::Float64, true),
    ])
}

pub(in crate::function) fn parts_type() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Struct(part_fields()), true)))
}
