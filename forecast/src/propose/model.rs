//! How alike a signature and the labelled jobs of each workload are.
//!
//! # Why
//! *Why one logistic regression a workload?* Its scores are sums over measurements, so that what
//! speaks for a proposal can be told; and a few dozen jobs are enough. A square beside each
//! measurement lets a workload lie in the middle of a scale.
//! *Why on the elastic net?* Each step of a logistic regression is a weighted least squares, which
//! `elastic_net.rs` has; `linfa-logistic` would bring a solver, a second `rand` and other features
//! of crates that Arrow needs. `linfa-trees` 0.8 breaks ties by the order of a `HashMap`: two runs
//! differ.
//!
//! # Source
//! Friedman, Hastie and Tibshirani, "Regularization Paths for Generalized Linear Models via
//! Coordinate Descent" (2010), section 3.

use crate::elastic_net::{Coefficients, Moments, fit};
use crate::signature::MEASUREMENTS_COUNT;

/// Scaled measurements of a job.
pub(super) type Scaled = [Option<f64>; MEASUREMENTS_COUNT];

/// A measurement and its square.
const COLUMNS: usize = 2 * MEASUREMENTS_COUNT;
const STEPS_MAX: usize = 12;
const PENALTY: f64 = 0.003;
/// Spreads from the mean beyond which a measurement says no more.
const SPREADS_MAX: f64 = 4.0;
/// Scores beyond are as good as certain.
const SCORE_MAX: f64 = 8.0;
/// Labelled jobs that must be as near as that.
const NEIGHBOURS: usize = 5;

/// Mean and spread of each measurement over the jobs learned from.
#[derive(Debug, Clone)]
struct Scale {
    mean: [f64; MEASUREMENTS_COUNT],
    spread: [f64; MEASUREMENTS_COUNT],
}

impl Scale {
    fn of(jobs: &[&Scaled]) -> Self {
        let mut scale = Self { mean: [0.0; MEASUREMENTS_COUNT], spread: [0.0; MEASUREMENTS_COUNT] };
        for m in 0..MEASUREMENTS_COUNT {
            let read: Vec<f64> = jobs.iter().filter_map(|job| job[m]).collect();
            let count = read.len().max(1) as f64;
            let mean = read.iter().sum::<f64>() / count;
            let variance = read.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
            (scale.mean[m], scale.spread[m]) = (mean, variance.sqrt());
        }
        scale
    }

    /// Spreads from the mean; what was not read, or never varies, is usual.
    fn spreads(&self, job: &Scaled) -> [f64; MEASUREMENTS_COUNT] {
        std::array::from_fn(|m| match job[m] {
            Some(value) if self.spread[m] > 1e-9 => (value - self.mean[m]) / self.spread[m],
            _ => 0.0,
        })
    }

    fn columns(&self, job: &Scaled) -> [f64; COLUMNS] {
        let spreads = self.spreads(job);
        std::array::from_fn(|column| {
            let m = column % MEASUREMENTS_COUNT;
            let value = spreads[m].clamp(-SPREADS_MAX, SPREADS_MAX);
            match column < MEASUREMENTS_COUNT {
                true => value,
                false if job[m].is_none() => 0.0,
                false => value * value - 1.0,
            }
        })
    }
}

/// Scores of signatures, learned from labelled jobs.
#[derive(Debug, Clone)]
pub(super) struct Model {
    scale: Scale,
    /// By workload; `None` where no job of it was learned from.
    scorers: Vec<Option<Coefficients>>,
    /// Spreads of the jobs learned from.
    learned: Vec<[f64; MEASUREMENTS_COUNT]>,
}

