//! Readings cut at the bins of a day.

use std::ops::Range;

/// Length of the shorter bins in milliseconds.
pub(super) const BIN_MS: i64 = 300_000;

/// Length of a day in milliseconds.
pub(super) const DAY_MS: i64 = 86_400_000;

/// Readings of a day and of those beside it, column by column.
#[derive(Debug, Default)]
pub(super) struct Readings {
    /// Series of each, as its place in sort order.
    pub(super) series: Vec<u32>,
    /// GPU model and job of each, as their place in sort order.
    pub(super) label: Vec<u32>,
    /// Instant in milliseconds.
    pub(super) sampled_ms: Vec<i64>,
    /// Start of the stretch that it stands for, in milliseconds.
    pub(super) started_ms: Vec<i64>,
}

impl Readings {
    /// Rows by series and instant.
    pub(super) fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..).take(self.series.len()).collect();
        order.sort_by_key(|row| (self.series[*row as usize], self.sampled_ms[*row as usize]));
        order
    }
}

/// What a reading tells of one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) series: u32,
    /// Bin of the day, from 0.
    pub(super) bin: u32,
    pub(super) label: u32,
    /// Row of the reading.
    pub(super) row: u32,
    /// Milliseconds of the bin that it stands for.
    pub(super) ms: u32,
    /// Its instant is in the bin.
    pub(super) counted: bool,
    /// Its values are of the bin: it stands for some of its time, or for no time at all.
    pub(super) valued: bool,
}

impl Piece {
    pub(super) fn seconds(&self) -> f64 {
        f64::from(self.ms) / 1e3
    }

    fn group(&self) -> (u32, u32, u32) {
        (self.series, self.bin, self.label)
    }
}

/// Cuts readings in `order` at the bins of the day that begins at `midnight_ms`. What lies outside
/// it is left out. Sorted by series, bin and label, and then by instant.
pub(super) fn cut(readings: &Readings, order: &[u32], midnight_ms: i64) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(order.len());
    for row in order {
        let place = *row as usize;
        let sampled = readings.sampled_ms[place] - midnight_ms;
        let started = readings.started_ms[place] - midnight_ms;
        let (begun, ended) = (started.max(0), sampled.min(DAY_MS));
        let piece = |bin: i64, ms: i64, counted| Piece {
            series: readings.series[place],
            bin: u32::try_from(bin).expect("a bin of the day"),
            label: readings.label[place],
            row: *row,
            ms: u32::try_from(ms).expect("no more than a bin"),
            counted,
            valued: ms > 0 || started >= sampled,
        };
        let instant = (0..DAY_MS).contains(&sampled).then_some(sampled / BIN_MS);
        let mut counted = false;
        let mut at = begun;
        while at < ended {
            let bin = at / BIN_MS;
            let until = ended.min((bin + 1) * BIN_MS);
            counted |= instant == Some(bin);
            pieces.push(piece(bin, until - at, instant == Some(bin)));
            at = until;
        }
        if let (Some(bin), false) = (instant, counted) {
            pieces.push(piece(bin, 0, true));
        }
    }
    pieces.sort_by_key(Piece::group);
    pieces
}

/// Runs of pieces that make one row.
pub(super) fn groups(pieces: &[Piece]) -> Vec<Range<usize>> {
    let mut start = 0;
    let runs = pieces.chunk_by(|a, b| a.group() == b.group());
    runs.map(|run| {
        let range = start..start + run.len();
        start = range.end;
        range
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of one reading, as (bin, ms, counted, valued); seconds of the day.
    fn pieces(started_s: i64, sampled_s: i64) -> Vec<(u32, u32, bool, bool)> {
        let readings = Readings {
            series: vec![0],
            label: vec![0],
            sampled_ms: vec![5 * DAY_MS + sampled_s * 1_000],
            started_ms: vec![5 * DAY_MS + started_s * 1_000],
        };
        let cut = cut(&readings, &readings.order(), 5 * DAY_MS);
        cut.into_iter().map(|p| (p.bin, p.ms, p.counted, p.valued)).collect()
    }

    #[test]
    fn a_reading_is_split_by_time_and_counted_at_its_instant() {
        // Breaks when a reading over a boundary counts twice, or wholly for one side.
        assert_eq!(pieces(280, 310), [(0, 20_000, false, true), (1, 10_000, true, true)]);
        assert_eq!(pieces(330, 360), [(1, 30_000, true, true)]);
        // Taken on the boundary: its time lies before it, its instant behind.
        assert_eq!(pieces(270, 300), [(0, 30_000, false, true), (1, 0, true, false)]);
        // It stands for no time: its value is that of its instant.
        assert_eq!(pieces(300, 300), [(1, 0, true, true)]);
        // Longer than a bin.
        let long = [(0, 1_000, false, true), (1, 300_000, false, true), (2, 1_000, true, true)];
        assert_eq!(pieces(299, 601), long);
    }

    #[test]
    fn what_lies_outside_the_day_is_left_out() {
        // Breaks when a reading across midnight counts for one day whole, or for both.
        assert_eq!(pieces(-10, 20), [(0, 20_000, true, true)]);
        assert_eq!(pieces(86_390, 86_420), [(287, 10_000, false, true)]);
        assert_eq!(pieces(86_370, 86_400), [(287, 30_000, false, true)]);
        assert_eq!(pieces(-30, 0), [(0, 0, true, false)]);
        assert_eq!(pieces(-60, -30), []);
        assert_eq!(pieces(86_400, 86_430), []);
        assert_eq!(pieces(-100, 86_500).iter().map(|p| u64::from(p.1)).sum::<u64>(), 86_400_000);
    }
}
