//! What the past weeks say of the coming ones: a trend where one is beyond doubt, else a level.
//!
//! # Why
//! *Why not any line?* A line can be drawn through four weeks, or through a step from one level to
//! another, and both point at a day on which the fleet is full that nothing supports. A purchase
//! is the dearest advice there is, so a slope counts only where it is seen over
//! [`TREND_WEEKS_MIN`] whole weeks, is not what chance gives once in twenty series without one,
//! and tells the weeks better than one step does.
//! *Source:* Theil-Sen (the median of the slopes between all pairs of weeks) and the test of Mann
//! and Kendall with its correction for ties; both bear a wild week.

use super::{Ground, PLAN_WEEKS_MIN};
use crate::quantile::median;

/// Whole weeks from which a trend can be told.
pub const TREND_WEEKS_MIN: usize = 8;
/// How often chance may give a trend as clear.
const CHANCE_RATIO_MAX: f64 = 0.05;
/// What the median distance from the median of normal figures is multiplied by to be their sigma.
const MAD_TO_SIGMA: f64 = 1.482_6;
/// Weeks on each side of a step at least.
const STEP_WEEKS_MIN: usize = 2;

/// One week behind, where the last is week 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Past {
    /// Start, milliseconds UTC.
    pub(super) week_ms: i64,
    /// Weeks after the last one: 0 or less.
    pub(super) place: f64,
    /// Level in GPUs.
    pub(super) gpus: f64,
    /// Seen almost throughout.
    pub(super) whole: bool,
}

/// A level or a line through weekly levels, with its spread.
#[derive(Debug)]
pub(super) struct Trend {
    pub(super) ground: Ground,
    last: f64,
    slope: f64,
    spread: f64,
    weeks: f64,
}

impl Trend {
    /// Through at least one week.
    pub(super) fn fit(past: &[Past]) -> Self {
        let whole: Vec<Past> = past.iter().copied().filter(|week| week.whole).collect();
        let enough = whole.len() >= TREND_WEEKS_MIN;
        let told = if enough { &whole } else { past };
        if let Some((from, step)) = last_step(told) {
            return Self::level(&told[from..], Some(&step), step.ground());
        }
        if !enough {
            let recent = &past[past.len().saturating_sub(PLAN_WEEKS_MIN)..];
            let few = Ground::FewWeeks { have: whole.len(), need: TREND_WEEKS_MIN };
            return Self { last: middle(recent).unwrap_or(0.0), ..Self::level(past, None, few) };
        }
        let ((last, slope), chance_ratio) = (line(told), chance_ratio(told));
        if chance_ratio > CHANCE_RATIO_MAX || slope == 0.0 {
            return Self::level(told, None, Ground::Steady { weeks: told.len() });
        }
        let off = |week: &Past| week.gpus - last - slope * week.place;
        let squares: f64 = told.iter().map(|week| off(week).powi(2)).sum();
        let n = told.len() as f64;
        let ground = Ground::Trend { weeks: told.len(), chance_ratio };
        Self { ground, last, slope, spread: (squares / (n - 2.0)).sqrt(), weeks: n }
    }

    /// The level of all weeks, or of those since the step.
    fn level(past: &[Past], step: Option<&Step>, ground: Ground) -> Self {
        let at = step.map_or(0, |step| step.at);
        let last = middle(&past[at..]).unwrap_or(0.0);
        let before = step.map_or(last, |step| step.before_gpus);
        let levels = (0..past.len()).map(|i| if i < at { before } else { last });
        let off: Vec<f64> =
            past.iter().zip(levels).map(|(week, level)| (week.gpus - level).abs()).collect();
        let n = past.len() as f64;
        let squares: f64 = off.iter().map(|off| off * off).sum();
        // Over many weeks one wild week, or a holiday, is no spread of the others; of few none can
        // be left out.
        let spread = match past.len() {
            TREND_WEEKS_MIN.. => MAD_TO_SIGMA * median(off).unwrap_or(0.0),
            _ => (squares / (n - 1.0).max(1.0)).sqrt(),
        };
        Self { ground, last, slope: 0.0, spread, weeks: n }
    }

