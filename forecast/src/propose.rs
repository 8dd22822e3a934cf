//! Which workload an unlabelled job resembles, how sure that is, and what speaks for it.
//!
//! Learned from the labelled jobs of the same store, and tested on them: `model.rs` scores,
//! `calibrate.rs` turns scores into shares, `held_out.rs` measures how good they are.

mod calibrate;
mod held_out;
mod model;

use std::collections::BTreeMap;

use calibrate::Calibration;
pub use held_out::{DividedBy, PARTS, USERS_MIN};
use held_out::{judge, mixed, top};
use model::Model;

use crate::error::ForecastError;
use crate::signature::{MEASUREMENTS, MEASUREMENTS_COUNT, Signature};

/// Labelled jobs that a workload needs to be proposed.
pub const LABELLED_MIN: usize = 20;
/// Workloads that there must be to tell apart.
pub const WORKLOADS_MIN: usize = 2;
/// Labelled jobs of a workload that are learned from at most.
pub const LABELLED_MAX: usize = 400;
/// Measurements that are named for a proposal at most.
const REASONS_MAX: usize = 3;
/// Part of the strongest reason below which another is not named.
const REASON_MIN: f64 = 0.2;

/// A job whose workload is known.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledJob {
    /// Job, the same for its attempts.
    pub job: String,
    /// Who ran it.
    pub user: String,
    /// Its workload.
    pub workload: String,
    /// Its measurements.
    pub signature: Signature,
}

/// What was made of a labelled job by those of other parts.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOut {
    /// Job.
    pub job: String,
    /// Number of the workload it was told to resemble, in [`Proposer::workloads`].
    pub workload: usize,
    /// How sure that was, 0 to 1.
    pub sure_ratio: f64,
    /// Whether it is of that workload.
    pub is_right: bool,
    /// Share of each workload.
    pub shares: Vec<f64>,
}

/// Held-out jobs told with about the same sureness.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// Sureness from here, inclusive, 0 to 1.
    pub from_ratio: f64,
    /// To here, exclusive but for 1.
    pub until_ratio: f64,
    /// Jobs.
    pub jobs: usize,
    /// Those told right.
    pub right: usize,
    /// Mean of what was said; `None` without jobs.
    pub sure_mean_ratio: Option<f64>,
}

/// A measurement that speaks for a proposal.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// Number of the measurement in [`MEASUREMENTS`].
    pub measurement: usize,
    /// Its value.
    pub value: f64,
    /// Quartiles of the labelled jobs of the proposed workload.
    pub usual: (f64, f64),
    /// The same of the runner-up.
    pub usual_of_other: (f64, f64),
}

/// What an unlabelled job resembles.
#[derive(Debug, Clone, PartialEq)]
pub struct Resemblance {
    /// Workload it resembles most.
    pub workload: String,
    /// How sure that is, calibrated, 0 to 1.
    pub sure_ratio: f64,
    /// Workload that comes next.
    pub runner_up: String,
    /// Share of the runner-up.
    pub runner_up_ratio: f64,
    /// The measurements that speak most for the first, strongest first; none where none does.
    pub reasons: Vec<Reason>,
    /// How far it lies from the nearest labelled jobs, over what 99 in 100 of those stay within:
    /// above 1 it resembles none.
    pub distance_ratio: f64,
}

/// What the labelled jobs of a store teach.
#[derive(Debug, Clone)]
pub struct Proposer {
    workloads: Vec<String>,
    usual: Vec<[Option<(f64, f64)>; MEASUREMENTS_COUNT]>,
    model: Model,
    calibration: Calibration,
    distance_max: f64,
    held_out: Vec<HeldOut>,
    divided_by: DividedBy,
    most_frequent_ratio: f64,
}

impl Proposer {
    /// Learns from labelled jobs, in any order, and holds each of them out once.
    ///
    /// Workloads of fewer than [`LABELLED_MIN`] jobs are left out; of a larger one than
    /// [`LABELLED_MAX`], as many are taken by a fixed hash of the job.
    ///
    /// # Errors
    /// [`ForecastError::TooFewLabelled`] unless [`WORKLOADS_MIN`] workloads have enough jobs.
    pub fn learn(labelled: &[LabelledJob]) -> Result<Self, ForecastError> {
        let mut by_workload: BTreeMap<&str, Vec<&LabelledJob>> = BTreeMap::new();
        for job in labelled {
            by_workload.entry(&job.workload).or_default().push(job);
        }
        let counts = by_workload.iter().map(|(name, jobs)| ((*name).to_owned(), jobs.len()));
        let counts: Vec<(String, usize)> = counts.collect();
        by_workload.retain(|_, jobs| jobs.len() >= LABELLED_MIN);
        if by_workload.len() < WORKLOADS_MIN {
            return Err(ForecastError::TooFewLabelled {
                labelled: counts,
                need_jobs: LABELLED_MIN,
                need_workloads: WORKLOADS_MIN,
            });
        }
        let workloads: Vec<String> = by_workload.keys().map(|name| (*name).to_owned()).collect();
        let (mut jobs, mut right, mut usual) = (Vec::new(), Vec::new(), Vec::new());
        for (workload, mut of_it) in by_workload.into_values().enumerate() {
            of_it.sort_by(|a, b| (mixed(&a.job), &a.job).cmp(&(mixed(&b.job), &b.job)));
            of_it.truncate(LABELLED_MAX);
            usual.push(std::array::from_fn(|m| quartiles(&of_it, m)));
            right.extend(std::iter::repeat_n(workload, of_it.len()));
            jobs.extend(of_it);
        }
        let judged = judge(&jobs, &right, workloads.len());
        let scaled: Vec<_> = jobs.iter().map(|job| job.signature.scaled()).collect();
        let rows: Vec<_> = scaled.iter().zip(right.iter().copied()).collect();
        let most = (0..workloads.len())
            .map(|workload| right.iter().filter(|right| **right == workload).count())
            .max()
            .unwrap_or(0);
        Ok(Self {
            model: Model::learn(&rows, workloads.len()),
            workloads,
            usual,
            calibration: judged.calibration,
            distance_max: judged.distance_max,
            held_out: judged.jobs,
            divided_by: judged.divided_by,
            most_frequent_ratio: most as f64 / right.len() as f64,
        })
    }

