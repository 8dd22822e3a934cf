//! What a GPU reads while jobs hold it: utilisation, memory, power, temperature, clocks, ECC.

use super::Scene;
use super::arrivals::{Conduct, Job, Workload};
use super::dice::Dice;
use super::fleet::POOLS;
use super::local::Local;

/// One reading of one GPU, in the units of nvidia-smi.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    pub(super) gpu: usize,
    pub(super) at_ms: i64,
    pub(super) util_percent: u32,
    pub(super) mem_util_percent: u32,
    pub(super) mem_used_mib: u32,
    pub(super) power_cw: u32,
    pub(super) temp_c: u32,
    pub(super) sm_clock_mhz: u32,
    pub(super) mem_clock_mhz: u32,
    pub(super) ecc_corrected: u32,
    pub(super) ecc_uncorrected: u32,
    pub(super) throttle_reasons: u32,
    /// Processors' share that the jobs on this GPU keep busy, 0 to 1 of this GPU's part of a node.
    pub(super) cpu_ratio: f64,
}

/// A stretch in which a job holds a GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holding {
    pub(super) attempt: usize,
    pub(super) started: i64,
    pub(super) ended: i64,
    /// Which of the job's GPUs it is; the last is the one that an unbalanced job forgets.
    pub(super) last: bool,
}

/// Holdings of every GPU in order of start.
pub(super) fn holdings(scene: &Scene) -> Vec<Vec<Holding>> {
    let mut all = vec![Vec::new(); scene.fleet.gpus.len()];
    for (attempt, row) in scene.attempts.iter().enumerate() {
        let Some(started) = row.started else { continue };
        let ended = row.ended.unwrap_or(i64::MAX);
        for (rank, gpu) in row.gpus.iter().enumerate() {
            let last = rank + 1 == row.gpus.len();
            all[*gpu].push(Holding { attempt, started, ended, last });
        }
    }
    for gpu in &mut all {
        gpu.sort_by_key(|holding| (holding.started, holding.attempt));
    }
    all
}

/// A job at work on one GPU: its levels and its noise.
#[derive(Debug)]
struct Work {
    holding: Holding,
    level: f64,
    memory: f64,
    checkpoint_s: i64,
    drift: f64,
    active: bool,
}

/// One GPU and what it remembers from a reading to the next.
#[derive(Debug)]
pub(super) struct Device<'a> {
    scene: &'a Scene,
    gpu: usize,
    dice: Dice,
    coming: std::iter::Peekable<std::vec::IntoIter<Holding>>,
    works: Vec<Work>,
    temp_c: f64,
    ecc_corrected: u32,
    ecc_uncorrected: u32,
}

impl<'a> Device<'a> {
    pub(super) fn new(scene: &'a Scene, gpu: usize, holdings: Vec<Holding>) -> Self {
        let mut dice = Dice::new(scene.options.seed, 1_000 + gpu as u64);
        let ecc_corrected = if dice.chance(0.1) { 2 } else { 0 };
        let coming = holdings.into_iter().peekable();
        let works = Vec::new();
        Self { scene, gpu, dice, coming, works, temp_c: 33.0, ecc_corrected, ecc_uncorrected: 0 }
    }

    /// The reading at an instant, in UTC ms; instants rise by `step_s`.
    pub(super) fn read(&mut self, at_ms: i64, step_s: i64) -> Reading {
        let at = at_ms.div_euclid(1000);
        self.arrive(at);
        let (mut util, mut memory, mut cpu) = (0.0, 0.0, 0.0);
        for work in &mut self.works {
            let job = &self.scene.jobs[self.scene.attempts[work.holding.attempt].job];
            let share = if job.sliced { 0.25 } else { 1.0 };
            util += work.utilisation(job, at, &self.scene.local, &mut self.dice) * share;
            memory += work.memory_ratio(job, at) * share;
            cpu += work.cpu_ratio(job, util) * share;
        }
        self.decay(at, step_s);
        self.reading(at_ms, step_s, (util.clamp(0.0, 1.0), memory.min(0.985), cpu))
    }

