#![cfg_attr(test, allow(clippy::unwrap_used))]

//! Forecasts GPU demand as quantiles, and turns them into a capacity plan and GPUs to keep on; and
//! tells which workload a job resembles.
//!
//! `resample.rs` → `series.rs` → `history.rs` → `stack.rs` (`elastic_net.rs`, `naive.rs`) →
//! `residual.rs` → `forecast.rs` → `backtest.rs`, `plan.rs`, `scale.rs`
//!
//! `signature.rs` → `propose.rs` (`propose/`), on the same elastic net
//!
//! - Numbers only: no SQL, no files, no clock; the calendar comes in as columns.
//! - Nothing at or after the origin is read; a gap stays a gap and is never 0.
//! - Quantiles never cross, never fall below 0, and are never clipped at capacity.
//! - Every answer says what it rests on; poor history is an answer with a reason, not a crash.
//!
//! To add a model: a file that gives a path and [`QuantileForecast`], a [`Basis`], a line in
//! `forecast.rs`, and a backtest against the seasonal naive.
//!
//! ```
//! use loadline_forecast::{ForecastSettings, QuantileLevel, Series, forecast};
//!
//! let demand = (0..24 * 3).map(|hour| Some(40.0 + f64::from(hour % 24))).collect();
//! let series = Series::new("fleet", 0, 3600, demand)?;
//! let settings = ForecastSettings { horizon_steps: 24, ..Default::default() };
//! let answer = forecast(&series, &[], &settings)?;
//! assert_eq!(answer.quantiles.at(0, QuantileLevel::MEDIAN), Some(40.0));
//! # Ok::<(), loadline_forecast::ForecastError>(())
//! ```

mod backtest;
mod basis;
mod elastic_net;
mod error;
mod features;
mod forecast;
mod history;
mod knots;
mod naive;
mod plan;
mod propose;
mod quantile;
mod resample;
mod residual;
mod scale;
mod series;
mod signature;
mod stack;

pub use backtest::{Backtest, NoSkill, ORIGINS_MAX, Score, backtest, origins};
pub use basis::{Basis, Reason};
pub use error::{ErrorKind, ForecastError, whole_gpus};
pub use forecast::{
    CalendarColumn, Forecast, ForecastSettings, HORIZON_STEPS_MAX, ModelChoice, forecast,
};
pub use plan::{
    Advice, Ground, Meets, PLAN_WEEKS_MAX, PLAN_WEEKS_MIN, Plan, PlanSettings, PlanWeek, Rule,
    TREND_WEEKS_MIN, Together, Wait, advise, fullest_week, plan, together,
};
pub use propose::{
    Band, DividedBy, HeldOut, LABELLED_MAX, LABELLED_MIN, LabelledJob, PARTS, Proposer,
    Reason as ProposalReason, Resemblance, USERS_MIN, WORKLOADS_MIN,
};
pub use quantile::{QuantileForecast, QuantileLevel, pinball_loss};
pub use resample::{Reading, resample};
pub use scale::{Metric, ScaleReason, ScaleSettings, ScaleState, ScaleStep, scale};
pub use series::{SERIES_STEPS_MAX, Series};
pub use signature::{MEASUREMENTS, MEASUREMENTS_COUNT, Measurement, Signature};
