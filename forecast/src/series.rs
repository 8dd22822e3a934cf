//! A regular series of demand: what every model, backtest and plan reads.

use crate::error::ForecastError;

/// Longest series accepted: five years of 5-minute steps.
pub const SERIES_STEPS_MAX: usize = 525_600;

/// Demand at regular steps, with gaps.
///
/// # Shape
/// `values[i]` covers `[start_ms + i * step, start_ms + (i + 1) * step)`.
///
/// # Units
/// GPUs held or wanted at once, averaged over the step. A step that was not
/// seen is `None`, never 0.
///
/// # Guarantees
/// Checked by [`Series::new`]: `step_s` is at least 60 and divides a day or is a
/// whole number of days, the start lies on a whole second, every value is finite
/// and at least 0, and there are 1 to [`SERIES_STEPS_MAX`] steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    name: String,
    start_ms: i64,
    step_s: u32,
    values: Vec<Option<f64>>,
}

impl Series {
    /// Checks and keeps a series.
    ///
    /// # Errors
    /// [`ForecastError::Setting`] for a bad step or length,
    /// [`ForecastError::SeriesValue`] for a value that is not a number of GPUs.
    pub fn new(
        name: impl Into<String>,
        start_ms: i64,
        step_s: u32,
        values: Vec<Option<f64>>,
    ) -> Result<Self, ForecastError> {
        check_step(step_s)?;
        let name = name.into();
        if values.is_empty() || values.len() > SERIES_STEPS_MAX {
            return Err(ForecastError::Setting {
                what: "length of a series",
                value: values.len().to_string(),
                rule: "1 to 525600 steps",
            });
        }
        for (i, value) in values.iter().enumerate() {
            if let Some(value) = value.filter(|v| !v.is_finite() || *v < 0.0) {
                let at_ms = start_ms + i as i64 * i64::from(step_s) * 1000;
                return Err(ForecastError::SeriesValue { series: name, at_ms, value });
            }
        }
        Ok(Self { name, start_ms, step_s, values })
    }

    /// Name, as the caller shows it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Start of the first step, milliseconds since 1970 UTC.
    #[must_use]
    pub fn start_ms(&self) -> i64 {
        self.start_ms
    }

    /// Length of one step in seconds.
    #[must_use]
    pub fn step_s(&self) -> u32 {
        self.step_s
    }

    /// Values, one a step; `None` is a gap.
    #[must_use]
    pub fn values(&self) -> &[Option<f64>] {
        &self.values
    }

    /// Number of steps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Never: a series has at least one step.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Start of step `i`, which may lie past the end.
    #[must_use]
    pub fn step_start_ms(&self, i: usize) -> i64 {
        self.start_ms + i as i64 * i64::from(self.step_s) * 1000
    }

    /// The origin of a forecast from the whole series: the instant after its last step.
    #[must_use]
    pub fn end_ms(&self) -> i64 {
        self.step_start_ms(self.values.len())
    }

    /// The series as it stood at step `origin`: that step and all later ones are gone.
    #[must_use]
    pub fn before(&self, origin: usize) -> Self {
        let values = self.values[..origin.min(self.values.len())].to_vec();
        Self { values, name: self.name.clone(), ..*self }
    }

    /// Steps that were seen.
    #[must_use]
    pub fn seen(&self) -> usize {
        self.values.iter().flatten().count()
    }

    /// Steps of the short season (a day; a week where a step is a day).
    pub(crate) fn season_short(&self) -> usize {
        match self.step_s {
            s if s < 86_400 => (86_400 / s) as usize,
            86_400 => 7,
            _ => 1,
        }
    }

    /// Steps of the long season (a week), where it differs from the short one.
    pub(crate) fn season_long(&self) -> usize {
        if self.step_s < 86_400 { 7 * self.season_short() } else { self.season_short() }
    }

    /// Steps as days.
    pub(crate) fn days(&self, steps: usize) -> f64 {
        steps as f64 * f64::from(self.step_s) / 86_400.0
    }
}

/// A step divides a day or is a whole number of days.
pub(crate) fn check_step(step_s: u32) -> Result<(), ForecastError> {
    let whole =
        step_s >= 60 && (86_400_u32.is_multiple_of(step_s) || step_s.is_multiple_of(86_400));
    if whole {
        return Ok(());
    }
    Err(ForecastError::Setting {
        what: "step in seconds",
        value: step_s.to_string(),
        rule: "at least 60, dividing a day or a whole number of days",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_of_gpus_is_refused() {
        // Breaks if NaN, infinity or a negative count can reach a model.
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
            let error = Series::new("fleet", 0, 3600, vec![Some(1.0), Some(bad)]).unwrap_err();
            assert!(error.to_string().contains("1970-01-01T01:00:00Z"), "{error}");
        }
        assert!(Series::new("fleet", 0, 3600, vec![]).is_err());
        assert!(Series::new("fleet", 0, 3601, vec![Some(1.0)]).is_err());
        assert!(Series::new("fleet", 0, 3600, vec![None]).is_ok());
    }

    #[test]
    fn seasons_follow_the_step() {
        // Breaks if a day or week is counted in the wrong number of steps.
        let seasons = |step| {
            let s = Series::new("s", 0, step, vec![Some(1.0)]).unwrap();
            (s.season_short(), s.season_long())
        };
        assert_eq!(seasons(3600), (24, 168));
        assert_eq!(seasons(900), (96, 672));
        assert_eq!(seasons(86_400), (7, 7));
        assert_eq!(seasons(604_800), (1, 1));
    }
}