    fn arrive(&mut self, at: i64) {
        self.works.retain(|work| work.holding.ended > at);
        while let Some(holding) = self.coming.next_if(|holding| holding.started <= at) {
            let job = &self.scene.jobs[self.scene.attempts[holding.attempt].job];
            let work = Work::new(holding, job, &mut self.dice);
            if holding.ended > at {
                self.works.push(work);
            }
        }
    }

    /// Corrected errors of the failing GPU become more frequent until it is lost.
    fn decay(&mut self, at: i64, step_s: i64) {
        let fleet = &self.scene.fleet;
        if self.gpu != fleet.failing || at < fleet.failing_from {
            return;
        }
        let worn = (at - fleet.failing_from) as f64 / (fleet.lost_at - fleet.failing_from) as f64;
        let expected = step_s as f64 / 300.0 * (0.05 + 2.0 * worn * worn);
        self.ecc_corrected += (expected * 2.0 * self.dice.unit() + 0.5) as u32;
        let seen = fleet.xids().iter().filter(|(when, _, xid)| *when <= at && *xid != 79).count();
        self.ecc_uncorrected = seen as u32;
    }

    fn reading(&mut self, at_ms: i64, step_s: i64, load: (f64, f64, f64)) -> Reading {
        let (util, memory, cpu_ratio) = load;
        let pool = &POOLS[self.scene.fleet.gpus[self.gpu].pool];
        let span_w = pool.limit_w - pool.idle_w;
        let context = if memory > 0.0 { 0.06 } else { 0.0 };
        let noise = 1.0 + 0.02 * self.dice.noise();
        let power_w = (pool.idle_w + span_w * (context + 0.86 * util)) * noise;
        let power_w = power_w.clamp(pool.idle_w * 0.9, pool.limit_w * 1.01);
        let hot = self.gpu == self.scene.fleet.hot;
        let warm_c = 29.0 + 40.0 * power_w / pool.limit_w + if hot { 23.0 } else { 0.0 };
        self.temp_c += (warm_c - self.temp_c) * (step_s as f64 / 400.0).min(1.0);
        let temp_c = (self.temp_c + 0.6 * self.dice.noise()).max(20.0);
        let slowed = hot && temp_c >= 84.0;
        let throttle_reasons = match (slowed, memory > 0.0, power_w > 0.92 * pool.limit_w) {
            (true, ..) => 0x40,
            (_, false, _) => 0x1,
            (_, _, true) => 0x4,
            _ => 0,
        };
        let busy_mhz = if slowed { pool.sm_clock_mhz * 7 / 10 } else { pool.sm_clock_mhz };
        Reading {
            gpu: self.gpu,
            at_ms,
            util_percent: percent(util),
            mem_util_percent: percent(util * (0.35 + 0.25 * memory)),
            mem_used_mib: (f64::from(pool.mem_mib) * memory) as u32 + 4,
            power_cw: (power_w * 100.0) as u32,
            temp_c: temp_c as u32,
            sm_clock_mhz: if memory > 0.0 { busy_mhz } else { 345 },
            mem_clock_mhz: pool.mem_clock_mhz,
            ecc_corrected: self.ecc_corrected,
            ecc_uncorrected: self.ecc_uncorrected,
            throttle_reasons,
            cpu_ratio,
        }
    }
}

impl Work {
    fn new(holding: Holding, job: &Job, dice: &mut Dice) -> Self {
        let ((low, high), (mem_low, mem_high)) = match job.workload {
            Workload::Train => ((0.82, 0.98), (0.70, 0.97)),
            Workload::Finetune => ((0.58, 0.85), (0.40, 0.90)),
            Workload::Inference => ((0.30, 0.75), (0.75, 0.93)),
            Workload::Dataprep => ((0.20, 0.50), (0.06, 0.30)),
            Workload::Interactive => ((0.40, 0.75), (0.04, 0.40)),
            Workload::Unlabelled => ((0.20, 0.90), (0.10, 0.90)),
        };
        Self {
            holding,
            level: dice.between(low, high),
            memory: dice.between(mem_low, mem_high),
            checkpoint_s: dice.seconds(3600, 10_800),
            drift: 0.0,
            active: false,
        }
    }

