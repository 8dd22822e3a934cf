//! Looking ahead: series and capacity out of SQL, for the forecaster.

pub(super) mod ahead;
mod capacity;
mod clusters;
pub(super) mod expansion;
pub(super) mod forecast;
pub(super) mod idle;
pub(super) mod plan;
pub(super) mod planner;
pub(super) mod scale;
mod told;

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use loadline_engine::calendar::{BinUnit, Calendar, LocalBin, offset_s};
use loadline_engine::{Params, Session, query};
use loadline_forecast::{
    ForecastError, PLAN_WEEKS_MAX, Plan, PlanSettings, Reading, Series, resample,
};

use super::print;
use super::row::{Row, rows};
use crate::cli::SplitBy;
use crate::failure::Failure;
use crate::report::Language;
use crate::report::data::Local;
use crate::report::lack::Lack;
use crate::report::note::Note;
use crate::report::planned::LoadBasis;
pub(super) use capacity::{Capacities, Capacity, capacity, capacity_known, headroom};

const HOUR_MS: i64 = 3_600_000;
const HOUR_S: u32 = 3_600;

/// Series, or what the store lacks to tell any.
pub(super) type Known = Result<Vec<Series>, Lack>;

/// What a store lacks, as the failure of a command that cannot do without.
pub(super) fn lacking(lack: &Lack) -> Failure {
    let failure = Failure::new(lack.text(Language::En));
    match lack.remedy(Language::En) {
        Some(remedy) => failure.hint(remedy),
        None => failure,
    }
}

/// Why nothing in the store tells any demand; `None` where something does.
pub(super) async fn lack_of_demand(session: &Session) -> Result<Option<Lack>, Failure> {
    let text = "SELECT (SELECT count(*) FROM jobs) AS jobs, (SELECT count(*) FROM jobs \
        WHERE coalesce(gpus_requested, 0) > 0 OR coalesce(gpus_allocated, 0) > 0) AS gpu_jobs, \
        (SELECT count(*) FROM allocations) AS allocations, \
        (SELECT count(*) FROM gpu_counts) AS counts, (SELECT count(*) FROM gpu_counts \
        WHERE gpus_held IS NOT NULL OR gpus_waiting IS NOT NULL) AS counts_of_use";
    let found = rows(&session.sql(text).await?);
    let count = |name| found.first().and_then(|row| row.count(name)).unwrap_or(0);
    if count("gpu_jobs") + count("allocations") + count("counts_of_use") > 0 {
        return Ok(None);
    }
    Ok(Some(match (count("jobs"), count("counts")) {
        (_, 1..) => Lack::Counts,
        (0, 0) => Lack::Ledger,
        (jobs, 0) => Lack::GpuJobs { jobs },
    }))
}

/// An instant with the offset of `zone`.
pub(super) fn local(at: DateTime<Utc>, zone: Tz) -> Local {
    at.with_timezone(&zone).fixed_offset()
}

/// Why nothing can be decided at all: the period lies outside of what the store holds, or the store
/// ends more than a day before now.
pub(super) fn lack_of_time(
    session: &Session,
    period: Option<(DateTime<Utc>, DateTime<Utc>)>,
) -> Option<Lack> {
    let held = (session.begins_at()?, session.ends_at()?);
    let zone = session.calendar().zone();
    let outside = |(from, until)| until <= held.0 || (from >= held.1 && from > held.0);
    if period.is_some_and(outside) {
        return Some(Lack::Outside { held, zone });
    }
    let late = session.as_of() - held.1;
    let days = late.num_minutes() as f64 / 1_440.0;
    (late > TimeDelta::days(1)).then_some(Lack::Stale { last_at: held.1, days, zone })
}

/// Instants at which the counting of a cluster saw nothing at all, a line each cluster.
pub(super) async fn blind(session: &Session) -> Result<Vec<Note>, Failure> {
    let text = "SELECT cluster, min(counted_at) AS first_at, max(counted_at) AS last_at, \
        sum(period_s) / 3600 AS hours FROM blind_counts GROUP BY cluster ORDER BY cluster";
    let zone = session.calendar().zone();
    let told = |row: &Row| {
        Some(Note::Blind {
            cluster: row.text("cluster"),
            first_at: row.instant("first_at")?,
            last_at: row.instant("last_at")?,
            hours: row.number("hours")?,
            zone,
        })
    };
    Ok(rows(&session.sql(text).await?).iter().filter_map(told).collect())
}

