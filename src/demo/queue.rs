//! The scheduler: first in, first out with backfill, over the GPUs that there are.
//!
//! Urgent jobs stand before the others. The first job that cannot start is promised the earliest
//! instant at which the limits of what runs leave room for it; a later job may overtake only if
//! its own limit ends before that. A job of up to a node's GPUs runs within one node, a larger one
//! on whole nodes, so free GPUs can be scattered too thinly for the next job.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::arrivals::{Job, Outcome};
use super::fleet::Fleet;
use super::local::Local;

/// Jobs looked at behind the first that cannot start.
const BACKFILL_DEPTH: usize = 100;

/// One attempt of one job, as the accounting tells it.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) job: usize,
    /// Restarts before it.
    pub(super) restarts: u32,
    pub(super) submitted: i64,
    pub(super) started: Option<i64>,
    pub(super) ended: Option<i64>,
    pub(super) state: State,
    pub(super) gpus: Vec<usize>,
}

/// Where an attempt stands, in the scheduler's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Pending,
    Running,
    Completed,
    Failed,
    Timeout,
    Cancelled,
    Preempted,
    NodeFail,
}

/// What happens next; at one instant, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    End(usize),
    GiveUp(usize),
    Lose,
    Submit(usize),
}

struct Scheduler<'a> {
    jobs: &'a [Job],
    fleet: &'a Fleet,
    events: BinaryHeap<Reverse<(i64, Event)>>,
    attempts: Vec<Attempt>,
    /// State that a running attempt will end in.
    endings: Vec<State>,
    waiting: Vec<usize>,
    running: Vec<usize>,
    free: Vec<Vec<usize>>,
    lost: usize,
}

/// Runs the queue from the first submission to the end of the span. Attempts come in order of
/// job, then restart; with them comes the GPU that was lost.
pub(super) fn run(jobs: &[Job], fleet: &Fleet, local: &Local) -> (Vec<Attempt>, usize) {
    let whole = |node: &super::fleet::Node| {
        node.gpus.iter().copied().filter(|gpu| *gpu != fleet.shared).collect()
    };
    let mut scheduler = Scheduler {
        jobs,
        fleet,
        events: BinaryHeap::from([Reverse((fleet.lost_at, Event::Lose))]),
        attempts: Vec::new(),
        endings: Vec::new(),
        waiting: Vec::new(),
        running: Vec::new(),
        free: fleet.nodes.iter().map(whole).collect(),
        lost: fleet.failing,
    };
    for (index, job) in jobs.iter().enumerate() {
        scheduler.submit(index, job.submitted, 0);
    }
    scheduler.run(local.ended);
    let lost = scheduler.lost;
    let mut attempts = scheduler.attempts;
    attempts.retain(|attempt| attempt.submitted < local.ended);
    attempts.sort_by_key(|attempt| (attempt.job, attempt.restarts));
    (attempts, lost)
}

