//! Who held one GPU, or a node's, and when.

use super::super::suspension::Suspensions;
use super::index::Cluster;

/// One job attempt on one GPU from its grant to its release, in ms since 1970.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) started: i64,
    pub(super) ended: i64,
    pub(super) job: u32,
    pub(super) attempt: Option<i32>,
    pub(super) cluster: Cluster,
    pub(super) mig: Option<i16>,
    pub(super) share_ratio: f64,
    /// The number of the attempt among the suspended.
    pub(super) suspended: Option<usize>,
}

/// Stretches sorted by start; `latest[i]` is the last end among the first `i + 1`.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    pub(super) held: Vec<Held>,
    latest: Vec<i64>,
}

impl Stretches {
    pub(super) fn sort(&mut self) {
        self.held.sort_by_key(|held| (held.started, held.ended, held.job));
        self.latest = self
            .held
            .iter()
            .scan(i64::MIN, |latest, held| {
                *latest = held.ended.max(*latest);
                Some(*latest)
            })
            .collect();
    }

    /// Those that held just before `at`: a reading stands for the time until it was taken.
    pub(super) fn at(&self, at: i64) -> impl Iterator<Item = &Held> {
        let until = self.held.partition_point(|held| held.started < at);
        (0..until)
            .rev()
            .take_while(move |position| self.latest[*position] >= at)
            .map(|position| &self.held[position])
            .filter(move |held| held.ended >= at)
    }

    /// Adds where a grant to `ours` begins or ends inside `(from, until)`, or others take from it.
    pub(super) fn cuts(
        &self,
        (from, until): (i64, i64),
        ours: impl Fn(&Held) -> bool,
        suspensions: &Suspensions,
        found: &mut Vec<i64>,
    ) {
        let begun = self.held.partition_point(|held| held.started < until);
        let reaching = (0..begun).rev().take_while(|position| self.latest[*position] > from);
        for held in reaching.map(|position| &self.held[position]).filter(|held| ours(held)) {
            found.extend([held.started, held.ended].into_iter().filter(|at| *at > from));
            if let Some(number) = held.suspended {
                suspensions.get(number).cuts((from, until), found);
            }
        }
        found.retain(|at| *at < until);
    }
}
