//! Why a forecast could not be made: one variant per decision the caller can make.

use chrono::{DateTime, FixedOffset, SecondsFormat};

/// How an error is treated at the doors (exit code, status).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request or its settings break a stated rule.
    BadRequest,
    /// The request is fine, the data at hand cannot answer it.
    Refused,
    /// A promise inside this crate did not hold.
    Bug,
}

/// Why a series, forecast, backtest, plan or scaling decision was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ForecastError {
    /// Two quantiles of one step are in the wrong order.
    #[error(
        "quantiles cross at step {step}: level {upper_level} is {upper} GPUs, below {lower} at level {lower_level}"
    )]
    Crossed {
        /// Step ahead, from 0.
        step: usize,
        /// Lower level.
        lower_level: QuantileLevel,
        /// Its value, in GPUs.
        lower: f64,
        /// Higher level.
        upper_level: QuantileLevel,
        /// Its value, in GPUs.
        upper: f64,
    },
    /// A forecast value is not finite or below zero.
    #[error(
        "cannot use {value} GPUs at step {step}, level {level}: it must be finite and at least 0"
    )]
    Value {
        /// Step ahead, from 0.
        step: usize,
        /// Level.
        level: QuantileLevel,
        /// What was given.
        value: f64,
    },
    /// Values do not fill whole rows of the stated levels.
    #[error("cannot shape {values} values into rows of {levels} quantile levels")]
    Shape {
        /// Number of values given.
        values: usize,
        /// Number of levels.
        levels: usize,
    },
    /// A setting is out of its range.
    #[error("cannot use {what} `{value}`: {rule}")]
    Setting {
        /// Setting, in words.
        what: &'static str,
        /// Value given.
        value: String,
        /// The rule, with the legal values.
        rule: &'static str,
    },
    /// A series holds a value that is not a number of GPUs.
    #[error("cannot use series `{series}`: value {value} at {} must be finite and at least 0", instant(*.at_ms, 0))]
    SeriesValue {
        /// Series.
        series: String,
        /// Milliseconds since 1970, UTC.
        at_ms: i64,
        /// The value.
        value: f64,
    },
    /// A calendar column does not cover history and horizon.
    #[error("calendar column `{column}` does not cover `{series}`: {reason}")]
    Calendar {
        /// Column.
        column: String,
        /// Series.
        series: String,
        /// What is missing.
        reason: String,
    },
    /// The named model needs more history than there is.
    #[error("cannot fit `{model}` for `{series}`: {have_days} days of history, {need_days} needed")]
    TooLittleHistory {
        /// Model.
        model: &'static str,
        /// Series, as the caller names it (`team vision`).
        series: String,
        /// Whole days from the first to the last reading.
        have_days: u32,
        /// Days the model needs.
        need_days: u32,
        /// First step of the history, milliseconds UTC.
        from_ms: i64,
        /// End of the history, milliseconds UTC.
        until_ms: i64,
        /// Why that many days.
        why: &'static str,
    },
    /// There is not one reading to start from.
    #[error("cannot forecast `{series}`: no readings in {steps} steps of history")]
    NoReadings {
        /// Series.
        series: String,
        /// Length of the series in steps.
        steps: usize,
    },
    /// Origins of a backtest must rise strictly and lie inside the series.
    #[error("cannot backtest `{series}` from step {origin}: {rule}")]
    Origin {
        /// Series.
        series: String,
        /// The origin, as an index of the series.
        origin: usize,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// More GPUs than can be counted.
    #[error("cannot count {gpus:.0} GPUs {what}: at most {} can be", u32::MAX)]
    TooManyGpus {
        /// Which GPUs, in words.
        what: &'static str,
        /// How many.
        gpus: f64,
    },
    /// Fewer workloads than needed have enough labelled jobs with readings.
    #[error(
        "cannot propose workloads: {} of {need_workloads} workloads have {need_jobs} labelled jobs \
         with enough readings",
        .labelled.iter().filter(|(_, jobs)| jobs >= need_jobs).count()
    )]
    TooFewLabelled {
        /// Workloads and how many labelled jobs they have.
        labelled: Vec<(String, usize)>,
        /// Jobs that a workload needs.
        need_jobs: usize,
        /// Workloads needed.
        need_workloads: usize,
    },
    /// A fit gave a coefficient that is not finite, or Polars refused a frame.
    #[error("could not {action} for `{series}`: {reason}")]
    Numeric {
        /// What was attempted.
        action: &'static str,
        /// Series.
        series: String,
        /// What came back.
        reason: String,
    },
}

use crate::quantile::QuantileLevel;

