//! Quantile levels, quantile forecasts and the score of one quantile.

use std::fmt;

use crate::error::ForecastError;

/// A probability in whole per-mille, 1 to 999, so that two levels can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuantileLevel(u16);

impl QuantileLevel {
    /// The median.
    pub const MEDIAN: Self = Self(500);

    /// Level of `per_mille` thousandths.
    ///
    /// # Errors
    /// [`ForecastError::Setting`] unless it lies in 1 to 999.
    pub fn new(per_mille: u16) -> Result<Self, ForecastError> {
        if (1..=999).contains(&per_mille) {
            return Ok(Self(per_mille));
        }
        Err(ForecastError::Setting {
            what: "quantile level in per-mille",
            value: per_mille.to_string(),
            rule: "1 to 999",
        })
    }

    /// The levels shown by default: 2.5, 10, 20 to 80, 90 and 97.5 %.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        [25, 100, 200, 300, 400, 500, 600, 700, 800, 900, 975].map(Self).to_vec()
    }

    /// Whole per-mille.
    #[must_use]
    pub fn per_mille(self) -> u16 {
        self.0
    }

    /// As a ratio in (0, 1).
    #[must_use]
    pub fn ratio(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl fmt::Display for QuantileLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ratio())
    }
}

/// GPUs in demand at each future step, as quantiles.
///
/// # Shape
/// `gpus` has one row per step ahead and one column per level: `(steps, levels)`,
/// row-major. Row `0` covers the step that begins at the forecast origin.
///
/// # Units
/// GPUs held at the same time, averaged over the step. Times the step in hours
/// gives GPU-hours.
///
/// # Guarantees
/// Checked by [`QuantileForecast::new`], so a reader may rely on them: levels
/// rise strictly inside (0, 1); every value is finite and at least 0; no row
/// falls from left to right (quantiles never cross). Nothing is clipped at
/// capacity: demand above it is what a plan is for.
///
/// # Source
/// Quantiles as in Koenker and Bassett, "Regression Quantiles", Econometrica 46 (1978).
///
/// # Example
/// ```
/// use loadline_forecast::{QuantileForecast, QuantileLevel};
///
/// let [p50, p90] = [QuantileLevel::new(500)?, QuantileLevel::new(900)?];
/// let forecast = QuantileForecast::new(vec![p50, p90], vec![310.0, 352.0, 305.0, 349.0])?;
/// assert_eq!(forecast.at(1, p90), Some(349.0));
///
/// let crossed = QuantileForecast::new(vec![p50, p90], vec![310.0, 290.0]);
/// assert_eq!(
///     crossed.unwrap_err().to_string(),
///     "quantiles cross at step 0: level 0.9 is 290 GPUs, below 310 at level 0.5",
/// );
/// # Ok::<(), loadline_forecast::ForecastError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct QuantileForecast {
    levels: Vec<QuantileLevel>,
    gpus: Vec<f64>,
}

impl QuantileForecast {
    /// Checks and keeps a forecast.
    ///
    /// # Errors
    /// [`ForecastError::Shape`], [`ForecastError::Setting`] (levels that do not rise),
    /// [`ForecastError::Value`] or [`ForecastError::Crossed`].
    pub fn new(levels: Vec<QuantileLevel>, gpus: Vec<f64>) -> Result<Self, ForecastError> {
        check_levels(&levels)?;
        if gpus.is_empty() || !gpus.len().is_multiple_of(levels.len()) {
            return Err(ForecastError::Shape { values: gpus.len(), levels: levels.len() });
        }
        for (step, row) in gpus.chunks(levels.len()).enumerate() {
            check_row(step, &levels, row)?;
        }
        Ok(Self { levels, gpus })
    }

    /// Levels, rising.
    #[must_use]
    pub fn levels(&self) -> &[QuantileLevel] {
        &self.levels
    }

