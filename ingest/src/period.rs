//! How many seconds each reading stands for, and where nothing was seen.
//!
//! A reading stands for the time since the previous reading of the same series, at most
//! [`HOLD_INTERVALS`] sampling intervals: a longer stretch is a gap, and stays one. The first
//! reading of a series stands for one interval. The interval is the one given, else the median
//! spacing of the series on that day (of fewer than three readings no more than is usual among the
//! others), else what is usual among the others, else [`INTERVAL_S`].
//!
//! A count stands for the time from its instant on: until the next one where that is due, within
//! [`DUE_INTERVALS`], else for one interval. One that is lost is a gap, and no other stands for it.

use std::collections::HashMap;

/// A reading holds for no more than this many sampling intervals.
pub const HOLD_INTERVALS: f64 = 3.0;
/// A count is followed by the next within this many intervals; else the next was lost.
pub const DUE_INTERVALS: f64 = 1.5;
/// Sampling interval of a series of which nothing else tells it, in seconds.
pub const INTERVAL_S: f64 = 30.0;

/// On which side of its instant a row stands for time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stands {
    /// A reading: it tells what was since the one before.
    Before,
    /// A count: it tells what is from then on.
    After,
}

/// Readings of a day from which a series tells its interval by itself.
const TELLING_READINGS: usize = 3;

/// A stretch in which a series has no reading.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gap {
    /// Row of the first reading after it.
    pub(crate) row: usize,
    /// Last reading before it, in milliseconds.
    pub(crate) after_ms: i64,
    /// First reading after it, in milliseconds.
    pub(crate) until_ms: i64,
    /// Seconds not covered.
    pub(crate) missing_s: f64,
}

/// The seconds that each reading stands for, and the gaps.
///
/// # Input
/// `series` and `instants` (milliseconds) of rows sorted by both, each reading once; `before`
/// holds the last reading of each series on the day before.
pub(crate) fn integrate(
    series: &[u32],
    instants: &[i64],
    before: &HashMap<u32, i64>,
    interval_s: Option<f64>,
    stands: Stands,
) -> (Vec<f64>, Vec<Gap>) {
    let mut periods = Vec::with_capacity(series.len());
    let mut gaps = Vec::new();
    let usual = usual(series, instants);
    for run in series.chunk_by(|a, b| a == b) {
        let start = periods.len();
        let instants = &instants[start..start + run.len()];
        let previous = before.get(&run[0]).copied();
        // Two readings that lie far apart tell a silence, not an interval, where others tell one.
        let own = spacing(instants).filter(|own| {
            instants.len() >= TELLING_READINGS || usual.is_none_or(|usual| *own <= usual)
        });
        let interval = interval_s.or(own).or(usual).unwrap_or_else(|| {
            let since = previous.map(|at| seconds(instants[0] - at));
            since.filter(|s| *s > 0.0 && *s <= INTERVAL_S * 10.0).unwrap_or(INTERVAL_S)
        });
        let (hold, covered) = match stands {
            Stands::Before => (interval * HOLD_INTERVALS, interval * HOLD_INTERVALS),
            Stands::After => (interval * DUE_INTERVALS, interval),
        };
        let mut last = previous;
        for (place, at) in instants.iter().enumerate() {
            let since = last.map(|last| seconds(at - last)).filter(|s| *s > 0.0);
            if let (Some(after_ms), Some(since)) = (last, since)
                && since > hold
            {
                let missing_s = since - covered;
                gaps.push(Gap { row: periods.len(), after_ms, until_ms: *at, missing_s });
            }
            let distance = match stands {
                Stands::Before => since,
                Stands::After => instants.get(place + 1).map(|next| seconds(next - at)),
            };
            let within = |s: f64| if s > hold { covered } else { s };
            periods.push(distance.map_or(interval, within));
            last = Some(*at);
        }
    }
    (periods, gaps)
}

