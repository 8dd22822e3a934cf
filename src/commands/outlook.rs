//! Looking ahead: series and capacity out of SQL, for the forecaster.

pub(super) mod expansion;
pub(super) mod forecast;
pub(super) mod plan;
pub(super) mod scale;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use loadline_engine::calendar::{Calendar, offset_s};
use loadline_engine::{Params, Session, query};
use loadline_forecast::{
    ForecastError, PLAN_WEEKS_MAX, Plan, PlanSettings, Reading, Series, resample,
};

use super::row::{Row, rows};
use crate::cli::SplitBy;
use crate::failure::Failure;

const HOUR_MS: i64 = 3_600_000;
const HOUR_S: u32 = 3_600;
const NO_DEMAND: &str =
    "no demand is known: no job that asks for a GPU and no count spans a whole hour";

/// Whether a failure says that nothing tells any demand.
pub(super) fn no_demand(failure: &Failure) -> bool {
    failure.line() == NO_DEMAND
}

/// Hourly demand (held and waiting) of the fleet, or of each team, pool or workload, up to the
/// last whole hour. An hour that no source counted is not known; where all comes from jobs, an hour
/// without any is 0.
pub(super) async fn demand(session: &Session, by: Option<SplitBy>) -> Result<Vec<Series>, Failure> {
    let by = by.map_or("fleet", SplitBy::name);
    let params: Params =
        [("by".to_owned(), by.to_owned()), ("step".to_owned(), "hour".to_owned())].into();
    let answer = session.query(&query::find("demand")?, &params).await?;
    let hour = |row: &Row| {
        let at = row.instant("bin_started_at")?;
        Some((row.text("asked_by")?, at, row.number("gpus_demand")))
    };
    series(session, rows(&answer).iter().filter_map(hour))
}

/// Hourly load offered to the fleet, or to each pool: what capacity is planned on, since a backlog
/// that piles up is not a need for as many GPUs at once. Hours that nobody counted are not known.
pub(super) async fn offered(
    session: &Session,
    by: Option<SplitBy>,
) -> Result<Vec<Series>, Failure> {
    let name =
        by.map_or("'fleet'".to_owned(), |by| format!("coalesce(\"{}\", '(none)')", by.column()));
    let text = format!(
        "SELECT {name} AS name, hour_started_at, sum(gpus_offered) AS gpus FROM offered_hourly \
         GROUP BY 1, 2 ORDER BY 1, 2"
    );
    let answer = session.sql(&text).await?;
    let mut loads: BTreeMap<(String, DateTime<Utc>), f64> = BTreeMap::new();
    for row in rows(&answer) {
        if let (Some(name), Some(at), Some(gpus)) =
            (row.text("name"), row.instant("hour_started_at"), row.number("gpus"))
        {
            loads.insert((name, at), gpus);
        }
    }
    let known = demand(session, by).await?;
    let hours = known.iter().flat_map(|series| {
        let load = |step: usize| -> Option<(String, DateTime<Utc>, Option<f64>)> {
            let at = DateTime::from_timestamp_millis(series.step_start_ms(step))?;
            let load = loads.get(&(series.name().to_owned(), at)).copied();
            Some((series.name().to_owned(), at, series.values()[step].map(|_| load.unwrap_or(0.0))))
        };
        (0..series.len()).filter_map(load).collect::<Vec<_>>()
    });
    series(session, hours)
}

/// Series by name; an hour that is not over counts for nothing.
fn series(
    session: &Session,
    hours: impl Iterator<Item = (String, DateTime<Utc>, Option<f64>)>,
) -> Result<Vec<Series>, Failure> {
    let now = session.as_of().timestamp_millis();
    let mut found: BTreeMap<String, Vec<(i64, Option<f64>)>> = BTreeMap::new();
    for (name, at, gpus) in hours {
        let at = at.timestamp_millis();
        if at + HOUR_MS <= now {
            found.entry(name).or_default().push((at, gpus));
        }
    }
    let all = || found.values().flatten().map(|(at, _)| *at);
    let (Some(first), Some(last)) = (all().min(), all().max()) else {
        return Err(Failure::new(
            "there is no demand to look at: no job and no count in the store",
        ));
    };
    let steps = usize::try_from((last - first) / HOUR_MS).unwrap_or_default() + 1;
    found
        .into_iter()
        .map(|(name, hours)| {
            let mut values = vec![None; steps];
            for (at, gpus) in hours {
                let step = usize::try_from((at - first) / HOUR_MS).unwrap_or(usize::MAX);
                if let Some(value) = values.get_mut(step) {
                    *value = gpus;
                }
            }
            Ok(Series::new(name, first, HOUR_S, values)?)
        })
        .collect()
}

