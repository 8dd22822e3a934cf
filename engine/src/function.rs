//! SQL functions of local time, working hours and intervals split over bins.
//!
//! Instants are `Timestamp(ms, UTC)`; NULL in, NULL out. The zone is the calendar's unless a last
//! argument names another.

mod column;
mod grants;
mod held_by;
pub(crate) mod ledger;
mod price;
mod shares;
mod suspension;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Float64Builder, ListBuilder, StringArray,
    StructArray, StructBuilder, TimestampMillisecondArray, TimestampMillisecondBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, TimestampMillisecondType};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;
use loadline_ingest::schema::instant;

use self::ledger::Ledger;
use crate::calendar::{BinUnit, Calendar, LocalBin, parse_zone};
use crate::config::EngineConfig;

/// What a function does with its arguments as arrays and the number of rows.
type Body = Arc<dyn Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync>;

struct Function {
    name: &'static str,
    signature: Signature,
    returns: DataType,
    body: Body,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.body, &other.body)
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let rows = if arrays.is_empty() { 1 } else { arrays[0].len() };
        let result = (self.body)(&arrays, rows)?;
        if args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_))) {
            let value = datafusion::common::ScalarValue::try_from_array(&result, 0)?;
            return Ok(ColumnarValue::Scalar(value));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// Registers every function on `context`.
pub(crate) fn register(
    context: &SessionContext,
    config: &EngineConfig,
    (started, since, as_of): (Arc<AtomicI64>, Option<DateTime<Utc>>, DateTime<Utc>),
    ledger: Ledger,
) {
    let calendar = &config.calendar;
    let any = || Signature::variadic_any(Volatility::Immutable);
    let add = |name, signature, returns, body: Body| {
        let function = Function { name, signature, returns, body };
        context.register_udf(ScalarUDF::from(function));
    };
    let now = as_of.timestamp_millis();
    let nothing = Signature::nullary(Volatility::Immutable);
    add("as_of", nothing, instant(), Arc::new(move |_, _| Ok(instants([Some(now)]))));
    let body =
        move |_: &[ArrayRef], _: usize| Ok(instants([Some(started.load(Ordering::Relaxed))]));
    add("span_started_at", Signature::nullary(Volatility::Stable), instant(), Arc::new(body));
    // The first instant of which readings are left; NULL where none were dropped.
    let since = since.map(|since| since.timestamp_millis());
    let body = move |_: &[ArrayRef], _: usize| {
        let told = TimestampMillisecondArray::from(vec![since]).with_timezone("UTC");
        Ok(Arc::new(told) as ArrayRef)
    };
    let nothing = Signature::nullary(Volatility::Immutable);
    add("readings_since", nothing, instant(), Arc::new(body));
    for (name, unit) in [
        ("local_hour", BinUnit::HOUR),
        ("local_day", BinUnit::DAY),
        ("local_week", BinUnit::WEEK),
        ("local_month", BinUnit::MONTH),
    ] {
        let zone = calendar.zone();
        let body = move |args: &[ArrayRef], _: usize| {
            let zone = zone_of(args.get(1), zone)?;
            starts(&at(args, 0)?, unit, zone)
        };
        add(name, any(), instant(), Arc::new(body));
    }
    let zone = calendar.zone();
    let body = move |args: &[ArrayRef], _: usize| {
        edges(&at(args, 0)?, BinUnit::HOUR, zone, |bin| bin.ended_at)
    };
    add("local_hour_ended", any(), instant(), Arc::new(body));
    let body = move |args: &[ArrayRef], _: usize| {
        let zone = zone_of(args.get(2), zone)?;
        starts(&at(args, 1)?, unit_of(args.first())?, zone)
    };
    add("local_bin", any(), instant(), Arc::new(body));
    let body = move |args: &[ArrayRef], _: usize| local_text(args, zone_of(args.get(2), zone)?);
    add("local_text", any(), DataType::Utf8, Arc::new(body));
    let worked = calendar.clone();
    let body = move |args: &[ArrayRef], _: usize| {
        let mut day = None;
        let found = at(args, 0)?;
        let found = found.iter();
        let truth: BooleanArray =
            found.map(|at| at.map(|at| worked.working_at(at, &mut day))).collect();
        Ok(Arc::new(truth) as ArrayRef)
    };
    add("working_hours", any(), DataType::Boolean, Arc::new(body));
    let holidays = calendar.clone();
    let body = move |args: &[ArrayRef], _: usize| {
        let free = |at: i64| {
            let date = DateTime::from_timestamp_millis(at).map(|at| holidays.local_date(at));
            date.is_some_and(|date| holidays.holiday(date).is_some())
        };
        let truth: BooleanArray = at(args, 0)?.iter().map(|at| at.map(free)).collect();
        Ok(Arc::new(truth) as ArrayRef)
    };
    add("holiday", any(), DataType::Boolean, Arc::new(body));
    let body = move |args: &[ArrayRef], _: usize| {
        let zone = zone_of(args.get(3), zone)?;
        split_bins(&at(args, 0)?, &at(args, 1)?, unit_of(args.get(2))?, zone)
    };
    add("split_bins", any(), bins_type(), Arc::new(body));
    let calendar = calendar.clone();
    let body =
        move |args: &[ArrayRef], _: usize| split_working(&at(args, 0)?, &at(args, 1)?, &calendar);
    add("split_working", any(), DataType::Struct(working_fields()), Arc::new(body));
    for (name, returns, body) in [
        (shares::JOB_SHARES, shares::shares_type(), shares::body(ledger.clone())),
        (grants::GPU_SHARED, DataType::Boolean, grants::shared_body(ledger.clone())),
        (grants::PARTS, grants::parts_type(), grants::parts_body(ledger)),
    ] {
        add(name, Signature::variadic_any(Volatility::Stable), returns, body);
    }
    context.register_udf(ScalarUDF::from(held_by::HeldBy::new()));
    for (name, body) in price::bodies(config) {
        add(name, any(), DataType::Float64, body);
    }
}

fn working_fields() -> Fields {
    Fields::from(vec![
        Field::new("working_s", DataType::Float64, true),
        Field::new("other_s", DataType::Float64, true),
    ])
}

/// Seconds of each interval inside and outside working hours; NULL where an end is missing.
fn split_working(
    started: &TimestampMillisecondArray,
    ended: &TimestampMillisecondArray,
    calendar: &Calendar,
) -> Result<ArrayRef> {
    let parts = started.iter().zip(ended).map(|(start, end)| {
        let (start, end) = (start?, end?);
        let working = calendar.working_ms(start, end);
        Some((working as f64 / 1000.0, ((end - start).max(0) - working) as f64 / 1000.0))
    });
    let parts: Vec<Option<(f64, f64)>> = parts.collect();
    let column = |part: fn((f64, f64)) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter(parts.iter().map(|both| both.map(part))))
    };
    Ok(Arc::new(StructArray::new(working_fields(), vec![column(|p| p.0), column(|p| p.1)], None)))
}

