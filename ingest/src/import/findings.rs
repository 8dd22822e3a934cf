//! What an import finds out by itself, beside what its files say: events, and who works again.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::TimestampMillisecondType;

use super::Waiting;
use super::distress::Distress;
use super::inventory::Inventory;
use super::outcome::{Outcome, event_of};
use super::waiting::numbers;
use crate::error::IngestError;
use crate::event::{self, Event, EventKind};
use crate::schema::Table;
use crate::store::Store;

/// State of a GPU that was in trouble and is read again.
const WELL: &str = "ok";

/// What is found while tables are merged, for those that are committed after them.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) inventory: Inventory,
    pub(super) distress: Distress,
    /// Driver changes that files saw themselves: UUID and instant.
    drivers: Vec<(String, i64)>,
    events: Vec<Event>,
    well: Vec<String>,
}

impl Findings {
    /// What is known before the first table is merged.
    pub(super) async fn begin(
        store: &Store,
        waiting: &BTreeMap<Table, Waiting>,
    ) -> Result<Self, IngestError> {
        if !waiting.contains_key(&Table::Samples) && !waiting.contains_key(&Table::Gpus) {
            return Ok(Self::default());
        }
        let inventory = Inventory::read(store, waiting.get(&Table::Gpus)).await?;
        let (mut troubles, mut drivers) = (Vec::new(), Vec::new());
        if let Some(waiting) = waiting.get(&Table::Events) {
            for (kind, gpu_uuid, at) in told(waiting)? {
                match kind {
                    kind if kind.distress() => troubles.push((gpu_uuid, at)),
                    EventKind::DriverChanged => drivers.push((gpu_uuid, at)),
                    _ => {}
                }
            }
        }
        let distress = Distress::of(&inventory, troubles);
        Ok(Self { inventory, distress, drivers, ..Self::default() })
    }

    /// Takes what the merge of `table` found.
    pub(super) fn take(
        &mut self,
        table: Table,
        outcome: Outcome,
        waiting: &Waiting,
    ) -> Result<(), IngestError> {
        let (Table::Samples, Some(series)) = (table, &waiting.series) else { return Ok(()) };
        let keys = series.keys()?;
        self.events.extend(outcome.stays.events(&keys, &self.inventory));
        for (number, at, detail) in waiting.clock.jumps() {
            self.events.push(event_of(&keys, number, at, EventKind::ClockJump, detail));
        }
        for event in outcome.events {
            if let (EventKind::Recovered, Some(uuid)) = (event.kind, &event.gpu_uuid)
                && !self.distress.after(uuid, event.event_at_ms)
            {
                self.well.push(uuid.to_string());
            }
            self.events.push(event);
        }
        Ok(())
    }

    /// Rows of `table` that follow from what was found.
    pub(super) fn rows(&mut self, table: Table) -> Result<Option<RecordBatch>, IngestError> {
        match table {
            Table::Events => {
                self.events.extend(self.inventory.driver_changes(&self.drivers));
                self.events.sort();
                Ok(Some(event::batch(&std::mem::take(&mut self.events))?))
            }
            Table::Gpus => {
                let well = std::mem::take(&mut self.well);
                let states: ArrayRef = Arc::new(StringArray::from(vec![WELL; well.len()]));
                let uuids: ArrayRef = Arc::new(StringArray::from(well));
                Ok(Some(RecordBatch::try_from_iter([("gpu_uuid", uuids), ("state", states)])?))
            }
            _ => Ok(None),
        }
    }
}

/// Kind, UUID and instant of the events that wait and name a board.
fn told(waiting: &Waiting) -> Result<Vec<(EventKind, String, i64)>, IngestError> {
    let Some(series) = &waiting.series else { return Ok(Vec::new()) };
    let keys = series.keys()?;
    let text = |name: &str, number: usize| {
        let column = keys.column_by_name(name)?.as_string_opt::<i32>()?;
        column.is_valid(number).then(|| column.value(number).to_owned())
    };
    let mut found = Vec::new();
    for day in waiting.buffer.days() {
        waiting.buffer.each(Some(day), |rows| {
            let at = rows["event_at"].as_primitive::<TimestampMillisecondType>();
            for (number, at) in numbers(&rows).values().iter().zip(at.values()) {
                let number = *number as usize;
                let kind = text("kind", number).and_then(|kind| EventKind::named(&kind));
                if let (Some(kind), Some(uuid)) = (kind, text("gpu_uuid", number)) {
                    found.push((kind, uuid, *at));
                }
            }
            Ok(())
        })?;
    }
    Ok(found)
}