    /// Workloads that can be proposed, by name.
    #[must_use]
    pub fn workloads(&self) -> &[String] {
        &self.workloads
    }

    /// What was made of each labelled job that was learned from, by workload and a hash of the job.
    #[must_use]
    pub fn held_out(&self) -> &[HeldOut] {
        &self.held_out
    }

    /// What held labelled jobs together when they were divided.
    #[must_use]
    pub fn divided_by(&self) -> DividedBy {
        self.divided_by
    }

    /// Share of the held-out jobs that were told right.
    #[must_use]
    pub fn right_ratio(&self) -> f64 {
        let right = self.held_out.iter().filter(|job| job.is_right).count();
        right as f64 / self.held_out.len().max(1) as f64
    }

    /// What is right of it when the most frequent workload is always told, 0 to 1.
    #[must_use]
    pub fn most_frequent_ratio(&self) -> f64 {
        self.most_frequent_ratio
    }

    /// How often held-out jobs were told right, by how sure it was said to be.
    #[must_use]
    pub fn reliability(&self) -> Vec<Band> {
        const EDGES: [f64; 6] = [0.0, 0.5, 0.6, 0.8, 0.9, 1.0];
        let band = |edges: &[f64]| {
            let (from, until) = (edges[0], edges[1]);
            let is_last = until >= 1.0;
            let inside =
                |job: &&HeldOut| job.sure_ratio >= from && (job.sure_ratio < until || is_last);
            let inside: Vec<&HeldOut> = self.held_out.iter().filter(inside).collect();
            let said: f64 = inside.iter().map(|job| job.sure_ratio).sum();
            Band {
                from_ratio: from,
                until_ratio: until,
                jobs: inside.len(),
                right: inside.iter().filter(|job| job.is_right).count(),
                sure_mean_ratio: (!inside.is_empty()).then(|| said / inside.len() as f64),
            }
        };
        EDGES.windows(2).map(band).collect()
    }

    /// Which workload a signature resembles.
    #[must_use]
    pub fn propose(&self, signature: &Signature) -> Resemblance {
        let scaled = signature.scaled();
        let mut shares = self.calibration.shares(&self.model.scores(&scaled));
        let (first, sure_ratio) = top(&shares);
        shares[first] = f64::NEG_INFINITY;
        let (second, runner_up_ratio) = top(&shares);
        Resemblance {
            workload: self.workloads[first].clone(),
            sure_ratio,
            runner_up: self.workloads[second].clone(),
            runner_up_ratio,
            reasons: self.reasons(signature, first, second),
            distance_ratio: self.model.distance(&scaled) / self.distance_max.max(1e-9),
        }
    }

    /// What adds most to the first beside the second, where the value also lies nearer to what is
    /// usual of the first.
    fn reasons(&self, signature: &Signature, first: usize, second: usize) -> Vec<Reason> {
        let speaks = self.model.speaks(&signature.scaled(), first, second);
        let told = |m: usize| {
            let (value, usual) = (signature.value(m)?, self.usual[first][m]?);
            let usual_of_other = self.usual[second][m]?;
            let is_nearer = beside(value, usual) < beside(value, usual_of_other);
            (speaks[m] > 0.0 && is_nearer).then_some(Reason {
                measurement: m,
                value,
                usual,
                usual_of_other,
            })
        };
        let mut reasons: Vec<Reason> = (0..MEASUREMENTS.len()).filter_map(told).collect();
        reasons.sort_by(|a, b| speaks[b.measurement].total_cmp(&speaks[a.measurement]));
        let strongest = reasons.first().map_or(0.0, |reason| speaks[reason.measurement]);
        reasons.retain(|reason| speaks[reason.measurement] >= REASON_MIN * strongest);
        reasons.truncate(REASONS_MAX);
        reasons
    }
}

/// How far a value lies beside a range; 0 inside.
fn beside(value: f64, (low, high): (f64, f64)) -> f64 {
    (low - value).max(value - high).max(0.0)
}

/// Lower and upper quartile of a measurement, by nearest rank; `None` where no job has it.
fn quartiles(jobs: &[&LabelledJob], measurement: usize) -> Option<(f64, f64)> {
    let mut read: Vec<f64> =
        jobs.iter().filter_map(|job| job.signature.value(measurement)).collect();
    read.sort_by(f64::total_cmp);
    let at = |part: usize| read.get((read.len() * part).div_ceil(4).max(1) - 1).copied();
    Some((at(1)?, at(3)?))
}
