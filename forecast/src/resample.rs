//! How irregular readings become a regular series: a weighted mean per step.

use std::collections::BTreeMap;

use polars::prelude::*;

use crate::error::ForecastError;
use crate::series::{self, SERIES_STEPS_MAX};

/// One reading: an instant, a value, and how many seconds it stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Milliseconds since 1970, UTC.
    pub at_ms: i64,
    /// GPUs.
    pub value: f64,
    /// Seconds, above 0.
    pub weight_s: f64,
}

/// Turns readings into a regular series by their time-weighted mean.
///
/// # Input
/// `readings` in any order. A reading counts whole in the step that holds its
/// instant. Steps begin at multiples of `step_s` from 1970 UTC. Readings that
/// are not finite, below 0 or without weight are left out.
///
/// # Output
/// From the first step with a reading to the last. A step nobody saw is `None`.
///
/// # Errors
/// [`ForecastError::Setting`] for a bad step or a span of too many steps,
/// [`ForecastError::NoReadings`] where no reading can be used.
///
/// # Example
/// ```
/// use loadline_forecast::{Reading, resample};
///
/// let at = |minute: i64, value, weight_s| Reading { at_ms: minute * 60_000, value, weight_s };
/// let series = resample("fleet", &[at(0, 10.0, 600.0), at(30, 40.0, 1200.0), at(125, 7.0, 60.0)], 3600)?;
/// assert_eq!(series.values(), [Some(30.0), None, Some(7.0)]); // (10*600 + 40*1200) / 1800
/// # Ok::<(), loadline_forecast::ForecastError>(())
/// ```
pub fn resample(
    name: &str,
    readings: &[Reading],
    step_s: u32,
) -> Result<crate::series::Series, ForecastError> {
    series::check_step(step_s)?;
    let step_ms = i64::from(step_s) * 1000;
    let usable: Vec<&Reading> = readings
        .iter()
        .filter(|r| r.value.is_finite() && r.value >= 0.0)
        .filter(|r| r.weight_s.is_finite() && r.weight_s > 0.0)
        .collect();
    let means = means_by_step(&usable, step_ms).map_err(|source| numeric(name, source))?;
    let (Some(first), Some(last)) = (means.keys().next(), means.keys().next_back()) else {
        return Err(ForecastError::NoReadings { series: name.to_owned(), steps: 0 });
    };
    let steps = (last - first) as u64 + 1;
    if steps > SERIES_STEPS_MAX as u64 {
        return Err(ForecastError::Setting {
            what: "number of steps spanned",
            value: steps.to_string(),
            rule: "at most 525600; take a longer step or a shorter span",
        });
    }
    let values = (*first..=*last).map(|step| means.get(&step).copied()).collect();
    crate::series::Series::new(name, first * step_ms, step_s, values)
}

/// Weighted mean per step index, through a Polars group-by.
#[expect(deprecated, reason = "the advised lazy engine would be the largest crate of the build")]
fn means_by_step(readings: &[&Reading], step_ms: i64) -> PolarsResult<BTreeMap<i64, f64>> {
    let column = |name: &str, of: &dyn Fn(&Reading) -> f64| {
        Column::new(name.into(), readings.iter().map(|r| of(r)).collect::<Vec<f64>>())
    };
    let steps: Vec<i64> = readings.iter().map(|r| r.at_ms.div_euclid(step_ms)).collect();
    let frame = DataFrame::new(
        readings.len(),
        vec![
            Column::new("step".into(), steps),
            column("weighted", &|r| r.value * r.weight_s),
            column("weight", &|r| r.weight_s),
        ],
    )?;
    let sums = frame.group_by_stable(["step"])?.select(["weighted", "weight"]).sum()?;
    let steps = sums.column("step")?.i64()?;
    let weighted = sums.column("weighted_sum")?.f64()?;
    let weight = sums.column("weight_sum")?.f64()?;
    Ok(steps
        .iter()
        .zip(weighted.iter().zip(weight.iter()))
        .filter_map(|(step, (sum, weight))| Some((step?, sum? / weight?)))
        .collect())
}

fn numeric(series: &str, source: PolarsError) -> ForecastError {
    ForecastError::Numeric {
        action: "resample the readings",
        series: series.to_owned(),
        reason: source.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at_ms: i64, value: f64, weight_s: f64) -> Reading {
        Reading { at_ms, value, weight_s }
    }

    #[test]
    fn order_does_not_matter_and_nonsense_is_left_out() {
        // Breaks if late rows change the answer or a NaN reaches a mean.
        let mut readings = vec![
            reading(-1, 5.0, 10.0), // the step before 1970 begins
            reading(0, 1.0, 30.0),
            reading(3_599_999, 3.0, 10.0),
            reading(1000, f64::NAN, 10.0),
            reading(1000, 9.0, 0.0),
            reading(1000, -4.0, 10.0),
        ];
        let forward = resample("s", &readings, 3600).unwrap();
        readings.reverse();
        assert_eq!(forward, resample("s", &readings, 3600).unwrap());
        assert_eq!(forward.start_ms(), -3_600_000);
        assert_eq!(forward.values(), [Some(5.0), Some(1.5)]); // (1*30 + 3*10) / 40
    }

    #[test]
    fn no_usable_reading_is_said() {
        // Breaks if an empty series is made up.
        let error = resample("s", &[reading(0, f64::NAN, 1.0)], 3600).unwrap_err();
        assert!(matches!(error, ForecastError::NoReadings { .. }));
    }
}
