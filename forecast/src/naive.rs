//! The benchmark: the same step one season earlier, with intervals from its own past errors.

use crate::history::History;
use crate::knots::Knots;
use crate::residual::Residuals;

/// Most rolling origins used to measure past errors.
pub(crate) const ORIGINS_MAX: usize = 500;

/// Point forecast of step `h` (from 1) made after step `last`.
pub(crate) fn point(history: &History, last: usize, h: usize) -> f64 {
    let season = history.season;
    let seasons_back = (h - 1) / season + 1;
    (last + h)
        .checked_sub(season * seasons_back)
        .map_or(history.filled[last], |i| history.filled[i])
}

/// Errors of the naive forecast from every past origin, by horizon.
pub(crate) fn residuals(history: &History, knots: &Knots) -> Residuals {
    let mut residuals = Residuals::new(knots.len());
    let end = history.len();
    let first = history.season.min(end);
    let stride = ((end - first) / ORIGINS_MAX).max(1);
    for last in (first.saturating_sub(1)..end).step_by(stride) {
        for (k, hs) in knots.pooled().iter().enumerate() {
            for &h in hs {
                if let Some(actual) = history.actual(last + h) {
                    residuals.add(k, actual - point(history, last, h));
                }
            }
        }
    }
    residuals
}

/// One level for all steps: the median of the last season seen.
pub(crate) fn level(history: &History) -> f64 {
    let from = history.len().saturating_sub(history.season);
    crate::quantile::median(history.filled[from..].to_vec()).unwrap_or(0.0)
}

/// Errors of the level from every past origin, by horizon.
pub(crate) fn level_residuals(history: &History, knots: &Knots) -> Residuals {
    let mut residuals = Residuals::new(knots.len());
    for last in 0..history.len() {
        for (k, hs) in knots.pooled().iter().enumerate() {
            for &h in hs {
                if let Some(actual) = history.actual(last + h) {
                    residuals.add(k, actual - history.filled[last]);
                }
            }
        }
    }
    residuals
}
