//! From scores to shares that hold: of jobs said to be 80 % sure, four in five are told right.
//!
//! # Source
//! Temperature scaling: Guo et al., "On Calibration of Modern Neural Networks" (2017); the doubt
//! beside it is the share of jobs whose readings say nothing of their workload.

/// Two numbers, fitted to scores of jobs that were held out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Calibration {
    /// Scores are divided by it: above 1 they were too sure.
    temperature: f64,
    /// Share that goes to how frequent each workload is, whatever the scores.
    doubt_ratio: f64,
    /// How frequent each workload is.
    frequency: Vec<f64>,
}

const TEMPERATURES: [f64; 12] = [0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.25, 1.6, 2.0, 2.7, 3.5, 5.0];

impl Calibration {
    /// Fits to held-out scores and the number of the right workload, by likelihood.
    pub(super) fn fit(held_out: &[(Vec<f64>, usize)], workloads: usize) -> Self {
        let jobs = held_out.len() as f64;
        let of = |workload| held_out.iter().filter(|(_, right)| *right == workload).count() as f64;
        let frequency: Vec<f64> = (0..workloads)
            .map(|workload| (of(workload) + 1.0) / (jobs + workloads as f64))
            .collect();
        // Nobody is surer than what was tried: one mistake more than was seen is always likely.
        let doubt_min = 1.0 / (jobs + 2.0);
        let mut best = (f64::INFINITY, Self { temperature: 1.0, doubt_ratio: 1.0, frequency });
        for temperature in TEMPERATURES {
            let soft: Vec<Vec<f64>> =
                held_out.iter().map(|(scores, _)| softened(scores, temperature)).collect();
            for percent in 0..=50 {
                let doubt_ratio = (f64::from(percent) / 50.0).max(doubt_min).min(1.0);
                let surprise = |(soft, (_, right)): (&Vec<f64>, &(Vec<f64>, usize))| {
                    let share =
                        (1.0 - doubt_ratio) * soft[*right] + doubt_ratio * best.1.frequency[*right];
                    -share.max(1e-12).ln()
                };
                let loss: f64 = soft.iter().zip(held_out).map(surprise).sum();
                if loss < best.0 - 1e-9 {
                    best.0 = loss;
                    (best.1.temperature, best.1.doubt_ratio) = (temperature, doubt_ratio);
                }
            }
        }
        best.1
    }

    /// Shares of the workloads, which sum to 1.
    pub(super) fn shares(&self, scores: &[f64]) -> Vec<f64> {
        let soft = softened(scores, self.temperature);
        let mixed = |(soft, frequency): (f64, &f64)| {
            (1.0 - self.doubt_ratio) * soft + self.doubt_ratio * frequency
        };
        soft.into_iter().zip(&self.frequency).map(mixed).collect()
    }
}

/// The softmax of scores over a temperature; even where no score is finite.
fn softened(scores: &[f64], temperature: f64) -> Vec<f64> {
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        return vec![1.0 / scores.len().max(1) as f64; scores.len()];
    }
    let powers: Vec<f64> = scores.iter().map(|score| ((score - top) / temperature).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_that_are_too_sure_are_taken_back_to_how_often_they_are_right() {
        // Breaks if a share is what the model says and not what was found: 80 of 100 right.
        let held_out: Vec<(Vec<f64>, usize)> =
            (0..100).map(|i| (vec![8.0, -8.0], usize::from(i % 5 == 0))).collect();
        let calibration = Calibration::fit(&held_out, 2);
        let shares = calibration.shares(&[8.0, -8.0]);
        assert!((shares[0] - 0.8).abs() < 0.05, "{shares:?}");
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn scores_that_say_nothing_leave_how_frequent_a_workload_is() {
        // Breaks if permuted labels still give sure shares: 70 of 100 are of the first workload.
        let held_out: Vec<(Vec<f64>, usize)> = (0..100)
            .map(|i| {
                let score = if i % 2 == 0 { 6.0 } else { -6.0 };
                (vec![score, -score], usize::from((i / 2) % 10 >= 7))
            })
            .collect();
        let calibration = Calibration::fit(&held_out, 2);
        for scores in [[6.0, -6.0], [-6.0, 6.0]] {
            let shares = calibration.shares(&scores);
            assert!((shares[0] - 0.7).abs() < 0.12, "{shares:?}");
        }
    }

    #[test]
    fn no_number_of_right_answers_makes_certain() {
        // Breaks if a share reaches 1: of 98 that were right, one in a hundred is still doubted.
        let held_out: Vec<(Vec<f64>, usize)> =
            (0..98).map(|i| (vec![if i % 2 == 0 { 8.0 } else { -8.0 }, 0.0], i % 2)).collect();
        let shares = Calibration::fit(&held_out, 2).shares(&[8.0, 0.0]);
        assert!(shares[0] > 0.98 && shares[0] < 0.999, "{shares:?}");
        let unknown = f64::NEG_INFINITY;
        assert_eq!(softened(&[unknown, unknown], 1.0), [0.5, 0.5]);
    }
}
