//! From past errors to quantiles: conformal, by horizon.
//!
//! # Why
//! *Why residuals and not a quantile regression?* They are measured out of sample, so they hold
//! whatever the model. *Why wider than the plain quantile?* Errors of neighbouring origins are
//! nearly the same error: the effective number is the span of origins over the horizon, and a
//! quantile of few errors sits too far inside. *Source:* Vovk, Gammerman, Shafer, "Algorithmic
//! Learning in a Random World" (2005); rolling origins as in Tashman (2000).

use crate::error::ForecastError;
use crate::knots::Knots;
use crate::quantile::{QuantileForecast, QuantileLevel, of_sorted};

/// Fewest errors from which quantiles are read.
const ERRORS_MIN: usize = 8;

/// Errors (actual minus forecast) by knot.
#[derive(Debug, Clone)]
pub(crate) struct Residuals {
    by_knot: Vec<Vec<f64>>,
}

impl Residuals {
    pub(crate) fn new(knots: usize) -> Self {
        Self { by_knot: vec![Vec::new(); knots] }
    }

    pub(crate) fn add(&mut self, knot: usize, error: f64) {
        self.by_knot[knot].push(error);
    }

    /// Errors of each knot in rising order; a knot with too few borrows the nearest earlier one
    /// that has enough, widened by the square root of the ratio of horizons.
    fn sorted(&self, knots: &Knots) -> Vec<Vec<f64>> {
        let mut out: Vec<Vec<f64>> = Vec::new();
        let mut usable: Option<usize> = None;
        for (k, errors) in self.by_knot.iter().enumerate() {
            let mut errors = errors.clone();
            if errors.len() >= ERRORS_MIN || usable.is_none() {
                usable = (errors.len() >= ERRORS_MIN).then_some(k).or(usable);
            } else if let Some(from) = usable {
                let wider = (knots.end(k) as f64 / knots.end(from) as f64).sqrt().min(3.0);
                errors = self.by_knot[from].iter().map(|e| e * wider).collect();
            }
            errors.sort_by(f64::total_cmp);
            out.push(errors);
        }
        out
    }
}

/// Adds quantiles of errors to a path.
///
/// # Input
/// `path` one value a step; `scale` GPUs per unit of error; `effective(knot)` how many
/// independent errors the knot has.
///
/// # Output
/// A checked forecast, and in how many steps a value had to be raised to 0. Rows are sorted and
/// clipped at 0 and at `most`, never at capacity.
pub(crate) fn around(
    path: &[f64],
    levels: &[QuantileLevel],
    knots: &Knots,
    residuals: &Residuals,
    spread: &Spread<'_>,
) -> Result<QuantileForecast, ForecastError> {
    let sorted = residuals.sorted(knots);
    let rows = knots.pooled().iter().enumerate();
    let offsets: Vec<Vec<f64>> = rows
        .map(|(k, _)| {
            let independent = (spread.effective)(k);
            levels
                .iter()
                .map(|l| offset(&sorted[k], l.ratio(), independent) * spread.scale)
                .collect()
        })
        .collect();
    let mut gpus = Vec::with_capacity(path.len() * levels.len());
    for (i, centre) in path.iter().enumerate() {
        let mut row: Vec<f64> = blend_rows(&offsets, knots, i + 1)
            .into_iter()
            .map(|o| (centre + o).clamp(0.0, spread.most))
            .collect();
        row.sort_by(f64::total_cmp);
        gpus.extend(row);
    }
    QuantileForecast::new(levels.to_vec(), gpus)
}

/// How errors become GPUs.
pub(crate) struct Spread<'a> {
    /// GPUs per unit of error.
    pub(crate) scale: f64,
    /// Independent errors behind a knot.
    pub(crate) effective: &'a dyn Fn(usize) -> f64,
    /// Guard against explosion, in GPUs.
    pub(crate) most: f64,
}

/// Offsets of horizon `h`, drawn straight between the knots around it.
fn blend_rows(offsets: &[Vec<f64>], knots: &Knots, h: usize) -> Vec<f64> {
    let knot = knots.of(h);
    let Some(before) = knot.checked_sub(1) else { return offsets[knot].clone() };
    let (from, to) = (knots.end(before) as f64, knots.end(knot) as f64);
    let part = (h as f64 - from) / (to - from);
    offsets[before].iter().zip(&offsets[knot]).map(|(a, b)| a + part * (b - a)).collect()
}

/// The conformal offset of one level: the quantile of the errors, moved outwards by the
/// finite-sample correction for `independent` errors.
fn offset(sorted: &[f64], level: f64, independent: f64) -> f64 {
    let outward = (level - 0.5) / independent.max(2.0);
    let moved = level + outward;
    let inside = of_sorted(sorted, moved).unwrap_or(0.0);
    // Past the last error: stretch the outermost ones rather than stop at them.
    let beyond = (moved - 1.0).max(-moved).max(0.0);
    inside * (1.0 + 4.0 * beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_worked_errors() {
        // Breaks if the finite-sample correction narrows instead of widens.
        let errors: Vec<f64> = (-50..=50).map(f64::from).collect();
        assert!((offset(&errors, 0.9, f64::INFINITY) - 40.0).abs() < 1e-9);
        assert!((offset(&errors, 0.9, 10.0) - 44.0).abs() < 1e-9); // 0.9 + 0.4 / 10 = 0.94
        assert!((offset(&errors, 0.1, 10.0) + 44.0).abs() < 1e-9);
        assert!(offset(&errors, 0.5, 2.0).abs() < 1e-9);
        assert!(offset(&errors, 0.975, 2.0) > 50.0);
    }
}
