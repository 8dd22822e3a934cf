//! Rows that somebody sends as they stand: held to what an import of the same rows would take.
//!
//! A measurement that cannot be true becomes NULL and is counted; text is cut and what would steer a
//! terminal is marked; a row that cannot be placed is kept aside with its reason.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, MapArray, RecordBatch, StringArray,
    StructArray,
};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Float64Type, TimestampMillisecondType};

use super::instant::{check_run, untimely};
use super::mapped::convert::{Faults, measurement};
use super::mapped::plan::required;
use super::text::bounded;
use super::value::{COLUMNS, MEASURES, Measure, Reading};
use crate::error::IngestError;
use crate::schema::Table;

/// Rows as far as they can be kept.
#[derive(Debug)]
pub(crate) struct Sound {
    /// Those that can be placed.
    pub(crate) rows: RecordBatch,
    /// Measurements that were set to NULL.
    pub(crate) nulled: u64,
    /// The others, by their number, and why.
    pub(crate) faults: Faults,
}

/// Holds `rows`, whose columns have the types of `table`, to what can be true at `now_ms`.
///
/// # Errors
/// None that a sender can cause: columns keep their types and lengths.
pub(crate) fn sound(table: Table, rows: &RecordBatch, now_ms: i64) -> Result<Sound, IngestError> {
    let mut nulled = 0;
    let mut faults = Faults::new();
    let mut columns = Vec::with_capacity(rows.num_columns());
    for (field, column) in rows.schema().fields().iter().zip(rows.columns()) {
        columns.push(match column.data_type() {
            DataType::Utf8 => text(column),
            DataType::Map(..) => labels(column)?,
            DataType::Timestamp(..) => {
                note_instants(field.name(), column, now_ms, &mut faults);
                Arc::clone(column)
            }
            kind => {
                let (column, lost) = match measure(table, field.name()) {
                    Some(measure) => measured(measure, column, kind)?,
                    None => measurement(column, field.name(), 1.0, None, kind)?,
                };
                nulled += lost;
                column
            }
        });
    }
    // What was checked may hold NULL where there was a figure.
    let schema = rows.schema();
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let columns = names.zip(columns).map(|(name, column)| (name, column, true));
    let mut rows = RecordBatch::try_from_iter_with_nullable(columns)?;
    note_missing(table, &rows, &mut faults);
    note_runs(&rows, &mut faults);
    if !faults.is_empty() {
        let good = (0..rows.num_rows()).map(|row| Some(!faults.contains_key(&row)));
        rows = filter_record_batch(&rows, &good.collect::<BooleanArray>())?;
    }
    Ok(Sound { rows, nulled, faults })
}

/// The measurement of a GPU that a column holds.
fn measure(table: Table, column: &str) -> Option<Measure> {
    let known = table == Table::Samples;
    MEASURES.into_iter().zip(&COLUMNS).find(|(_, of)| known && of.name == column).map(|(m, _)| m)
}

/// The figures of a measurement that can be true, and how many could not.
fn measured(
    measure: Measure,
    column: &ArrayRef,
    kind: &DataType,
) -> Result<(ArrayRef, u64), IngestError> {
    let figures = cast(column, &DataType::Float64)?;
    let figures = figures.as_primitive::<Float64Type>();
    let same = |figure: f64| matches!(measure.check(figure), Reading::Value(v) if v == figure);
    if figures.iter().flatten().all(same) {
        return Ok((Arc::clone(column), 0));
    }
    let kept: Float64Array = figures
        .iter()
        .map(|figure| match measure.check(figure?) {
            Reading::Value(value) => Some(value),
            _ => None,
        })
        .collect();
    let lost = (kept.null_count() - figures.null_count()) as u64;
    Ok((cast(&kept, kind)?, lost))
}

fn text(column: &ArrayRef) -> ArrayRef {
    let texts = column.as_string::<i32>();
    let plain = |text: &str| matches!(bounded(text), std::borrow::Cow::Borrowed(_));
    if texts.iter().flatten().all(plain) {
        return Arc::clone(column);
    }
    Arc::new(texts.iter().map(|text| text.map(bounded)).collect::<StringArray>())
}