fn instants(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    let array: TimestampMillisecondArray = values.into_iter().collect();
    Arc::new(array.with_timezone("UTC"))
}

/// The argument as instants; text and other units of time are cast.
fn at(args: &[ArrayRef], position: usize) -> Result<TimestampMillisecondArray> {
    let Some(array) = args.get(position) else {
        return exec_err!("an instant is missing as argument {}", position + 1);
    };
    let array = match array.data_type() {
        DataType::Timestamp(unit, None) => {
            let zoned = DataType::Timestamp(*unit, Some("UTC".into()));
            cast(&cast(array, &zoned)?, &instant())?
        }
        _ => cast(array, &instant())?,
    };
    Ok(array.as_primitive::<TimestampMillisecondType>().clone())
}

/// The first value of a text argument.
fn text(array: Option<&ArrayRef>) -> Result<Option<String>> {
    let Some(array) = array.filter(|array| !array.is_empty()) else {
        return Ok(None);
    };
    let array = cast(array, &DataType::Utf8)?;
    let texts = array.as_string::<i32>();
    Ok(texts.is_valid(0).then(|| texts.value(0).to_owned()))
}

fn zone_of(array: Option<&ArrayRef>, zone: Tz) -> Result<Tz> {
    match text(array)? {
        Some(name) => parse_zone(&name).map_err(DataFusionError::Execution),
        None => Ok(zone),
    }
}