/// The same, told beside an answer.
pub(super) async fn tell_blind(session: &Session) -> Result<(), Failure> {
    for note in blind(session).await? {
        print::aside(&note.text(Language::En));
    }
    Ok(())
}

/// Hourly demand (held and waiting) of the fleet, or of each team, pool or workload, up to the
/// last whole hour. An hour that no source counted is not known; where all comes from jobs, an hour
/// without any is 0.
pub(super) async fn demand(session: &Session, by: Option<SplitBy>) -> Result<Vec<Series>, Failure> {
    demand_known(session, by).await?.map_err(|lack| lacking(&lack))
}

/// The same, or what the store lacks to tell it.
pub(super) async fn demand_known(session: &Session, by: Option<SplitBy>) -> Result<Known, Failure> {
    let found = series(session, demanded(session, by).await?.into_iter())?;
    let unknown = |series: &Series| series.values().iter().all(Option::is_none);
    if !found.is_empty() && !found.iter().all(unknown) {
        return Ok(Ok(found));
    }
    let some = if found.is_empty() { Lack::WholeHour } else { Lack::Counts };
    Ok(Err(lack_of_demand(session).await?.unwrap_or(some)))
}

/// A local hour of one name, and the GPUs that were known of it.
type Hour = (String, DateTime<Utc>, Option<f64>);

/// Demand in each local hour.
async fn demanded(session: &Session, by: Option<SplitBy>) -> Result<Vec<Hour>, Failure> {
    let by = by.map_or("fleet", SplitBy::name);
    let params: Params =
        [("by".to_owned(), by.to_owned()), ("step".to_owned(), "hour".to_owned())].into();
    let answer = session.query(&query::find("demand")?, &params).await?;
    let hour = |row: &Row| {
        let at = row.instant("bin_started_at")?;
        Some((row.text("asked_by")?, at, row.number("gpus_demand")))
    };
    Ok(rows(&answer).iter().filter_map(hour).collect())
}

/// Hourly load offered to the fleet, or to each pool: what capacity is planned on, since a backlog
/// that piles up is not a need for as many GPUs at once. Hours that nobody counted are not known.
/// Each name is told under the one that `place` makes of it.
pub(super) async fn offered(
    session: &Session,
    by: Option<SplitBy>,
    place: impl Fn(String) -> String,
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
    let known = demanded(session, by).await?;
    if known.iter().all(|(_, _, demand)| demand.is_none()) {
        demand(session, by).await?;
    }
    let mut hours: BTreeMap<(String, DateTime<Utc>), Option<f64>> = BTreeMap::new();
    for (name, at, demand) in known {
        let load = loads.get(&(name.clone(), at)).copied().unwrap_or(0.0);
        let told = hours.entry((place(name), at)).or_default();
        if demand.is_some() {
            *told = Some(told.unwrap_or(0.0) + load);
        }
    }
    series(session, hours.into_iter().map(|((name, at), load)| (name, at, load)))
}

/// What the load of the fleet, or of a pool, is made of.
pub(super) async fn load_basis(
    session: &Session,
    pool: Option<&str>,
) -> Result<LoadBasis, Failure> {
    let of = |column: &str| match pool {
        Some(pool) => format!(" AND {column} = '{}'", pool.replace('\'', "''")),
        None => String::new(),
    };
    let text = format!(
        "SELECT (SELECT count(*) FROM counts c WHERE (c.gpus_held IS NOT NULL \
         OR c.gpus_waiting IS NOT NULL){}) AS counted, (SELECT count(*) FROM attempts j \
         WHERE j.gpus_asked > 0{}) AS told",
        of("c.\"partition\""),
        of("coalesce(j.\"partition\", 'default')")
    );
    let found = rows(&session.sql(&text).await?);
    let is = |name| found.first().and_then(|row| row.count(name)).is_some_and(|rows| rows > 0);
    Ok(match (is("counted"), is("told")) {
        (true, false) => LoadBasis::HeldAndWaiting,
        (true, true) => LoadBasis::Both,
        (false, _) => LoadBasis::Offered,
    })
}

