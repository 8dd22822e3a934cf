//! Who submits what, when: demand that follows working hours and rises over the weeks.

use super::Options;
use super::dice::{Dice, quantile, quantile_mean};
use super::fleet::Fleet;
use super::local::Local;

/// What kind of work a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Workload {
    Train,
    Finetune,
    Inference,
    Dataprep,
    Interactive,
    Unlabelled,
}

/// How a job uses what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conduct {
    Healthy,
    /// Busy for this many seconds, then nothing runs.
    IdleAfter(i64),
    /// Memory loaded, no work.
    MemoryOnly,
    /// Waits for data: GPU near 30 %, CPU full.
    Starved,
    /// The last GPU does nothing.
    Unbalanced,
}

/// How a job ends if nothing interferes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Completed,
    Failed,
    Cancelled,
}

/// One job as submitted. Durations in seconds, instants in UTC seconds.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) order: u64,
    pub(super) submitted: i64,
    pub(super) name: String,
    pub(super) team: usize,
    pub(super) user: usize,
    pub(super) workload: Workload,
    pub(super) pool: usize,
    pub(super) gpus: usize,
    pub(super) urgent: bool,
    /// Runs on a quarter of the shared GPU, beside the queue.
    pub(super) sliced: bool,
    pub(super) run_s: i64,
    pub(super) limit_s: Option<i64>,
    pub(super) outcome: Outcome,
    pub(super) conduct: Conduct,
    /// Gives up after waiting this long.
    pub(super) patience_s: Option<i64>,
    /// Pushed aside this long after its first start, then queued again.
    pub(super) preempted_after_s: Option<i64>,
    /// Suspended: after, for.
    pub(super) suspended_s: Option<(i64, i64)>,
}

/// Teams and their users.
pub(super) const TEAMS: [(&str, [&str; 4]); 6] = [
    ("nlp", ["chen", "lin", "okafor", "weber"]),
    ("vision", ["zhao", "garcia", "tanaka", "novak"]),
    ("ads", ["wang", "silva", "haddad", "meyer"]),
    ("speech", ["liu", "rossi", "kim", "larsen"]),
    ("platform", ["sun", "patel", "dubois", "kowalski"]),
    ("robotics", ["he", "santos", "ito", "schulz"]),
];

const HOUR: f64 = 3600.0;

/// Duration of a job at levels 0, 0.25, 0.5, 0.75, 0.9, 0.98 and 1, in hours.
const LEVELS: [f64; 7] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0];

/// A stream of like jobs into one pool.
struct Stream {
    workload: Workload,
    pool: usize,
    /// Share of the pool's demand.
    share: f64,
    hours: [f64; 7],
    sizes: &'static [(usize, f64)],
    teams: [f64; 6],
    names: &'static [&'static str],
}

const TRAIN_HOURS: [f64; 7] = [0.3, 1.5, 4.0, 11.0, 24.0, 48.0, 80.0];
const FINETUNE_HOURS: [f64; 7] = [0.1, 0.7, 1.6, 4.0, 9.0, 16.0, 24.0];
const SERVICE_HOURS: [f64; 7] = [6.0, 24.0, 60.0, 120.0, 190.0, 290.0, 380.0];
const PREP_HOURS: [f64; 7] = [0.05, 0.2, 0.6, 1.3, 3.0, 6.0, 10.0];
const NOTEBOOK_HOURS: [f64; 7] = [0.1, 0.5, 1.2, 3.0, 6.0, 10.0, 12.0];
const OTHER_HOURS: [f64; 7] = [0.03, 0.2, 1.0, 3.0, 8.0, 20.0, 40.0];
const EVEN: [f64; 6] = [5.0, 4.0, 3.0, 3.0, 2.0, 2.0];
const SERVING: [f64; 6] = [3.0, 3.0, 6.0, 3.0, 1.0, 0.5];

