//! The weekly elastic net: one fit per horizon, blended and calibrated on hold-outs of the past.
//!
//! # Why
//! *Why direct?* A recursive forecast feeds its own errors back for 168 steps. *Why blend with a
//! prior and the naive?* Two weeks of history do not determine seventeen coefficients a week
//! ahead; weights come from folds that only saw what was before them. *Why one pass?* Folds are
//! prefixes of the history, so their moments are running sums.

use crate::elastic_net::{self, Coefficients, Moments};
use crate::error::ForecastError;
use crate::features::Features;
use crate::forecast::{CalendarColumn, ForecastSettings};
use crate::history::History;
use crate::knots::Knots;
use crate::naive;
use crate::quantile::QuantileForecast;
use crate::residual::{Residuals, Spread, around};
use crate::series::Series;

/// Shares of the usable history at which the folds end; the rest after each is its hold-out.
const FOLD_ENDS: [f64; 5] = [0.30, 0.44, 0.58, 0.72, 0.86];
/// Targets are cut here, in units of the recent spread.
const CUT: f64 = 15.0;
/// Errors of the prior below this do not gain weight.
const WEIGHT_FLOOR: f64 = 0.5;
/// Fewest hold-outs from which blend weights are learned.
const HOLDOUTS_MIN: usize = 40;

/// Fits and forecasts; `None` where the history gives no row.
pub(crate) fn forecast(
    series: &Series,
    history: &History,
    calendar: &[CalendarColumn],
    knots: &Knots,
    settings: &ForecastSettings,
) -> Result<Option<QuantileForecast>, ForecastError> {
    let step_ms = i64::from(series.step_s()) * 1000;
    let start_step = series.step_start_ms(history.from).div_euclid(step_ms);
    let features =
        Features::new(history, start_step, calendar, settings.horizon_steps).map_err(|source| {
            ForecastError::Numeric {
                action: "build the feature frame",
                series: series.name().to_owned(),
                reason: source.to_string(),
            }
        })?;
    if history.first_origin() + 1 >= history.len() {
        return Ok(None);
    }
    let stack = Stack { history, features: &features, knots };
    let fits = stack.fit();
    let holdouts = stack.holdouts(&fits);
    let weights = blend_weights(&holdouts, &|k| stack.independent(k));
    let residuals = residuals(&holdouts, &weights, &|k| stack.independent(k));
    let last = history.len() - 1;
    let (centre, scale) = features.frame_of(last);
    let full = FOLD_ENDS.len();
    let path: Vec<f64> = (1..=settings.horizon_steps)
        .map(|h| {
            let knot = knots.of(h);
            let guesses = stack.guesses(fits[knot][full].as_ref(), last, h);
            (mix(&weights[knot], &guesses) * scale + centre).clamp(0.0, history.cap())
        })
        .collect();
    let effective = |k: usize| stack.independent(k);
    let spread = Spread { scale, effective: &effective, most: history.cap() };
    around(&path, &settings.levels, knots, &residuals, &spread).map(Some)
}

/// Elastic net, prior and naive, in units of the row.
type Guesses = [f64; 3];

/// What folds said about one step of the past, and what came.
struct Holdout {
    guesses: Guesses,
    actual: f64,
    /// Before the first fold ends there is only the prior.
    fitted: bool,
}

struct Stack<'a> {
    history: &'a History,
    features: &'a Features,
    knots: &'a Knots,
}

