//! What an import tells when it is done.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::outcome::Outcome;
use crate::batch::Reject;
use crate::schema::Table;

/// Counts and spans of one import.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ImportSummary {
    /// Nothing was written.
    pub dry_run: bool,
    /// Records read from the input.
    pub rows_read: u64,
    /// Rows that are new in the store. Inventory, events and allocations that readings and jobs
    /// tell beside themselves are counted in `tables` only.
    pub rows_kept: u64,
    /// Rows whose key was known already, of the same tables.
    pub rows_duplicate: u64,
    /// Known rows that were brought up to date, of the same tables.
    pub rows_updated: u64,
    /// Files that could not be read, or not to their end.
    pub files_unread: u64,
    /// Lines, readings and files kept aside.
    pub rows_kept_aside: u64,
    /// Those of them that a hung driver repeated.
    pub rows_stale: u64,
    /// Measurements set to NULL, by column: out of range or blank.
    pub values_nulled: BTreeMap<String, u64>,
    /// Events worth telling.
    pub notices: u64,
    /// The first of them.
    pub notice_texts: Vec<String>,
    /// Earliest instant seen.
    pub first_at: Option<DateTime<Utc>>,
    /// Latest instant seen.
    pub last_at: Option<DateTime<Utc>>,
    /// GPUs named.
    pub gpus: u64,
    /// Nodes named.
    pub nodes: u64,
    /// Jobs named.
    pub jobs: u64,
    /// Gaps in the readings of the days touched.
    pub gaps: u64,
    /// GPU-hours in those gaps.
    pub gap_gpu_hours: f64,
    /// The longest of them.
    pub longest_gap: Option<LongestGap>,
    /// What became of each table.
    pub tables: BTreeMap<String, TableSummary>,
    /// Where the lines kept aside were written.
    pub rejects_file: Option<String>,
    /// The first of them.
    #[serde(skip)]
    pub first_rejects: Vec<Reject>,
}

/// The longest gap.
#[derive(Debug, Clone, Serialize)]
pub struct LongestGap {
    /// Node.
    pub node: Option<String>,
    /// GPU.
    pub gpu_uuid: Option<String>,
    /// Last reading before it.
    pub from: DateTime<Utc>,
    /// First reading after it.
    pub until: DateTime<Utc>,
    /// Hours not covered.
    pub hours: f64,
}

/// What became of one table.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TableSummary {
    /// Rows with a new key.
    pub rows_added: u64,
    /// Rows whose key was known.
    pub rows_known: u64,
    /// Known jobs or devices that were brought up to date.
    pub rows_updated: u64,
    /// Nothing changed: no commit was made.
    pub unchanged: bool,
    /// Version of the table after the commit.
    pub version: Option<u64>,
}

impl ImportSummary {
    pub(super) fn note_span(&mut self, span: Option<(DateTime<Utc>, DateTime<Utc>)>) {
        if let Some((first, last)) = span {
            self.first_at = Some(self.first_at.map_or(first, |at| at.min(first)));
            self.last_at = Some(self.last_at.map_or(last, |at| at.max(last)));
        }
    }

    /// Adds what became of one table.
    pub(super) fn absorb(&mut self, table: Table, outcome: &Outcome, version: Option<u64>) {
        self.rows_stale += outcome.stale.len() as u64;
        self.rows_kept_aside += outcome.stale.len() as u64;
        self.gaps += outcome.gap_count;
        self.gap_gpu_hours += outcome.gap_hours;
        if outcome.longest_gap.is_some() {
            self.longest_gap.clone_from(&outcome.longest_gap);
        }
        let told = TableSummary {
            rows_added: outcome.rows_added,
            rows_known: outcome.rows_known,
            rows_updated: outcome.rows_updated,
            unchanged: outcome.unchanged,
            version,
        };
        self.tables.insert(table.name().to_owned(), told);
    }

    /// Sums over the tables that the input is about.
    pub(super) fn sum_up(&mut self) {
        let beside = |name: &str| {
            let tables = [Table::Gpus, Table::Nodes, Table::Allocations, Table::Events];
            tables.iter().any(|table| table.name() == name)
        };
        let only_beside = self.tables.keys().all(|name| beside(name));
        for (name, told) in &self.tables {
            if only_beside || !beside(name) {
                self.rows_kept += told.rows_added;
                self.rows_duplicate += told.rows_known;
                self.rows_updated += told.rows_updated;
            }
        }
    }
}