/// The spacing that is usual among the series with enough readings to tell it, in seconds.
fn usual(series: &[u32], instants: &[i64]) -> Option<f64> {
    let mut start = 0;
    let mut found = Vec::new();
    for run in series.chunk_by(|a, b| a == b) {
        if run.len() >= TELLING_READINGS {
            found.extend(spacing(&instants[start..start + run.len()]));
        }
        start += run.len();
    }
    found.sort_by(f64::total_cmp);
    found.get(found.len().checked_sub(1)? / 2).copied()
}

/// Median distance of neighbours (the lower of two), in seconds.
fn spacing(instants: &[i64]) -> Option<f64> {
    let mut steps: Vec<i64> = instants.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if steps.is_empty() {
        return None;
    }
    let middle = (steps.len() - 1) / 2;
    let (_, median, _) = steps.select_nth_unstable(middle);
    Some(seconds(*median)).filter(|s| *s > 0.0)
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn periods(seconds: &[i64], before: Option<i64>) -> (Vec<f64>, Vec<Gap>) {
        let instants: Vec<i64> = seconds.iter().map(|s| s * 1_000).collect();
        let before = before.map(|s| (7, s * 1_000)).into_iter().collect();
        integrate(&vec![7; seconds.len()], &instants, &before, None, Stands::Before)
    }

    #[test]
    fn a_count_that_is_lost_is_a_gap_and_no_double_count() {
        // Breaks when the minute after a lost one stands for two. One a minute, 180 s is lost; the
        // one due at 360 s came 5 s late.
        let instants = [0, 60, 120, 240, 300, 365, 420].map(|s: i64| s * 1_000);
        let (found, gaps) =
            integrate(&[3; 7], &instants, &HashMap::new(), Some(60.0), Stands::After);
        assert_eq!(found, [60.0, 60.0, 60.0, 60.0, 65.0, 55.0, 60.0]);
        assert_eq!(gaps, [Gap { row: 3, after_ms: 120_000, until_ms: 240_000, missing_s: 60.0 }]);
    }

    #[test]
    fn a_gap_is_not_covered_and_holds_three_intervals() {
        // 30 s apart, then 600 s of silence: 90 s count, 510 s are missing.
        let (found, gaps) = periods(&[0, 30, 60, 660, 690], None);
        assert_eq!(found, [30.0, 30.0, 30.0, 90.0, 30.0]);
        assert_eq!(gaps, [Gap { row: 3, after_ms: 60_000, until_ms: 660_000, missing_s: 510.0 }]);
    }

    #[test]
    fn the_first_reading_of_a_day_knows_the_day_before() {
        assert_eq!(periods(&[70, 100, 130], Some(30)).0, [40.0, 30.0, 30.0]);
    }

    #[test]
    fn a_single_reading_stands_for_the_default_interval() {
        assert_eq!(periods(&[5], None).0, [INTERVAL_S]);
    }

    #[test]
    fn two_readings_an_hour_apart_tell_no_interval_where_others_do() {
        // Series 9 was told stale but for one reading at either end: each stands for 30 s.
        let at = [0, 30_000, 60_000, 90_000, 0, 3_600_000];
        let (found, gaps) =
            integrate(&[0, 0, 0, 0, 9, 9], &at, &HashMap::new(), None, Stands::Before);
        assert_eq!(found, [30.0, 30.0, 30.0, 30.0, 30.0, 90.0]);
        assert_eq!(gaps.len(), 1);
        // Alone, they are readings taken by the hour.
        let alone = integrate(&[9, 9], &[0, 3_600_000], &HashMap::new(), None, Stands::Before);
        assert_eq!(alone.0, [3_600.0, 3_600.0]);
    }

    #[test]
    fn series_do_not_see_each_other() {
        let at = [0, 30_000, 60_000, 10_000, 40_000];
        let (found, gaps) = integrate(&[0, 0, 0, 4, 4], &at, &HashMap::new(), None, Stands::Before);
        assert_eq!((found, gaps.len()), (vec![30.0; 5], 0));
    }
}
