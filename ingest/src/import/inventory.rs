//! What was known of each GPU before an import: where it sat, under which driver, in which state.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int16Type, TimestampMillisecondType};

use super::Waiting;
use crate::error::IngestError;
use crate::event::{Event, EventKind};
use crate::merge::conform;
use crate::schema::Table;
use crate::source::value::distressed;
use crate::store::Store;

/// One row of `gpus`: of the store, or of one file of the import.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Entry {
    pub(super) gpu_uuid: String,
    pub(super) cluster: Option<String>,
    pub(super) node: Option<String>,
    pub(super) gpu: Option<i16>,
    pub(super) driver: Option<String>,
    pub(super) state: Option<String>,
    pub(super) first_ms: Option<i64>,
    pub(super) last_ms: Option<i64>,
}

impl Entry {
    /// Whether its state says that the driver lost it or asks for a reset.
    pub(super) fn distressed(&self) -> bool {
        self.state.as_deref().is_some_and(distressed)
    }
}

/// The inventory of GPUs before and in an import.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    /// By UUID.
    pub(super) stored: HashMap<String, Entry>,
    /// In the order of their first sight.
    pub(super) new: Vec<Entry>,
}

impl Inventory {
    /// Reads the store's rows, and those that wait.
    pub(super) async fn read(
        store: &Store,
        waiting: Option<&Waiting>,
    ) -> Result<Self, IngestError> {
        let mut new = Vec::new();
        if let Some(waiting) = waiting {
            waiting.buffer.each(None, |rows| {
                new.extend(entries(&conform(Table::Gpus, &rows)?));
                Ok(())
            })?;
        }
        new.sort_by_key(|entry| entry.first_ms);
        let mut stored = HashMap::new();
        if let Some(snapshot) = store.snapshot(Table::Gpus).await? {
            let rows = store.read(&snapshot, None).await?;
            stored.extend(entries(&rows).map(|entry| (entry.gpu_uuid.clone(), entry)));
        }
        Ok(Self { stored, new })
    }

    /// Boards whose files tell another driver than the one known before them; `told` are UUID and
    /// instant of the changes that a file saw itself.
    pub(super) fn driver_changes(&self, told: &[(String, i64)]) -> Vec<Event> {
        let mut known: HashMap<&str, &Entry> =
            self.stored.iter().map(|(uuid, entry)| (uuid.as_str(), entry)).collect();
        let mut events = Vec::new();
        for entry in &self.new {
            let (Some(first_ms), Some(new)) = (entry.first_ms, &entry.driver) else { continue };
            let before = known.insert(&entry.gpu_uuid, entry);
            let Some(before) = before.filter(|before| before.last_ms < Some(first_ms)) else {
                continue;
            };
            let of_file = |(uuid, at): &(String, i64)| {
                *uuid == entry.gpu_uuid && *at >= first_ms && Some(*at) <= entry.last_ms
            };
            if let Some(old) = before.driver.as_ref().filter(|old| *old != new)
                && !told.iter().any(of_file)
            {
                let name = |text: &Option<String>| text.as_deref().map(Arc::from);
                events.push(Event {
                    event_at_ms: first_ms,
                    cluster: name(&entry.cluster),
                    node: name(&entry.node),
                    gpu: entry.gpu,
                    gpu_uuid: Some(Arc::from(entry.gpu_uuid.as_str())),
                    mig: None,
                    kind: EventKind::DriverChanged,
                    detail: format!("driver {old} became {new}"),
                });
            }
        }
        events
    }
}

fn entries(rows: &RecordBatch) -> impl Iterator<Item = Entry> + '_ {
    let text = |name: &str, row: usize| {
        let column = rows.column_by_name(name)?.as_string_opt::<i32>()?;
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    let instant = |name: &str, row: usize| {
        let column = rows.column_by_name(name)?.as_primitive_opt::<TimestampMillisecondType>()?;
        column.is_valid(row).then(|| column.value(row))
    };
    let index = |row: usize| {
        let column = rows.column_by_name("gpu")?.as_primitive_opt::<Int16Type>()?;
        column.is_valid(row).then(|| column.value(row))
    };
    (0..rows.num_rows()).filter_map(move |row| {
        Some(Entry {
            gpu_uuid: text("gpu_uuid", row)?,
            cluster: text("cluster", row),
            node: text("node", row),
            gpu: index(row),
            driver: text("driver_version", row),
            state: text("state", row),
            first_ms: instant("first_seen_at", row),
            last_ms: instant("last_seen_at", row),
        })
    })
}