/// Keys and values of labels as texts are.
fn labels(column: &ArrayRef) -> Result<ArrayRef, IngestError> {
    let map = column.as_map();
    let DataType::Map(entry, ordered) = column.data_type() else { return Ok(Arc::clone(column)) };
    let entries = map.entries();
    let texts = entries.columns().iter().map(text).collect();
    let entries = StructArray::try_new(entries.fields().clone(), texts, entries.nulls().cloned())?;
    let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
    Ok(Arc::new(MapArray::try_new(Arc::clone(entry), offsets, entries, nulls, *ordered)?))
}

fn note_instants(name: &str, column: &ArrayRef, now_ms: i64, faults: &mut Faults) {
    let Some(instants) = column.as_primitive_opt::<TimestampMillisecondType>() else { return };
    for (row, at) in instants.iter().enumerate() {
        if let Some(why) = at.and_then(|at| untimely(at, now_ms)) {
            faults.entry(row).or_insert_with(|| format!("its `{name}` is {why}"));
        }
    }
}

fn note_missing(table: Table, rows: &RecordBatch, faults: &mut Faults) {
    let required = required(table);
    let column = rows.column_by_name(required);
    let lacks = |row: &usize| column.is_none_or(|column| column.is_null(*row));
    for row in (0..rows.num_rows()).filter(lacks) {
        faults.entry(row).or_insert_with(|| format!("it has no `{required}`"));
    }
}

