//! `loadline forecast` and `loadline plan`: series out of SQL, numbers out of the forecaster.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, TimestampMillisecondType};
use chrono::DateTime;
use loadline_engine::calendar::Calendar;
use loadline_engine::{Answer, Session};
use loadline_forecast::{
    Backtest, CalendarColumn, Forecast, ForecastSettings, Meets, Plan, PlanSettings, QuantileLevel,
    Series, backtest, origins,
};

use super::{Context, print};
use crate::cli::{ForecastArgs, PlanArgs, SplitBy};
use crate::failure::Failure;

const HOUR_MS: i64 = 3_600_000;
/// Origins of the backtest behind a forecast.
const ORIGINS: usize = 8;

pub(super) async fn forecast(context: &Context, args: &ForecastArgs) -> Result<(), Failure> {
    let session = context.session().await?;
    let calendar = context.config()?.calendar;
    let steps = usize::try_from(args.horizon / 3_600).unwrap_or(usize::MAX);
    let mut forecasts = Vec::new();
    for series in demand(&session, args.by).await? {
        let (forecast, tested) = look_ahead(&series, &calendar, steps)?;
        eprint_line(&told(&forecast, tested.as_ref()));
        forecasts.push(forecast);
    }
    print::answer(&table(&forecasts)?, &args.table)
}

/// Progress and reasons go beside the result, so that the result can be piped.
fn eprint_line(text: &str) {
    use std::io::Write as _;
    // Nobody listens where standard error is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Model, skill, interval coverage and reasons of a forecast, in words.
pub(super) fn told(forecast: &Forecast, tested: Option<&Backtest>) -> String {
    let mut text = format!("{}: {}", forecast.series, forecast.basis.name());
    match tested {
        Some(tested) => {
            let skill = tested.overall.skill().map_or_else(
                || "no skill can be stated: the seasonal naive was perfect".to_owned(),
                |skill| format!("skill {:+.0} % against seasonal naive", skill * 100.0),
            );
            text.push_str(&format!(
                "; backtest over {} origins: {skill}, {:.0} % of outcomes inside the 80 % interval",
                tested.origins.len(),
                tested.overall.coverage_80_ratio * 100.0
            ));
        }
        None => text.push_str("; history too short for a backtest"),
    }
    for reason in &forecast.reasons {
        text.push_str(&format!("; {reason}"));
    }
    text
}

/// A forecast and the backtest behind it, where the history allows one.
pub(super) fn look_ahead(
    series: &Series,
    calendar: &Calendar,
    steps: usize,
) -> Result<(Forecast, Option<Backtest>), Failure> {
    let settings = ForecastSettings { horizon_steps: steps, ..ForecastSettings::default() };
    let columns = calendar_columns(series, calendar, steps);
    let forecast = loadline_forecast::forecast(series, &columns, &settings)?;
    let origins = origins(series, steps, ORIGINS);
    let tested = match origins.is_empty() {
        true => None,
        false => Some(backtest(series, &columns, &settings, &origins)?),
    };
    Ok((forecast, tested))
}

fn calendar_columns(series: &Series, calendar: &Calendar, steps: usize) -> Vec<CalendarColumn> {
    let of = |name: &str, truth: &dyn Fn(DateTime<chrono::Utc>) -> bool| CalendarColumn {
        name: name.to_owned(),
        values: (0..series.len() + steps)
            .map(|step| {
                let at = DateTime::from_timestamp_millis(series.step_start_ms(step));
                f64::from(u8::from(at.is_some_and(truth)))
            })
            .collect(),
    };
    let holiday = |at| calendar.holiday(calendar.local_date(at)).is_some();
    vec![of("working", &|at| calendar.working(at)), of("holiday", &holiday)]
}

/// Hourly demand of the fleet, or of each team, pool or workload; hours without any are 0 between
/// the first and the last hour of the ledger, which sees every hour.
pub(super) async fn demand(session: &Session, by: Option<SplitBy>) -> Result<Vec<Series>, Failure> {
    hourly(session, by, "demand_hourly", "gpus_demand").await
}

/// Hourly load offered to the fleet, on which capacity is planned: a backlog that piles up is not
/// a need for as many GPUs at once.
pub(super) async fn offered(session: &Session) -> Result<Option<Series>, Failure> {
    Ok(hourly(session, None, "offered_hourly", "gpus_offered").await?.pop())
}

async fn hourly(
    session: &Session,
    by: Option<SplitBy>,
    view: &str,
    column: &str,
) -> Result<Vec<Series>, Failure> {
    let name =
        by.map_or("'fleet'".to_owned(), |by| format!("coalesce(\"{}\", '(none)')", by.column()));
    let text = format!(
        "SELECT {name} AS name, hour_started_at, sum({column}) AS gpus FROM {view} \
         GROUP BY 1, 2 ORDER BY 1, 2"
    );
    let answer = session.sql(&text).await?;
    let mut found: BTreeMap<String, Vec<(i64, f64)>> = BTreeMap::new();
    for batch in &answer.batches {
        let names = cast(batch.column(0), &DataType::Utf8)?;
        let names = names.as_string::<i32>();
        let hours = batch.column(1).as_primitive::<TimestampMillisecondType>();
        let gpus = batch.column(2).as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            let hour = (hours.value(row), gpus.value(row));
            found.entry(names.value(row).to_owned()).or_default().push(hour);
        }
    }
    let last = session.as_of().timestamp_millis();
    let first = found.values().flatten().map(|hour| hour.0).min();
    let Some(first) = first else {
        return Err(Failure::new(
            "there is no demand to forecast: the store holds no job and no count",
        )
        .hint("import jobs first, such as `loadline import sacct FILE`"));
    };
    // The hour under way at the end is not whole and is left out.
    let steps = usize::try_from((last - first) / HOUR_MS).unwrap_or_default();
    found
        .into_iter()
        .map(|(name, hours)| {
            let mut values = vec![Some(0.0); steps];
            for (at, gpus) in hours {
                let step = usize::try_from((at - first) / HOUR_MS).unwrap_or(usize::MAX);
                if let Some(value) = values.get_mut(step) {
                    *value = Some(value.unwrap_or(0.0) + gpus);
                }
            }
            Ok(Series::new(name, first, 3_600, values)?)
        })
        .collect()
}

