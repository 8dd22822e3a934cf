//! What an import tells when it is done.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::TimestampMillisecondType;
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::batch::Reject;
use crate::period::Gap;
use crate::schema::Table;

/// Counts and spans of one import.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ImportSummary {
    /// Nothing was written.
    pub dry_run: bool,
    /// Records read from the input.
    pub rows_read: u64,
    /// Rows that are new in the store, over all tables.
    pub rows_kept: u64,
    /// Rows whose key was known already, over all tables.
    pub rows_duplicate: u64,
    /// Lines kept aside.
    pub rows_kept_aside: u64,
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
    /// Rows that brought known jobs or devices up to date, at most.
    pub rows_updated: u64,
    /// Nothing changed: no commit was made.
    pub unchanged: bool,
    /// Version of the table after the commit.
    pub version: Option<u64>,
}

impl ImportSummary {
    pub(super) fn note_span(&mut self, span: &Option<(DateTime<Utc>, DateTime<Utc>)>) {
        if let Some((first, last)) = *span {
            self.first_at = Some(self.first_at.map_or(first, |at| at.min(first)));
            self.last_at = Some(self.last_at.map_or(last, |at| at.max(last)));
        }
    }

    pub(super) fn note_gaps(&mut self, table: Table, rows: &RecordBatch, gaps: &[Gap]) {
        if table != Table::Samples {
            return;
        }
        for gap in gaps {
            let hours = gap.missing_s / 3_600.0;
            self.gaps += 1;
            self.gap_gpu_hours += hours;
            if self.longest_gap.as_ref().is_none_or(|longest| longest.hours < hours) {
                self.longest_gap = longest(rows, gap.row, hours);
            }
        }
    }
}

fn longest(rows: &RecordBatch, row: usize, hours: f64) -> Option<LongestGap> {
    let text = |column: &str| {
        let values = rows.column_by_name(column)?.as_string_opt::<i32>()?;
        values.is_valid(row).then(|| values.value(row).to_owned())
    };
    let at = rows.column_by_name("sampled_at")?.as_primitive_opt::<TimestampMillisecondType>()?;
    let until = DateTime::from_timestamp_millis(at.value(row))?;
    Some(LongestGap { node: text("node"), gpu_uuid: text("gpu_uuid"), until, hours })
}
