//! How good forecasts would have been: rolling origins, scored against what came.

use crate::basis::{Basis, first_demand};
use crate::error::ForecastError;
use crate::forecast::{CalendarColumn, Forecast, ForecastSettings, forecast};
use crate::quantile::{QuantileForecast, QuantileLevel, pinball_loss};
use crate::series::Series;

/// Most origins of one backtest.
pub const ORIGINS_MAX: usize = 200;

/// Scores of the model and of the seasonal naive over some steps ahead.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Score {
    /// Last step ahead that counts (from 1).
    pub horizon_steps: usize,
    /// Forecast steps scored; gaps are not.
    pub steps: usize,
    /// Mean of what came, in GPUs.
    pub mean_gpus: f64,
    /// Mean absolute error of the median, in GPUs.
    pub mae_gpus: f64,
    /// The same of the seasonal naive.
    pub naive_mae_gpus: f64,
    /// Mean over levels of twice the pinball loss, in GPUs.
    pub pinball_gpus: f64,
    /// The same of the seasonal naive.
    pub naive_pinball_gpus: f64,
    /// Share of steps inside the 80 % interval (p10 to p90).
    pub coverage_80_ratio: f64,
    /// Share of steps inside the 95 % interval (p2.5 to p97.5).
    pub coverage_95_ratio: f64,
    /// The 80 % coverage of the seasonal naive.
    pub naive_coverage_80_ratio: f64,
}

/// Why no skill is stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoSkill {
    /// The benchmark misses by next to nothing: a ratio to that says nothing of the model.
    #[error("the benchmark is exact")]
    BenchmarkExact,
    /// Nothing came to score against.
    #[error("no outcome was seen")]
    NothingScored,
}

/// A benchmark that misses by less than this share of the mean demand is exact.
const EXACT_RATIO: f64 = 1e-3;

impl Score {
    /// `1 - pinball / naive pinball`: above 0 beats the naive.
    ///
    /// # Errors
    /// [`NoSkill`] where that ratio would say nothing.
    pub fn skill(&self) -> Result<f64, NoSkill> {
        self.against(self.pinball_gpus, self.naive_pinball_gpus)
    }

    /// The same for the absolute error of the median.
    ///
    /// # Errors
    /// As [`Score::skill`].
    pub fn skill_mae(&self) -> Result<f64, NoSkill> {
        self.against(self.mae_gpus, self.naive_mae_gpus)
    }

    /// The seasonal naive did better than the model.
    #[must_use]
    pub fn naive_is_better(&self) -> bool {
        match self.skill() {
            Ok(skill) => skill < 0.0,
            Err(_) => self.pinball_gpus > self.naive_pinball_gpus,
        }
    }

    fn against(&self, model: f64, naive: f64) -> Result<f64, NoSkill> {
        match self.steps {
            0 => Err(NoSkill::NothingScored),
            _ if naive <= EXACT_RATIO * self.mean_gpus => Err(NoSkill::BenchmarkExact),
            _ => Ok(1.0 - model / naive),
        }
    }
}

/// What a backtest found.
#[derive(Debug, Clone, PartialEq)]
pub struct Backtest {
    /// Origins, as indices of the series, rising strictly.
    pub origins: Vec<usize>,
    /// Forecasts, one an origin.
    pub forecasts: Vec<Forecast>,
    /// Over the whole horizon.
    pub overall: Score,
    /// Over the steps up to 1, 6, 24, 72, 168 ... and the whole horizon.
    pub by_horizon: Vec<Score>,
}

impl Backtest {
    /// Share of outcomes inside the 80 % interval of what is used: the seasonal naive, or the model.
    #[must_use]
    pub fn coverage_80_ratio(&self, used: Basis) -> f64 {
        match used {
            Basis::SeasonalNaive => self.overall.naive_coverage_80_ratio,
            Basis::WeeklyElasticNet | Basis::Level => self.overall.coverage_80_ratio,
        }
    }
}