fn note_runs(rows: &RecordBatch, faults: &mut Faults) {
    let instants =
        |name: &str| rows.column_by_name(name)?.as_primitive_opt::<TimestampMillisecondType>();
    let (Some(starts), Some(ends)) = (instants("started_at"), instants("ended_at")) else {
        return;
    };
    for (row, run) in starts.iter().zip(ends).enumerate() {
        if let (Some(start), Some(end)) = run
            && let Err(reason) = check_run(start, end)
        {
            faults.entry(row).or_insert(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int16Array, Int64Array, TimestampMillisecondArray};

    use super::*;

    /// 2026-03-02T00:00:00Z.
    const NOW_MS: i64 = 1_772_409_600_000;

    const DAY_MS: i64 = 86_400_000;

    fn at(instants: Vec<Option<i64>>) -> ArrayRef {
        Arc::new(TimestampMillisecondArray::from(instants).with_timezone("UTC"))
    }

    fn of(table: Table, columns: Vec<(&str, ArrayRef)>) -> Sound {
        sound(table, &RecordBatch::try_from_iter(columns).unwrap(), NOW_MS).unwrap()
    }

    #[test]
    fn a_figure_that_cannot_be_true_is_null_and_counted() {
        // Breaks when a sender spoils every mean with NaN, 5000 % or a negative power.
        let power = [90.5, f64::NAN, f64::INFINITY, -1.0, 10_000.0, 10_001.0];
        let share = [0.0, 1.0, 1.02, 50.0, -0.1, f64::NEG_INFINITY];
        let bytes = [0, 7, -1, i64::MAX, 100_000_000_000_000, 100_000_000_000_001];
        let found = of(
            Table::Samples,
            vec![
                ("sampled_at", at(vec![Some(NOW_MS); 6])),
                ("gpu", Arc::new(Int16Array::from(vec![0, 1, -1, 7, 2, 3]))),
                ("power_w", Arc::new(Float64Array::from(power.to_vec()))),
                ("gpu_util_ratio", Arc::new(Float64Array::from(share.to_vec()))),
                ("mem_used_bytes", Arc::new(Int64Array::from(bytes.to_vec()))),
                ("period_s", Arc::new(Float64Array::from(vec![f64::NAN; 6]))),
            ],
        );
        let column = |name| Arc::clone(found.rows.column_by_name(name).unwrap());
        let power = column("power_w").as_primitive::<Float64Type>().iter().collect::<Vec<_>>();
        assert_eq!(power, [Some(90.5), None, None, None, Some(10_000.0), None]);
        let share = column("gpu_util_ratio");
        let share = share.as_primitive::<Float64Type>().iter().collect::<Vec<_>>();
        assert_eq!(share, [Some(0.0), Some(1.0), Some(1.0), None, None, None]);
        let bytes = column("mem_used_bytes");
        let bytes = bytes.as_primitive::<arrow::datatypes::Int64Type>().iter().collect::<Vec<_>>();
        assert_eq!(bytes, [Some(0), Some(7), None, None, Some(100_000_000_000_000), None]);
        assert_eq!((column("gpu").null_count(), column("period_s").null_count()), (1, 6));
        assert_eq!((found.nulled, found.faults.len()), (4 + 3 + 3 + 1 + 6, 0));
    }

    #[test]
    fn a_row_that_cannot_be_placed_is_kept_aside_with_its_reason() {
        // Breaks when one reading of 2099 stretches every answer to there.
        let year_2000 = 946_684_800_000;
        let ahead = NOW_MS + 366 * DAY_MS;
        let instants = [NOW_MS, year_2000, year_2000 - 1, ahead, ahead + 1, 4_070_908_800_000];
        let numbers = Int16Array::from(vec![0, 1, 2, 3, 4, 5]);
        let found = of(
            Table::Samples,
            vec![("sampled_at", at(instants.map(Some).to_vec())), ("gpu", Arc::new(numbers))],
        );
        let kept = found.rows.column_by_name("gpu").unwrap();
        assert_eq!(kept.as_primitive::<arrow::datatypes::Int16Type>().values(), &[0, 1, 3]);
        assert_eq!(found.faults[&2], "its `sampled_at` is outside the years 2000 to 2099");
        let late = "its `sampled_at` is more than 366 days ahead of the clock here";
        assert_eq!((&*found.faults[&4], &*found.faults[&5]), (late, late));
        // A clock that was never set condemns nobody.
        let early = at(vec![Some(NOW_MS)]);
        let early = RecordBatch::try_from_iter([("sampled_at", early)]).unwrap();
        assert!(sound(Table::Samples, &early, 0).unwrap().faults.is_empty());
        let jobs = of(
            Table::Jobs,
            vec![
                ("job_id", Arc::new(StringArray::from(vec![Some("7"), None, Some("8")]))),
                ("started_at", at(vec![Some(NOW_MS), None, Some(NOW_MS)])),
                ("ended_at", at(vec![Some(NOW_MS), None, Some(NOW_MS - 1)])),
            ],
        );
        assert_eq!(jobs.rows.num_rows(), 1);
        assert_eq!(jobs.faults[&1], "it has no `job_id`");
        assert_eq!(jobs.faults[&2], "it ended before it started");
    }

    #[test]
    fn text_of_a_stranger_steers_no_terminal() {
        // Breaks when a name from another machine is shown as it came.
        let names = StringArray::from(vec![Some("n\u{1b}[2J"), None, Some("n1")]);
        let labels = crate::source::sacct::row::labels(
            [vec![("k\n", "v\u{7}")], vec![], vec![("a", "b")]].map(Vec::into_iter).into_iter(),
        );
        let found = of(
            Table::Jobs,
            vec![
                ("job_id", Arc::new(StringArray::from(vec!["1", "2", "3"]))),
                ("name", Arc::new(names)),
                ("labels", labels.unwrap()),
            ],
        );
        let names = found.rows.column_by_name("name").unwrap().as_string::<i32>();
        assert_eq!((names.value(0), names.is_null(1)), ("n\u{fffd}[2J", true));
        let labels = found.rows.column_by_name("labels").unwrap().as_map();
        assert_eq!(labels.keys().as_string::<i32>().value(0), "k\u{fffd}");
        assert_eq!(labels.values().as_string::<i32>().value(0), "v\u{fffd}");
        assert_eq!(labels.value_length(2), 1);
    }
}
