//! Something that happened to a GPU or its driver, as a row of `events`.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int16Array, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow::error::ArrowError;

/// What kind of event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// The driver no longer reaches the GPU.
    Lost,
    /// The GPU works again only after a reset.
    RequiresReset,
    /// The first good reading after the GPU was lost or needed a reset.
    Recovered,
    /// The driver of a whole node does not answer.
    DriverFailed,
    /// Another board is in the place.
    UuidChanged,
    /// The board has another index on the same node.
    IndexMoved,
    /// The board is in another node.
    NodeMoved,
    /// The board runs under another driver version.
    DriverChanged,
    /// The same reading was published again and again.
    Stale,
    /// The clock of the readings went back.
    ClockJump,
    /// Memory of a GPU is held by no living process.
    MemoryHeld,
    /// Rows were lost before they reached the store.
    RowsLost,
    /// Two collectors sent other rows under the name of one spool.
    SpoolCopied,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Lost,
        Self::RequiresReset,
        Self::Recovered,
        Self::DriverFailed,
        Self::UuidChanged,
        Self::IndexMoved,
        Self::NodeMoved,
        Self::DriverChanged,
        Self::Stale,
        Self::ClockJump,
        Self::MemoryHeld,
        Self::RowsLost,
        Self::SpoolCopied,
    ];

    /// The name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::RequiresReset => "requires-reset",
            Self::Recovered => "recovered",
            Self::DriverFailed => "driver-failed",
            Self::UuidChanged => "uuid-changed",
            Self::IndexMoved => "index-moved",
            Self::NodeMoved => "node-moved",
            Self::DriverChanged => "driver-changed",
            Self::Stale => "stale",
            Self::ClockJump => "clock-jump",
            Self::MemoryHeld => "memory-held",
            Self::RowsLost => "rows-lost",
            Self::SpoolCopied => "spool-copied",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether the GPU cannot work until it recovers.
    #[must_use]
    pub const fn distress(self) -> bool {
        matches!(self, Self::Lost | Self::RequiresReset)
    }
}

/// One event; what is not known is NULL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// Milliseconds since 1970, UTC.
    pub event_at_ms: i64,
    /// Cluster.
    pub cluster: Option<Arc<str>>,
    /// Node.
    pub node: Option<Arc<str>>,
    /// Index of the GPU on its node.
    pub gpu: Option<i16>,
    /// UUID of the board.
    pub gpu_uuid: Option<Arc<str>>,
    /// Instance of a MIG slice.
    pub mig: Option<i16>,
    /// What happened.
    pub kind: EventKind,
    /// What was seen, in words; the same for the same event however often it is read.
    pub detail: String,
}

/// Events as rows of the table.
///
/// # Errors
/// None that a caller can cause: columns have one length.
pub fn batch(events: &[Event]) -> Result<RecordBatch, ArrowError> {
    let text = |get: fn(&Event) -> Option<&str>| -> ArrayRef {
        Arc::new(events.iter().map(get).collect::<StringArray>())
    };
    let number = |get: fn(&Event) -> Option<i16>| -> ArrayRef {
        Arc::new(events.iter().map(get).collect::<Int16Array>())
    };
    let at: TimestampMillisecondArray =
        events.iter().map(|event| Some(event.event_at_ms)).collect();
    let columns: [(&str, ArrayRef); 8] = [
        ("event_at", Arc::new(at.with_timezone("UTC"))),
        ("cluster", text(|event| event.cluster.as_deref())),
        ("node", text(|event| event.node.as_deref())),
        ("gpu", number(|event| event.gpu)),
        ("gpu_uuid", text(|event| event.gpu_uuid.as_deref())),
        ("mig", number(|event| event.mig)),
        ("kind", text(|event| Some(event.kind.name()))),
        ("detail", text(|event| Some(&event.detail))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Table;

    #[test]
    fn every_kind_has_a_name_and_every_column_the_type_of_the_table() {
        // Breaks when a kind cannot be read back, or the store would have to convert the batch.
        for kind in EventKind::ALL {
            assert_eq!(EventKind::named(kind.name()), Some(kind));
        }
        let event = Event {
            event_at_ms: 1,
            cluster: None,
            node: Some(Arc::from("n")),
            gpu: Some(3),
            gpu_uuid: None,
            mig: None,
            kind: EventKind::Lost,
            detail: "gone".into(),
        };
        let rows = batch(&[event]).unwrap();
        assert_eq!(rows.num_columns(), Table::Events.schema().fields().len());
        for (field, wanted) in rows.schema().fields().iter().zip(Table::Events.schema().fields()) {
            assert_eq!((field.name(), field.data_type()), (wanted.name(), wanted.data_type()));
        }
    }
}
