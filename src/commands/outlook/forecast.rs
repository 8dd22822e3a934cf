//! `loadline forecast`: quantiles of demand beside the seasonal naive, and the backtest behind them.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use loadline_engine::Answer;
use loadline_engine::calendar::Calendar;
use loadline_forecast::{Forecast, HORIZON_STEPS_MAX, QuantileLevel, Series};

use super::super::{Context, print};
use super::ahead::look_ahead;
use super::{Capacity, capacity_known, demand, headroom, in_steps, tell_blind};
use crate::cli::{ForecastArgs, SplitBy};
use crate::failure::Failure;
use crate::report::Language;
use crate::report::lack::Lack;

/// Why `plan` may say another thing of the same week.
const WEEKS_DIFFER: &str = "this is the demand of each hour, GPUs held and waited for; loadline plan \
    holds the level of whole weeks of the load against the same GPUs, and carries it on along a \
    trend or as it is: for one week the two may differ";

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
    if limited && known.is_some() {
        print::aside(WEEKS_DIFFER);
    }
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
            let mut made = look_ahead(&stepped, calendar, steps + begun)?;
            made.forecast = made.forecast.after(begun).unwrap_or(made.forecast);
            Ok(made)
        });
        match made {
            Ok(made) => {
                print::aside(&made.told(calendar));
                let forecast = made.forecast;
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
