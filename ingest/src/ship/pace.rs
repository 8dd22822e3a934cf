//! How long to wait for a server that is away.

use std::time::Duration;

/// Longest wait.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Waits that double up to a limit. Each node waits a little less than that, by its name: a fleet
/// does not come back in one instant.
#[derive(Debug)]
pub(super) struct Backoff {
    first: Duration,
    wait: Duration,
    /// Part of the wait that is waited.
    part: f64,
}

impl Backoff {
    pub(super) fn new(first: Duration, node: &str) -> Self {
        let first = first.min(WAIT_MAX);
        let part = 0.7 + 0.3 * f64::from(crc32fast::hash(node.as_bytes())) / f64::from(u32::MAX);
        Self { first, wait: first, part }
    }

    /// The next wait.
    pub(super) fn next(&mut self) -> Duration {
        let wait = self.wait.mul_f64(self.part);
        self.wait = (self.wait * 2).min(WAIT_MAX);
        wait
    }

    /// The server answered.
    pub(super) fn reset(&mut self) {
        self.wait = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_differ_between_nodes() {
        let second = Duration::from_secs(1);
        let mut waits = Backoff::new(second, "n1");
        let all: Vec<_> = (0..10).map(|_| waits.next()).collect();
        assert!(all[0] >= second.mul_f64(0.7) && all[0] <= second, "{all:?}");
        assert!((all[1].as_secs_f64() / all[0].as_secs_f64() - 2.0).abs() < 1e-6);
        assert!(all[9] <= WAIT_MAX && all[9] == all[8], "{all:?}");
        assert_ne!(Backoff::new(second, "n2").next(), all[0]);
        waits.reset();
        assert_eq!(waits.next(), all[0]);
    }
}
