//! The statistics of a file in Delta's log: rows, and minimum, maximum and NULL count by column.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, RecordBatch};
use arrow::compute::{max, max_string, min, min_string};
use arrow::datatypes::{
    DataType, Float64Type, Int16Type, Int32Type, Int64Type, SchemaRef, TimestampMicrosecondType,
};
use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value, json};

use crate::schema::Table;

/// A text longer than this is no bound that is worth its room in the log.
const TEXT_BYTES_MAX: usize = 128;

/// Statistics of instants, numbers and texts, gathered batch by batch.
#[derive(Debug)]
pub(super) struct Stats {
    schema: SchemaRef,
    /// Columns worth their room in the log: a derived table has more than a hundred.
    told: Vec<bool>,
    rows: usize,
    nulls: Vec<usize>,
    extremes: Vec<Option<Extremes>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Extremes {
    Whole(i64, i64),
    Real(f64, f64),
    Text(String, String),
}

impl Stats {
    pub(super) fn new(table: Table, schema: &SchemaRef) -> Self {
        let columns = schema.fields().len();
        let told = |name: &String| !table.derived() || table.key().contains(&name.as_str());
        Self {
            schema: schema.clone(),
            told: schema.fields().iter().map(|field| told(field.name())).collect(),
            rows: 0,
            nulls: vec![0; columns],
            extremes: vec![None; columns],
        }
    }

    pub(super) fn take(&mut self, rows: &RecordBatch) {
        self.rows += rows.num_rows();
        for (position, column) in rows.columns().iter().enumerate() {
            if !self.told[position] {
                continue;
            }
            self.nulls[position] += column.null_count();
            let known = &mut self.extremes[position];
            *known = match (known.take(), extremes(column)) {
                (Some(Extremes::Whole(a, b)), Some(Extremes::Whole(low, high))) => {
                    Some(Extremes::Whole(a.min(low), b.max(high)))
                }
                (Some(Extremes::Real(a, b)), Some(Extremes::Real(low, high))) => {
                    Some(Extremes::Real(a.min(low), b.max(high)))
                }
                (Some(Extremes::Text(a, b)), Some(Extremes::Text(low, high))) => {
                    Some(Extremes::Text(a.min(low), b.max(high)))
                }
                (known, found) => known.or(found),
            };
        }
    }

    pub(super) fn json(&self) -> Value {
        let (mut least, mut most, mut nulls) = (Map::new(), Map::new(), Map::new());
        for (position, field) in self.schema.fields().iter().enumerate() {
            if matches!(field.data_type(), DataType::Map(_, _)) || !self.told[position] {
                continue;
            }
            nulls.insert(field.name().clone(), json!(self.nulls[position]));
            if let Some((low, high)) =
                self.extremes[position].as_ref().and_then(|found| values(field.data_type(), found))
            {
                least.insert(field.name().clone(), low);
                most.insert(field.name().clone(), high);
            }
        }
        json!({
            "numRecords": self.rows, "minValues": least, "maxValues": most, "nullCount": nulls,
        })
    }
}

fn extremes(column: &ArrayRef) -> Option<Extremes> {
    fn of<T: ArrowPrimitiveType>(column: &ArrayRef) -> Option<(T::Native, T::Native)> {
        let values = column.as_primitive::<T>();
        Some((min(values)?, max(values)?))
    }
    let whole = |(low, high): (i64, i64)| Extremes::Whole(low, high);
    match column.data_type() {
        DataType::Timestamp(_, _) => of::<TimestampMicrosecondType>(column).map(whole),
        DataType::Int64 => of::<Int64Type>(column).map(whole),
        DataType::Int32 => of::<Int32Type>(column).map(|(a, b)| whole((a.into(), b.into()))),
        DataType::Int16 => of::<Int16Type>(column).map(|(a, b)| whole((a.into(), b.into()))),
        DataType::Float64 => of::<Float64Type>(column).map(|(a, b)| Extremes::Real(a, b)),
        DataType::Utf8 => {
            let values = column.as_string::<i32>();
            let text = |found: Option<&str>| found.map(str::to_owned);
            Some(Extremes::Text(text(min_string(values))?, text(max_string(values))?))
        }
        _ => None,
    }
}

/// As JSON; `None` where JSON has no such number.
fn values(kind: &DataType, found: &Extremes) -> Option<(Value, Value)> {
    let instant = |micros| {
        let at = DateTime::from_timestamp_micros(micros)?;
        Some(json!(at.to_rfc3339_opts(SecondsFormat::Micros, true)))
    };
    match *found {
        Extremes::Whole(low, high) if matches!(kind, DataType::Timestamp(_, _)) => {
            Some((instant(low)?, instant(high)?))
        }
        Extremes::Whole(low, high) => Some((json!(low), json!(high))),
        Extremes::Real(low, high) if low.is_finite() && high.is_finite() => {
            Some((json!(low), json!(high)))
        }
        Extremes::Text(ref low, ref high) if high.len().max(low.len()) <= TEXT_BYTES_MAX => {
            Some((json!(low), json!(high)))
        }
        Extremes::Real(_, _) | Extremes::Text(_, _) => None,
    }
}
