//! `loadline forecast`: quantiles of demand beside the seasonal naive, and the backtest behind them.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use chrono::{DateTime, Datelike, TimeDelta, Timelike, Utc};
use loadline_engine::Answer;
use loadline_engine::calendar::{Calendar, offset_s};
use loadline_forecast::{
    Backtest, Basis, CalendarColumn, Forecast, ForecastSettings, HORIZON_STEPS_MAX, ModelChoice,
    QuantileLevel, Series, backtest, origins,
};

use super::super::{Context, print};
use super::{Capacity, capacity_known, demand, headroom, in_steps, tell_blind};
use crate::cli::{ForecastArgs, SplitBy};
use crate::failure::Failure;
use crate::report::Language;
use crate::report::lack::Lack;

/// Origins of the backtest behind a forecast.
const ORIGINS: usize = 8;

pub(in crate::commands) async fn run(
    context: &Context,
    args: &ForecastArgs,
) -> Result<(), Failure> {
    let session = context.session().await?;
    let calendar = session.calendar();
    let steps = usize::try_from(args.horizon / i64::from(args.step)).unwrap_or(usize::MAX);
    if !(1..=HORIZON_STEPS_MAX).contains(&steps) {
        return Err(Failure::usage(format!("cannot look {steps} steps ahead"))
            .detail(format!("a horizon has 1 to {HORIZON_STEPS_MAX} steps"))
            .hint("take another --horizon, or a longer --step"));
    }
    tell_blind(&session).await?;
    let all = demand(&session, args.by).await?;
    let known = capacity_known(&session).await?;
    // A team or a workload has no capacity of its own.
    let capacity = |name: &str| match (args.by, &known) {
        (None, Some((fleet, _))) => Some(fleet.clone()),
        (Some(SplitBy::Pool), Some((_, pools))) => pools.get(name).cloned(),
        _ => None,
    };
    let limited = matches!(args.by, None | Some(SplitBy::Pool));
    let mut forecasts = Vec::new();
    let mut failed = None;
    for series in all {
        if series.values().iter().all(Option::is_none) {
            let lack = Lack::Counts.with_remedy(Language::En);
            print::aside(&format!("{}: no forecast: {lack}", series.name()));
            continue;
        }
        let made = in_steps(&series, args.step, calendar).and_then(|stepped| {
            let begun = steps_begun(&series, &stepped);
            let (forecast, tested) = look_ahead(&stepped, calendar, steps + begun)?;
            Ok((forecast.after(begun).unwrap_or(forecast), tested))
        });
        match made {
            Ok((forecast, tested)) => {
                print::aside(&told(&forecast, tested.as_ref(), calendar));
                let capacity = capacity(series.name());
                if limited {
                    print::aside(&format!(
                        "{}: {}",
                        series.name(),
                        against(&forecast, capacity.as_ref(), calendar)
                    ));
                }
                forecasts.push((forecast, capacity));
            }
            // One series that is too young leaves the others theirs.
            Err(failure) => {
                print::aside(&format!("{}: no forecast: {}", series.name(), failure.line()));
                failed = Some(failure);
            }
        }
    }
    match failed {
        Some(failure) if forecasts.is_empty() => Err(failure),
        _ => print::answer(&table(&forecasts, limited, calendar)?, &args.table),
    }
}

/// Steps after the end of `stepped` that have begun at the end of the hours it was made of: a day
/// that is nearly over is not one to look ahead to.
fn steps_begun(hours: &Series, stepped: &Series) -> usize {
    let step_ms = i64::from(stepped.step_s()) * 1_000;
    let begun = (hours.end_ms() - stepped.end_ms()).max(0);
    usize::try_from((begun + step_ms - 1) / step_ms).unwrap_or_default()
}

/// How a forecast stands against capacity, in words.
fn against(forecast: &Forecast, capacity: Option<&Capacity>, calendar: &Calendar) -> String {
    match capacity {
        Some(capacity) => {
            let told = headroom(forecast, capacity, calendar).text(Language::En);
            let unknown = capacity.lack();
            match unknown.remedy(Language::En).filter(|_| capacity.is_floor()) {
                Some(remedy) => format!("{told} ({remedy})"),
                None => told,
            }
        }
        None => Lack::CAPACITY.with_remedy(Language::En),
    }
}

/// Model, skill, interval coverage and reasons of a forecast, in words and local dates.
pub(in crate::commands) fn told(
    forecast: &Forecast,
    tested: Option<&Backtest>,
    calendar: &Calendar,
) -> String {
    let mut text = format!("{}: {}", forecast.series, forecast.basis.name());
    match tested {
        Some(tested) => {
            let model = tested.forecasts.first().map_or("model", |made| made.basis.name());
            let skill = match tested.overall.skill() {
                Err(why) => format!("no skill stated: {why}"),
                Ok(skill) if forecast.basis == Basis::SeasonalNaive && skill < 0.0 => {
                    format!("it is used because {model} does worse (skill {:+.0} %)", skill * 100.0)
                }
                Ok(skill) => {
                    let than = match skill {
                        skill if skill >= 0.005 => "better than",
                        skill if skill > -0.005 => "as good as",
                        _ => "no better than",
                    };
                    format!("skill {:+.0} % ({than} seasonal naive)", skill * 100.0)
                }
            };
            let coverage = match forecast.basis {
                Basis::SeasonalNaive => tested.overall.naive_coverage_80_ratio,
                Basis::WeeklyElasticNet | Basis::Level => tested.overall.coverage_80_ratio,
            };
            text.push_str(&format!(
                "; backtest over {} origins: {skill}, {:.0} % of outcomes inside the 80 % interval",
                tested.origins.len(),
                coverage * 100.0
            ));
        }
        None => text.push_str("; history too short for a backtest"),
    }
    for reason in &forecast.reasons {
        let reason = reason.told(|at_ms| offset_s(calendar.zone(), at_ms));
        text.push_str(&format!("; {reason}"));
    }
    text
}

