//! What a forecast rests on, and why, in words.

use std::fmt;

use crate::error::{day, instant};
use crate::quantile::median;
use crate::series::Series;

/// The model a forecast was made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Elastic net on levels, lags, Fourier terms and calendar, blended with the naives.
    WeeklyElasticNet,
    /// The value of the same step one season earlier.
    SeasonalNaive,
    /// One level for all steps: there is too little to know a season.
    Level,
}

impl Basis {
    /// Name as in flags and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WeeklyElasticNet => "weekly_elastic_net",
            Self::SeasonalNaive => "seasonal_naive",
            Self::Level => "level",
        }
    }
}

/// Something a reader of the forecast must know.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// Fewer days than the model needs.
    TooLittleHistory {
        /// Days there are.
        have_days: f64,
        /// Days it needs.
        need_days: f64,
    },
    /// Demand never changed.
    Constant {
        /// The one value, in GPUs.
        gpus: f64,
    },
    /// Demand was zero throughout.
    AllZero,
    /// Steps nobody saw.
    Gaps {
        /// Steps without a reading.
        missing: usize,
        /// Steps in all.
        steps: usize,
    },
    /// The readings stop before the origin.
    Late {
        /// Start of the first step after the last reading, milliseconds UTC.
        since_ms: i64,
    },
    /// Demand moved to another level and stayed.
    LevelShift {
        /// The middle of the first day of the new level, milliseconds UTC: days are counted back
        /// from the end of the series, and may begin on the local day before.
        at_ms: i64,
        /// Median before, in GPUs.
        before_gpus: f64,
        /// Median since, in GPUs.
        after_gpus: f64,
    },
    /// The first demand came later than the first step.
    NewSeries {
        /// First step with demand, milliseconds UTC.
        first_ms: i64,
    },
}

impl Reason {
    /// In words, with days and instants as local time of the offset from UTC, in seconds, that
    /// `offset_s` gives for an instant in milliseconds.
    #[must_use]
    pub fn told(&self, offset_s: impl Fn(i64) -> i32) -> String {
        let instant = |at_ms: i64| instant(at_ms, offset_s(at_ms));
        match self {
            Self::TooLittleHistory { have_days, need_days } => format!(
                "{have_days:.1} days of history, {need_days:.0} needed to learn a weekly pattern"
            ),
            Self::Constant { gpus } => {
                format!("demand was {} GPUs in every step seen", (gpus * 10.0).round() / 10.0)
            }
            Self::AllZero => "demand was 0 in every step seen".to_owned(),
            Self::Gaps { missing, steps } => {
                format!("{missing} of {steps} steps were not seen and are left out")
            }
            Self::Late { since_ms } => format!("no readings since {}", instant(*since_ms)),
            Self::LevelShift { at_ms, before_gpus, after_gpus } => format!(
                "level shift on {}: from {before_gpus:.1} to {after_gpus:.1} GPUs",
                day(*at_ms, offset_s(*at_ms))
            ),
            Self::NewSeries { first_ms } => {
                format!("new: first demand at {}", instant(*first_ms))
            }
        }
    }
}

/// In words, in UTC.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(|_| 0))
    }
}