/// The series in longer steps that begin with the local day, as means of the hours known; steps
/// that are not whole are left out.
pub(super) fn in_steps(
    series: &Series,
    step_s: u32,
    calendar: &Calendar,
) -> Result<Series, Failure> {
    if step_s == HOUR_S {
        return Ok(series.clone());
    }
    let shift = i64::from(offset_s(calendar.zone(), series.end_ms())) * 1_000;
    let step_ms = i64::from(step_s) * 1_000;
    let first = -(-(series.start_ms() + shift)).div_euclid(step_ms) * step_ms;
    let last = (series.end_ms() + shift).div_euclid(step_ms) * step_ms;
    let readings: Vec<Reading> = series
        .values()
        .iter()
        .enumerate()
        .map(|(step, value)| (series.step_start_ms(step) + shift, value))
        .filter(|(at, _)| (first..last).contains(at))
        .filter_map(|(at_ms, value)| {
            value.map(|value| Reading { at_ms, value, weight_s: f64::from(HOUR_S) })
        })
        .collect();
    let local = resample(series.name(), &readings, step_s)?;
    Ok(Series::new(series.name(), local.start_ms() - shift, step_s, local.values().to_vec())?)
}

/// The plan of a load over local weeks, to be ordered on a local day.
pub(super) fn planned(
    load: &Series,
    capacity_gpus: f64,
    settings: PlanSettings,
    calendar: &Calendar,
) -> Result<Plan, ForecastError> {
    let weeks = i64::try_from(settings.horizon_weeks.min(PLAN_WEEKS_MAX)).unwrap_or_default() + 1;
    let until = load.end_ms() + weeks * 7 * 24 * HOUR_MS;
    let week_starts_ms = calendar.week_starts_ms(load.start_ms(), until);
    let lead_time_days = settings.lead_time_days;
    let settings = PlanSettings { week_starts_ms, ..settings };
    let mut plan = loadline_forecast::plan(load, capacity_gpus, &settings)?;
    // Days before are days of the calendar, of which one in spring has 23 hours.
    plan.order_by_ms = plan.needed_ms.map(|at| calendar.days_before_ms(at, lead_time_days));
    plan.order_late = plan.order_by_ms.is_some_and(|at| at < load.end_ms());
    Ok(plan)
}

/// GPUs of a pool, or of the fleet, at the end of the store.
#[derive(Debug, Clone)]
pub(super) struct Capacity {
    /// GPUs that can be given to jobs.
    pub(super) gpus: f64,
    /// How that is known: config, inventory, counts or peak-held, which is a floor.
    pub(super) source: String,
}

/// Capacity of the fleet and of each pool in the latest hour.
pub(super) async fn capacity(
    session: &Session,
) -> Result<(Capacity, BTreeMap<String, Capacity>), Failure> {
    let text = "WITH latest AS (SELECT coalesce(\"partition\", 'default') AS pool, gpus_available, \
        source FROM capacity_hourly \
        WHERE hour_started_at = (SELECT max(hour_started_at) FROM capacity_hourly)) \
        SELECT pool, sum(gpus_available) AS gpus, max(source) AS source FROM latest GROUP BY pool \
        UNION ALL SELECT NULL AS pool, sum(gpus_available) AS gpus, max(source) AS source \
        FROM latest";
    let mut fleet = None;
    let mut pools = BTreeMap::new();
    for row in rows(&session.sql(text).await?) {
        let (Some(gpus), Some(source)) = (row.number("gpus"), row.text("source")) else { continue };
        let capacity = Capacity { gpus, source };
        match row.text("pool") {
            Some(pool) => drop(pools.insert(pool, capacity)),
            None => fleet = Some(capacity),
        }
    }
    let unknown = || {
        Failure::new("no capacity is known for any hour: no job, count or reading tells a time")
            .hint("import jobs, counts or readings beside the inventory")
    };
    Ok((fleet.ok_or_else(unknown)?, pools))
}
