//! Jobs that are there in every fleet, so that each finding has something to find.

use super::Options;
use super::arrivals::{Conduct, Job, Outcome, Workload};
use super::dice::Dice;
use super::fleet::Fleet;
use super::local::Local;

/// Orders of these jobs start here: after anything that people submit in the same second.
const ORDER_FIRST: u64 = 1 << 40;
/// Notebooks that share one GPU.
const SLICES: u64 = 4;

/// The named jobs, then the notebooks on the shared GPU.
pub(super) fn jobs(options: &Options, local: &Local, fleet: &Fleet) -> Vec<Job> {
    let mut jobs = named(local, fleet);
    for slice in 0..SLICES {
        notebooks(&mut Dice::new(options.seed, 200 + slice), local, &mut jobs);
    }
    for (order, job) in jobs.iter_mut().enumerate() {
        job.order = ORDER_FIRST + order as u64;
    }
    jobs
}

fn named(local: &Local, fleet: &Fleet) -> Vec<Job> {
    // Half a node of eight; less where the fleet is small, so that stories leave room for people.
    let half = (fleet.gpus.len() / 16).clamp(1, 4);
    let days = |days: f64| (local.at(days / 56.0) - local.started).max(3600);
    let job = |name: &str, team, workload, pool, gpus, share: f64, run_s, conduct| Job {
        order: 0,
        submitted: local.at(share),
        name: name.to_owned(),
        team,
        user: 1,
        workload,
        pool,
        gpus,
        urgent: true,
        sliced: false,
        run_s,
        limit_s: Some(run_s + 86_400),
        outcome: Outcome::Completed,
        conduct,
        patience_s: None,
        preempted_after_s: None,
        suspended_s: None,
    };
    use Conduct::{Healthy, IdleAfter, MemoryOnly, Starved, Unbalanced};
    use Workload::{Inference, Interactive, Train};
    let full = half * 2;
    let mut jobs = vec![
        job("jupyter-debug", 1, Interactive, 0, half, 0.18, days(9.0), IdleAfter(720)),
        job("train-resume", 5, Train, 0, half.min(2), 0.52, days(6.0), IdleAfter(7200)),
        job("serve-legacy", 2, Inference, 1, half.min(2), 0.08, days(34.0), MemoryOnly),
        job("train-video", 1, Train, 0, half, 0.30, days(5.0), Starved),
        job("train-moe", 0, Train, 0, full, 0.42, days(4.0), Unbalanced),
        job("train-suspended", 3, Train, 0, half.min(2), 0.12, days(2.0), Healthy),
        job("train-last", 0, Train, 0, half, 0.96, days(9.0), Healthy),
        job("train-withdrawn", 3, Train, 0, full, 0.70, days(2.0), Healthy),
        job("train-pushed", 0, Train, 0, half, 0.05, days(2.0), Healthy),
    ];
    let pause = days(2.0) / 6;
    jobs[5].suspended_s = Some((pause, pause));
    jobs[7].urgent = false;
    jobs[7].patience_s = Some(1);
    jobs[8].preempted_after_s = Some(days(1.0));
    jobs
}

/// One quarter of the shared GPU: a notebook after another.
fn notebooks(dice: &mut Dice, local: &Local, jobs: &mut Vec<Job>) {
    let mut at = local.started + dice.seconds(600, 86_400);
    while at < local.ended - 86_400 {
        let run_s = dice.seconds(4 * 3600, 50 * 3600);
        jobs.push(Job {
            order: 0,
            submitted: at,
            name: "jupyter-slice".to_owned(),
            team: (dice.unit() * 6.0) as usize,
            user: (dice.unit() * 4.0) as usize,
            workload: Workload::Interactive,
            pool: 1,
            gpus: 1,
            urgent: false,
            sliced: true,
            run_s,
            limit_s: Some(72 * 3600),
            outcome: Outcome::Completed,
            conduct: Conduct::Healthy,
            patience_s: None,
            preempted_after_s: None,
            suspended_s: None,
        });
        at += run_s + dice.seconds(60, 16 * 3600);
    }
}
