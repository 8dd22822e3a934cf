//! Where each board sat and when: a board that moved, another board in a place.
//!
//! A stay is a board in a place from its first to its last reading there, as far as the days that
//! are merged and the inventory tell. Only stays that follow each other make an event: two sources
//! that name a node differently have the board in both places at once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int16Type;
use chrono::{DateTime, SecondsFormat};

use super::inventory::{Entry, Inventory};
use crate::event::{Event, EventKind};

/// First and last instant in milliseconds of each series, by its number.
#[derive(Debug, Default)]
pub(super) struct Stays(HashMap<u32, (i64, i64)>);

/// Cluster, node and index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    cluster: Option<String>,
    node: String,
    gpu: i16,
}

/// A board in a place.
#[derive(Debug, Clone)]
struct Stay {
    gpu_uuid: String,
    place: Place,
    first_ms: i64,
    last_ms: i64,
    /// Whether the inventory had its beginning, and its end.
    known: (bool, bool),
}

impl Stays {
    /// Takes readings of a series.
    pub(super) fn saw(&mut self, series: u32, first_ms: i64, last_ms: i64) {
        let known = self.0.entry(series).or_insert((first_ms, last_ms));
        *known = (known.0.min(first_ms), known.1.max(last_ms));
    }

    /// What the stays of boards say happened to them; row `n` of `keys` is series `n`.
    pub(super) fn events(&self, keys: &RecordBatch, inventory: &Inventory) -> Vec<Event> {
        let stays = self.with(keys, inventory);
        let mut of_board: BTreeMap<&str, Vec<&Stay>> = BTreeMap::new();
        let mut of_place: BTreeMap<&Place, Vec<&Stay>> = BTreeMap::new();
        for stay in &stays {
            of_board.entry(&stay.gpu_uuid).or_default().push(stay);
            of_place.entry(&stay.place).or_default().push(stay);
        }
        let mut events = Vec::new();
        for stays in of_board.values() {
            events.extend(following(stays).map(|(from, to)| moved(from, to)));
        }
        for stays in of_place.values() {
            let came = |to: &Stay| {
                let others = of_board.get(to.gpu_uuid.as_str()).into_iter().flatten();
                let mut before = others.filter(|other| other.last_ms < to.first_ms);
                before.any(|other| other.place.node == to.place.node)
            };
            // Boards that changed their index on a node are told as that.
            let other = following(stays).filter(|(_, to)| !came(to));
            events.extend(other.map(|(from, to)| replaced(from, to)));
        }
        events
    }

    /// The stays that were seen, with those of the inventory that they may follow or precede.
    fn with(&self, keys: &RecordBatch, inventory: &Inventory) -> Vec<Stay> {
        let mut stays: BTreeMap<(String, Place), Stay> = BTreeMap::new();
        for (series, (first_ms, last_ms)) in &self.0 {
            let Some((gpu_uuid, place)) = key(keys, *series as usize) else { continue };
            let id = (gpu_uuid.clone(), place.clone());
            let new = Stay {
                gpu_uuid,
                place,
                first_ms: *first_ms,
                last_ms: *last_ms,
                known: (false, false),
            };
            let stay = stays.entry(id).or_insert_with(|| new.clone());
            stay.first_ms = stay.first_ms.min(new.first_ms);
            stay.last_ms = stay.last_ms.max(new.last_ms);
        }
        let boards: HashSet<&str> = stays.keys().map(|(uuid, _)| uuid.as_str()).collect();
        let places: BTreeSet<&Place> = stays.keys().map(|(_, place)| place).collect();
        let near =
            |stay: &Stay| boards.contains(stay.gpu_uuid.as_str()) || places.contains(&stay.place);
        let stored = inventory.stored.values().filter_map(stored).filter(near);
        let stored: Vec<Stay> = stored.collect();
        for stored in stored {
            let id = (stored.gpu_uuid.clone(), stored.place.clone());
            match stays.get_mut(&id) {
                Some(seen) => {
                    seen.known = (stored.first_ms <= seen.first_ms, stored.last_ms >= seen.last_ms);
                    seen.first_ms = seen.first_ms.min(stored.first_ms);
                    seen.last_ms = seen.last_ms.max(stored.last_ms);
                }
                None => {
                    stays.insert(id, stored);
                }
            }
        }
        stays.into_values().collect()
    }
}

/// Stays that follow each other, where the end of the one or the beginning of the other is news.
fn following<'s>(stays: &[&'s Stay]) -> impl Iterator<Item = (&'s Stay, &'s Stay)> {
    let mut stays = stays.to_vec();
    stays.sort_by_key(|stay| (stay.first_ms, stay.last_ms));
    let pairs: Vec<_> = stays.windows(2).map(|pair| (pair[0], pair[1])).collect();
    pairs
        .into_iter()
        .filter(|(from, to)| from.last_ms < to.first_ms && !(from.known.1 && to.known.0))
}

fn moved(from: &Stay, to: &Stay) -> Event {
    let kind = match from.place.node == to.place.node && from.place.cluster == to.place.cluster {
        true => EventKind::IndexMoved,
        false => EventKind::NodeMoved,
    };
    let detail = format!(
        "was GPU {} of {} until {}",
        from.place.gpu,
        from.place.node,
        instant(from.last_ms)
    );
    event(to, kind, detail)
}

fn replaced(from: &Stay, to: &Stay) -> Event {
    let detail = format!("{} sat there until {}", from.gpu_uuid, instant(from.last_ms));
    event(to, EventKind::UuidChanged, detail)
}

fn event(to: &Stay, kind: EventKind, detail: String) -> Event {
    Event {
        event_at_ms: to.first_ms,
        cluster: to.place.cluster.as_deref().map(Arc::from),
        node: Some(Arc::from(to.place.node.as_str())),
        gpu: Some(to.place.gpu),
        gpu_uuid: Some(Arc::from(to.gpu_uuid.as_str())),
        mig: None,
        kind,
        detail,
    }
}

fn stored(entry: &Entry) -> Option<Stay> {
    let place =
        Place { cluster: entry.cluster.clone(), node: entry.node.clone()?, gpu: entry.gpu? };
    Some(Stay {
        gpu_uuid: entry.gpu_uuid.clone(),
        place,
        first_ms: entry.first_ms?,
        last_ms: entry.last_ms?,
        known: (true, true),
    })
}

/// The board and place of a series; `None` where either is not told.
fn key(keys: &RecordBatch, series: usize) -> Option<(String, Place)> {
    let text = |name: &str| {
        let column = keys.column_by_name(name)?.as_string_opt::<i32>()?;
        column.is_valid(series).then(|| column.value(series).to_owned())
    };
    let gpu = keys.column_by_name("gpu")?.as_primitive_opt::<Int16Type>()?;
    let gpu = gpu.is_valid(series).then(|| gpu.value(series))?;
    Some((text("gpu_uuid")?, Place { cluster: text("cluster"), node: text("node")?, gpu }))
}

fn instant(ms: i64) -> String {
    let at = DateTime::from_timestamp_millis(ms).unwrap_or_default();
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}
