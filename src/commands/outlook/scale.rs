//! `loadline scale`: GPUs that should be on in each of the next hours.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray, UInt32Array,
};
use loadline_engine::Answer;
use loadline_forecast::{
    Metric, QuantileLevel, ScaleReason, ScaleSettings, ScaleState, scale, whole_gpus,
};

use super::super::{Context, print};
use super::ahead::look_ahead;
use super::{HOUR_MS, capacity, capacity_known, demand, tell_blind};
use crate::cli::{ScaleArgs, SplitBy};
use crate::failure::Failure;
use crate::report::tested::Tested;
use crate::report::{Language, plural};

/// Hours without a known demand after which nothing is switched off.
const STALE_HOURS: i64 = 2;

pub(in crate::commands) async fn run(context: &Context, args: &ScaleArgs) -> Result<(), Failure> {
    let session = context.session().await?;
    let by = args.pool.as_ref().map(|_| SplitBy::Pool);
    tell_blind(&session).await?;
    let all = demand(&session, by).await?;
    let name = args.pool.as_deref().unwrap_or("fleet");
    let Some(series) = all.iter().find(|series| series.name() == name) else {
        let known: Vec<&str> = all.iter().map(loadline_forecast::Series::name).collect();
        return Err(Failure::usage(format!("nothing asks for GPUs of a pool `{name}`"))
            .detail(format!("pools are {}", known.join(", "))));
    };
    let known = match args.on {
        // With what is on, a maximum need not be known.
        Some(_) => capacity_known(&session).await?,
        None => Some(capacity(&session).await?),
    };
    let limit = known.as_ref().and_then(|(fleet, pools)| match &args.pool {
        Some(pool) => pools.get(pool),
        None => Some(fleet),
    });
    let available = limit.map(|limit| whole_gpus("available", limit.gpus.max(0.0).floor()));
    let available = available.transpose()?;
    let lead_steps = usize::try_from(args.lead_time.div_euclid(3_600)).unwrap_or(usize::MAX);
    if args.lead_time % 3_600 != 0 {
        return Err(Failure::usage("the lead time must be whole hours, such as 1h or 2h"));
    }
    let settings = ScaleSettings {
        level: QuantileLevel::new((args.quantile * 1000.0).round() as u16)?,
        headroom_ratio: args.headroom,
        gpus_min: args.min,
        gpus_max: args.max.or(available),
        lead_steps,
        cooldown_steps: args.cooldown,
        unit_gpus: args.unit,
        ..ScaleSettings::default()
    };
    let hours = args.hours as usize;
    let made = look_ahead(series, session.calendar(), hours + lead_steps)?;
    let forecast = &made.forecast;
    // The latest hour that is known tells what is asked for now; an old one tells nothing.
    let late = (session.as_of().timestamp_millis() - series.end_ms()) / HOUR_MS;
    let trailing = series.values().iter().rev().take_while(|value| value.is_none()).count();
    let fresh = late + trailing as i64 <= STALE_HOURS;
    let latest = series.values().iter().rev().flatten().next().copied();
    let metric = latest.filter(|_| fresh).map_or(Metric::Stale, Metric::Fresh);
    let on = args.on.or(available).ok_or_else(|| {
        Failure::new("how many GPUs are on is not known").hint("say it with --on")
    })?;
    let state = ScaleState { gpus_on: on, steps_below: 0 };
    let steps = scale(&forecast.quantiles, metric, state, &settings)?;
    let steps = &steps[..hours.min(steps.len())];
    print::aside(&made.told(session.calendar()));
    let tested = Tested::new(forecast, made.tested.as_ref(), made.lost);
    if let Some(why) = tested.warning(Language::En) {
        print::aside(&format!(
            "do not switch by this forecast alone: {why} (a larger --headroom, or --min, keeps more on)"
        ));
    }
    if let Some(floor) = limit.filter(|limit| limit.is_floor() && args.max.is_none()) {
        print::aside(&format!(
            "the maximum is the most GPUs that jobs ever held at once, {:.0}: how many are installed is not known (say it with --max)",
            floor.gpus
        ));
    }
    if let (Some(max), Some(most)) = (settings.gpus_max, settings.most())
        && most < max
    {
        print::aside(&format!(
            "the maximum of {max} GPUs holds {} of {}: {most} at most are on",
            plural(u64::from(most / settings.unit_gpus), "whole unit"),
            settings.unit_gpus
        ));
    }
    if metric == Metric::Stale {
        print::aside(&format!(
            "demand was last known {} h before now: what is on stays on",
            late + trailing as i64
        ));
    }
    let at: TimestampMillisecondArray =
        (0..steps.len()).map(|step| Some(forecast.step_start_ms(step))).collect();
    let median: Float64Array =
        (0..steps.len()).map(|step| forecast.quantiles.at(step, QuantileLevel::MEDIAN)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("hour_started_at", Arc::new(at.with_timezone(session.calendar().zone().name()))),
        ("gpus_on", Arc::new(UInt32Array::from_iter_values(steps.iter().map(|s| s.gpus_on)))),
        (
            "gpus_needed",
            Arc::new(Float64Array::from_iter_values(
                steps.iter().map(|s| (s.gpus_needed * 10.0).round() / 10.0),
            )),
        ),
        ("gpus_demand_p50", Arc::new(median)),
        (
            "gpus_short",
            Arc::new(UInt32Array::from_iter_values(steps.iter().map(|s| s.shortfall_gpus))),
        ),
        ("reason", Arc::new(StringArray::from_iter_values(steps.iter().map(|s| reason(s.reason))))),
    ];
    let batch = RecordBatch::try_from_iter(columns)?;
    print::answer(&Answer { schema: batch.schema(), batches: vec![batch] }, &args.table)
}

const fn reason(reason: ScaleReason) -> &'static str {
    match reason {
        ScaleReason::Up => "up: need rises within the lead time",
        ScaleReason::Down => "down: need was lower for the whole cooldown",
        ScaleReason::Steady => "steady",
        ScaleReason::Cooldown => "kept: the cooldown is not over",
        ScaleReason::Hysteresis => "kept: need is lower by too little",
        ScaleReason::HeldStale => "kept: demand is not known",
        ScaleReason::CappedAtMax => "capped at the maximum",
    }
}