    fn utilisation(&mut self, job: &Job, at: i64, local: &Local, dice: &mut Dice) -> f64 {
        let (noise, roll) = (dice.noise(), dice.unit());
        self.drift = 0.7 * self.drift + noise * spread(job.workload);
        let age = at - self.holding.started;
        if paused(job, age) {
            return 0.0;
        }
        match job.conduct {
            Conduct::IdleAfter(busy_s) if age >= busy_s => return 0.0,
            Conduct::MemoryOnly => return 0.0,
            Conduct::Unbalanced if self.holding.last => return 0.0,
            Conduct::Starved => return (0.30 + self.drift).clamp(0.12, 0.45),
            _ => {}
        }
        let level = self.level + self.drift;
        match job.workload {
            Workload::Train | Workload::Finetune | Workload::Unlabelled => {
                self.training(job.workload, age, level, roll)
            }
            Workload::Inference => (level * traffic(local, at)).clamp(0.01, 1.0),
            Workload::Dataprep => level.clamp(0.0, 1.0),
            Workload::Interactive => self.notebook(local, at, level, roll),
        }
    }

    /// Loading first, then steady, with checkpoints and waits for data.
    fn training(&self, workload: Workload, age: i64, level: f64, roll: f64) -> f64 {
        let dips = if workload == Workload::Train { 0.03 } else { 0.07 };
        let since = age % self.checkpoint_s;
        let share = match age {
            ..240 => 0.12,
            _ if since < 150 => 0.08,
            _ if roll < dips => 0.45,
            _ => 1.0,
        };
        (level * share).clamp(0.0, 1.0)
    }

    /// Bursts while somebody sits there.
    fn notebook(&mut self, local: &Local, at: i64, level: f64, roll: f64) -> f64 {
        let (hour, worked) = local.hour(at);
        let there = if (9..20).contains(&hour) && worked { 0.16 } else { 0.02 };
        self.active = if self.active { roll > 0.25 } else { roll < there };
        if self.active { level.clamp(0.05, 1.0) } else { 0.0 }
    }

    fn memory_ratio(&self, job: &Job, at: i64) -> f64 {
        let age = at - self.holding.started;
        let growth = if job.workload == Workload::Interactive { 3600.0 } else { 300.0 };
        self.memory * (0.15 + 0.85 * (age as f64 / growth).min(1.0))
    }

    fn cpu_ratio(&self, job: &Job, util: f64) -> f64 {
        match (job.conduct, job.workload) {
            (Conduct::Starved, _) => 1.0,
            (Conduct::IdleAfter(_) | Conduct::MemoryOnly, _) => 0.02,
            (_, Workload::Dataprep) => 0.8,
            (_, Workload::Train) => 0.35 * util,
            _ => 0.25 * util + 0.03,
        }
    }
}

fn paused(job: &Job, age: i64) -> bool {
    job.suspended_s.is_some_and(|(after_s, for_s)| (after_s..after_s + for_s).contains(&age))
}

fn spread(workload: Workload) -> f64 {
    match workload {
        Workload::Train => 0.012,
        Workload::Finetune => 0.04,
        Workload::Inference => 0.03,
        Workload::Dataprep => 0.12,
        Workload::Interactive | Workload::Unlabelled => 0.06,
    }
}

/// What users of a service ask for by local hour, relative to its level.
fn traffic(local: &Local, at: i64) -> f64 {
    const DAY: [f64; 24] = [
        0.5, 0.4, 0.3, 0.25, 0.25, 0.3, 0.45, 0.7, 0.95, 1.15, 1.25, 1.25, 1.15, 1.1, 1.2, 1.25,
        1.25, 1.2, 1.2, 1.25, 1.3, 1.2, 0.95, 0.7,
    ];
    let (hour, worked) = local.hour(at);
    DAY[hour] * if worked { 1.0 } else { 0.8 }
}

fn percent(ratio: f64) -> u32 {
    (ratio * 100.0 + 0.5) as u32
}
