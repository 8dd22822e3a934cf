//! The weeks of a plan: which lie behind, which ahead, and at what level each was.

use super::PlanSettings;
use super::trend::Past;
use crate::error::ForecastError;
use crate::quantile::of_sorted;
use crate::series::Series;

const WEEK_MS: i64 = 7 * 86_400_000;
/// Share of a week that must be seen for it to count as whole.
const WHOLE_RATIO: f64 = 0.9;

/// Starts of weeks in a row, and which of them is the first ahead.
#[derive(Debug)]
pub(super) struct Weeks {
    starts_ms: Vec<i64>,
    ahead: usize,
}

impl Weeks {
    /// The weeks that are given, or weeks of seven days counted back from the end of the series.
    /// The week in which the series ends lies behind where half of it or more is over.
    pub(super) fn of(series: &Series, settings: &PlanSettings) -> Result<Self, ForecastError> {
        let end_ms = series.end_ms();
        let starts_ms = match settings.week_starts_ms.as_slice() {
            [] => {
                let behind = (end_ms - series.start_ms()) / WEEK_MS;
                let ahead = settings.horizon_weeks as i64;
                (-behind - 1..=ahead).map(|week| end_ms + week * WEEK_MS).collect()
            }
            given => given.to_vec(),
        };
        if let Some(pair) = starts_ms.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(setting(pair[1], "each later than the one before it"));
        }
        let current = starts_ms.partition_point(|start| *start < end_ms);
        let over =
            match (current.checked_sub(1).map(|week| starts_ms[week]), starts_ms.get(current)) {
                (Some(start), Some(next)) => 2 * (end_ms - start) >= next - start,
                _ => return Err(setting(end_ms, "on both sides of the end of the series")),
            };
        Ok(Self { starts_ms, ahead: if over { current } else { current - 1 } })
    }

    /// Each week behind with its level: the 90 % quantile of its steps. A week seen for less than
    /// half is left out, and so is all before the first demand.
    pub(super) fn levels(&self, series: &Series) -> Vec<Past> {
        let step_ms = i64::from(series.step_s()) * 1_000;
        let first = crate::basis::first_demand(series);
        let step = |at_ms: i64| {
            let steps = (at_ms - series.start_ms() + step_ms - 1).div_euclid(step_ms);
            usize::try_from(steps).unwrap_or(0).min(series.len())
        };
        let level = |week: &[i64]| {
            let (from, until) = (step(week[0]), step(week[1]));
            let mut seen: Vec<f64> =
                series.values()[from..until].iter().flatten().copied().collect();
            seen.sort_by(f64::total_cmp);
            let whole = ((week[1] - week[0]) / step_ms).max(1) as usize;
            let counts = until > first && 2 * seen.len() >= whole;
            let gpus = of_sorted(&seen, 0.9).filter(|_| counts)?;
            // Before the first demand there is nothing to see.
            let begun = from >= first;
            let whole = begun && seen.len() as f64 >= WHOLE_RATIO * whole as f64;
            Some(Past { week_ms: week[0], place: self.place(week[0]), gpus, whole })
        };
        self.starts_ms[..=self.ahead].windows(2).filter_map(level).collect()
    }

    /// Weeks after the last one behind.
    fn place(&self, start_ms: i64) -> f64 {
        let week = self.starts_ms.partition_point(|start| *start < start_ms);
        week as f64 + 1.0 - self.ahead as f64
    }

    /// Starts of the first weeks ahead.
    pub(super) fn ahead(&self, weeks: usize) -> Result<&[i64], ForecastError> {
        let starts = &self.starts_ms[self.ahead..];
        starts.get(..weeks).ok_or_else(|| {
            setting(starts.last().copied().unwrap_or_default(), "up to the end of the horizon")
        })
    }
}

fn setting(at_ms: i64, rule: &'static str) -> ForecastError {
    let value = crate::error::instant(at_ms, 0);
    ForecastError::Setting { what: "starts of weeks", value, rule }
}