fn table(forecasts: &[Forecast]) -> Result<Answer, Failure> {
    let rows = |f: &Forecast| f.quantiles.steps();
    let names: StringArray = forecasts
        .iter()
        .flat_map(|f| std::iter::repeat_n(Some(f.series.as_str()), rows(f)))
        .collect();
    let at: TimestampMillisecondArray = forecasts
        .iter()
        .flat_map(|f| (0..rows(f)).map(|step| Some(f.step_start_ms(step))))
        .collect();
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("series".into(), Arc::new(names)),
        ("step_started_at".into(), Arc::new(at.with_timezone("UTC"))),
    ];
    for level in QuantileLevel::defaults() {
        let gpus: Float64Array = forecasts
            .iter()
            .flat_map(|f| (0..rows(f)).map(move |step| f.quantiles.at(step, level)))
            .collect();
        columns.push((format!("gpus_p{}", f64::from(level.per_mille()) / 10.0), Arc::new(gpus)));
    }
    let naive: Float64Array = forecasts
        .iter()
        .flat_map(|f| (0..rows(f)).map(move |step| f.naive.at(step, QuantileLevel::MEDIAN)))
        .collect();
    columns.push(("gpus_seasonal_naive".into(), Arc::new(naive)));
    let batch = RecordBatch::try_from_iter(columns)?;
    Ok(Answer { schema: batch.schema(), batches: vec![batch] })
}

pub(super) async fn plan(context: &Context, args: &PlanArgs) -> Result<(), Failure> {
    let session = context.session().await?;
    let capacity = capacity(&session).await?;
    let level = QuantileLevel::new((args.quantile * 1000.0).round() as u16)?;
    let settings = PlanSettings {
        level,
        lead_time_days: args.lead_time_days,
        growth_ratio_per_year: args.growth,
        add_gpus: args.add_gpus,
        ..PlanSettings::default()
    };
    if let Some(series) = offered(&session).await? {
        let plan = loadline_forecast::plan(&series, capacity.gpus, &settings)?;
        if args.json {
            print::line(&serde_json::to_string_pretty(&serde_json::json!({
                "series": plan.series,
                "capacity_gpus": plan.capacity_gpus,
                "capacity_source": capacity.source,
                "meets": words(&plan),
                "gpus_needed": plan.gpus_needed,
                "order_by": plan.order_by_ms.and_then(DateTime::from_timestamp_millis),
                "trend_gpus_per_week": plan.trend_gpus_per_week,
                "horizon_reason": plan.horizon_reason,
            }))?)?;
            return Ok(());
        }
        print::line(
            "basis     load offered: GPUs held if every job started at once; a week counts with the level that nine hours of ten stay below",
        )?;
        print::line(&format!(
            "capacity  {:.0} GPUs, known from {}",
            plan.capacity_gpus, capacity.source
        ))?;
        print::line(&format!("trend     {:+.2} GPUs a week", plan.trend_gpus_per_week))?;
        print::line(&format!("full      {}", words(&plan)))?;
        print::line(&format!("horizon   {}", plan.horizon_reason))?;
    }
    Ok(())
}

/// When demand meets capacity and what to order by when, in words.
pub(super) fn words(plan: &Plan) -> String {
    let day = |ms: i64| {
        DateTime::from_timestamp_millis(ms)
            .map_or_else(|| "an unknown day".to_owned(), |at| at.format("%Y-%m-%d").to_string())
    };
    let met = match plan.meets {
        Meets::Already => "the load is at capacity already".to_owned(),
        Meets::At { week_ms } => format!("the load meets capacity in the week of {}", day(week_ms)),
        Meets::NotWithin { weeks } => {
            return format!("the load does not meet capacity within {weeks} weeks");
        }
    };
    let late = if plan.order_late { " (that day has passed)" } else { "" };
    let order =
        plan.order_by_ms.map_or_else(String::new, |ms| format!(", ordered by {}{late}", day(ms)));
    format!("{met}; {} GPUs are missing at the largest shortfall{order}", plan.gpus_needed)
}

/// GPUs available at the end of the store.
#[derive(Debug)]
pub(super) struct Capacity {
    pub(super) gpus: f64,
    pub(super) source: String,
}

pub(super) async fn capacity(session: &Session) -> Result<Capacity, Failure> {
    let text = "SELECT sum(gpus_available) AS gpus, max(source) AS source FROM capacity_hourly \
        WHERE hour_started_at = (SELECT max(hour_started_at) FROM capacity_hourly)";
    let answer = session.sql(text).await?;
    let first = answer.batches.iter().find(|batch| batch.num_rows() > 0);
    let gpus = first.map(|batch| batch.column(0).as_primitive::<Float64Type>());
    let known = gpus.filter(|gpus| gpus.is_valid(0)).map(|gpus| gpus.value(0));
    let Some((gpus, batch)) = known.zip(first) else {
        return Err(Failure::new("no capacity is known: no inventory, no count and no job"));
    };
    let source = cast(batch.column(1), &DataType::Utf8)?.as_string::<i32>().value(0).to_owned();
    Ok(Capacity { gpus, source })
}