impl ForecastError {
    /// How the doors treat it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Setting { .. }
            | Self::SeriesValue { .. }
            | Self::Calendar { .. }
            | Self::Shape { .. }
            | Self::TooManyGpus { .. }
            | Self::Origin { .. } => ErrorKind::BadRequest,
            Self::TooLittleHistory { .. }
            | Self::NoReadings { .. }
            | Self::TooFewLabelled { .. } => ErrorKind::Refused,
            Self::Crossed { .. } | Self::Value { .. } | Self::Numeric { .. } => ErrorKind::Bug,
        }
    }

    /// Whether the same call may work later with nothing changed: never, this crate only computes.
    #[must_use]
    pub fn retryable(&self) -> bool {
        false
    }

    /// What was measured against which limit.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::TooLittleHistory { from_ms, until_ms, why, .. } => Some(format!(
                "history runs from {} to {}; {why}",
                day(*from_ms, 0),
                day(*until_ms, 0)
            )),
            Self::TooFewLabelled { labelled, need_jobs, .. } => Some(match labelled.as_slice() {
                [] => format!("no labelled job has enough readings; {need_jobs} each are needed"),
                _ => {
                    let told = |(name, jobs): &(String, usize)| format!("`{name}` has {jobs}");
                    let told: Vec<String> = labelled.iter().map(told).collect();
                    format!("{}; {need_jobs} each are needed", told.join(", "))
                }
            }),
            _ => None,
        }
    }

    /// What to try, where something can help.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::TooLittleHistory { from_ms, need_days, .. } => {
                let again = day(from_ms + i64::from(*need_days) * 86_400_000, 0);
                Some(format!("use `--model seasonal_naive`, or try again from {again}"))
            }
            Self::NoReadings { .. } => Some("look at `loadline query coverage`".to_owned()),
            Self::Calendar { .. } => {
                Some("give one value for each step of history and horizon".to_owned())
            }
            Self::TooFewLabelled { labelled, .. } if labelled.is_empty() => Some(
                "label jobs by `[[workload]]` rules in loadline.toml and import the ledger again; \
                 import readings of the GPUs that they held"
                    .to_owned(),
            ),
            Self::TooFewLabelled { .. } => Some(
                "label more jobs: add `[[workload]]` rules to loadline.toml and import the ledger \
                 again"
                    .to_owned(),
            ),
            Self::TooManyGpus { .. } => {
                Some("look for a count or a capacity that is not one of GPUs".to_owned())
            }
            _ => None,
        }
    }
}

/// A number of whole GPUs, 0 or more, as a count.
///
/// # Errors
/// [`ForecastError::TooManyGpus`] for one that a count does not hold.
pub fn whole_gpus(what: &'static str, gpus: f64) -> Result<u32, ForecastError> {
    match gpus {
        _ if (0.0..=f64::from(u32::MAX)).contains(&gpus) => Ok(gpus as u32),
        _ => Err(ForecastError::TooManyGpus { what, gpus }),
    }
}

/// RFC 3339 to the second, as local time of an offset from UTC.
pub(crate) fn instant(at_ms: i64, offset_s: i32) -> String {
    local(at_ms, offset_s)
        .map_or_else(|| format!("{at_ms} ms"), |at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// The local date of an offset from UTC.
pub(crate) fn day(at_ms: i64, offset_s: i32) -> String {
    local(at_ms, offset_s)
        .map_or_else(|| format!("{at_ms} ms"), |at| at.format("%Y-%m-%d").to_string())
}

fn local(at_ms: i64, offset_s: i32) -> Option<DateTime<FixedOffset>> {
    let offset = FixedOffset::east_opt(offset_s)?;
    Some(DateTime::from_timestamp_millis(at_ms)?.with_timezone(&offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_history_names_measure_limit_and_way_out() {
        // Breaks if the message stops naming what is there, what is needed, or when to come back.
        let error = ForecastError::TooLittleHistory {
            model: "weekly_elastic_net",
            series: "team vision".to_owned(),
            have_days: 9,
            need_days: 14,
            from_ms: 1_770_768_000_000,  // 2026-02-11
            until_ms: 1_771_545_600_000, // 2026-02-20
            why: "two whole weeks are needed for the 168 h lags",
        };
        assert_eq!(
            error.to_string(),
            "cannot fit `weekly_elastic_net` for `team vision`: 9 days of history, 14 needed"
        );
        assert_eq!(
            error.detail().unwrap(),
            "history runs from 2026-02-11 to 2026-02-20; two whole weeks are needed for the 168 h lags"
        );
        assert_eq!(
            error.hint().unwrap(),
            "use `--model seasonal_naive`, or try again from 2026-02-25"
        );
        assert_eq!(error.kind(), ErrorKind::Refused);
    }
}
