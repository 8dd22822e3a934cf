//! From an array of the source to an array of ours: numbers, instants, texts.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Float64Builder, PrimitiveArray,
    StringArray, TimestampMillisecondArray,
};
use arrow::compute::{CastOptions, cast, cast_with_options, nullif};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float64Type, Int64Type, TimeUnit, TimestampMillisecondType,
};
use chrono::DateTime;

use super::unit::{factor, limits};
use crate::error::IngestError;
use crate::schema::{Table, instant};
use crate::source::instant::{EpochUnit, Moments};

/// Rows that have to be kept aside, with the reason.
pub(crate) type Faults = BTreeMap<usize, String>;

/// Names of all columns of all tables, to count by.
static COLUMN_NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let names = |table: Table| -> Vec<String> {
        table.schema().fields().iter().map(|field| field.name().clone()).collect()
    };
    Table::ALL.into_iter().flat_map(names).collect()
});

/// `column` as a name that lives for ever.
pub(crate) fn static_name(column: &str) -> &'static str {
    COLUMN_NAMES.iter().find(|name| *name == column).map_or("value", String::as_str)
}

/// A measurement: `array` times `scale`, as `kind`; what is no number or out of range is NULL.
/// Returns how many values that were.
pub(crate) fn measurement(
    array: &ArrayRef,
    column: &str,
    scale: f64,
    unit: Option<&str>,
    kind: &DataType,
) -> Result<(ArrayRef, u64), IngestError> {
    if array.data_type() == kind && scale == 1.0 && !kind.is_floating() {
        return in_range_integers(array, column);
    }
    let (numbers, unreadable) = numbers(array, column, scale, unit.is_some())?;
    let scaled = if scale == 1.0 { numbers } else { numbers.unary(|value| value * scale) };
    let (kept, beyond) = within(scaled, column);
    let (array, lost): (ArrayRef, usize) = if kind.is_floating() {
        (Arc::new(kept), 0)
    } else {
        let rounded: Float64Array = kept.unary(f64::round);
        let before = rounded.null_count();
        let safe = CastOptions { safe: true, ..CastOptions::default() };
        let whole = cast_with_options(&rounded, kind, &safe)?;
        let lost = whole.null_count() - before;
        (whole, lost)
    };
    Ok((array, unreadable + beyond + lost as u64))
}

/// Integers that need no arithmetic; one out of range is NULL.
fn in_range_integers(array: &ArrayRef, column: &str) -> Result<(ArrayRef, u64), IngestError> {
    let (low, high) = limits(column);
    let numbers = cast(array, &DataType::Float64)?;
    let numbers = numbers.as_primitive::<Float64Type>();
    let odd = |value: f64| value < low || value > high;
    let beyond: BooleanArray = numbers.iter().map(|value| Some(value.is_some_and(odd))).collect();
    if beyond.true_count() == 0 {
        return Ok((Arc::clone(array), 0));
    }
    Ok((nullif(array, &beyond)?, beyond.true_count() as u64))
}

/// Any array as numbers, and how many texts were none.
fn numbers(
    array: &ArrayRef,
    column: &str,
    scale: f64,
    has_unit: bool,
) -> Result<(Float64Array, u64), IngestError> {
    if *array.data_type() == DataType::Float64 {
        return Ok((array.as_primitive::<Float64Type>().clone(), 0));
    }
    if array.data_type().is_numeric() || matches!(array.data_type(), DataType::Boolean) {
        let numbers = cast(array, &DataType::Float64)?;
        return Ok((numbers.as_primitive::<Float64Type>().clone(), 0));
    }
    let texts = texts(array)?;
    let mut unreadable = 0;
    let mut builder = Float64Builder::with_capacity(texts.len());
    for text in &texts {
        let number = text.and_then(|text| number(text, column, scale, has_unit));
        unreadable += u64::from(text.is_some() && number.is_none());
        builder.append_option(number);
    }
    Ok((builder.finish(), unreadable))
}

/// `631.95`, or `631.95 W` with a unit that `column` knows.
fn number(text: &str, column: &str, scale: f64, has_unit: bool) -> Option<f64> {
    if let Ok(number) = text.parse::<f64>() {
        return Some(number);
    }
    let numeric = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+');
    let end = text.bytes().position(|byte| !numeric(byte)).filter(|end| *end > 0)?;
    let (digits, unit) = text.split_at(end);
    let own = factor(column, unit.trim()).ok()?;
    // The cell's unit decides; undo the scale that will follow.
    let undo = if has_unit { own / scale } else { own };
    digits.parse::<f64>().ok().map(|number| number * undo)
}

/// Values outside the limits of `column`, and NaN, become NULL.
fn within(numbers: Float64Array, column: &str) -> (Float64Array, u64) {
    let (low, high) = limits(column);
    let good = |value: f64| value >= low && value <= high;
    if numbers.values().iter().all(|value| good(*value)) {
        return (numbers, 0);
    }
    let kept: Float64Array =
        numbers.iter().map(|value| value.filter(|value| good(*value))).collect();
    let lost = (kept.null_count() - numbers.null_count()) as u64;
    (kept, lost)
}

/// Any array as text.
pub(crate) fn texts(array: &ArrayRef) -> Result<StringArray, IngestError> {
    if *array.data_type() == DataType::Utf8 {
        return Ok(array.as_string::<i32>().clone());
    }
    Ok(cast(array, &DataType::Utf8)?.as_string::<i32>().clone())
}

