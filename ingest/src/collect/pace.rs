//! When to read next, and when to stop.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tells threads to end; clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// From now on it is set.
    pub fn set(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Whether it is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is set.
    pub fn wait(&self) {
        let mut set = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !*set {
            set = self.0.1.wait(set).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until `at`, or until it is set. Whether it is.
    pub(super) fn wait_until(&self, at: Instant) -> bool {
        let mut set = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = at.saturating_duration_since(Instant::now());
            if *set || left.is_zero() {
                return *set;
            }
            set = self.0.1.wait_timeout(set, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Instants an interval apart. One that was missed is left out, not caught up on.
#[derive(Debug)]
pub(super) struct Pace {
    next: Instant,
    interval: Duration,
}

impl Pace {
    pub(super) fn new(interval: Duration) -> Self {
        Self { next: Instant::now(), interval: interval.max(Duration::from_millis(1)) }
    }

    /// The next instant, and how many were missed before it.
    pub(super) fn next(&mut self) -> (Instant, u64) {
        let at = self.next;
        let late = Instant::now().saturating_duration_since(at);
        let missed = u64::try_from(late.as_nanos() / self.interval.as_nanos()).unwrap_or(u64::MAX);
        let skipped = u32::try_from(missed).unwrap_or(u32::MAX);
        let at = at + self.interval * skipped;
        self.next = at + self.interval;
        (at, missed)
    }
}
