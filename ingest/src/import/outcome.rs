//! What the merge of one table found; counted only when its commit lands.

use arrow::array::{Array, AsArray, RecordBatch, UInt32Array};
use arrow::datatypes::TimestampMillisecondType;
use chrono::{DateTime, SecondsFormat, Utc};

use super::stale::STALE_READINGS;
use super::summary::LongestGap;
use super::waiting::numbers;
use crate::batch::Reject;
use crate::period::Gap;
use crate::schema::Table;

/// Counts of one table.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) rows_added: u64,
    pub(super) rows_known: u64,
    pub(super) rows_updated: u64,
    pub(super) unchanged: bool,
    pub(super) gap_count: u64,
    pub(super) gap_hours: f64,
    pub(super) longest_gap: Option<LongestGap>,
    pub(super) stale: Vec<Reject>,
}

impl Outcome {
    /// Counts the gaps of one part of a day; only those of GPUs are told.
    pub(super) fn gaps(
        &mut self,
        table: Table,
        keys: &RecordBatch,
        series: &UInt32Array,
        gaps: &[Gap],
    ) {
        if table != Table::Samples {
            return;
        }
        for gap in gaps {
            let hours = gap.missing_s / 3_600.0;
            self.gap_count += 1;
            self.gap_hours += hours;
            if self.longest_gap.as_ref().is_none_or(|longest| longest.hours < hours) {
                let number = series.value(gap.row) as usize;
                self.longest_gap = Some(LongestGap {
                    node: text(keys, "node", number),
                    gpu_uuid: text(keys, "gpu_uuid", number),
                    from: instant(gap.after_ms),
                    until: instant(gap.until_ms),
                    hours,
                });
            }
        }
    }

    /// Keeps stale readings aside.
    pub(super) fn aside(&mut self, keys: &RecordBatch, stale: &RecordBatch) {
        if stale.num_rows() == 0 {
            return;
        }
        let instants = stale.column_by_name("sampled_at").expect("readings have an instant");
        let instants = instants.as_primitive::<TimestampMillisecondType>();
        for (number, at) in numbers(stale).values().iter().zip(instants.values()) {
            let named = |column| text(keys, column, *number as usize).unwrap_or_default();
            let at = instant(*at).to_rfc3339_opts(SecondsFormat::Millis, true);
            self.stale.push(Reject {
                file: "readings".into(),
                line: None,
                reason: format!(
                    "stale: every measurement repeats, at least {STALE_READINGS} times in a row; \
                     the first is kept"
                ),
                text: format!("{} {} {at}", named("node"), named("gpu_uuid")),
            });
        }
    }
}

fn text(keys: &RecordBatch, column: &str, series: usize) -> Option<String> {
    let values = keys.column_by_name(column)?.as_string_opt::<i32>()?;
    values.is_valid(series).then(|| values.value(series).to_owned())
}

fn instant(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}
