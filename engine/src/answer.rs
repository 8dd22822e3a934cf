//! An answer: its rows, and the clock on which its instants are told.
//!
//! An instant stays what it is; the zone that a column carries says how it is read. Questions are
//! carried out in UTC and answered in the zone of the calendar, so that the local day of 14 July
//! in Shanghai reads `2026-07-14T00:00:00+08:00` and not as the afternoon before.

use std::sync::Arc;

use arrow::array::timezone::Tz as ColumnZone;
use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, ListArray, RecordBatch, RecordBatchOptions, StructArray,
    new_empty_array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Fields, Int64Type, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;

/// Rows of an answer and their columns.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Columns, also where there are no rows.
    pub schema: SchemaRef,
    /// Rows.
    pub batches: Vec<RecordBatch>,
}

/// What becomes of a column of instants with a zone.
type Retold<'a> = &'a dyn Fn(&ArrayRef, TimeUnit, &str) -> Result<ArrayRef, ArrowError>;

impl Answer {
    /// The same instants in `zone`: wherever they are shown, it is as local time with its offset.
    /// Instants that the question itself put in another zone than UTC stay there.
    ///
    /// # Errors
    /// None that a zone of the IANA database can cause.
    pub fn in_zone(&self, zone: Tz) -> Result<Self, ArrowError> {
        self.retold(&|instants, unit, from| match from {
            "UTC" | "+00:00" => {
                cast(instants, &DataType::Timestamp(unit, Some(zone.name().into())))
            }
            _ => Ok(Arc::clone(instants)),
        })
    }

    /// Each instant as what the clock of its zone shows then, without a zone. The hour that a clock
    /// shows twice in autumn is the same twice: what was apart by an hour is no longer.
    ///
    /// # Errors
    /// A zone that is not known.
    pub fn on_wall_clock(&self) -> Result<Self, ArrowError> {
        self.retold(&wall_clock)
    }

    fn retold(&self, how: Retold<'_>) -> Result<Self, ArrowError> {
        let none = |field: &FieldRef| retell(&new_empty_array(field.data_type()), how);
        let columns = self.schema.fields().iter().map(none).collect::<Result<Vec<_>, _>>()?;
        let fields = kinds(self.schema.fields(), &columns);
        let schema = Schema::new_with_metadata(fields, self.schema.metadata().clone());
        let batches = self.batches.iter().map(|batch| {
            let columns = batch.columns().iter().map(|column| retell(column, how));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let own = batch.schema();
            let fields = kinds(own.fields(), &columns);
            let schema = Schema::new_with_metadata(fields, own.metadata().clone());
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
        });
        Ok(Self { schema: Arc::new(schema), batches: batches.collect::<Result<_, _>>()? })
    }
}

/// A column with its instants retold, also those in structs and lists.
fn retell(column: &ArrayRef, how: Retold<'_>) -> Result<ArrayRef, ArrowError> {
    Ok(match column.data_type() {
        DataType::Timestamp(unit, Some(zone)) => how(column, *unit, zone)?,
        DataType::Struct(fields) if !fields.is_empty() => {
            let whole = column.as_struct();
            let parts = whole.columns().iter().map(|part| retell(part, how));
            let parts = parts.collect::<Result<Vec<_>, _>>()?;
            let fields = kinds(fields, &parts);
            Arc::new(StructArray::try_new(fields, parts, whole.nulls().cloned())?)
        }
        DataType::List(field) => {
            let list = column.as_list::<i32>();
            let items = retell(list.values(), how)?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Arc::new(ListArray::try_new(kind(field, &items), offsets, items, nulls)?)
        }
        _ => Arc::clone(column),
    })
}

fn kinds(fields: &Fields, columns: &[ArrayRef]) -> Fields {
    fields.iter().zip(columns).map(|(field, column)| kind(field, column)).collect()
}

/// The field with the type that its column has by now.
fn kind(field: &FieldRef, column: &ArrayRef) -> FieldRef {
    if field.data_type() == column.data_type() {
        return Arc::clone(field);
    }
    Arc::new(field.as_ref().clone().with_data_type(column.data_type().clone()))
}