const STREAMS: [Stream; 9] = [
    Stream {
        workload: Workload::Train,
        pool: 0,
        share: 0.70,
        hours: TRAIN_HOURS,
        sizes: &[(1, 0.22), (2, 0.22), (4, 0.26), (8, 0.26), (16, 0.04)],
        teams: [6.0, 5.0, 2.0, 3.0, 0.5, 2.5],
        names: &["train-llm-7b", "train-vit", "train-ctr", "train-asr", "train-policy"],
    },
    Stream {
        workload: Workload::Finetune,
        pool: 0,
        share: 0.20,
        hours: FINETUNE_HOURS,
        sizes: &[(1, 0.5), (2, 0.3), (4, 0.2)],
        teams: EVEN,
        names: &["ft-lora", "ft-qwen", "ft-whisper", "ft-detector"],
    },
    Stream {
        workload: Workload::Unlabelled,
        pool: 0,
        share: 0.07,
        hours: OTHER_HOURS,
        sizes: &[(1, 0.6), (2, 0.3), (4, 0.1)],
        teams: EVEN,
        names: &["run.sh", "exp_42", "test", "sweep|lr"],
    },
    Stream {
        workload: Workload::Interactive,
        pool: 0,
        share: 0.03,
        hours: NOTEBOOK_HOURS,
        sizes: &[(1, 1.0)],
        teams: EVEN,
        names: &["jupyter", "vscode"],
    },
    Stream {
        workload: Workload::Inference,
        pool: 1,
        share: 0.50,
        hours: SERVICE_HOURS,
        sizes: &[(1, 0.6), (2, 0.3), (4, 0.1)],
        teams: SERVING,
        names: &["serve-rank", "serve-chat", "serve-asr", "serve-ocr", "serve-embed"],
    },
    Stream {
        workload: Workload::Finetune,
        pool: 1,
        share: 0.22,
        hours: FINETUNE_HOURS,
        sizes: &[(1, 0.5), (2, 0.3), (4, 0.2)],
        teams: EVEN,
        names: &["ft-lora", "ft-bert", "ft-tts", "ft-grasp"],
    },
    Stream {
        workload: Workload::Dataprep,
        pool: 1,
        share: 0.09,
        hours: PREP_HOURS,
        sizes: &[(1, 0.85), (2, 0.15)],
        teams: [3.0, 3.0, 2.0, 2.0, 4.0, 1.0],
        names: &["prep-tokenize", "prep-embed", "prep-video", "prep-dedup"],
    },
    Stream {
        workload: Workload::Interactive,
        pool: 1,
        share: 0.14,
        hours: NOTEBOOK_HOURS,
        sizes: &[(1, 0.85), (2, 0.15)],
        teams: EVEN,
        names: &["jupyter", "vscode", "jupyter"],
    },
    Stream {
        workload: Workload::Unlabelled,
        pool: 1,
        share: 0.05,
        hours: OTHER_HOURS,
        sizes: &[(1, 0.8), (2, 0.2)],
        teams: EVEN,
        names: &["run.sh", "bench", "tmp"],
    },
];

/// Submissions by local hour of a worked day, relative to each other.
const RHYTHM: [f64; 24] = [
    0.35, 0.3, 0.25, 0.2, 0.2, 0.2, 0.3, 0.5, 0.8, 1.4, 1.8, 1.9, 1.2, 1.3, 1.8, 1.9, 1.9, 1.7,
    1.4, 1.1, 0.9, 0.8, 0.6, 0.45,
];
/// Submissions on a day off, relative to the same hour of a worked day.
const DAY_OFF: f64 = 0.4;

/// How much people submit at an instant, 1 on average over a week of five worked days.
fn rhythm(local: &Local, at: i64) -> f64 {
    let (hour, worked) = local.hour(at);
    let mean = RHYTHM.iter().sum::<f64>() / 24.0 * (5.0 + 2.0 * DAY_OFF) / 7.0;
    RHYTHM[hour] * if worked { 1.0 } else { DAY_OFF } / mean
}

/// Demand of a pool as a share of its GPUs, after a share of the span.
fn trend(pool: usize, share: f64) -> f64 {
    let (first, last) = if pool == 0 { (0.64, 1.10) } else { (0.66, 1.04) };
    first + (last - first) * share * (0.5 + 0.5 * share)
}

/// Share of its planned time that a job runs on average, failures and cancellations included.
const RUN_SHARE: f64 = 0.92;
/// Successive levels of a golden-section sequence fill `[0, 1)` evenly, however many there are:
/// weeks differ by what is asked for, not by the luck of a few long jobs.
const GOLDEN: f64 = 0.618_033_988_75;

/// Every job that people submit by themselves.
pub(super) fn draw(options: &Options, local: &Local, fleet: &Fleet) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (number, stream) in STREAMS.iter().enumerate() {
        let mut dice = Dice::new(options.seed, 100 + number as u64);
        stream.draw(&mut dice, local, fleet, &mut jobs);
    }
    for (order, job) in jobs.iter_mut().enumerate() {
        job.order = order as u64;
    }
    jobs
}