fn unit_of(array: Option<&ArrayRef>) -> Result<BinUnit> {
    let name = text(array)?.unwrap_or_default();
    name.parse().map_err(DataFusionError::Execution)
}

fn starts(found: &TimestampMillisecondArray, unit: BinUnit, zone: Tz) -> Result<ArrayRef> {
    edges(found, unit, zone, |bin| bin.started_at)
}

/// An edge of the bin that holds each instant.
fn edges(
    found: &TimestampMillisecondArray,
    unit: BinUnit,
    zone: Tz,
    edge: fn(LocalBin) -> i64,
) -> Result<ArrayRef> {
    let mut known: Option<LocalBin> = None;
    Ok(instants(found.iter().map(|at| {
        let at = at?;
        if let Some(bin) = known.filter(|bin| (bin.started_at..bin.ended_at).contains(&at)) {
            return Some(edge(bin));
        }
        let bin = LocalBin::at(unit, zone, at);
        known = Some(bin);
        Some(edge(bin))
    })))
}

fn local_text(args: &[ArrayRef], zone: Tz) -> Result<ArrayRef> {
    let format = text(args.get(1))?.unwrap_or_else(|| "%Y-%m-%d %H:%M".into());
    if chrono::format::StrftimeItems::new(&format)
        .any(|item| matches!(item, chrono::format::Item::Error))
    {
        return exec_err!("`{format}` is no strftime format");
    }
    let shown = |at: i64| {
        let at = DateTime::from_timestamp_millis(at)?;
        Some(at.with_timezone(&zone).format(&format).to_string())
    };
    let texts: StringArray = at(args, 0)?.iter().map(|at| at.and_then(shown)).collect();
    Ok(Arc::new(texts))
}

fn bin_fields() -> Fields {
    Fields::from(vec![
        Field::new("bin_started_at", instant(), true),
        Field::new("bin_ended_at", instant(), true),
        Field::new("elapsed_s", DataType::Float64, true),
    ])
}

fn bins_type() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Struct(bin_fields()), true)))
}

/// Bins that each interval `[started_at, ended_at)` touches, with the seconds inside each. Parts
/// sum to the whole; an interval that is empty or has no end gives none.
fn split_bins(
    started: &TimestampMillisecondArray,
    ended: &TimestampMillisecondArray,
    unit: BinUnit,
    zone: Tz,
) -> Result<ArrayRef> {
    let parts = StructBuilder::from_fields(bin_fields(), started.len());
    let mut lists = ListBuilder::new(parts);
    for (start, end) in started.iter().zip(ended) {
        if let (Some(mut at), Some(end)) = (start, end) {
            while at < end {
                let bin = LocalBin::at(unit, zone, at);
                let until = bin.ended_at.min(end);
                append(lists.values(), bin, (until - at) as f64 / 1000.0);
                at = until;
            }
        }
        lists.append(true);
    }
    Ok(cast(&lists.finish(), &bins_type())?)
}

fn append(parts: &mut StructBuilder, bin: LocalBin, elapsed_s: f64) {
    let expected = "the builder was made from these fields";
    for (field, at) in [(0, bin.started_at), (1, bin.ended_at)] {
        let column: &mut TimestampMillisecondBuilder = parts.field_builder(field).expect(expected);
        column.append_value(at);
    }
    let column: &mut Float64Builder = parts.field_builder(2).expect(expected);
    column.append_value(elapsed_s);
    parts.append(true);
}