/// Series by name, none where no hour is told; one that is not over counts for nothing. Where a
/// zone shifts its clock by half an hour, local hours part the steps: a step is then the mean of
/// those that meet it, by the time in which they do.
fn series(session: &Session, hours: impl Iterator<Item = Hour>) -> Result<Vec<Series>, Failure> {
    let now = session.as_of().timestamp_millis();
    let zone = session.calendar().zone();
    let mut found: BTreeMap<String, Vec<(LocalBin, Option<f64>)>> = BTreeMap::new();
    for (name, at, gpus) in hours {
        let hour = LocalBin::at(BinUnit::HOUR, zone, at.timestamp_millis());
        if hour.ended_at <= now {
            found.entry(name).or_default().push((hour, gpus));
        }
    }
    let all = || found.values().flatten().map(|(hour, _)| hour);
    let first = all().map(|hour| hour.started_at).min();
    let (Some(first), Some(last)) = (first, all().map(|hour| hour.ended_at).max()) else {
        return Ok(Vec::new());
    };
    let steps = usize::try_from((last - first) / HOUR_MS).unwrap_or_default().max(1);
    let of = |(name, hours)| Ok(Series::new(name, first, HOUR_S, steps_of(hours, first, steps))?);
    found.into_iter().map(of).collect()
}

/// The mean of each step over the hours known in it.
fn steps_of(hours: Vec<(LocalBin, Option<f64>)>, first: i64, steps: usize) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0.0); steps];
    for (hour, gpus) in hours {
        let (from, until) = (hour.started_at - first, hour.ended_at - first);
        let touched = from.div_euclid(HOUR_MS)..=(until - 1).div_euclid(HOUR_MS);
        for step in touched {
            let met = until.min((step + 1) * HOUR_MS) - from.max(step * HOUR_MS);
            let sum = usize::try_from(step).ok().and_then(|step| sums.get_mut(step));
            if let (Some(gpus), Some(sum)) = (gpus, sum) {
                let part = met as f64 / HOUR_MS as f64;
                *sum = (sum.0 + gpus * part, sum.1 + part);
            }
        }
    }
    let mean = |(sum, time): (f64, f64)| (time > 0.0).then(|| sum / time);
    sums.into_iter().map(mean).collect()
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

/// `settings` with the starts of the local weeks around a load.
fn over_weeks(load: &Series, settings: PlanSettings, calendar: &Calendar) -> PlanSettings {
    let weeks = i64::try_from(settings.horizon_weeks.min(PLAN_WEEKS_MAX)).unwrap_or_default() + 1;
    let until = load.end_ms() + weeks * 7 * 24 * HOUR_MS;
    let week_starts_ms = calendar.week_starts_ms(load.start_ms(), until);
    PlanSettings { week_starts_ms, ..settings }
}

/// The level of the fullest local week of a load, in GPUs.
fn fullest_week(load: &Series, calendar: &Calendar) -> Result<Option<f64>, ForecastError> {
    let settings = over_weeks(load, PlanSettings::default(), calendar);
    loadline_forecast::fullest_week(load, &settings)
}

/// The plan of a load over local weeks, to be ordered on a local day.
pub(super) fn planned(
    load: &Series,
    capacity_gpus: f64,
    settings: PlanSettings,
    calendar: &Calendar,
) -> Result<Plan, ForecastError> {
    let lead_time_days = settings.lead_time_days;
    let settings = over_weeks(load, settings, calendar);
    let mut plan = loadline_forecast::plan(load, capacity_gpus, &settings)?;
    // Days before are days of the calendar, of which one in spring has 23 hours.
    plan.order_by_ms = plan.needed_ms.map(|at| calendar.days_before_ms(at, lead_time_days));
    plan.order_late = plan.order_by_ms.is_some_and(|at| at < load.end_ms());
    Ok(plan)
}

#[cfg(test)]
mod tests;
