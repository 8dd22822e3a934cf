//! What the merge of one table found; counted only when its commit lands.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, UInt32Array};
use arrow::datatypes::{Int16Type, TimestampMillisecondType};
use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};

use super::distress::Distress;
use super::stale::{Hung, STALE_READINGS};
use super::stays::Stays;
use super::summary::LongestGap;
use super::waiting::numbers;
use crate::batch::Reject;
use crate::event::{Event, EventKind};
use crate::period::Gap;
use crate::schema::Table;
use crate::source::trouble::RECOVERED;

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
    pub(super) stays: Stays,
    pub(super) events: Vec<Event>,
    /// Days that had many files before this one.
    pub(super) crowded: Vec<NaiveDate>,
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

    /// Looks where boards sat, and who is read again: `rows` are in order of series and time.
    pub(super) fn look(&mut self, keys: &RecordBatch, rows: &RecordBatch, distress: &Distress) {
        let numbers = numbers(rows);
        let Some(instants) = rows.column_by_name("sampled_at") else { return };
        let instants = instants.as_primitive::<TimestampMillisecondType>().values();
        let mut start = 0;
        for run in numbers.values().chunk_by(|a, b| a == b) {
            let range = start..start + run.len();
            start = range.end;
            let number = run[0];
            self.stays.saw(number, instants[range.start], instants[range.end - 1]);
            let place = number as usize;
            if distress.is_empty() || index(keys, "mig", place).is_some() {
                continue;
            }
            let Some(uuid) = text(keys, "gpu_uuid", place) else { continue };
            for at in distress.over(&uuid, rows, range, instants) {
                let detail = RECOVERED.to_owned();
                self.events.push(event_of(keys, number, at, EventKind::Recovered, detail));
            }
        }
    }

    /// Keeps stale readings aside.
    pub(super) fn aside(&mut self, keys: &RecordBatch, stale: &RecordBatch, hung: &[Hung]) {
        if stale.num_rows() == 0 {
            return;
        }
        for hung in hung {
            let detail = format!(
                "from here on each reading repeats the one before, until they differ: {}",
                hung.sign.words()
            );
            let (number, at) = (hung.series, hung.from_ms);
            self.events.push(event_of(keys, number, at, EventKind::Stale, detail));
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

/// An event of a series.
pub(super) fn event_of(
    keys: &RecordBatch,
    series: u32,
    event_at_ms: i64,
    kind: EventKind,
    detail: String,
) -> Event {
    let row = series as usize;
    let name = |column| text(keys, column, row).map(Arc::from);
    Event {
        event_at_ms,
        cluster: name("cluster"),
        node: name("node"),
        gpu: index(keys, "gpu", row),
        gpu_uuid: name("gpu_uuid"),
        mig: index(keys, "mig", row),
        kind,
        detail,
    }
}

pub(super) fn index(keys: &RecordBatch, column: &str, series: usize) -> Option<i16> {
    let values = keys.column_by_name(column)?.as_primitive_opt::<Int16Type>()?;
    values.is_valid(series).then(|| values.value(series))
}

pub(super) fn text(keys: &RecordBatch, column: &str, series: usize) -> Option<String> {
    let values = keys.column_by_name(column)?.as_string_opt::<i32>()?;
    values.is_valid(series).then(|| values.value(series).to_owned())
}

fn instant(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}