impl Stream {
    fn draw(&self, dice: &mut Dice, local: &Local, fleet: &Fleet, jobs: &mut Vec<Job>) {
        let pool_gpus = fleet.pool_gpus(self.pool);
        let sizes: Vec<_> = self.sizes.iter().copied().filter(|size| size.0 <= pool_gpus).collect();
        let weight: f64 = sizes.iter().map(|size| size.1).sum();
        let mean_gpus = sizes.iter().map(|size| size.0 as f64 * size.1).sum::<f64>() / weight;
        let table = self.table();
        let mean_s = quantile_mean(&table);
        let wanted = self.share * pool_gpus as f64;
        let (mut there, mut due, mut next) = (0.0, 0.0, dice.between(0.5, 1.5));
        while there < wanted * trend(self.pool, 0.0) * 0.9 {
            let submitted = local.started + dice.seconds(0, 600);
            let mut job = self.job(dice, submitted, &sizes, &table);
            job.run_s = (job.run_s as f64 * dice.between(0.3, 1.0)) as i64 + 600;
            there += job.gpus as f64;
            jobs.push(job);
        }
        for minute in (local.started..local.ended).step_by(60) {
            let gpus = wanted * trend(self.pool, local.share(minute));
            due += gpus * rhythm(local, minute) * 60.0 / (mean_gpus * mean_s * RUN_SHARE);
            while due >= next {
                due -= next;
                next = dice.between(0.4, 1.6);
                let submitted = minute + dice.seconds(0, 60);
                jobs.push(self.job(dice, submitted, &sizes, &table));
            }
        }
    }

    fn table(&self) -> Vec<(f64, f64)> {
        LEVELS.iter().zip(self.hours).map(|(level, hours)| (*level, hours * HOUR)).collect()
    }

    fn job(
        &self,
        dice: &mut Dice,
        submitted: i64,
        sizes: &[(usize, f64)],
        table: &[(f64, f64)],
    ) -> Job {
        let team = dice.pick(&[0, 1, 2, 3, 4, 5].map(|team| (team, self.teams[team])));
        let user = dice.pick(&[(0, 4.0), (1, 3.0), (2, 2.0), (3, 1.0)]);
        let name = self.names[(dice.unit() * self.names.len() as f64) as usize].to_owned();
        let gpus = dice.pick(sizes);
        let mut run_s = quantile(table, dice.level(GOLDEN)) as i64;
        let outcome = dice.pick(&[
            (Outcome::Completed, 0.84),
            (Outcome::Failed, if self.workload == Workload::Inference { 0.02 } else { 0.09 }),
            (Outcome::Cancelled, 0.05),
        ]);
        let limit_s = self.limit(dice, run_s);
        if outcome != Outcome::Completed {
            run_s = (run_s as f64 * dice.between(0.02, 0.8)) as i64 + 20;
        }
        let preempted = self.workload == Workload::Train && dice.chance(0.02);
        Job {
            order: 0,
            submitted,
            name,
            team,
            user,
            workload: self.workload,
            pool: self.pool,
            gpus,
            urgent: self.workload == Workload::Inference || dice.chance(0.05),
            sliced: false,
            run_s,
            limit_s,
            outcome,
            conduct: self.conduct(dice, gpus),
            patience_s: dice.chance(0.15).then(|| dice.seconds(300, 12 * 3600)),
            preempted_after_s: preempted.then(|| run_s / 3 + 60),
            suspended_s: None,
        }
    }

    /// The limit asked for: generous, sometimes too short; none for a service.
    fn limit(&self, dice: &mut Dice, run_s: i64) -> Option<i64> {
        const HOURS: [i64; 9] = [1, 2, 4, 8, 12, 24, 48, 96, 168];
        if self.workload == Workload::Inference {
            return None;
        }
        let factor = if dice.chance(0.03) { 0.6 } else { dice.between(1.2, 3.0) };
        let asked = (run_s as f64 * factor) as i64;
        let hours = HOURS.iter().find(|hours| **hours * 3600 >= asked).unwrap_or(&168);
        Some(if factor < 1.0 { (asked / 60 * 60).max(60) } else { hours * 3600 })
    }

    fn conduct(&self, dice: &mut Dice, gpus: usize) -> Conduct {
        let roll = dice.unit();
        match self.workload {
            Workload::Interactive if roll < 0.08 => Conduct::IdleAfter(1200),
            Workload::Inference if roll < 0.06 => Conduct::MemoryOnly,
            Workload::Train if roll < 0.04 => Conduct::Starved,
            Workload::Train if roll < 0.08 && gpus >= 4 => Conduct::Unbalanced,
            _ => Conduct::Healthy,
        }
    }
}