/// A forecast and the backtest behind it, where the history allows one. A model that did not beat
/// the seasonal naive there makes way for it.
pub(in crate::commands) fn look_ahead(
    series: &Series,
    calendar: &Calendar,
    steps: usize,
) -> Result<(Forecast, Option<Backtest>), Failure> {
    let mut settings = ForecastSettings { horizon_steps: steps, ..ForecastSettings::default() };
    let columns = calendar_columns(series, calendar, steps);
    let forecast = loadline_forecast::forecast(series, &columns, &settings)?;
    let origins = origins(series, steps, ORIGINS);
    if origins.is_empty() {
        return Ok((forecast, None));
    }
    let tested = backtest(series, &columns, &settings, &origins)?;
    if forecast.basis == Basis::WeeklyElasticNet && tested.overall.naive_is_better() {
        settings.model = ModelChoice::SeasonalNaive;
        return Ok((loadline_forecast::forecast(series, &columns, &settings)?, Some(tested)));
    }
    Ok((forecast, Some(tested)))
}

/// The share of each step that is worked and that is holiday, and the local hour of the week.
fn calendar_columns(series: &Series, calendar: &Calendar, steps: usize) -> Vec<CalendarColumn> {
    let step = TimeDelta::seconds(i64::from(series.step_s()));
    let of = |name: &str, value: &dyn Fn(DateTime<Utc>) -> f64| CalendarColumn {
        name: name.to_owned(),
        values: (0..series.len() + steps)
            .map(|step| {
                DateTime::from_timestamp_millis(series.step_start_ms(step)).map_or(0.0, value)
            })
            .collect(),
    };
    let worked = |at| calendar.working_s(at, at + step) / f64::from(series.step_s());
    let holiday = |at| f64::from(u8::from(calendar.holiday(calendar.local_date(at)).is_some()));
    let hour_of_week = |at: DateTime<Utc>| {
        let local = at.with_timezone(&calendar.zone());
        f64::from(local.weekday().num_days_from_monday() * 24 + local.hour())
    };
    let mut columns = vec![of("working", &worked), of("holiday", &holiday)];
    if series.step_s() == super::HOUR_S {
        columns.push(of("hour_of_week", &hour_of_week));
    }
    columns
}

/// A row a step. `limited` adds the capacity known now, NULL where nothing tells it.
fn table(
    forecasts: &[(Forecast, Option<Capacity>)],
    limited: bool,
    calendar: &Calendar,
) -> Result<Answer, Failure> {
    let rows = |(f, _): &(Forecast, Option<Capacity>)| f.quantiles.steps();
    let names: StringArray = forecasts
        .iter()
        .flat_map(|one| std::iter::repeat_n(Some(one.0.series.as_str()), rows(one)))
        .collect();
    let at: TimestampMillisecondArray = forecasts
        .iter()
        .flat_map(|one| (0..rows(one)).map(|step| Some(one.0.step_start_ms(step))))
        .collect();
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("series".into(), Arc::new(names)),
        ("step_started_at".into(), Arc::new(at.with_timezone(calendar.zone().name()))),
    ];
    for level in QuantileLevel::defaults() {
        let gpus: Float64Array = forecasts
            .iter()
            .flat_map(|one| (0..rows(one)).map(move |step| one.0.quantiles.at(step, level)))
            .collect();
        columns.push((format!("gpus_p{}", f64::from(level.per_mille()) / 10.0), Arc::new(gpus)));
    }
    let naive: Float64Array = forecasts
        .iter()
        .flat_map(|one| (0..rows(one)).map(move |step| one.0.naive.at(step, QuantileLevel::MEDIAN)))
        .collect();
    columns.push(("gpus_seasonal_naive".into(), Arc::new(naive)));
    if limited {
        let known = |one: &(Forecast, Option<Capacity>)| one.1.clone();
        let gpus: Float64Array = forecasts
            .iter()
            .flat_map(|one| std::iter::repeat_n(known(one).map(|c| c.gpus), rows(one)))
            .collect();
        let source: StringArray = forecasts
            .iter()
            .flat_map(|one| std::iter::repeat_n(known(one).map(|c| c.source), rows(one)))
            .collect();
        columns.push(("gpus_available".into(), Arc::new(gpus)));
        columns.push(("capacity_source".into(), Arc::new(source)));
    }
    let batch = RecordBatch::try_from_iter(columns)?;
    Ok(Answer { schema: batch.schema(), batches: vec![batch] })
}