    /// GPUs a week; 0 where a level is held.
    pub(super) const fn gpus_per_week(&self) -> f64 {
        self.slope
    }

    /// GPUs `ahead` weeks after the last week, at a level.
    pub(super) fn at(&self, ahead: usize, level: f64) -> f64 {
        let (ahead, n) = (ahead as f64, self.weeks);
        // The spread of a new week around a straight trend, at `ahead` weeks past its end.
        let tilt = match self.ground {
            Ground::Trend { .. } => {
                let from_middle = ahead + (n - 1.0) / 2.0;
                12.0 * from_middle * from_middle / (n * (n * n - 1.0))
            }
            _ => 0.0,
        };
        let wide = self.spread * (1.0 + 1.0 / n + tilt).sqrt();
        (self.last + self.slope * ahead + normal_quantile(level) * wide).max(0.0)
    }
}

/// A step between two levels that is far beyond what the weeks vary by around them.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    /// Index of the first week after it.
    at: usize,
    week_ms: i64,
    before_gpus: f64,
    after_gpus: f64,
    /// Sum of the distances from the two levels.
    misses: f64,
}

impl Step {
    fn ground(&self) -> Ground {
        Ground::LevelShift {
            week_ms: self.week_ms,
            before_gpus: self.before_gpus,
            after_gpus: self.after_gpus,
        }
    }
}

/// The last step, and the index of the first week of the level before it. What follows a step is
/// looked at again, so that a level that was left since is not held; there, a level is one of
/// [`PLAN_WEEKS_MIN`] weeks, since two of four weeks often lie apart by chance.
fn last_step(past: &[Past]) -> Option<(usize, Step)> {
    let mut found = (0, step(past).filter(|step| better_than_line(step, past))?);
    loop {
        let from = found.0 + found.1.at;
        let since = &past[from..];
        let later = step(since)
            .filter(|later| later.at >= PLAN_WEEKS_MIN && better_than_line(later, since));
        match later {
            Some(later) => found = (from, later),
            None => return Some(found),
        }
    }
}

/// A step has three figures to choose, a line two: it must do better for that.
fn better_than_line(step: &Step, past: &[Past]) -> bool {
    let (last, slope) = line(past);
    let misses: f64 = past.iter().map(|week| (week.gpus - last - slope * week.place).abs()).sum();
    let n = past.len() as f64;
    step.misses * (n - 2.0) <= misses * (n - 3.0)
}

/// The step with the least absolute distance from two levels. It counts where the levels differ by
/// more than three mean distances.
fn step(past: &[Past]) -> Option<Step> {
    let last = (past.len() + 1).checked_sub(STEP_WEEKS_MIN)?;
    let split = |at: usize| {
        let (before, after) = past.split_at(at);
        let (before_gpus, after_gpus) = (middle(before)?, middle(after)?);
        let far = |weeks: &[Past], level: f64| -> f64 {
            weeks.iter().map(|week| (week.gpus - level).abs()).sum()
        };
        let misses = far(before, before_gpus) + far(after, after_gpus);
        Some(Step { at, week_ms: after[0].week_ms, before_gpus, after_gpus, misses })
    };
    let found =
        (STEP_WEEKS_MIN..last).filter_map(split).min_by(|a, b| a.misses.total_cmp(&b.misses))?;
    let change = (found.after_gpus - found.before_gpus).abs();
    (change > 3.0 * found.misses / past.len() as f64).then_some(found)
}

fn middle(past: &[Past]) -> Option<f64> {
    median(past.iter().map(|week| week.gpus).collect())
}

/// Theil-Sen: GPUs in week 0, and GPUs a week.
fn line(past: &[Past]) -> (f64, f64) {
    let slopes = pairs(past).map(|(a, b)| (b.gpus - a.gpus) / (b.place - a.place)).collect();
    let slope = median(slopes).unwrap_or(0.0);
    let rest = past.iter().map(|week| week.gpus - slope * week.place).collect();
    (median(rest).unwrap_or(0.0), slope)
}

