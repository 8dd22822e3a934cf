//! GPUs that were lost or needed a reset when they were last heard of, and the first good reading
//! after it, in whatever file or import that comes.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int32Type};

use super::inventory::{Entry, Inventory};
use crate::source::trouble::XID_LOST;

/// Instants in milliseconds, by the UUID of the GPU.
type Instants = HashMap<String, BTreeSet<i64>>;

/// Who waits for a good reading.
#[derive(Debug, Default)]
pub(super) struct Distress {
    /// Last reading or sight in trouble, at the end of a file.
    since: Instants,
    /// Trouble that begins in this import.
    begins: Instants,
}

impl Distress {
    /// From the inventory, and the events that wait: UUID and instant of each that is trouble.
    pub(super) fn of(inventory: &Inventory, begins: Vec<(String, i64)>) -> Self {
        let mut since = Instants::new();
        let entries = inventory.stored.values().chain(&inventory.new);
        let troubled = entries.filter(|entry| entry.distressed());
        for Entry { gpu_uuid, last_ms, .. } in troubled {
            if let Some(last_ms) = last_ms {
                since.entry(gpu_uuid.clone()).or_default().insert(*last_ms);
            }
        }
        let mut of_import = Instants::new();
        for (gpu_uuid, at) in begins {
            of_import.entry(gpu_uuid).or_default().insert(at);
        }
        Self { since, begins: of_import }
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.since.is_empty()
    }

    /// Rows at which a GPU is read again: `rows` are its readings in order, `instants` their times.
    pub(super) fn over(
        &self,
        gpu_uuid: &str,
        rows: &RecordBatch,
        range: Range<usize>,
        instants: &[i64],
    ) -> Vec<i64> {
        let Some(since) = self.since.get(gpu_uuid) else { return Vec::new() };
        let measures = Measures::of(rows);
        let mut found = BTreeSet::new();
        for after in since {
            let mut later = range.clone().filter(|row| instants[*row] > *after);
            let Some(row) = later.find(|row| measures.good(*row)) else { continue };
            let at = instants[row];
            // Trouble that began again by then is told by its own file.
            let again = self.begins.get(gpu_uuid);
            if again.is_none_or(|again| again.range(after + 1..=at).next().is_none()) {
                found.insert(at);
            }
        }
        found.into_iter().collect()
    }

    /// Whether trouble follows `at`.
    pub(super) fn after(&self, gpu_uuid: &str, at: i64) -> bool {
        let later = |instants: Option<&BTreeSet<i64>>| {
            instants.is_some_and(|instants| instants.last().is_some_and(|last| *last > at))
        };
        later(self.since.get(gpu_uuid)) || later(self.begins.get(gpu_uuid))
    }
}

/// Columns that a GPU which works fills.
struct Measures<'r> {
    filled: Vec<&'r dyn Array>,
    xid: Option<&'r arrow::array::Int32Array>,
}

impl<'r> Measures<'r> {
    fn of(rows: &'r RecordBatch) -> Self {
        let columns = ["gpu_util_ratio", "power_w", "temp_c"];
        let filled = columns.iter().filter_map(|name| rows.column_by_name(name));
        let filled = filled.filter_map(|column| column.as_primitive_opt::<Float64Type>());
        let xid = rows.column_by_name("xid");
        Self {
            filled: filled.map(|column| column as &dyn Array).collect(),
            xid: xid.and_then(|column| column.as_primitive_opt::<Int32Type>()),
        }
    }

    fn good(&self, row: usize) -> bool {
        let lost = |xid: &arrow::array::Int32Array| xid.is_valid(row) && xid.value(row) == XID_LOST;
        !self.xid.is_some_and(lost) && self.filled.iter().any(|column| column.is_valid(row))
    }
}
