//! Memory of a GPU that no living process holds: what a killed job left behind.

use std::collections::HashMap;
use std::sync::Arc;

/// Bytes below which memory without a process is the driver's own.
const LEAST_BYTES: u64 = 512 << 20;

/// Share of the memory below which the sums of driver and processes may differ.
const LEAST_RATIO: f64 = 0.02;

/// Time in milliseconds that a process which has just ended takes to give back its memory.
const PATIENCE_MS: i64 = 10_000;

/// A board, or one of its slices.
type Device = (Arc<str>, Option<i16>);

/// Since when memory is held, and whether it was told.
#[derive(Debug)]
struct Holding {
    since_ms: i64,
    told: bool,
}

/// Which devices have memory that nobody holds.
#[derive(Debug, Default)]
pub(super) struct Held(HashMap<Device, Holding>);

/// Memory of one device, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    pub(super) used: f64,
    pub(super) total: f64,
    /// What living processes hold; `None` where that is not known of each.
    pub(super) living: Option<u64>,
}

impl Held {
    /// Takes a reading. The bytes held by nobody where they have been for a while, told once.
    pub(super) fn look(&mut self, device: Device, memory: Memory, now_ms: i64) -> Option<u64> {
        let Some(bytes) = unheld(memory) else {
            self.0.remove(&device);
            return None;
        };
        let holding = self.0.entry(device).or_insert(Holding { since_ms: now_ms, told: false });
        if holding.told || now_ms - holding.since_ms < PATIENCE_MS {
            return None;
        }
        holding.told = true;
        Some(bytes)
    }
}

fn unheld(memory: Memory) -> Option<u64> {
    let bytes = (memory.used as u64).saturating_sub(memory.living?);
    let least = LEAST_BYTES.max((memory.total * LEAST_RATIO) as u64);
    (bytes >= least).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_stays_without_a_process_is_told_once() {
        // Breaks when a job that is just ending is told, or one leak makes an event each round.
        const GIB: u64 = 1 << 30;
        let mut held = Held::default();
        let mut look = |at_s: i64, used: u64, living: Option<u64>| {
            let memory = Memory { used: used as f64, total: 80.0 * GIB as f64, living };
            held.look((Arc::from("GPU-a"), None), memory, at_s * 1000)
        };
        assert_eq!(look(0, 40 * GIB, Some(40 * GIB)), None);
        assert_eq!(look(1, 40 * GIB, Some(0)), None);
        assert_eq!(look(5, 40 * GIB, Some(0)), None);
        assert_eq!(look(11, 40 * GIB, Some(0)), Some(40 * GIB));
        assert_eq!(look(12, 40 * GIB, Some(0)), None);
        assert_eq!(look(13, GIB, Some(0)), None, "the driver's own");
        assert_eq!(look(14, 40 * GIB, None), None, "a process whose memory is not known");
        assert_eq!(look(20, 40 * GIB, Some(8 * GIB)), None);
        assert_eq!(look(30, 40 * GIB, Some(8 * GIB)), Some(32 * GIB));
    }
}
