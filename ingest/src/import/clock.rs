//! Readings that go back in time within a file: out of order, or a clock that was set back.

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
}

/// Jumps that are kept as events.
const JUMPS_MAX: usize = 1_000;

/// A clock that goes back by less is a line out of order.
const JUMP_MS_MIN: i64 = 60_000;

impl Clock {
    pub(super) fn watch(&mut self, series: &[u32], instants: &[i64]) {
        self.batch += 1;
        for (number, at) in series.iter().zip(instants) {
            let place = *number as usize;
            if place >= self.last.len() {
                self.last.resize(place + 1, (0, 0));
            }
            let (batch, last) = self.last[place];
            if batch == self.batch && last > *at {
                self.times += 1;
                self.first.get_or_insert((*number, last, *at));
                if last - at >= JUMP_MS_MIN && self.jumps.len() < JUMPS_MAX {
                    self.jumps.push((*number, last, *at));
                }
            }
            self.last[place] = (self.batch, *at);
        }
    }

    /// The series, and what was seen in words.
    pub(super) fn told(&self) -> Option<(u32, String)> {
        let (number, from, to) = self.first?;
        let text = format!(
            "time goes back from {} to {}, and {} more times: out of order, or a clock that was \
             set back; every reading is kept once, at the time it tells",
            instant(from),
            instant(to),
            self.times - 1,
        );
        Some((number, text))
    }

    /// The series of each jump, the time after it, and what was seen in words.
    pub(super) fn jumps(&self) -> impl Iterator<Item = (u32, i64, String)> {
        self.jumps.iter().map(|(number, from, to)| {
            (*number, *to, format!("the time of the readings went back from {}", instant(*from)))
        })
    }
}

fn instant(ms: i64) -> String {
    let at = DateTime::from_timestamp_millis(ms).unwrap_or_default();
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
