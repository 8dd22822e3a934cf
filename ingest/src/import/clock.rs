//! Readings that go back in time within a file: out of order, or a clock that was set back.
//!
//! A clock is set back once and goes on from there. Where more than a tenth of the steps between
//! the readings of a batch go back, to several places, its rows are plainly not sorted by time: that
//! says nothing of any clock, and is told once.

use std::collections::{BTreeSet, HashSet};

use chrono::{DateTime, SecondsFormat};

/// Watches the instants of each series, batch by batch: files may come in any order, the lines of
/// one seldom do.
#[derive(Debug, Default)]
pub(super) struct Clock {
    batch: u32,
    /// Batch and instant of the last reading, by the number of the series.
    last: Vec<(u32, i64)>,
    times: u64,
    first: Option<(u32, i64, i64)>,
    jumps: Vec<(u32, i64, i64)>,
    /// Series whose rows are not sorted.
    unsorted: HashSet<u32>,
}

/// Jumps that are kept as events.
const JUMPS_MAX: usize = 1_000;

/// A clock that goes back by less is a line out of order.
const JUMP_MS_MIN: i64 = 60_000;

/// Places, parted by a minute, from which on a batch may be unsorted.
const PLACES_MIN: usize = 3;

/// One step back in so many is more than a clock does.
const STEPS_PER_JUMP: u64 = 10;

impl Clock {
    pub(super) fn watch(&mut self, series: &[u32], instants: &[i64]) {
        self.batch += 1;
        let known = self.jumps.len();
        let (mut steps, mut back, mut places) = (0, 0, BTreeSet::new());
        for (number, at) in series.iter().zip(instants) {
            let place = *number as usize;
            if place >= self.last.len() {
                self.last.resize(place + 1, (0, 0));
            }
            let (batch, last) = self.last[place];
            steps += u64::from(batch == self.batch);
            if batch == self.batch && last > *at {
                self.times += 1;
                self.first.get_or_insert((*number, last, *at));
                if last - at >= JUMP_MS_MIN {
                    back += 1;
                    if places.len() < PLACES_MIN {
                        places.insert(at.div_euclid(JUMP_MS_MIN));
                    }
                    if self.jumps.len() < JUMPS_MAX {
                        self.jumps.push((*number, last, *at));
                    }
                }
            }
            self.last[place] = (self.batch, *at);
        }
        if places.len() >= PLACES_MIN && back * STEPS_PER_JUMP > steps {
            self.jumps.truncate(known);
            self.unsorted.extend(series);
        }
    }

    /// The series, and what was seen in words.
    pub(super) fn told(&self) -> Option<(u32, String)> {
        let (number, from, to) = self.first?;
        let (from, to, more) = (instant(from), instant(to), self.times - 1);
        let text = match self.unsorted.is_empty() {
            true => format!(
                "time goes back from {from} to {to}, and {more} more times: out of order, or a \
                 clock that was set back; every reading is kept once, at the time it tells"
            ),
            false => format!(
                "rows are not sorted by time: it goes back from {from} to {to}, and {more} more \
                 times; every reading is kept once, at the time it tells, and whether a clock was \
                 set back cannot be seen"
            ),
        };
        Some((number, text))
    }

    /// The series of each jump, the time after it, and what was seen in words.
    pub(super) fn jumps(&self) -> impl Iterator<Item = (u32, i64, String)> {
        let jumps = self.jumps.iter().filter(|(number, _, _)| !self.unsorted.contains(number));
        jumps.map(|(number, from, to)| {
            (*number, *to, format!("the time of the readings went back from {}", instant(*from)))
        })
    }
}

fn instant(ms: i64) -> String {
    let at = DateTime::from_timestamp_millis(ms).unwrap_or_default();
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_any_order_are_no_jumps_of_a_clock() {
        // Breaks when a shuffled file makes an event of every other row, or a clock that was set
        // back on a whole node is taken for one.
        let minutes = |all: &[i64]| -> Vec<i64> { all.iter().map(|at| at * 60_000).collect() };
        let mut shuffled = Clock::default();
        shuffled.watch(&[0; 9], &minutes(&[5, 1, 7, 3, 9, 2, 8, 4, 6]));
        shuffled.watch(&[0; 2], &minutes(&[40, 30]));
        assert_eq!(shuffled.jumps().count(), 0);
        assert!(shuffled.told().unwrap().1.contains("not sorted by time"));
        let mut backwards = Clock::default();
        backwards.watch(&[0; 5], &minutes(&[5, 4, 3, 2, 1]));
        assert_eq!(backwards.jumps().count(), 0);
        // Eight GPUs of one node go back by an hour, a second apart.
        let mut node = Clock::default();
        let gpus = [0, 1, 2, 3, 4, 5, 6, 7];
        let at = [60, 61, 1, 2, 3].map(|at| minutes(&[at; 8]));
        node.watch(&gpus.repeat(5), &at.concat());
        assert_eq!(node.jumps().count(), 8);
        assert!(node.told().unwrap().1.contains("or a clock that was set back"));
    }
}