/// Evenly spaced origins that each leave a whole horizon of truth.
///
/// At least 25 steps apart where the history allows, never a whole number of seasons, so that the
/// hour of day varies. The history of an origin begins with the first demand: before it there is
/// nothing to learn from. Empty where the series is too short to leave any history.
#[must_use]
pub fn origins(series: &Series, horizon_steps: usize, count: usize) -> Vec<usize> {
    let season = series.season_short();
    let earliest = first_demand(series) + (2 * series.season_long()).max(2 * season) + season;
    let Some(room) = series.len().checked_sub(horizon_steps + earliest) else {
        return Vec::new();
    };
    let count = count.clamp(1, ORIGINS_MAX);
    let mut stride = (room / count.saturating_sub(1).max(1)).max(season + 1);
    if season > 1 && stride.is_multiple_of(season) {
        stride -= 1;
    }
    let last = series.len() - horizon_steps;
    let mut origins: Vec<usize> =
        (0..count).map_while(|k| last.checked_sub(k * stride).filter(|o| *o >= earliest)).collect();
    origins.reverse();
    origins
}

/// Forecasts from each origin and scores against what came.
///
/// # Guarantees
/// A forecast sees the series before its origin and nothing at or after it.
///
/// # Errors
/// [`ForecastError::Origin`] unless origins rise strictly inside the series, at most
/// [`ORIGINS_MAX`]; else as [`forecast`].
pub fn backtest(
    series: &Series,
    calendar: &[CalendarColumn],
    settings: &ForecastSettings,
    origins: &[usize],
) -> Result<Backtest, ForecastError> {
    check(series, origins)?;
    let settings =
        ForecastSettings { levels: with_intervals(&settings.levels), ..settings.clone() };
    let mut forecasts = Vec::with_capacity(origins.len());
    for &origin in origins {
        let horizon_steps = settings.horizon_steps.min(series.len() - origin);
        let settings = ForecastSettings { horizon_steps, ..settings.clone() };
        forecasts.push(forecast(&series.before(origin), calendar, &settings)?);
    }
    let cuts = [1, 6, 24, 72, 168, 336].into_iter().filter(|h| *h < settings.horizon_steps);
    let by_horizon: Vec<Score> = cuts
        .chain([settings.horizon_steps])
        .map(|cut| score(series, origins, &forecasts, cut))
        .collect();
    let overall = *by_horizon.last().expect("the whole horizon is always scored");
    Ok(Backtest { origins: origins.to_vec(), forecasts, overall, by_horizon })
}

fn check(series: &Series, origins: &[usize]) -> Result<(), ForecastError> {
    let refuse = |origin, rule| {
        Err(ForecastError::Origin { series: series.name().to_owned(), origin, rule })
    };
    if origins.is_empty() || origins.len() > ORIGINS_MAX {
        return refuse(origins.len(), "1 to 200 origins are needed");
    }
    if let Some(pair) = origins.windows(2).find(|pair| pair[0] >= pair[1]) {
        return refuse(pair[1], "origins must rise strictly");
    }
    match origins.iter().find(|o| **o == 0 || **o >= series.len()) {
        Some(&origin) => refuse(origin, "an origin must leave history before and truth after it"),
        None => Ok(()),
    }
}