/// Unit of a bare number of time.
pub(crate) fn epoch_unit(unit: Option<&str>) -> Result<EpochUnit, String> {
    match unit {
        None | Some("s") => Ok(EpochUnit::Second),
        Some("ms") => Ok(EpochUnit::Milli),
        Some("us") => Ok(EpochUnit::Micro),
        Some("ns") => Ok(EpochUnit::Nano),
        Some(other) => Err(format!("`{other}` is none of s, ms, us, ns")),
    }
}

/// Instants; a row whose time cannot be read goes to `faults`.
pub(crate) fn instants(
    array: &ArrayRef,
    unit: EpochUnit,
    utc: bool,
    moments: &mut Moments,
    faults: &mut Faults,
) -> Result<ArrayRef, IngestError> {
    match array.data_type() {
        DataType::Timestamp(_, Some(_)) => Ok(cast(array, &instant())?),
        DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64 => {
            let millis = cast(array, &DataType::Timestamp(TimeUnit::Millisecond, None))?;
            let millis = millis.as_primitive::<TimestampMillisecondType>();
            if utc {
                return Ok(Arc::new(millis.clone().with_timezone("UTC")));
            }
            Ok(local_instants(millis, moments, faults))
        }
        kind if kind.is_integer() => {
            let whole = cast(array, &DataType::Int64)?;
            Ok(Arc::new(epoch_integers(whole.as_primitive::<Int64Type>(), unit)))
        }
        kind if kind.is_floating() => {
            let numbers = cast(array, &DataType::Float64)?;
            let factor = unit.millis();
            let numbers = numbers.as_primitive::<Float64Type>();
            Ok(finish(numbers.iter().map(|n| n.filter(|n| *n > 0.0).map(|n| whole(n * factor)))))
        }
        _ => Ok(text_instants(&texts(array)?, moments, faults)),
    }
}

fn epoch_integers(
    numbers: &PrimitiveArray<Int64Type>,
    unit: EpochUnit,
) -> TimestampMillisecondArray {
    let millis: TimestampMillisecondArray = match unit {
        EpochUnit::Second => numbers.unary(|n| n.saturating_mul(1000)),
        EpochUnit::Milli => numbers.unary(|n| n),
        EpochUnit::Micro => numbers.unary(|n: i64| n.div_euclid(1000)),
        EpochUnit::Nano => numbers.unary(|n: i64| n.div_euclid(1_000_000)),
    };
    millis.with_timezone("UTC")
}

fn local_instants(
    millis: &TimestampMillisecondArray,
    moments: &mut Moments,
    faults: &mut Faults,
) -> ArrayRef {
    let mut take = |row: usize, millis: i64| {
        let local = DateTime::from_timestamp_millis(millis)?.naive_utc();
        kept(moments.local(local).map(Some), row, faults)
    };
    finish(millis.iter().enumerate().map(|(row, millis)| take(row, millis?)))
}

fn text_instants(texts: &StringArray, moments: &mut Moments, faults: &mut Faults) -> ArrayRef {
    let mut take = |row: usize, text: &str| kept(moments.parse(text), row, faults);
    finish(texts.iter().enumerate().map(|(row, text)| take(row, text?)))
}

/// Milliseconds of what was read, or `None` with the reason noted.
fn kept(read: Result<Option<i64>, String>, row: usize, faults: &mut Faults) -> Option<i64> {
    match read {
        Ok(millis) => millis,
        Err(reason) => {
            faults.entry(row).or_insert(reason);
            None
        }
    }
}

fn finish(millis: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(millis.collect::<TimestampMillisecondArray>().with_timezone("UTC"))
}

/// `instants` plus `seconds`.
pub(crate) fn later(instants: &ArrayRef, seconds: &ArrayRef) -> ArrayRef {
    let starts = instants.as_primitive::<TimestampMillisecondType>();
    let seconds = seconds.as_primitive::<Float64Type>();
    let add = |(start, seconds): (Option<i64>, Option<f64>)| {
        Some(start?.saturating_add(whole(seconds? * 1e3)))
    };
    finish(starts.iter().zip(seconds.iter()).map(add))
}

#[expect(clippy::cast_possible_truncation, reason = "a float saturates when it is cast")]
fn whole(number: f64) -> i64 {
    number.round() as i64
}

/// A constant as an array of `rows` rows.
pub(crate) fn constant<T: ArrowPrimitiveType>(value: T::Native, rows: usize) -> PrimitiveArray<T> {
    PrimitiveArray::from_value(value, rows)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int16Array, Int32Array, Int64Array};

    use super::*;

    #[test]
    fn integers_out_of_range_are_null_and_counted_whatever_their_width() {
        // Breaks when a negative attempt or index of a Parquet file is kept because it needs no cast.
        let read = |array: ArrayRef, column: &str| {
            let kind = array.data_type().clone();
            let (kept, lost) = measurement(&array, column, 1.0, None, &kind).unwrap();
            (kept.null_count(), lost)
        };
        assert_eq!(read(Arc::new(Int32Array::from(vec![0, -3, 2])), "attempt"), (1, 1));
        assert_eq!(read(Arc::new(Int16Array::from(vec![-1, 7])), "gpu"), (1, 1));
        let bytes = Int64Array::from(vec![Some(-1), None, Some(5)]);
        assert_eq!(read(Arc::new(bytes), "mem_used_bytes"), (2, 1));
        assert_eq!(read(Arc::new(Int32Array::from(vec![-9, 0])), "exit_code"), (0, 0));
    }
}