/// Reasons that can be read from the series alone.
pub(crate) fn judge(series: &Series) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let seen: Vec<f64> = series.values().iter().flatten().copied().collect();
    let (low, high) = seen.iter().fold((f64::MAX, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
    if seen.is_empty() {
        return reasons;
    }
    if high == 0.0 {
        reasons.push(Reason::AllZero);
    } else if high - low <= 1e-9 * high {
        reasons.push(Reason::Constant { gpus: high });
    }
    let first = first_demand(series);
    if high > 0.0 && first >= series.season_short() {
        reasons.push(Reason::NewSeries { first_ms: series.step_start_ms(first) });
    }
    let since_first = &series.values()[first..];
    let missing = since_first.iter().filter(|v| v.is_none()).count();
    if missing > 0 {
        reasons.push(Reason::Gaps { missing, steps: since_first.len() });
    }
    let trailing = series.values().iter().rev().take_while(|v| v.is_none()).count();
    if trailing > 0 {
        reasons.push(Reason::Late { since_ms: series.step_start_ms(series.len() - trailing) });
    }
    reasons.extend(level_shift(series));
    reasons
}

/// Index of the first step with demand above 0; where there is none, of the first that was seen.
pub(crate) fn first_demand(series: &Series) -> usize {
    let first = |of: fn(&Option<f64>) -> bool| series.values().iter().position(of);
    first(|v| v.is_some_and(|v| v > 0.0)).or_else(|| first(Option::is_some)).unwrap_or(0)
}

/// Days looked back for a level shift, and days that must lie on each side of it.
const SHIFT_DAYS: usize = 56;
const SHIFT_DAYS_BEFORE: usize = 14;
const SHIFT_DAYS_AFTER: usize = 3;
const HALF_DAY_MS: i64 = 43_200_000;

/// The split of the last eight weeks into two levels, where it is far beyond the daily noise.
///
/// Daily medians; the split with the least absolute deviation around two medians. It counts when
/// the levels differ by more than a quarter and by more than six mean deviations of the days.
fn level_shift(series: &Series) -> Option<Reason> {
    let per_day = (86_400 / series.step_s()).max(1) as usize;
    let days: Vec<(usize, f64)> = daily_medians(series, per_day);
    let days = &days[days.len().saturating_sub(SHIFT_DAYS)..];
    let (split, noise) = (SHIFT_DAYS_BEFORE..days.len())
        .map(|k| (k, (deviation(&days[..k]) + deviation(&days[k..])) / days.len() as f64))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    // One that is younger is no level yet, and is not dated to a day on which it was not.
    if days.len() - split < SHIFT_DAYS_AFTER {
        return None;
    }
    let before_gpus = level(&days[..split]);
    let after_gpus = level(&days[split..]);
    let change = (after_gpus - before_gpus).abs();
    let large = change > 0.25 * before_gpus.max(after_gpus);
    (large && change > 6.0 * noise && change > 0.0).then(|| Reason::LevelShift {
        at_ms: series.step_start_ms(days[split].0) + HALF_DAY_MS,
        before_gpus,
        after_gpus,
    })
}

/// First step and median of each whole day, counted back from the end; days not seen are left out.
fn daily_medians(series: &Series, per_day: usize) -> Vec<(usize, f64)> {
    let skip = series.len() % per_day;
    series.values()[skip..]
        .chunks(per_day)
        .enumerate()
        .filter_map(|(i, day)| {
            Some((skip + i * per_day, median(day.iter().flatten().copied().collect())?))
        })
        .collect()
}

fn level(days: &[(usize, f64)]) -> f64 {
    median(days.iter().map(|d| d.1).collect()).unwrap_or(0.0)
}

fn deviation(days: &[(usize, f64)]) -> f64 {
    let centre = level(days);
    days.iter().map(|d| (d.1 - centre).abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hourly(values: Vec<Option<f64>>) -> Series {
        Series::new("s", 0, 3600, values).unwrap()
    }

    /// A working-day rhythm around a level.
    fn rhythm(hours: usize, level: impl Fn(usize) -> f64) -> Vec<Option<f64>> {
        (0..hours).map(|i| Some(level(i) + f64::from(u8::from(i % 24 > 8)) * 5.0)).collect()
    }

    #[test]
    fn days_and_instants_are_told_in_local_time() {
        // Breaks if a shift at midnight in Shanghai is told of the day before.
        let at_ms = 1_590_940_800_000; // 2020-05-31T16:00:00Z
        let shanghai = |_| 8 * 3_600;
        let shift = Reason::LevelShift { at_ms, before_gpus: 1.0, after_gpus: 9.0 };
        assert!(shift.told(shanghai).contains("on 2020-06-01: "), "{}", shift.told(shanghai));
        assert!(shift.to_string().contains("on 2020-05-31: "), "{shift}");
        let late = Reason::Late { since_ms: at_ms };
        assert_eq!(late.told(shanghai), "no readings since 2020-06-01T00:00:00+08:00");
        assert_eq!(late.to_string(), "no readings since 2020-05-31T16:00:00Z");
    }

    #[test]
    fn a_level_shift_is_found_where_it_happened() {
        // Breaks if a step from 50 to 120 on day 30 of 45 is missed or misplaced.
        let values = rhythm(45 * 24, |i| if i < 30 * 24 { 50.0 } else { 120.0 });
        let reasons = judge(&hourly(values));
        assert_eq!(
            reasons,
            [Reason::LevelShift {
                at_ms: 30 * 86_400_000 + HALF_DAY_MS,
                before_gpus: 55.0,
                after_gpus: 125.0
            }]
        );
        let told = "level shift on 1970-01-31: from 55.0 to 125.0 GPUs";
        assert_eq!(reasons[0].to_string(), told);
        // The same told at any hour of a later day.
        for hours in [1, 11, 13, 23] {
            let values = rhythm(44 * 24 + hours, |i| if i < 30 * 24 { 50.0 } else { 120.0 });
            assert_eq!(judge(&hourly(values))[0].to_string(), told, "{hours}");
        }
        // Two days of zero are no level, and three are one since the day on which they began.
        let zero = |days: usize| {
            rhythm(33 * 24, move |_| 50.0)
                .into_iter()
                .enumerate()
                .map(move |(i, gpus)| if i < (33 - days) * 24 { gpus } else { Some(0.0) })
        };
        let shifts = |days| judge(&hourly(zero(days).collect())).len();
        assert_eq!((shifts(1), shifts(2), shifts(3)), (0, 0, 1));
        let told = judge(&hourly(zero(3).collect()))[0].to_string();
        assert!(told.starts_with("level shift on 1970-01-31: "), "{told}");
        assert_eq!(
            Reason::Constant { gpus: 0.857_142_857 }.to_string(),
            "demand was 0.9 GPUs in every step seen"
        );
    }

    #[test]
    fn noise_and_weekends_are_no_level_shift() {
        // Breaks if an ordinary series is said to have moved.
        let noisy = |i: usize| 100.0 + f64::from(((i * 7919) % 31) as u8);
        let weekly = |i: usize| if (i / 24) % 7 < 5 { 100.0 } else { 40.0 };
        assert_eq!(judge(&hourly(rhythm(60 * 24, noisy))), []);
        assert_eq!(judge(&hourly(rhythm(60 * 24, weekly))), []);
    }

    #[test]
    fn zero_constant_gaps_and_new_are_told_apart() {
        // Breaks if two kinds of poor history are given the same reason.
        assert_eq!(judge(&hourly(vec![Some(0.0); 50])), [Reason::AllZero]);
        assert_eq!(judge(&hourly(vec![Some(8.0); 50])), [Reason::Constant { gpus: 8.0 }]);
        let mut values = vec![Some(0.0); 30];
        values.extend([Some(4.0), None, Some(6.0), None]);
        let hour = 3_600_000;
        assert_eq!(
            judge(&hourly(values)),
            [
                Reason::NewSeries { first_ms: 30 * hour },
                Reason::Gaps { missing: 2, steps: 4 },
                Reason::Late { since_ms: 33 * hour }
            ]
        );
    }
}
