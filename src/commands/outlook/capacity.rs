//! How many GPUs can be given to jobs now, and how a forecast stands against them.

use std::collections::BTreeMap;

use chrono::DateTime;
use loadline_engine::Session;
use loadline_engine::calendar::Calendar;
use loadline_forecast::{Forecast, QuantileLevel};

use super::super::row::rows;
use super::{lack_of_demand, lacking, local};
use crate::failure::Failure;
use crate::report::Language;
use crate::report::headroom::{Headroom, Passing};
use crate::report::lack::Lack;

/// GPUs of a pool, or of the fleet, at the end of the store.
#[derive(Debug, Clone)]
pub(in crate::commands) struct Capacity {
    /// GPUs that can be given to jobs.
    pub(in crate::commands) gpus: f64,
    /// How that is known: config, inventory, counts or peak-held, which is a floor.
    pub(in crate::commands) source: String,
    /// GPUs that are installed besides and down.
    pub(in crate::commands) gpus_down: f64,
    /// GPUs of these that are only known from below, in pools that nothing else tells.
    pub(in crate::commands) gpus_floor: f64,
}

impl Capacity {
    /// Only known from below, in whole or in part: the most GPUs that jobs ever held.
    pub(in crate::commands) fn is_floor(&self) -> bool {
        self.source == "peak-held"
    }

    /// What is lacking where it is only known from below.
    pub(in crate::commands) fn lack(&self) -> Lack {
        let gpus_known = self.gpus - self.gpus_floor;
        Lack::Capacity { gpus_known, gpus_held_most: self.gpus_floor }
    }
}

/// The fleet's capacity, and that of each pool.
pub(in crate::commands) type Capacities = (Capacity, BTreeMap<String, Capacity>);

/// Capacity of the fleet and of each pool in the latest hour; `None` where nothing tells it and no
/// job ever held a GPU, which would make the floor 0.
pub(in crate::commands) async fn capacity_known(
    session: &Session,
) -> Result<Option<Capacities>, Failure> {
    let text = "WITH latest AS (SELECT coalesce(\"partition\", 'default') AS pool, gpus_available, \
        gpus_down, source FROM capacity_hourly \
        WHERE hour_started_at = (SELECT max(hour_started_at) FROM capacity_hourly)) \
        SELECT pool, sum(gpus_available) AS gpus, max(source) AS source, \
        sum(gpus_available) FILTER (WHERE source = 'peak-held') AS gpus_floor, \
        sum(gpus_down) AS gpus_down \
        FROM latest GROUP BY GROUPING SETS ((pool), ())";
    let mut fleet = None;
    let mut pools = BTreeMap::new();
    for row in rows(&session.sql(text).await?) {
        let (Some(gpus), Some(source)) = (row.number("gpus"), row.text("source")) else { continue };
        let gpus_floor = row.number("gpus_floor").unwrap_or(0.0);
        let gpus_down = row.number("gpus_down").unwrap_or(0.0);
        let capacity = Capacity { gpus, source, gpus_down, gpus_floor };
        match row.text("pool") {
            Some(pool) => drop(pools.insert(pool, capacity)),
            None => fleet = Some(capacity),
        }
    }
    let told = fleet.filter(|fleet| !fleet.is_floor() || fleet.gpus > 0.0);
    Ok(told.map(|fleet| (fleet, pools)))
}

/// The same, where nothing can be said without it.
pub(in crate::commands) async fn capacity(session: &Session) -> Result<Capacities, Failure> {
    if let Some(known) = capacity_known(session).await? {
        return Ok(known);
    }
    let capacity = Lack::CAPACITY;
    Err(match lack_of_demand(session).await? {
        // What is missing first is told first.
        Some(demand) => lacking(&demand).detail(capacity.with_remedy(Language::En)),
        None => lacking(&capacity),
    })
}

/// Where the median and the 90 % quantile of `forecast` lie above `capacity`.
pub(in crate::commands) fn headroom(
    forecast: &Forecast,
    capacity: &Capacity,
    calendar: &Calendar,
) -> Headroom {
    let steps = forecast.quantiles.steps();
    let passing = |per_mille| {
        let level = QuantileLevel::new(per_mille).ok()?;
        let above = |step: &usize| {
            let gpus = forecast.quantiles.at(*step, level);
            gpus.is_some_and(|gpus| gpus > capacity.gpus * (1.0 + 1e-9))
        };
        let above: Vec<usize> = (0..steps).filter(above).collect();
        let first_ms = forecast.step_start_ms(*above.first()?);
        let first_at = local(DateTime::from_timestamp_millis(first_ms)?, calendar.zone());
        Some(Passing { first_at, steps: above.len() })
    };
    Headroom {
        gpus_available: capacity.gpus,
        gpus_down: capacity.gpus_down,
        source: capacity.source.clone(),
        steps,
        p50: passing(500),
        p90: passing(900),
        zone: calendar.zone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_forecast::{ForecastSettings, Series, forecast};

    #[test]
    fn steps_above_capacity_are_counted_from_the_first() {
        // A rhythm of 8 and 20 GPUs: at 10, the median is above for half of each day.
        let gpus = |hour: usize| if hour % 24 < 12 { 8.0 } else { 20.0 };
        let series = Series::new("fleet", 0, 3_600, (0..72).map(|h| Some(gpus(h))).collect());
        let settings = ForecastSettings { horizon_steps: 48, ..ForecastSettings::default() };
        let made = forecast(&series.unwrap(), &[], &settings).unwrap();
        let calendar = Calendar::default();
        let at = |gpus| Capacity {
            gpus,
            source: "inventory".to_owned(),
            gpus_down: 0.0,
            gpus_floor: 0.0,
        };
        let told = headroom(&made, &at(10.0), &calendar);
        let noon = DateTime::from_timestamp(84 * 3_600, 0).unwrap().fixed_offset();
        assert_eq!(told.p50, Some(Passing { first_at: noon, steps: 24 }));
        assert_eq!(told.p90.map(|p90| p90.first_at <= noon && p90.steps >= 24), Some(true));
        // As many as there are is not more than there are.
        assert_eq!(headroom(&made, &at(20.0), &calendar).p50, None);
        assert_eq!(headroom(&made, &at(0.0), &calendar).p50.map(|p50| p50.steps), Some(48));
    }
}
