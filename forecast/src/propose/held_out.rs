//! What the proposals are worth: each labelled job is judged by models that never saw its label.
//!
//! # Why
//! *Why parts by user?* Jobs of one user resemble each other; parts that cut through a user would
//! test a proposal on jobs that were all but learned.
//! *Why models that leave out two parts?* The share of a job is calibrated by the scores of other
//! jobs. Where the models behind those learned from the job, its label would come back to it that
//! way.

use std::collections::BTreeMap;

use super::calibrate::Calibration;
use super::model::{Model, Scaled};
use super::{HeldOut, LabelledJob};

/// Parts that labelled jobs are divided into.
pub const PARTS: usize = 5;
/// Users below which parts are made of single jobs.
pub const USERS_MIN: usize = 2 * PARTS;

/// What holds labelled jobs together when they are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DividedBy {
    /// All jobs of a user are in one part.
    User,
    /// Too few users: all attempts of a job are in one part.
    Job,
}

/// Scores of a job, and the number of its workload.
type Scored = (Vec<f64>, usize);

/// All that holding out tells.
pub(super) struct Judged {
    /// One for each labelled job, in their order.
    pub(super) jobs: Vec<HeldOut>,
    pub(super) divided_by: DividedBy,
    /// Calibration for what is learned from all.
    pub(super) calibration: Calibration,
    /// Distance that 99 in 100 labelled jobs stay within when they are held out.
    pub(super) distance_max: f64,
}

/// The part of each job: no label and no order of the jobs moves it.
pub(super) fn parts(jobs: &[&LabelledJob]) -> (Vec<usize>, DividedBy) {
    let users: std::collections::BTreeSet<&str> = jobs.iter().map(|job| &*job.user).collect();
    let (divided_by, key): (_, fn(&LabelledJob) -> &str) = match users.len() >= USERS_MIN {
        true => (DividedBy::User, |job| &job.user),
        false => (DividedBy::Job, |job| &job.job),
    };
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for job in jobs {
        *sizes.entry(key(job)).or_default() += 1;
    }
    // The largest first, each into the part that has least.
    let mut order: Vec<(&str, usize)> = sizes.into_iter().collect();
    order.sort_by_key(|(name, size)| (std::cmp::Reverse(*size), mixed(name)));
    let mut filled = [0; PARTS];
    let mut part_of = BTreeMap::new();
    for (name, size) in order {
        let part = (0..PARTS).min_by_key(|part| filled[*part]).unwrap_or(0);
        filled[part] += size;
        part_of.insert(name, part);
    }
    (jobs.iter().map(|job| part_of[key(job)]).collect(), divided_by)
}

/// A fixed hash (FNV-1a): names that are alike do not end up together.
pub(super) fn mixed(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Judges each labelled job by what the others teach.
pub(super) fn judge(jobs: &[&LabelledJob], right: &[usize], workloads: usize) -> Judged {
    let signatures: Vec<Scaled> = jobs.iter().map(|job| job.signature.scaled()).collect();
    let (part, divided_by) = parts(jobs);
    let without = |left: &[usize]| -> Model {
        let kept = (0..jobs.len()).filter(|job| !left.contains(&part[*job]));
        let kept: Vec<(&Scaled, usize)> = kept.map(|job| (&signatures[job], right[job])).collect();
        Model::learn(&kept, workloads)
    };
    let of = |held: usize| (0..jobs.len()).filter(|job| part[*job] == held).collect::<Vec<_>>();
    // Scores of the jobs of one part by a model that saw neither it nor another part.
    let mut paired: BTreeMap<(usize, usize), Vec<Scored>> = BTreeMap::new();
    for one in 0..PARTS {
        for other in one + 1..PARTS {
            let model = without(&[one, other]);
            for (scored, unseen) in [(one, other), (other, one)] {
                let scores = of(scored).into_iter();
                let scores = scores.map(|job| (model.scores(&signatures[job]), right[job]));
                paired.insert((scored, unseen), scores.collect());
            }
        }
    }
    let mut judged: Vec<Option<HeldOut>> = vec![None; jobs.len()];
    let mut scored = Vec::with_capacity(jobs.len());
    let mut distances = Vec::with_capacity(jobs.len());
    for held in 0..PARTS {
        let model = without(&[held]);
        let others = (0..PARTS).filter(|other| *other != held);
        let rest: Vec<Scored> = others.flat_map(|other| paired[&(other, held)].clone()).collect();
        let calibration = Calibration::fit(&rest, workloads);
        for job in of(held) {
            let scores = model.scores(&signatures[job]);
            let shares = calibration.shares(&scores);
            let (workload, sure_ratio) = top(&shares);
            let is_right = workload == right[job];
            let name = jobs[job].job.clone();
            judged[job] = Some(HeldOut { job: name, workload, sure_ratio, is_right, shares });
            distances.push(model.distance(&signatures[job]));
            scored.push((scores, right[job]));
        }
    }
    distances.sort_by(f64::total_cmp);
    let within = (distances.len() * 99).div_ceil(100).max(1) - 1;
    Judged {
        jobs: judged.into_iter().flatten().collect(),
        divided_by,
        calibration: Calibration::fit(&scored, workloads),
        distance_max: distances.get(within).copied().unwrap_or(f64::INFINITY),
    }
}

/// The largest share, the first where two are alike.
pub(super) fn top(shares: &[f64]) -> (usize, f64) {
    let larger = |best: (usize, f64), (at, share): (usize, &f64)| {
        if *share > best.1 { (at, *share) } else { best }
    };
    shares.iter().enumerate().fold((0, f64::NEG_INFINITY), larger)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::{MEASUREMENTS_COUNT, Signature};

    fn job(user: usize, job: usize) -> LabelledJob {
        LabelledJob {
            job: format!("job{job}"),
            user: format!("user{user}"),
            workload: "train".to_owned(),
            signature: Signature::new([None; MEASUREMENTS_COUNT]),
        }
    }

    fn divided(jobs: &[LabelledJob]) -> (Vec<usize>, DividedBy) {
        parts(&jobs.iter().collect::<Vec<_>>())
    }

    #[test]
    fn ten_users_stay_whole_and_nine_are_divided_by_job() {
        // Breaks if a part cuts through a user, or few users leave a part empty.
        for (users, by) in [(10, DividedBy::User), (9, DividedBy::Job)] {
            let jobs: Vec<LabelledJob> = (0..90).map(|n| job(n % users, n / 2)).collect();
            let (part, divided_by) = divided(&jobs);
            assert_eq!(divided_by, by);
            for (n, m) in (0..90).flat_map(|n| (0..90).map(move |m| (n, m))) {
                let together = match by {
                    DividedBy::User => jobs[n].user == jobs[m].user,
                    DividedBy::Job => jobs[n].job == jobs[m].job,
                };
                assert!(!together || part[n] == part[m], "{n} {m}");
            }
            for held in 0..PARTS {
                let size = part.iter().filter(|part| **part == held).count();
                assert!((15..=20).contains(&size), "{held}: {size}");
            }
        }
    }

    #[test]
    fn the_first_of_equal_shares_is_on_top() {
        // Breaks if a draw is decided by chance.
        assert_eq!(top(&[0.2, 0.4, 0.4]), (1, 0.4));
    }
}
