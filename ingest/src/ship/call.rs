//! From a segment to calls of the server: rows of one table with the same columns, in their order.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_flight::utils::batches_to_flight_data;
use arrow_flight::{FlightData, SchemaAsIpc};

use super::wire;
use crate::schema::Table;
use crate::wal::{Position, Segment};

/// Bytes of one message, unless it is one row.
const MESSAGE_BYTES: usize = 1 << 20;

/// Bytes of messages at which a call ends.
const CALL_BYTES: usize = 4 << 20;

/// A batch of a record, and where it begins.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) table: Table,
    pub(super) rows: RecordBatch,
    start: Position,
}

impl Part {
    /// Where it ends.
    pub(super) fn until(&self) -> Position {
        Position { row: self.rows.num_rows() as u64, ..self.start }
    }
}

/// The batches of a segment, and whether some of it could not be read.
pub(super) fn parts(segment: &Segment) -> (Vec<Part>, bool) {
    let (mut parts, mut damaged) = (Vec::new(), false);
    for (byte, record) in segment.records() {
        let Ok(rows) = record else {
            damaged = true;
            continue;
        };
        for (part, (table, rows)) in (0..).zip(rows) {
            let start = Position { segment: segment.number, byte, part, row: 0 };
            parts.push(Part { table, rows, start });
        }
    }
    (parts, damaged)
}

/// One call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) table: Table,
    pub(super) rows: u64,
    /// Where it ends.
    pub(super) until: Position,
    pub(super) messages: Vec<FlightData>,
}

/// Calls for what the server has not `reached` yet.
pub(super) fn calls(
    parts: &[Part],
    reached: &BTreeMap<Table, Position>,
    log: &str,
) -> Result<Vec<Call>, ArrowError> {
    let mut tables: BTreeMap<Table, Vec<&Part>> = BTreeMap::new();
    for part in parts {
        if reached.get(&part.table).is_none_or(|reached| part.until() > *reached) {
            tables.entry(part.table).or_default().push(part);
        }
    }
    let mut calls = Vec::new();
    for (table, parts) in tables {
        let mut open: Option<(SchemaRef, Call, usize)> = None;
        for part in parts {
            let rows = nullable(&part.rows)?;
            let fits = open
                .as_ref()
                .is_some_and(|(schema, _, bytes)| *schema == rows.schema() && *bytes < CALL_BYTES);
            if !fits {
                calls.extend(open.take().map(|(_, call, _)| call));
            }
            let (_, call, bytes) = open.get_or_insert_with(|| {
                let schema = rows.schema();
                (Arc::clone(&schema), begin(table, &schema, log), 0)
            });
            for (message, until) in messages(&rows, part.start)? {
                *bytes += message.data_body.len();
                call.until = until;
                call.messages.push(message);
            }
            call.rows += rows.num_rows() as u64;
        }
        calls.extend(open.map(|(_, call, _)| call));
    }
    Ok(calls)
}

/// Messages of a call of rows that no log holds.
pub(super) fn alone(table: Table, rows: RecordBatch) -> Result<Vec<FlightData>, ArrowError> {
    let mut messages = batches_to_flight_data(&rows.schema(), vec![rows])?;
    if let Some(first) = messages.first_mut() {
        first.flight_descriptor = Some(wire::descriptor(table, None));
    }
    Ok(messages)
}

fn begin(table: Table, schema: &Schema, log: &str) -> Call {
    let mut first: FlightData = SchemaAsIpc::new(schema, &Default::default()).into();
    first.flight_descriptor = Some(wire::descriptor(table, Some(log)));
    Call { table, rows: 0, until: Position::default(), messages: vec![first] }
}

/// The same rows with columns that may be NULL: whether some are differs from batch to batch.
fn nullable(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = rows.schema();
    let fields = schema.fields().iter();
    let fields = fields.map(|field| Field::new(field.name(), field.data_type().clone(), true));
    RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), rows.columns().to_vec())
}

/// Rows as messages that are not too large, each with where it ends.
fn messages(
    rows: &RecordBatch,
    start: Position,
) -> Result<Vec<(FlightData, Position)>, ArrowError> {
    let count = rows.num_rows();
    let encoded = batches_to_flight_data(&rows.schema(), vec![rows.clone()])?;
    let [_, message] = <[FlightData; 2]>::try_from(encoded)
        .map_err(|_| ArrowError::SchemaError("a column of a table has no dictionary".to_owned()))?;
    if message.data_body.len() > MESSAGE_BYTES && count > 1 {
        let middle = count / 2;
        let mut all = messages(&rows.slice(0, middle), start)?;
        let start = Position { row: start.row + middle as u64, ..start };
        all.extend(messages(&rows.slice(middle, count - middle), start)?);
        return Ok(all);
    }
    let until = Position { row: start.row + count as u64, ..start };
    Ok(vec![(message.with_app_metadata(until.to_string()), until)])
}
