//! Which of the two instants of a doubled local time a reading is, told by order.
//!
//! A log is written in order, so a time that goes back is the second pass. Where both instants lie
//! after the reading before, the usual distance of the readings decides: an hourly log that shows
//! 01:30 twice went through the hour, one that is written every 30 s shows a line twice.

use std::collections::HashMap;

/// How far before the last reading the next may lie and still be in order: GPUs of one block
/// are read one after the other.
const DISORDER_MS: i64 = 60_000;
/// How long before a doubled hour the last reading may lie to say which of the two it is.
const ANCHOR_MS: i64 = 2 * 3_600_000;

/// What writes readings in order: a GPU, by a number of the caller's; 0 is the log as a whole.
pub(crate) type Who = u64;

/// The readings up to now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Doubled {
    last_ms: Option<i64>,
    /// Last reading of each, and how long after the one before it came.
    of: HashMap<Who, (i64, Option<i64>)>,
}

impl Doubled {
    /// The instant that was resolved last, in milliseconds since 1970.
    pub(crate) fn last(&self) -> Option<i64> {
        self.last_ms
    }

    /// Takes a resolved instant of the log.
    pub(crate) fn passed(&mut self, at: i64) {
        self.last_ms = Some(at);
    }

    /// Takes a resolved instant of `who`, shortly before or in a doubled hour.
    pub(crate) fn saw(&mut self, who: Who, at: i64) {
        let entry = self.of.entry(who).or_insert((at, None));
        if at > entry.0 {
            *entry = (at, Some(at - entry.0));
        }
    }

    /// One of the two instants; `None` where no reading before says which.
    pub(crate) fn pick(&self, who: Who, [first, second]: [i64; 2]) -> Option<i64> {
        let last = self.last_ms.filter(|last| first - last <= ANCHOR_MS)?;
        if first < last - DISORDER_MS {
            // What goes back further than the hour was not written in order.
            return (second >= last - ANCHOR_MS).then_some(second);
        }
        let usual = self.of.get(&who).filter(|(last, _)| first - last <= ANCHOR_MS);
        let Some((last, Some(usual))) = usual else { return Some(first) };
        let off = |at: i64| (at - last - usual).abs();
        Some(if off(second) < off(first) { second } else { first })
    }
}