fn wall_clock(instants: &ArrayRef, unit: TimeUnit, zone: &str) -> Result<ArrayRef, ArrowError> {
    let zone: ColumnZone = zone.parse()?;
    let second = per_second(unit);
    let numbers = cast(instants, &DataType::Int64)?;
    let shown: Int64Array = numbers.as_primitive::<Int64Type>().unary(|at| {
        let utc = DateTime::from_timestamp(at.div_euclid(second), 0).unwrap_or_default();
        let offset = zone.offset_from_utc_datetime(&utc.naive_utc()).fix();
        at.saturating_add(i64::from(offset.local_minus_utc()) * second)
    });
    cast(&shown, &DataType::Timestamp(unit, None))
}

/// How many of a unit of time are a second.
pub(crate) const fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::TimestampMillisecondArray;
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::Field;
    use arrow::util::display::{ArrayFormatter, FormatOptions};

    use super::*;

    fn shown(column: &ArrayRef) -> Vec<String> {
        let options = FormatOptions::default().with_null("NULL");
        let shown = ArrayFormatter::try_new(column, &options).unwrap();
        (0..column.len()).map(|row| shown.value(row).to_string()).collect()
    }

    fn instants(texts: &[&str], zone: &str) -> ArrayRef {
        let at = texts
            .iter()
            .map(|text| text.parse::<DateTime<chrono::Utc>>().ok().map(|at| at.timestamp_millis()));
        Arc::new(at.collect::<TimestampMillisecondArray>().with_timezone(zone))
    }

    fn answer(columns: Vec<(&str, ArrayRef)>) -> Answer {
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        Answer { schema: rows.schema(), batches: vec![rows] }
    }

    #[test]
    fn an_instant_stays_the_same_and_reads_as_local_time() {
        // Breaks if a local day is told by its UTC instant, or if telling it moves the instant.
        let told = ["2026-07-13T16:00:00Z", "none"];
        let asked = answer(vec![
            ("day_started_at", instants(&told, "UTC")),
            ("own", instants(&told, "Europe/Berlin")),
        ]);
        let local = asked.in_zone(Tz::Asia__Shanghai).unwrap();
        let rows = &local.batches[0];
        assert_eq!(rows.schema(), local.schema);
        assert_eq!(shown(rows.column(0)), ["2026-07-14T00:00:00+08:00", "NULL"]);
        assert_eq!(shown(rows.column(1)), ["2026-07-13T18:00:00+02:00", "NULL"]);
        let number = |rows: &RecordBatch| cast(rows.column(0), &DataType::Int64).unwrap();
        assert_eq!(&number(rows), &number(&asked.batches[0]));
        let utc = asked.in_zone(Tz::UTC).unwrap();
        assert_eq!(utc.batches, asked.batches);
        // Columns are told without rows too.
        let none = Answer { schema: Arc::clone(&asked.schema), batches: Vec::new() };
        assert_eq!(none.in_zone(Tz::Asia__Shanghai).unwrap().schema, local.schema);
    }

    #[test]
    fn instants_inside_lists_and_structs_are_told_alike() {
        // Breaks if only the columns at the top are local.
        let at = instants(&["2026-07-13T16:00:00Z", "2026-07-14T16:00:00Z"], "UTC");
        let field = Arc::new(Field::new("bin_started_at", at.data_type().clone(), true));
        let bins: ArrayRef = Arc::new(StructArray::from(vec![(field, at)]));
        let item = Arc::new(Field::new_list_field(bins.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths([2]);
        let list: ArrayRef = Arc::new(ListArray::new(item, offsets, bins, None));
        let local = answer(vec![("bins", list)]).in_zone(Tz::Asia__Shanghai).unwrap();
        assert_eq!(
            shown(local.batches[0].column(0)),
            [
                "[{bin_started_at: 2026-07-14T00:00:00+08:00}, {bin_started_at: 2026-07-15T00:00:00+08:00}]"
            ]
        );
    }

    #[test]
    fn a_wall_clock_has_no_zone_and_shows_one_hour_twice() {
        // Breaks if a program that ignores zones is given UTC, or the doubled hour is moved apart.
        let autumn = ["2026-10-24T22:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"];
        let asked = answer(vec![("at", instants(&autumn, "UTC"))]);
        let wall = asked.in_zone(Tz::Europe__Berlin).unwrap().on_wall_clock().unwrap();
        assert_eq!(
            wall.schema.field(0).data_type(),
            &DataType::Timestamp(TimeUnit::Millisecond, None)
        );
        assert_eq!(
            shown(wall.batches[0].column(0)),
            ["2026-10-25T00:00:00", "2026-10-25T02:30:00", "2026-10-25T02:30:00"]
        );
    }
}
