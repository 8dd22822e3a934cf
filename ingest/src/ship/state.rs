//! What a spool must not forget, whatever is dropped of it: kept in a note beside its segments.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::IngestError;
use crate::wal::Wal;

/// Name of the note.
const NOTE: &str = "spool.json";

/// Rows that were lost, and the time that they tell of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Lost {
    pub(super) rows: u64,
    /// First and last instant of those that have one, in ms since 1970.
    pub(super) span_ms: Option<(i64, i64)>,
    /// When it was decided to tell them, in ms since 1970.
    pub(super) told_at_ms: i64,
}

impl Lost {
    /// Adds what was lost besides.
    pub(super) fn add(&mut self, rows: u64, span_ms: Option<(i64, i64)>) {
        self.rows += rows;
        self.span_ms = match (self.span_ms, span_ms) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
    }
}

/// The state of a spool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    /// Rows that were lost and are told next.
    pub(super) lost: Lost,
    /// Those that are being told: the same words until the server has them, so that it has them once.
    pub(super) telling: Option<Lost>,
    /// The last segment whose rows are counted as lost.
    pub(super) dropped: u64,
    /// Logs under whose name somebody else sends too, and what their rows are sent under instead.
    pub(super) renamed: BTreeMap<String, String>,
}

impl State {
    /// As it was kept. One that cannot be read is begun anew.
    pub(super) fn read(wal: &Wal) -> Result<Self, IngestError> {
        let note = wal.note(NOTE)?;
        Ok(note.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
    }

    /// Keeps it.
    pub(super) fn keep(&self, wal: &Wal) -> Result<(), IngestError> {
        let bytes = serde_json::to_vec(self).map_err(std::io::Error::from);
        let bytes = bytes.map_err(|source| IngestError::Wal {
            action: "keep a note of",
            place: NOTE.to_owned(),
            source,
        })?;
        wal.keep_note(NOTE, &bytes)
    }

    /// What the rows of `log` are sent under.
    pub(super) fn name_of(&self, log: &str) -> String {
        let mut name = log;
        // A name leads to one that was drawn later: never back to itself.
        for _ in 0..=self.renamed.len() {
            match self.renamed.get(name) {
                Some(next) => name = next,
                None => break,
            }
        }
        name.to_owned()
    }
}