impl Model {
    /// Learns from jobs and the number of their workload, below `workloads`.
    pub(super) fn learn(jobs: &[(&Scaled, usize)], workloads: usize) -> Self {
        let signatures: Vec<&Scaled> = jobs.iter().map(|(job, _)| *job).collect();
        let scale = Scale::of(&signatures);
        let columns: Vec<_> = signatures.iter().map(|job| scale.columns(job)).collect();
        let scorer = |workload: usize| {
            let is: Vec<bool> = jobs.iter().map(|(_, label)| *label == workload).collect();
            scorer(&columns, &is)
        };
        let learned = signatures.iter().map(|job| scale.spreads(job)).collect();
        Self { scorers: (0..workloads).map(scorer).collect(), scale, learned }
    }

    /// Log-odds of each workload; of one that was not learned, minus infinity.
    pub(super) fn scores(&self, job: &Scaled) -> Vec<f64> {
        let columns = self.scale.columns(job);
        let score = |scorer: &Option<Coefficients>| {
            scorer.as_ref().map_or(f64::NEG_INFINITY, |scorer| {
                scorer.predict(&columns).clamp(-SCORE_MAX, SCORE_MAX)
            })
        };
        self.scorers.iter().map(score).collect()
    }

    /// What each measurement adds to the score of a workload beyond what it adds to another's.
    pub(super) fn speaks(
        &self,
        job: &Scaled,
        workload: usize,
        other: usize,
    ) -> [f64; MEASUREMENTS_COUNT] {
        let columns = self.scale.columns(job);
        let adds = |workload: usize, m: usize| {
            let square = m + MEASUREMENTS_COUNT;
            self.scorers[workload].as_ref().map_or(0.0, |scorer| {
                scorer.slopes[m] * columns[m] + scorer.slopes[square] * columns[square]
            })
        };
        std::array::from_fn(|m| adds(workload, m) - adds(other, m))
    }

    /// How far the job lies from its nearest labelled jobs, in spreads.
    pub(super) fn distance(&self, job: &Scaled) -> f64 {
        let own = self.scale.spreads(job);
        let mut squares: Vec<f64> = self
            .learned
            .iter()
            .map(|other| own.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum())
            .collect();
        if squares.is_empty() {
            return f64::INFINITY;
        }
        let nth = NEIGHBOURS.min(squares.len()) - 1;
        let (_, square, _) = squares.select_nth_unstable_by(nth, f64::total_cmp);
        square.sqrt()
    }
}

/// A logistic regression of `is` on the columns; `None` where nothing is of the workload. Where
/// everything is, or a step cannot be solved, the share alone.
fn scorer(columns: &[[f64; COLUMNS]], is: &[bool]) -> Option<Coefficients> {
    let of_it = is.iter().filter(|is| **is).count();
    if of_it == 0 {
        return None;
    }
    let share = (of_it as f64 / is.len() as f64).clamp(1e-3, 1.0 - 1e-3);
    let mut best =
        Coefficients { intercept: (share / (1.0 - share)).ln(), slopes: vec![0.0; COLUMNS] };
    let mut loss = loss_of(&best, columns, is);
    for _ in 0..STEPS_MAX {
        let Some(next) = step(&best, columns, is) else { break };
        let reached = loss_of(&next, columns, is);
        // A step that overshoots ends the climb; so does one that gains nothing.
        if reached > loss {
            break;
        }
        let gain = loss - reached;
        (best, loss) = (next, reached);
        if gain < 1e-4 {
            break;
        }
    }
    Some(best)
}

fn probability(scorer: &Coefficients, columns: &[f64; COLUMNS]) -> (f64, f64) {
    let score = scorer.predict(columns).clamp(-SCORE_MAX, SCORE_MAX);
    (score, 1.0 / (1.0 + (-score).exp()))
}