/// The asked levels and those of the two intervals.
fn with_intervals(levels: &[QuantileLevel]) -> Vec<QuantileLevel> {
    let own = QuantileLevel::defaults();
    let ends = own.iter().filter(|l| [25, 100, 500, 900, 975].contains(&l.per_mille()));
    let mut all: Vec<QuantileLevel> = levels.iter().chain(ends).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn score(series: &Series, origins: &[usize], forecasts: &[Forecast], cut: usize) -> Score {
    let mut score = Score { horizon_steps: cut, ..Score::default() };
    for (&origin, forecast) in origins.iter().zip(forecasts) {
        let truth = series.values()[origin..].iter().take(cut.min(forecast.quantiles.steps()));
        for (step, actual) in truth.enumerate().filter_map(|(i, v)| Some((i, (*v)?))) {
            let (model, naive) = (&forecast.quantiles, &forecast.naive);
            score.steps += 1;
            score.mean_gpus += actual;
            score.mae_gpus += miss(model, step, actual);
            score.naive_mae_gpus += miss(naive, step, actual);
            score.pinball_gpus += pinball(model, step, actual);
            score.naive_pinball_gpus += pinball(naive, step, actual);
            score.coverage_80_ratio += inside(model, step, actual, 100, 900);
            score.coverage_95_ratio += inside(model, step, actual, 25, 975);
            score.naive_coverage_80_ratio += inside(naive, step, actual, 100, 900);
        }
    }
    let n = score.steps.max(1) as f64;
    for sum in [
        &mut score.mean_gpus,
        &mut score.mae_gpus,
        &mut score.naive_mae_gpus,
        &mut score.pinball_gpus,
        &mut score.naive_pinball_gpus,
        &mut score.coverage_80_ratio,
        &mut score.coverage_95_ratio,
        &mut score.naive_coverage_80_ratio,
    ] {
        *sum /= n;
    }
    score
}

fn miss(forecast: &QuantileForecast, step: usize, actual: f64) -> f64 {
    forecast.at(step, QuantileLevel::MEDIAN).map_or(0.0, |median| (median - actual).abs())
}

/// Twice the pinball loss, averaged over the levels: approaches the CRPS with many levels.
fn pinball(forecast: &QuantileForecast, step: usize, actual: f64) -> f64 {
    let row = forecast.levels().iter().zip(forecast.row(step));
    let sum: f64 = row.map(|(level, gpus)| 2.0 * pinball_loss(*level, *gpus, actual)).sum();
    sum / forecast.levels().len() as f64
}

fn inside(forecast: &QuantileForecast, step: usize, actual: f64, low: u16, high: u16) -> f64 {
    let at = |per_mille| {
        let level = QuantileLevel::new(per_mille).expect("interval ends lie in 1 to 999");
        forecast.at(step, level)
    };
    let covered = at(low).zip(at(high)).is_some_and(|(l, h)| l <= actual && actual <= h);
    f64::from(u8::from(covered))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_origin_lies_before_the_series_began() {
        // Breaks if a team that is new is forecast from hours in which nobody knew of it: 35 days,
        // of which the last `known` hours are seen.
        let of = |known: usize| {
            let gpus = |hour: usize| (hour >= 840 - known).then_some((hour % 24) as f64);
            Series::new("new", 0, 3_600, (0..840).map(gpus).collect()).unwrap()
        };
        let settings = ForecastSettings { horizon_steps: 24, ..ForecastSettings::default() };
        for known in [12, 240, 383] {
            // 15 days of history and one of truth are 384 hours.
            assert_eq!(origins(&of(known), 24, 8), Vec::<usize>::new(), "{known}");
            assert!(forecast(&of(known), &[], &settings).is_ok(), "{known}");
        }
        for known in [480, 600] {
            let at = origins(&of(known), 24, 8);
            assert!(at[0] >= 840 - known + 360, "{at:?}");
            backtest(&of(known), &[], &settings, &at).unwrap();
        }
    }

    #[test]
    fn no_skill_is_stated_against_an_exact_benchmark() {
        // Breaks if a miss of 1e-16 GPUs makes a skill of -4e15 %.
        let score = |naive_pinball_gpus| Score {
            steps: 9,
            mean_gpus: 60.0,
            pinball_gpus: 0.6,
            naive_pinball_gpus,
            ..Score::default()
        };
        for exact in [0.0, 1e-16, 0.06] {
            assert_eq!(score(exact).skill(), Err(NoSkill::BenchmarkExact), "{exact}");
            assert!(score(exact).naive_is_better());
        }
        assert_eq!(score(1.2).skill(), Ok(0.5));
        assert_eq!(NoSkill::BenchmarkExact.to_string(), "the benchmark is exact");
        assert_eq!(Score::default().skill(), Err(NoSkill::NothingScored));
        // A rhythm that repeats to the last digit.
        let hour = |i: usize| Some(40.1 + 3.7 * ((i % 168) as f64 * 0.7).sin());
        let series = Series::new("fleet", 0, 3_600, (0..8 * 168).map(hour).collect()).unwrap();
        let settings = ForecastSettings { horizon_steps: 48, ..ForecastSettings::default() };
        let at = origins(&series, 48, 3);
        let tested = backtest(&series, &[], &settings, &at).unwrap();
        let skill = tested.overall.skill();
        assert!(skill.is_err() || skill.is_ok_and(|skill| skill.abs() < 10.0), "{skill:?}");
    }
}
