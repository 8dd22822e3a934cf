//! linfa's elastic net, fed with sufficient statistics and checked at both ends.
//!
//! # Why
//! *Why not hand linfa the rows?* Its coordinate descent walks all rows in every pass, and each
//! fold and horizon would repeat that. The objective needs only the covariance of the features
//! and their covariance with the target: the Cholesky factor of the first and the solution with
//! the second are `p` rows with the same objective, so a fit costs microseconds, folds share one
//! pass over the data, and rows may carry weights, which linfa lacks.
//! *Why so many finite checks?* linfa 0.8 takes a NaN penalty and returns NaN coefficients as `Ok`.

use linfa::prelude::*;
use linfa_elasticnet::ElasticNet;
use ndarray::{Array1, Array2};

/// Weighted sums of products of `(1, features, target)`: all a fit needs of its rows.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    width: usize,
    sums: Vec<f64>,
    rows: usize,
}

impl Moments {
    pub(crate) fn new(features: usize) -> Self {
        let width = features + 2;
        Self { width, sums: vec![0.0; width * width], rows: 0 }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds one row `(1, features.., target)`; a row that is not finite is left out.
    pub(crate) fn add(&mut self, row: &[f64], weight: f64) {
        debug_assert_eq!(row.len(), self.width);
        if !weight.is_finite() || row.iter().any(|v| !v.is_finite()) {
            return;
        }
        self.rows += 1;
        for (i, a) in row.iter().enumerate() {
            let scaled = a * weight;
            let sums = &mut self.sums[i * self.width + i..(i + 1) * self.width];
            for (sum, b) in sums.iter_mut().zip(&row[i..]) {
                *sum += scaled * b;
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            *sum += more;
        }
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.sums[i.min(j) * self.width + i.max(j)]
    }
}

/// Fitted coefficients, in the unit of the features.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Coefficients {
    pub(crate) intercept: f64,
    pub(crate) slopes: Vec<f64>,
}

impl Coefficients {
    pub(crate) fn predict(&self, features: &[f64]) -> f64 {
        self.intercept + self.slopes.iter().zip(features).map(|(s, f)| s * f).sum::<f64>()
    }
}

/// Fits `target = intercept + slopes * features` with linfa's elastic net on standardised features.
///
/// `None` where there are no rows, no spread, or the fit is not finite.
///
/// # Source
/// Zou and Hastie, "Regularization and variable selection via the elastic net" (2005);
/// the objective of `linfa_elasticnet::ElasticNetParams`.
pub(crate) fn fit(moments: &Moments, penalty: f64, l1_ratio: f64) -> Option<Coefficients> {
    let total = moments.at(0, 0);
    let sane = penalty.is_finite() && penalty >= 0.0 && (0.0..=1.0).contains(&l1_ratio);
    if !sane || !total.is_finite() || total <= 0.0 {
        return None;
    }
    let p = moments.width - 2;
    let mean = |i: usize| moments.at(0, i) / total;
    let covariance = |i: usize, j: usize| moments.at(i, j) / total - mean(i) * mean(j);
    let kept: Vec<usize> = (1..=p).filter(|&i| covariance(i, i) > 1e-10).collect();
    let spread: Vec<f64> = kept.iter().map(|&i| covariance(i, i).sqrt()).collect();
    let target = p + 1;
    let mut slopes = vec![0.0; p];
    if !kept.is_empty() {
        let n = kept.len();
        let correlation = Array2::from_shape_fn((n, n), |(a, b)| {
            covariance(kept[a], kept[b]) / (spread[a] * spread[b]) + if a == b { 1e-6 } else { 0.0 }
        });
        let against = Array1::from_shape_fn(n, |a| covariance(kept[a], target) / spread[a]);
        let standard = solve(&correlation, &against, penalty, l1_ratio)?;
        for (a, &i) in kept.iter().enumerate() {
            slopes[i - 1] = standard[a] / spread[a];
        }
    }
    let intercept = mean(target) - (1..=p).map(|i| slopes[i - 1] * mean(i)).sum::<f64>();
    let finite = intercept.is_finite() && slopes.iter().all(|s| s.is_finite());
    finite.then_some(Coefficients { intercept, slopes })
}

/// The elastic net on the Cholesky factor: `n` rows that stand for all.
fn solve(c: &Array2<f64>, b: &Array1<f64>, penalty: f64, l1_ratio: f64) -> Option<Array1<f64>> {
    let n = b.len();
    let lower = cholesky(c)?;
    let mut z = Array1::<f64>::zeros(n);
    for i in 0..n {
        let known: f64 = (0..i).map(|j| lower[[i, j]] * z[j]).sum();
        z[i] = (b[i] - known) / lower[[i, i]];
    }
    let root = (n as f64).sqrt();
    let data = Dataset::new(lower.t().to_owned() * root, z * root);
    let model = ElasticNet::params()
        .penalty(penalty)
        .l1_ratio(l1_ratio)
        .with_intercept(false)
        .tolerance(1e-4)
        .max_iterations(300)
        .fit(&data)
        .ok()?;
    Some(model.hyperplane().clone())
}

/// The lower Cholesky factor; `None` where the matrix is not positive.
fn cholesky(matrix: &Array2<f64>) -> Option<Array2<f64>> {
    let n = matrix.nrows();
    let mut lower = Array2::<f64>::zeros((n, n));
    for i in 0..n {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| lower[[i, k]] * lower[[j, k]]).sum();
            let rest = matrix[[i, j]] - known;
            if i != j {
                lower[[i, j]] = rest / lower[[j, j]];
            } else if rest > 1e-12 {
                lower[[i, i]] = rest.sqrt();
            } else {
                return None;
            }
        }
    }
    Some(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(n: usize) -> Moments {
        let mut moments = Moments::new(3);
        for i in 0..n {
            let t = i as f64;
            let x = [(t * 0.7).sin(), (t * 1.3).cos(), 4.0]; // the third never varies
            moments.add(&[1.0, x[0], x[1], x[2], 5.0 + 2.0 * x[0] - 3.0 * x[1]], 1.0);
        }
        moments
    }

    #[test]
    fn known_coefficients_are_recovered() {
        // Breaks if the compressed system is not the one of the rows.
        let fitted = fit(&known(400), 1e-7, 0.5).unwrap();
        for (got, want) in fitted.slopes.iter().zip([2.0, -3.0, 0.0]) {
            assert!((got - want).abs() < 1e-3, "{fitted:?}");
        }
        assert!((fitted.intercept - 5.0).abs() < 1e-3);
        assert!((fitted.predict(&[1.0, 1.0, 4.0]) - 4.0).abs() < 5e-3);
    }

    #[test]
    fn agrees_with_linfa_on_the_rows() {
        // Breaks if the penalty weighs differently on the factor than on the rows it stands for.
        let rows: Vec<[f64; 2]> = (0..60)
            .map(|i| {
                let t = f64::from(i);
                [(t * 0.7).sin(), (t * 0.7).sin() + 0.5 * (t * 1.9).cos()]
            })
            .collect();
        let mut moments = Moments::new(2);
        let target = |r: &[f64; 2]| 1.5 * r[0] + 0.4 * r[1];
        for r in &rows {
            moments.add(&[1.0, r[0], r[1], target(r)], 1.0);
        }
        let ours = fit(&moments, 0.05, 0.5).unwrap();

        let n = rows.len() as f64;
        let mean = |j: usize| rows.iter().map(|r| r[j]).sum::<f64>() / n;
        let sd = |j: usize| (rows.iter().map(|r| (r[j] - mean(j)).powi(2)).sum::<f64>() / n).sqrt();
        let x = Array2::from_shape_fn((60, 2), |(i, j)| (rows[i][j] - mean(j)) / sd(j));
        let y = Array1::from_iter(rows.iter().map(target));
        let y = &y - y.sum() / n;
        let theirs = ElasticNet::params()
            .penalty(0.05)
            .l1_ratio(0.5)
            .with_intercept(false)
            .tolerance(1e-8)
            .fit(&Dataset::new(x, y))
            .unwrap();
        for j in 0..2 {
            let want = theirs.hyperplane()[j] / sd(j);
            assert!((ours.slopes[j] - want).abs() < 1e-3, "{ours:?} against {want}");
        }
    }

    #[test]
    fn what_is_not_finite_is_refused() {
        // Breaks if NaN in a row or penalty comes back as NaN coefficients.
        let mut moments = known(50);
        moments.add(&[1.0, f64::NAN, 0.0, 4.0, 1.0], 1.0);
        moments.add(&[1.0, f64::INFINITY, 0.0, 4.0, 1.0], 1.0);
        assert_eq!(moments.rows(), 50);
        assert!(fit(&moments, f64::NAN, 0.5).is_none());
        assert!(fit(&moments, -1.0, 0.5).is_none());
        assert!(fit(&Moments::new(3), 0.1, 0.5).is_none());
        assert!(fit(&moments, 0.1, 0.5).is_some());
    }
}