/// One step of iteratively reweighted least squares.
fn step(from: &Coefficients, columns: &[[f64; COLUMNS]], is: &[bool]) -> Option<Coefficients> {
    let mut moments = Moments::new(COLUMNS);
    let mut weights = 0.0;
    let mut row = [1.0; COLUMNS + 2];
    for (columns, is) in columns.iter().zip(is) {
        let (score, likely) = probability(from, columns);
        let weight = (likely * (1.0 - likely)).max(1e-4);
        row[1..=COLUMNS].copy_from_slice(columns);
        row[COLUMNS + 1] = score + (f64::from(u8::from(*is)) - likely) / weight;
        moments.add(&row, weight);
        weights += weight;
    }
    // The weighted fit shares its penalty by the weights, the likelihood by the jobs.
    fit(&moments, PENALTY * is.len() as f64 / weights, 0.1)
}

/// Mean loss with the penalty on the slopes.
fn loss_of(scorer: &Coefficients, columns: &[[f64; COLUMNS]], is: &[bool]) -> f64 {
    let surprise = |(columns, is): (&[f64; COLUMNS], &bool)| {
        let likely = probability(scorer, columns).1;
        -(if *is { likely } else { 1.0 - likely }).ln()
    };
    let sum: f64 = columns.iter().zip(is).map(surprise).sum();
    let size: f64 = scorer.slopes.iter().map(|slope| slope * slope).sum();
    sum / is.len() as f64 + 0.5 * PENALTY * size
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(util: f64, memory: f64) -> Scaled {
        let mut job = [None; MEASUREMENTS_COUNT];
        (job[0], job[6]) = (Some(util), Some(memory));
        job
    }

    #[test]
    fn a_workload_in_the_middle_of_a_scale_is_told_from_both_sides() {
        // Breaks if a measurement can only speak upwards or downwards.
        let jobs: Vec<(Scaled, usize)> = (0..90)
            .map(|i| {
                let level = f64::from(i) / 90.0;
                (job(level, 0.5), usize::from((30..60).contains(&i)))
            })
            .collect();
        let jobs: Vec<(&Scaled, usize)> = jobs.iter().map(|(job, label)| (job, *label)).collect();
        let model = Model::learn(&jobs, 2);
        for (level, middle) in [(0.1, false), (0.5, true), (0.9, false)] {
            let scores = model.scores(&job(level, 0.5));
            assert_eq!(scores[1] > scores[0], middle, "{level}: {scores:?}");
        }
    }

    #[test]
    fn a_workload_without_jobs_is_never_likely_and_one_alone_is() {
        // Breaks if a workload that no job teaches gets a finite score, or a fit of one fails.
        let jobs: Vec<Scaled> = (0..20).map(|i| job(f64::from(i) / 20.0, 0.1)).collect();
        let jobs: Vec<(&Scaled, usize)> = jobs.iter().map(|job| (job, 0)).collect();
        let scores = Model::learn(&jobs, 2).scores(&job(0.4, 0.1));
        assert!(scores[0] > 4.0 && scores[1] == f64::NEG_INFINITY, "{scores:?}");
    }

    #[test]
    fn what_speaks_is_what_differs_and_what_was_not_read_says_nothing() {
        // Breaks if a measurement that is the same for all, or unknown, is named as a reason.
        let jobs: Vec<(Scaled, usize)> = (0..40)
            .map(|i| (job(if i < 20 { 0.9 } else { 0.2 } + f64::from(i % 5) * 0.01, 0.5), i / 20))
            .map(|(job, label)| (job, label as usize))
            .collect();
        let jobs: Vec<(&Scaled, usize)> = jobs.iter().map(|(job, label)| (job, *label)).collect();
        let model = Model::learn(&jobs, 2);
        let speaks = model.speaks(&job(0.91, 0.5), 0, 1);
        assert!(speaks[0] > 0.5, "{speaks:?}");
        assert!(speaks[1..].iter().all(|adds| adds.abs() < 1e-9), "{speaks:?}");
        let unread = model.speaks(&[None; MEASUREMENTS_COUNT], 0, 1);
        assert!(unread.iter().all(|adds| adds.abs() < 1e-9), "{unread:?}");
        assert!(model.distance(&job(0.91, 0.5)) < model.distance(&job(3.0, 0.5)));
    }
}
