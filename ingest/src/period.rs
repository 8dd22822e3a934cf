//! How many seconds each reading stands for, and where nothing was seen.
//!
//! A reading stands for the time since the previous reading of the same series, at most
//! [`HOLD_INTERVALS`] sampling intervals: a longer stretch is a gap, and stays one. The first
//! reading of a series stands for one interval. The interval is the one given, else the median
//! spacing of the series on that day, else [`INTERVAL_S`].

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch};
use arrow::datatypes::TimestampMillisecondType;
use arrow::error::ArrowError;

use crate::merge::comparable;
use crate::schema::Table;

/// A reading holds for no more than this many sampling intervals.
pub const HOLD_INTERVALS: f64 = 3.0;
/// Sampling interval of a series of which nothing else tells it, in seconds.
pub const INTERVAL_S: f64 = 30.0;

/// Last reading of each series: key bytes to instant in milliseconds.
pub(crate) type Tails = HashMap<Vec<u8>, i64>;

/// A stretch in which a series has no reading.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gap {
    /// Row of the first reading after it.
    pub(crate) row: usize,
    /// Seconds not covered.
    pub(crate) missing_s: f64,
}

/// Columns that tell one series from another: the key without the instant.
fn series_columns(table: Table) -> Vec<&'static str> {
    let instant = table.partitioned_by().unwrap_or_default();
    table.key().iter().copied().filter(|column| *column != instant).collect()
}

/// Last instant of each series in sorted rows.
pub(crate) fn tails(table: Table, rows: &RecordBatch) -> Result<Tails, ArrowError> {
    let keys = comparable(rows, &series_columns(table))?;
    let instants = instants(table, rows);
    Ok((0..rows.num_rows()).map(|row| (keys.row(row).as_ref().to_vec(), instants[row])).collect())
}

fn instants(table: Table, rows: &RecordBatch) -> Vec<i64> {
    let name = table.partitioned_by().expect("only partitioned tables hold readings");
    let column = rows.column_by_name(name).expect("the schema holds it");
    column.as_primitive::<TimestampMillisecondType>().values().to_vec()
}

/// Fills `period_s` of rows sorted by series and instant; `before` holds the last reading of each
/// series on the day before.
pub(crate) fn integrate(
    table: Table,
    rows: &RecordBatch,
    before: &Tails,
    interval_s: Option<f64>,
) -> Result<(RecordBatch, Vec<Gap>), ArrowError> {
    let keys = comparable(rows, &series_columns(table))?;
    let instants = instants(table, rows);
    let mut periods = vec![0.0; rows.num_rows()];
    let mut gaps = Vec::new();
    let mut start = 0;
    while start < periods.len() {
        let mut end = start + 1;
        while end < periods.len() && keys.row(end) == keys.row(start) {
            end += 1;
        }
        let previous = before.get(keys.row(start).as_ref()).copied();
        let interval = interval_s.or_else(|| spacing(&instants[start..end])).unwrap_or_else(|| {
            let since = previous.map(|at| seconds(instants[start] - at));
            since.filter(|s| *s > 0.0 && *s <= INTERVAL_S * 10.0).unwrap_or(INTERVAL_S)
        });
        let hold = interval * HOLD_INTERVALS;
        let mut last = previous;
        for row in start..end {
            let since = last.map(|at| seconds(instants[row] - at)).filter(|s| *s > 0.0);
            periods[row] = since.map_or(interval, |s| s.min(hold));
            if let Some(missing_s) = since.map(|s| s - hold).filter(|s| *s > 0.0) {
                gaps.push(Gap { row, missing_s });
            }
            last = Some(instants[row]);
        }
        start = end;
    }
    Ok((with_periods(rows, periods)?, gaps))
}

fn with_periods(rows: &RecordBatch, periods: Vec<f64>) -> Result<RecordBatch, ArrowError> {
    let position = rows.schema().index_of("period_s")?;
    let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
    columns[position] = Arc::new(Float64Array::from(periods));
    RecordBatch::try_new(rows.schema(), columns)
}

/// Median distance of neighbours, in seconds.
fn spacing(instants: &[i64]) -> Option<f64> {
    let mut steps: Vec<i64> = instants.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if steps.is_empty() {
        return None;
    }
    let middle = steps.len() / 2;
    let (_, median, _) = steps.select_nth_unstable(middle);
    Some(seconds(*median)).filter(|s| *s > 0.0)
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use arrow::array::TimestampMillisecondArray;

    use super::*;
    use crate::merge::conform;

    fn readings(seconds: &[i64]) -> RecordBatch {
        let at: Vec<i64> = seconds.iter().map(|s| s * 1_000).collect();
        let at = TimestampMillisecondArray::from(at).with_timezone("UTC");
        let batch = RecordBatch::try_from_iter([("sampled_at", Arc::new(at) as ArrayRef)]);
        conform(Table::Samples, &batch.unwrap()).unwrap()
    }

    fn periods(seconds: &[i64], before: &Tails) -> (Vec<f64>, Vec<Gap>) {
        let (rows, gaps) = integrate(Table::Samples, &readings(seconds), before, None).unwrap();
        let column = rows.column_by_name("period_s").unwrap();
        (column.as_primitive::<arrow::datatypes::Float64Type>().values().to_vec(), gaps)
    }

    #[test]
    fn a_gap_is_not_covered_and_holds_three_intervals() {
        // 30 s apart, then 600 s of silence: 90 s count, 510 s are missing.
        let (found, gaps) = periods(&[0, 30, 60, 660, 690], &Tails::new());
        assert_eq!(found, [30.0, 30.0, 30.0, 90.0, 30.0]);
        assert_eq!(gaps, [Gap { row: 3, missing_s: 510.0 }]);
    }

    #[test]
    fn the_first_reading_of_a_day_knows_the_day_before() {
        let before = tails(Table::Samples, &readings(&[0, 30])).unwrap();
        assert_eq!(periods(&[70, 100, 130], &before).0, [40.0, 30.0, 30.0]);
    }

    #[test]
    fn a_single_reading_stands_for_the_default_interval() {
        assert_eq!(periods(&[5], &Tails::new()).0, [INTERVAL_S]);
    }
}
