//! Demand over the next steps, as quantiles, beside the seasonal naive.

use crate::basis::{self, Basis, Reason};
use crate::error::ForecastError;
use crate::history::History;
use crate::knots::Knots;
use crate::quantile::{QuantileForecast, QuantileLevel, check_levels};
use crate::residual::{Residuals, Spread, around};
use crate::series::Series;
use crate::{naive, stack};

/// Longest horizon in steps: a quarter of hours.
pub const HORIZON_STEPS_MAX: usize = 2_208;

/// A named column of the calendar, e.g. `working`, `holiday` (0 or 1) or `hour_of_week` (0-167,
/// local; it turns the Fourier terms to local time).
#[derive(Debug, Clone, PartialEq)]
pub struct CalendarColumn {
    /// Name.
    pub name: String,
    /// One finite value for each step of the history and of the horizon behind it.
    pub values: Vec<f64>,
}

/// Which model to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelChoice {
    /// The best that the history allows; falls back with the reason.
    #[default]
    Auto,
    /// The elastic net, or an error that says how much history is missing.
    WeeklyElasticNet,
    /// The seasonal naive.
    SeasonalNaive,
}

/// How far and how finely to forecast.
#[derive(Debug, Clone, PartialEq)]
pub struct ForecastSettings {
    /// Steps ahead, 1 to [`HORIZON_STEPS_MAX`].
    pub horizon_steps: usize,
    /// Quantile levels, rising.
    pub levels: Vec<QuantileLevel>,
    /// Model.
    pub model: ModelChoice,
}

impl Default for ForecastSettings {
    fn default() -> Self {
        Self {
            horizon_steps: 168,
            levels: QuantileLevel::defaults(),
            model: ModelChoice::default(),
        }
    }
}

/// A forecast, its benchmark, and what both rest on.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// Name of the series.
    pub series: String,
    /// Instant it was made from, milliseconds UTC; step 0 begins here.
    pub origin_ms: i64,
    /// Length of a step in seconds.
    pub step_s: u32,
    /// Demand by step and level.
    pub quantiles: QuantileForecast,
    /// The seasonal naive with its own intervals.
    pub naive: QuantileForecast,
    /// Model behind `quantiles`.
    pub basis: Basis,
    /// What a reader must know, in words through `Display`.
    pub reasons: Vec<Reason>,
}

impl Forecast {
    /// Start of a step ahead, milliseconds UTC.
    #[must_use]
    pub fn step_start_ms(&self, step: usize) -> i64 {
        self.origin_ms + step as i64 * i64::from(self.step_s) * 1000
    }

    /// The same without its first `steps`, for steps that had begun when it was made; `None` where
    /// none is left.
    #[must_use]
    pub fn after(&self, steps: usize) -> Option<Self> {
        Some(Self {
            origin_ms: self.step_start_ms(steps),
            quantiles: self.quantiles.after(steps)?,
            naive: self.naive.after(steps)?,
            ..self.clone()
        })
    }
}

/// Forecasts the steps after the end of `series`.
///
/// # Input
/// `calendar` columns begin with the series and reach at least to the end of the horizon.
///
/// # Errors
/// [`ForecastError::NoReadings`], [`ForecastError::TooLittleHistory`] (only for a model asked for
/// by name), [`ForecastError::Calendar`], [`ForecastError::Setting`].
///
/// # Example
/// ```
/// use loadline_forecast::{Basis, ForecastSettings, QuantileLevel, Series, forecast};
///
/// let week = |i: usize| Some(if (i % 24) < 8 { 20.0 } else { 60.0 });
/// let series = Series::new("fleet", 0, 3600, (0..24 * 5).map(week).collect())?;
/// let settings = ForecastSettings { horizon_steps: 24, ..Default::default() };
/// let answer = forecast(&series, &[], &settings)?;
/// assert_eq!(answer.basis, Basis::SeasonalNaive); // five days are too few for a weekly pattern
/// assert_eq!(answer.quantiles.at(3, QuantileLevel::MEDIAN), Some(20.0));
/// assert_eq!(
///     answer.reasons[0].to_string(),
///     "5.0 days of history, 14 needed to learn a weekly pattern"
/// );
/// # Ok::<(), loadline_forecast::ForecastError>(())
/// ```
pub fn forecast(
    series: &Series,
    calendar: &[CalendarColumn],
    settings: &ForecastSettings,
) -> Result<Forecast, ForecastError> {
    check(series, calendar, settings)?;
    let history = History::new(series).ok_or_else(|| ForecastError::NoReadings {
        series: series.name().to_owned(),
        steps: series.len(),
    })?;
    let knots = Knots::new(settings.horizon_steps);
    let naive = naive_forecast(&history, &knots, settings)?;
    let mut reasons = Vec::new();
    let chosen = choose(series, &history, settings.model, &mut reasons)?;
    reasons.extend(basis::judge(series));
    let mut basis = chosen;
    let quantiles = match chosen {
        Basis::WeeklyElasticNet => stack::forecast(series, &history, calendar, &knots, settings)?
            .unwrap_or_else(|| {
                basis = Basis::SeasonalNaive;
                naive.clone()
            }),
        Basis::SeasonalNaive => naive.clone(),
        Basis::Level => level_forecast(&history, &knots, settings)?,
    };
    Ok(Forecast {
        series: series.name().to_owned(),
        origin_ms: series.end_ms(),
        step_s: series.step_s(),
        quantiles,
        naive,
        basis,
        reasons,
    })
}