fn pairs(past: &[Past]) -> impl Iterator<Item = (&Past, &Past)> {
    past.iter().enumerate().flat_map(|(i, a)| past[i + 1..].iter().map(move |b| (a, b)))
}

/// Mann-Kendall: how often weeks in random order rise or fall as steadily as these.
fn chance_ratio(past: &[Past]) -> f64 {
    let sign = |a: f64, b: f64| f64::from(i8::from(b > a) - i8::from(b < a));
    let score: f64 = pairs(past).map(|(a, b)| sign(a.gpus, b.gpus)).sum();
    let weight = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut levels: Vec<f64> = past.iter().map(|week| week.gpus).collect();
    levels.sort_by(f64::total_cmp);
    let ties: f64 = levels.chunk_by(|a, b| a == b).map(|tie| weight(tie.len() as f64)).sum();
    let variance = (weight(past.len() as f64) - ties) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    2.0 * normal_tail((score.abs() - 1.0).max(0.0) / variance.sqrt())
}

/// The standard normal quantile, by a rational approximation of the tail.
///
/// # Source
/// Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.2.23 (error under 4.5e-4).
pub(super) fn normal_quantile(level: f64) -> f64 {
    let tail = level.min(1.0 - level).max(1e-9);
    let t = (-2.0 * tail.ln()).sqrt();
    let top = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let bottom = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    (t - top / bottom).copysign(level - 0.5)
}