impl Scheduler<'_> {
    fn submit(&mut self, job: usize, submitted: i64, restarts: u32) {
        let attempt = self.attempts.len();
        self.attempts.push(Attempt {
            job,
            restarts,
            submitted,
            started: None,
            ended: None,
            state: State::Pending,
            gpus: Vec::new(),
        });
        self.endings.push(State::Pending);
        self.events.push(Reverse((submitted, Event::Submit(attempt))));
        if let (Some(patience_s), 0) = (self.jobs[job].patience_s, restarts) {
            self.events.push(Reverse((submitted + patience_s, Event::GiveUp(attempt))));
        }
    }

    fn run(&mut self, ended: i64) {
        while let Some(Reverse((now, event))) = self.events.pop() {
            if now >= ended {
                break;
            }
            self.apply(now, event);
            let more = self.events.peek().is_some_and(|Reverse((next, _))| *next == now);
            if !more {
                for pool in 0..super::fleet::POOLS.len() {
                    self.schedule(now, pool);
                }
            }
        }
    }

    fn apply(&mut self, now: i64, event: Event) {
        match event {
            Event::End(attempt) if self.attempts[attempt].state == State::Running => {
                self.end(now, attempt, self.endings[attempt]);
            }
            Event::GiveUp(attempt) if self.attempts[attempt].state == State::Pending => {
                self.waiting.retain(|waiting| *waiting != attempt);
                self.attempts[attempt].ended = Some(now);
                self.attempts[attempt].state = State::Cancelled;
            }
            Event::Submit(attempt) if self.jobs[self.attempts[attempt].job].sliced => {
                self.start(now, attempt, vec![self.fleet.shared]);
            }
            Event::Submit(attempt) => self.enqueue(attempt),
            Event::Lose => self.lose(now),
            Event::End(_) | Event::GiveUp(_) => {}
        }
    }

    fn enqueue(&mut self, attempt: usize) {
        let urgent = |attempt: usize| self.jobs[self.attempts[attempt].job].urgent;
        let place = if urgent(attempt) {
            self.waiting.iter().position(|waiting| !urgent(*waiting))
        } else {
            None
        };
        self.waiting.insert(place.unwrap_or(self.waiting.len()), attempt);
    }

    /// The driver loses a GPU: what runs on it fails and is queued again, nothing starts there.
    /// The one that was to fail gives way to one that is held, so that somebody notices.
    fn lose(&mut self, now: i64) {
        let pool = self.fleet.gpus[self.lost].pool;
        let holds = |attempt: &&usize| self.jobs[self.attempts[**attempt].job].pool == pool;
        if let Some(attempt) = self.running.iter().filter(holds).max().copied() {
            self.lost = self.attempts[attempt].gpus[0];
            self.end(now, attempt, State::NodeFail);
        }
        let lost = self.lost;
        self.free[self.fleet.gpus[lost].node].retain(|gpu| *gpu != lost);
    }

    fn schedule(&mut self, now: i64, pool: usize) {
        let mut promised = None;
        let mut looked = 0;
        for attempt in self.waiting.clone() {
            let job = &self.jobs[self.attempts[attempt].job];
            if job.pool != pool {
                continue;
            }
            let fits_before = |limit: i64| job.limit_s.is_some_and(|own| now + own <= limit);
            let may = promised.is_none_or(fits_before);
            if let Some(gpus) = place(&self.free, self.fleet, pool, job.gpus).filter(|_| may) {
                self.waiting.retain(|waiting| *waiting != attempt);
                self.start(now, attempt, gpus);
            } else if promised.is_none() {
                promised = Some(self.promise(pool, job.gpus));
            }
            looked += usize::from(promised.is_some());
            if looked > BACKFILL_DEPTH {
                break;
            }
        }
    }

    /// Earliest instant at which the limits of what runs leave room for `gpus`.
    fn promise(&self, pool: usize, gpus: usize) -> i64 {
        let mut free = self.free.clone();
        let mut ends: Vec<(i64, usize)> = self
            .running
            .iter()
            .map(|attempt| {
                let limit_s = self.jobs[self.attempts[*attempt].job].limit_s;
                let started = self.attempts[*attempt].started.unwrap_or_default();
                (limit_s.map_or(i64::MAX, |limit_s| started + limit_s), *attempt)
            })
            .collect();
        ends.sort_unstable();
        for (end, attempt) in ends {
            self.release(&mut free, attempt);
            if place(&free, self.fleet, pool, gpus).is_some() {
                return end;
            }
        }
        i64::MAX
    }

    fn start(&mut self, now: i64, attempt: usize, gpus: Vec<usize>) {
        let job = &self.jobs[self.attempts[attempt].job];
        let restarts = self.attempts[attempt].restarts;
        let pause_s = job.suspended_s.map_or(0, |(_, pause_s)| pause_s);
        let (mut run_s, mut ending) = match job.limit_s {
            Some(limit_s) if job.run_s > limit_s => (limit_s, State::Timeout),
            _ => (job.run_s, ending(job.outcome)),
        };
        if let (Some(after_s), 0) = (job.preempted_after_s, restarts) {
            (run_s, ending) = (after_s, State::Preempted);
        }
        for gpu in &gpus {
            self.free[self.fleet.gpus[*gpu].node].retain(|free| free != gpu);
        }
        self.running.push(attempt);
        self.endings[attempt] = ending;
        self.events.push(Reverse((now + run_s + pause_s, Event::End(attempt))));
        let row = &mut self.attempts[attempt];
        (row.started, row.state, row.gpus) = (Some(now), State::Running, gpus);
    }

    fn end(&mut self, now: i64, attempt: usize, state: State) {
        self.running.retain(|running| *running != attempt);
        let mut free = std::mem::take(&mut self.free);
        self.release(&mut free, attempt);
        self.free = free;
        let row = &mut self.attempts[attempt];
        (row.ended, row.state) = (Some(now), state);
        if matches!(state, State::Preempted | State::NodeFail) {
            let (job, restarts) = (row.job, row.restarts + 1);
            self.submit(job, now + 1, restarts);
        }
    }

    fn release(&self, free: &mut [Vec<usize>], attempt: usize) {
        for gpu in &self.attempts[attempt].gpus {
            if *gpu != self.fleet.shared {
                let node = &mut free[self.fleet.gpus[*gpu].node];
                let at = node.partition_point(|other| other < gpu);
                node.insert(at, *gpu);
            }
        }
    }
}

fn ending(outcome: Outcome) -> State {
    match outcome {
        Outcome::Completed => State::Completed,
        Outcome::Failed => State::Failed,
        Outcome::Cancelled => State::Cancelled,
    }
}

/// GPUs for a job: on the node with the least room that is enough, or on whole nodes.
fn place(free: &[Vec<usize>], fleet: &Fleet, pool: usize, gpus: usize) -> Option<Vec<usize>> {
    let of_pool = || free.iter().enumerate().filter(|(node, _)| fleet.nodes[*node].pool == pool);
    if gpus <= fleet.gpus_per_node {
        let roomy = of_pool().filter(|(_, room)| room.len() >= gpus);
        let (_, room) = roomy.min_by_key(|(node, room)| (room.len(), *node))?;
        return Some(room[..gpus].to_vec());
    }
    let whole: Vec<&Vec<usize>> =
        of_pool().map(|(_, room)| room).filter(|room| room.len() == fleet.gpus_per_node).collect();
    let nodes = gpus.div_ceil(fleet.gpus_per_node);
    (whole.len() >= nodes)
        .then(|| whole[..nodes].iter().flat_map(|room| room.iter().copied()).collect())
}