fn check(
    series: &Series,
    calendar: &[CalendarColumn],
    settings: &ForecastSettings,
) -> Result<(), ForecastError> {
    check_levels(&settings.levels)?;
    if !(1..=HORIZON_STEPS_MAX).contains(&settings.horizon_steps) {
        return Err(ForecastError::Setting {
            what: "horizon in steps",
            value: settings.horizon_steps.to_string(),
            rule: "1 to 2208",
        });
    }
    let need = series.len() + settings.horizon_steps;
    for column in calendar {
        let reason = if column.values.len() < need {
            format!("{} values, {need} needed", column.values.len())
        } else if let Some(i) = column.values[..need].iter().position(|v| !v.is_finite()) {
            format!("value {i} is not finite")
        } else {
            continue;
        };
        return Err(ForecastError::Calendar {
            column: column.name.clone(),
            series: series.name().to_owned(),
            reason,
        });
    }
    Ok(())
}

/// The model the history allows.
fn choose(
    series: &Series,
    history: &History,
    model: ModelChoice,
    reasons: &mut Vec<Reason>,
) -> Result<Basis, ForecastError> {
    let (have, need) = (history.len(), history.steps_needed());
    let varies = history.filled.iter().any(|v| (v - history.filled[0]).abs() > 1e-9 * history.most);
    let naive = if have >= 2 * history.season { Basis::SeasonalNaive } else { Basis::Level };
    if have < need {
        if model == ModelChoice::WeeklyElasticNet {
            return Err(ForecastError::TooLittleHistory {
                model: Basis::WeeklyElasticNet.name(),
                series: series.name().to_owned(),
                have_days: series.days(have) as u32,
                need_days: series.days(need).ceil() as u32,
                from_ms: series.step_start_ms(history.from),
                until_ms: series.end_ms(),
                why: "two whole weeks are needed for the weekly lags",
            });
        }
        let (have_days, need_days) = (series.days(have), series.days(need));
        reasons.push(Reason::TooLittleHistory { have_days, need_days });
        return Ok(naive);
    }
    let learnable = varies && history.seen_ratio() >= 0.5 && series.step_s() <= 86_400;
    let wanted = model != ModelChoice::SeasonalNaive;
    Ok(if learnable && wanted { Basis::WeeklyElasticNet } else { naive })
}

fn naive_forecast(
    history: &History,
    knots: &Knots,
    settings: &ForecastSettings,
) -> Result<QuantileForecast, ForecastError> {
    let last = history.len() - 1;
    let path: Vec<f64> =
        (1..=settings.horizon_steps).map(|h| naive::point(history, last, h)).collect();
    spread(&path, history, knots, &naive::residuals(history, knots), settings)
}

fn level_forecast(
    history: &History,
    knots: &Knots,
    settings: &ForecastSettings,
) -> Result<QuantileForecast, ForecastError> {
    let path = vec![naive::level(history); settings.horizon_steps];
    spread(&path, history, knots, &naive::level_residuals(history, knots), settings)
}

fn spread(
    path: &[f64],
    history: &History,
    knots: &Knots,
    residuals: &Residuals,
    settings: &ForecastSettings,
) -> Result<QuantileForecast, ForecastError> {
    let effective =
        |k: usize| history.len() as f64 / knots.end(k).max(history.season / 2).max(1) as f64;
    let spread = Spread { scale: 1.0, effective: &effective, most: history.cap() };
    around(path, &settings.levels, knots, residuals, &spread)
}