/// Share of a standard normal above `z`, which is at least 0.
///
/// # Source
/// As above, 26.2.17 (error under 7.5e-8).
fn normal_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let sum = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429]
        .iter()
        .rev()
        .fold(0.0, |sum, factor| (sum + factor) * t);
    sum * (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(levels: &[f64]) -> Vec<Past> {
        let place = |i: usize| i as f64 + 1.0 - levels.len() as f64;
        let week = |(i, gpus): (usize, &f64)| Past {
            week_ms: i as i64,
            place: place(i),
            gpus: *gpus,
            whole: true,
        };
        levels.iter().enumerate().map(week).collect()
    }

    fn ground(levels: &[f64]) -> (Ground, f64) {
        let trend = Trend::fit(&past(levels));
        (trend.ground, trend.gpus_per_week())
    }

    #[test]
    fn a_step_is_held_and_not_drawn_on() {
        // Breaks if a team that moved in once is taken for one that moves in every week.
        let (told, slope) = ground(&[40.0, 41.0, 39.0, 40.0, 40.0, 80.0, 81.0, 79.0, 80.0, 80.0]);
        let shift = Ground::LevelShift { week_ms: 5, before_gpus: 40.0, after_gpus: 80.0 };
        assert_eq!((told, slope), (shift, 0.0));
        // The same over too few weeks for any trend.
        let (told, slope) = ground(&[40.0, 41.0, 80.0, 81.0]);
        assert!(matches!(told, Ground::LevelShift { week_ms: 2, .. }), "{told:?}");
        assert_eq!(slope, 0.0);
        let trend = Trend::fit(&past(&[40.0, 41.0, 80.0, 81.0]));
        assert!((trend.at(4, 0.5) - 80.5).abs() < 1e-3 && trend.at(4, 0.9) < 83.0);
    }

    #[test]
    fn a_level_that_was_left_is_not_held() {
        // Breaks if the load collapses and the plan still wants GPUs for what it was.
        let left = [20.0, 21.0, 19.0, 20.0, 70.0, 72.0, 68.0, 71.0, 69.0, 13.0, 9.0];
        let trend = Trend::fit(&past(&left));
        let shift = Ground::LevelShift { week_ms: 9, before_gpus: 70.0, after_gpus: 11.0 };
        assert_eq!(trend.ground, shift);
        assert!((trend.at(4, 0.5) - 11.0).abs() < 1e-3, "{}", trend.at(4, 0.5));
        // One week that lies apart has left nothing.
        let (told, _) = ground(&left[..10]);
        assert!(matches!(told, Ground::LevelShift { week_ms: 4, .. }), "{told:?}");
    }

    #[test]
    fn a_trend_needs_eight_whole_weeks_and_must_be_beyond_chance() {
        // Breaks if a line through a few weeks, or through noise, points at a date.
        let rise: Vec<f64> = (0..9).map(|w| 10.0 + 3.0 * f64::from(w)).collect();
        assert_eq!(ground(&rise[..7]).1, 0.0);
        assert_eq!(ground(&rise[..7]).0, Ground::FewWeeks { have: 7, need: 8 });
        let (told, slope) = ground(&rise[..8]);
        assert!(matches!(told, Ground::Trend { weeks: 8, .. }), "{told:?}");
        assert!((slope - 3.0).abs() < 1e-12);
        // A week of which half was seen is none of the eight.
        let mut half = past(&rise[..8]);
        half[7].whole = false;
        assert_eq!(Trend::fit(&half).ground, Ground::FewWeeks { have: 7, need: 8 });
        let noise = [50.0, 44.0, 53.0, 49.0, 41.0, 55.0, 47.0, 52.0, 46.0, 54.0];
        assert_eq!(ground(&noise), (Ground::Steady { weeks: 10 }, 0.0));
        assert_eq!(ground(&[7.0; 12]), (Ground::Steady { weeks: 12 }, 0.0));
    }

    #[test]
    fn a_rise_with_a_wild_week_is_still_a_rise() {
        // Breaks if one outage or one burst decides.
        let mut rise: Vec<f64> = (0..12).map(|w| 100.0 + 10.0 * f64::from(w)).collect();
        rise[6] = 20.0;
        let (told, slope) = ground(&rise);
        assert!(matches!(told, Ground::Trend { weeks: 12, .. }), "{told:?}");
        assert!((slope - 10.0).abs() < 1.0, "{slope}");
    }

    #[test]
    fn one_wild_week_or_a_holiday_widens_nothing() {
        // Breaks if a week that is over makes a shortfall of all that come.
        let mut weeks: Vec<f64> = (0..16).map(|w| 40.0 + f64::from(w % 3)).collect();
        let at = |weeks: &[f64]| Trend::fit(&past(weeks)).at(4, 0.9);
        let usual = at(&weeks);
        assert!(usual > 41.0 && usual < 44.0, "{usual}");
        weeks[7] = 200.0;
        assert!((at(&weeks) - usual).abs() < 1.0, "{}", at(&weeks));
        weeks[15] = 6.0;
        assert!((at(&weeks) - usual).abs() < 1.0, "{}", at(&weeks));
        // Of few weeks none can be left out.
        assert!(at(&[40.0, 41.0, 39.0, 200.0, 40.0]) > 80.0);
    }

    #[test]
    fn the_test_for_a_trend_gives_the_published_figures() {
        // Breaks if the variance or the tie correction drifts. Eight weeks that only rise have a
        // score of 28 and a variance of 65.33, so z = 27 / 8.083 = 3.340; twice its tail is 8.4e-4.
        let rise: Vec<f64> = (0..8).map(f64::from).collect();
        assert!((chance_ratio(&past(&rise)) - 8.36e-4).abs() < 1e-5);
        // A tie of two takes 2 x 1 x 9 / 18 = 1 off: score 27, z = 26 / 8.0208 = 3.2416.
        let tied = [0.0, 1.0, 2.0, 3.0, 3.0, 5.0, 6.0, 7.0];
        assert!((chance_ratio(&past(&tied)) - 1.189e-3).abs() < 1e-5);
        assert_eq!(chance_ratio(&past(&[1.0; 8])), 1.0);
        assert!((normal_tail(1.959_964) - 0.025).abs() < 1e-6 && normal_tail(0.0) > 0.499_999);
    }

    #[test]
    fn normal_quantiles_match_the_tables() {
        // Breaks if the fan is too wide or too narrow; 1.2816 and -1.96 are in any table.
        assert!((normal_quantile(0.9) - 1.2816).abs() < 5e-4);
        assert!((normal_quantile(0.025) + 1.96).abs() < 5e-4);
        assert!(normal_quantile(0.5).abs() < 5e-4);
    }
}