impl Stack<'_> {
    /// Origins of the past, as their last known step, evenly spaced with a stride that visits
    /// every hour of the day.
    fn origins(&self) -> impl Iterator<Item = usize> {
        let (first, end) = (self.history.first_origin(), self.history.len() - 1);
        let stride = ((end - first) / naive::ORIGINS_MAX).max(1);
        let shares = |s: usize| s > 1 && self.history.season.is_multiple_of(s);
        let stride = if shares(stride) { stride + 1 } else { stride };
        (first..end).step_by(stride)
    }

    /// First step that each fold does not see.
    fn fold_ends(&self) -> [usize; FOLD_ENDS.len()] {
        let first = self.history.first_origin();
        let room = (self.history.len() - first) as f64;
        FOLD_ENDS.map(|share| first + (room * share) as usize)
    }

    /// Spans of a horizon that the usable history holds: errors within one are nearly one error.
    fn independent(&self, knot: usize) -> f64 {
        let usable = (self.history.len() - self.history.first_origin()) as f64;
        usable / self.knots.end(knot).max(self.history.season / 2).max(1) as f64
    }

    /// Fits by knot and fold; the last of each knot saw everything.
    fn fit(&self) -> Vec<Vec<Option<Coefficients>>> {
        let ends = self.fold_ends();
        let width = self.features.width();
        let empty = vec![Moments::new(width); ends.len() + 1];
        let mut moments = vec![empty; self.knots.len()];
        let (mut features, mut row) = (Vec::new(), Vec::new());
        for last in self.origins() {
            let (centre, scale) = self.features.frame_of(last);
            for (k, hs) in self.knots.pooled().iter().enumerate() {
                for &h in hs {
                    let Some(actual) = self.history.actual(last + h) else { continue };
                    self.features.row(last, h, &mut features);
                    let prior = self.features.prior(&features, h);
                    let target = ((actual - centre) / scale).clamp(-CUT, CUT) - prior;
                    let weight = 1.0 / target.abs().max(WEIGHT_FLOOR);
                    row.clear();
                    row.push(1.0);
                    row.extend_from_slice(&features);
                    row.push(target);
                    let fold = ends.partition_point(|end| *end <= last + h);
                    moments[k][fold].add(&row, weight);
                }
            }
        }
        moments.into_iter().enumerate().map(|(k, folds)| self.fit_knot(k, folds)).collect()
    }

    fn fit_knot(&self, knot: usize, folds: Vec<Moments>) -> Vec<Option<Coefficients>> {
        let mut running = Moments::new(self.features.width());
        let ends = self.fold_ends().into_iter().chain([self.history.len()]);
        folds
            .iter()
            .zip(ends)
            .map(|(fold, end)| {
                running.merge(fold);
                let h = self.knots.end(knot).max(self.history.season / 4).max(1);
                let independent = (end - self.history.first_origin()) as f64 / h as f64;
                let enough = running.rows() >= 2 * self.features.width();
                let penalty = (PENALTY / independent).clamp(0.001, 1.0);
                enough.then(|| elastic_net::fit(&running, penalty, L1_RATIO)).flatten()
            })
            .collect()
    }

    fn guesses(&self, fitted: Option<&Coefficients>, last: usize, h: usize) -> Guesses {
        let mut row = Vec::with_capacity(self.features.width());
        self.features.row(last, h, &mut row);
        let prior = self.features.prior(&row, h);
        let (centre, scale) = self.features.frame_of(last);
        let net = fitted.map_or(prior, |f| (prior + f.predict(&row)).clamp(-CUT, CUT));
        [net, prior, (naive::point(self.history, last, h) - centre) / scale]
    }

    /// Every past step, guessed by the latest fold that ended before its origin.
    fn holdouts(&self, fits: &[Vec<Option<Coefficients>>]) -> Vec<Vec<Holdout>> {
        let ends = self.fold_ends();
        let mut holdouts: Vec<Vec<Holdout>> = fits.iter().map(|_| Vec::new()).collect();
        for last in self.origins() {
            let (centre, scale) = self.features.frame_of(last);
            let fold = ends.partition_point(|end| *end <= last + 1).checked_sub(1);
            for (k, hs) in self.knots.pooled().iter().enumerate() {
                let fitted = fold.and_then(|f| fits[k][f].as_ref());
                for &h in hs {
                    let Some(actual) = self.history.actual(last + h) else { continue };
                    holdouts[k].push(Holdout {
                        guesses: self.guesses(fitted, last, h),
                        actual: (actual - centre) / scale,
                        fitted: fitted.is_some(),
                    });
                }
            }
        }
        holdouts
    }
}

/// Strength of the penalty per independent row, and its share of absolute values.
const PENALTY: f64 = 2.0;
const L1_RATIO: f64 = 0.1;

fn mix(weights: &Guesses, guesses: &Guesses) -> f64 {
    weights.iter().zip(guesses).map(|(w, g)| w * g).sum()
}

/// Weights where nothing could be learned, and how many independent hold-outs outweigh them.
const START: Guesses = [0.0, 0.5, 0.5];
const START_WORTH: f64 = 3.0;

/// Convex weights by knot with the least absolute error on its own and its neighbours' hold-outs,
/// drawn towards [`START`] where few independent errors stand behind them.
fn blend_weights(holdouts: &[Vec<Holdout>], independent: &dyn Fn(usize) -> f64) -> Vec<Guesses> {
    const QUARTERS: i32 = 4;
    let mut candidates: Vec<Guesses> = Vec::new();
    for net in (0..=QUARTERS).rev() {
        for prior in (0..=QUARTERS - net).rev() {
            let naive = QUARTERS - net - prior;
            candidates.push([net, prior, naive].map(|q| f64::from(q) / f64::from(QUARTERS)));
        }
    }
    let last = holdouts.len() - 1;
    (0..=last)
        .map(|k| {
            let near = &holdouts[k.saturating_sub(2)..=(k + 2).min(last)];
            let seen: Vec<&Holdout> = near.iter().flatten().filter(|h| h.fitted).collect();
            if seen.len() < HOLDOUTS_MIN {
                return START;
            }
            let error = |w: &Guesses| -> f64 {
                seen.iter().map(|h| (h.actual - mix(w, &h.guesses)).abs()).sum()
            };
            let errors: Vec<f64> = candidates.iter().map(error).collect();
            let best = (0..candidates.len()).min_by(|a, b| errors[*a].total_cmp(&errors[*b]));
            let best = best.map_or(START, |i| candidates[i]);
            let learned = independent(k) / (independent(k) + START_WORTH);
            [0, 1, 2].map(|i| learned * best[i] + (1.0 - learned) * START[i])
        })
        .collect()
}

/// Independent hold-outs that stand on their own, without the errors of the prior.
const ALONE_MIN: f64 = 8.0;

/// Errors of the blend on hold-outs. Where these are few, those of the prior before the first fold
/// stand in: it is not fitted, so they too are out of sample, if wider.
fn residuals(
    holdouts: &[Vec<Holdout>],
    weights: &[Guesses],
    independent: &dyn Fn(usize) -> f64,
) -> Residuals {
    let mut residuals = Residuals::new(holdouts.len());
    for (k, seen) in holdouts.iter().enumerate() {
        let fitted = seen.iter().filter(|h| h.fitted).count() as f64 / seen.len().max(1) as f64;
        let alone = fitted * independent(k) >= ALONE_MIN;
        for h in seen.iter().filter(|h| h.fitted || !alone) {
            let guess = if h.fitted { mix(&weights[k], &h.guesses) } else { h.guesses[1] };
            residuals.add(k, h.actual - guess);
        }
    }
    residuals
}