    /// Number of steps ahead.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.gpus.len() / self.levels.len()
    }

    /// All levels of one step, rising; empty past the horizon.
    #[must_use]
    pub fn row(&self, step: usize) -> &[f64] {
        let n = self.levels.len();
        self.gpus.get(step * n..(step + 1) * n).unwrap_or(&[])
    }

    /// GPUs at `step` and `level`, where both are in the forecast.
    #[must_use]
    pub fn at(&self, step: usize, level: QuantileLevel) -> Option<f64> {
        let column = self.levels.iter().position(|l| *l == level)?;
        self.row(step).get(column).copied()
    }

    /// GPUs at `step` and any `level`, drawn straight between the two nearest levels of the
    /// forecast and held flat outside them.
    #[must_use]
    pub fn between(&self, step: usize, level: QuantileLevel) -> Option<f64> {
        let row = self.row(step);
        let above = self.levels.partition_point(|l| *l < level);
        match (above.checked_sub(1), self.levels.get(above)) {
            (_, None) => row.last().copied(),
            (None, Some(_)) => row.first().copied(),
            (Some(below), Some(high)) => {
                let low = self.levels[below].ratio();
                let part = (level.ratio() - low) / (high.ratio() - low);
                let (a, b) = (*row.get(below)?, *row.get(above)?);
                Some(a + part * (b - a))
            }
        }
    }

    /// The same without its first `steps`; `None` where none is left.
    #[must_use]
    pub fn after(&self, steps: usize) -> Option<Self> {
        let gpus = self.gpus.get(steps * self.levels.len()..).filter(|gpus| !gpus.is_empty())?;
        Some(Self { levels: self.levels.clone(), gpus: gpus.to_vec() })
    }

    /// One level over all steps.
    #[must_use]
    pub fn path(&self, level: QuantileLevel) -> Vec<f64> {
        (0..self.steps()).filter_map(|step| self.between(step, level)).collect()
    }
}

/// Levels rise strictly and there is at least one.
pub(crate) fn check_levels(levels: &[QuantileLevel]) -> Result<(), ForecastError> {
    if !levels.is_empty() && levels.windows(2).all(|pair| pair[0] < pair[1]) {
        return Ok(());
    }
    Err(ForecastError::Setting {
        what: "quantile levels",
        value: levels.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        rule: "at least one, rising strictly",
    })
}

fn check_row(step: usize, levels: &[QuantileLevel], row: &[f64]) -> Result<(), ForecastError> {
    for (i, &value) in row.iter().enumerate() {
        if !value.is_finite() || value < 0.0 {
            return Err(ForecastError::Value { step, level: levels[i], value });
        }
        if i > 0 && value < row[i - 1] {
            return Err(ForecastError::Crossed {
                step,
                lower_level: levels[i - 1],
                lower: row[i - 1],
                upper_level: levels[i],
                upper: value,
            });
        }
    }
    Ok(())
}

/// The score of one quantile: 0 is perfect, in the unit of the values.
///
/// # Source
/// Koenker and Bassett (1978): `max(level * e, (level - 1) * e)` with `e = actual - quantile`.
#[must_use]
pub fn pinball_loss(level: QuantileLevel, quantile: f64, actual: f64) -> f64 {
    let error = actual - quantile;
    (level.ratio() * error).max((level.ratio() - 1.0) * error)
}

/// The `level` quantile of values in rising order, drawn straight between neighbours.
///
/// `None` where there is no value.
pub(crate) fn of_sorted(sorted: &[f64], level: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = level.clamp(0.0, 1.0) * last as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    Some(sorted[low] + part * (sorted[(low + 1).min(last)] - sorted[low]))
}

/// The median of any values; `None` of none.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    of_sorted(&values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(per_mille: u16) -> QuantileLevel {
        QuantileLevel::new(per_mille).unwrap()
    }

    #[test]
    fn pinball_loss_of_worked_values() {
        // Breaks if the two sides are weighted the wrong way round.
        assert!((pinball_loss(level(900), 10.0, 14.0) - 3.6).abs() < 1e-12); // 0.9 * 4
        assert!((pinball_loss(level(900), 10.0, 6.0) - 0.4).abs() < 1e-12); // 0.1 * 4
    }

    #[test]
    fn quantiles_between_levels_are_drawn_straight() {
        // Breaks if a level that was not asked for is answered with a neighbour.
        let forecast =
            QuantileForecast::new(vec![level(500), level(900)], vec![100.0, 140.0]).unwrap();
        assert_eq!(forecast.between(0, level(700)), Some(120.0));
        assert_eq!(forecast.between(0, level(950)), Some(140.0));
        assert_eq!(forecast.between(0, level(100)), Some(100.0));
        assert_eq!(forecast.at(0, level(700)), None);
        assert_eq!(forecast.between(1, level(700)), None);
    }

    #[test]
    fn what_breaks_a_guarantee_is_refused() {
        // Breaks if a reader can meet a negative, infinite or unordered forecast.
        let two = || vec![level(500), level(900)];
        assert!(QuantileForecast::new(two(), vec![1.0, f64::NAN]).is_err());
        assert!(QuantileForecast::new(two(), vec![-0.5, 1.0]).is_err());
        assert!(QuantileForecast::new(two(), vec![1.0]).is_err());
        assert!(QuantileForecast::new(two(), vec![]).is_err());
        assert!(QuantileForecast::new(vec![level(900), level(500)], vec![1.0, 2.0]).is_err());
        assert!(QuantileLevel::new(0).is_err() && QuantileLevel::new(1000).is_err());
    }
}
