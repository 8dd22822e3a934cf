//! When demand meets capacity, and how many GPUs must be ordered by when.
//!
//! # Why
//! *Why weekly levels?* Purchases follow the level of weeks, not the peak of an hour: each week
//! counts with its 90 % quantile of hourly demand. *Why are the starts of weeks given?* A week is
//! one of a calendar, and this crate knows none: a local week has 167 hours in spring. *Why no
//! further than the history is long?* A trend seen over eight weeks says nothing about the
//! twentieth. What counts as a trend, and what is held as a level, stands in `plan/trend.rs`.

use crate::error::{ForecastError, whole_gpus};
use crate::quantile::{QuantileForecast, QuantileLevel, of_sorted};
use crate::series::Series;

mod advice;
mod together;
mod trend;
mod weeks;

pub use self::advice::{Advice, Rule, Wait, advise};
pub use self::together::{Together, together};
pub use self::trend::TREND_WEEKS_MIN;
use self::trend::Trend;
use self::weeks::Weeks;

/// Weeks a plan looks ahead at most.
pub const PLAN_WEEKS_MAX: usize = 104;
/// Whole weeks a plan needs.
pub const PLAN_WEEKS_MIN: usize = 4;

/// What to plan for.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanSettings {
    /// Quantile of the coming weeks' demand that must fit.
    pub level: QuantileLevel,
    /// Days from ordering GPUs to their being allocatable.
    pub lead_time_days: u32,
    /// Weeks ahead wished for; cut to the length of the history.
    pub horizon_weeks: usize,
    /// What-if: extra growth per year as a ratio (0.2 = 20 % more in a year).
    pub growth_ratio_per_year: f64,
    /// What-if: GPUs added now.
    pub add_gpus: f64,
    /// What-if: idle-held GPU-hours per week given back.
    pub reclaim_idle_gpu_hours_per_week: f64,
    /// Instants at which weeks begin, milliseconds UTC, one after the other: from the start of the
    /// series or before it until the end of the horizon. Without any, weeks are seven days each,
    /// counted back from the end of the series.
    pub week_starts_ms: Vec<i64>,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self {
            level: QuantileLevel::new(900).expect("900 lies in 1 to 999"),
            lead_time_days: 60,
            horizon_weeks: 26,
            growth_ratio_per_year: 0.0,
            add_gpus: 0.0,
            reclaim_idle_gpu_hours_per_week: 0.0,
            week_starts_ms: Vec::new(),
        }
    }
}

/// When demand meets capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Meets {
    /// The last whole weeks were at or above capacity.
    Already,
    /// In the week that begins here.
    At {
        /// Milliseconds UTC.
        week_ms: i64,
    },
    /// Not before the end of what the history can say.
    NotWithin {
        /// Weeks looked ahead.
        weeks: usize,
    },
}

impl Meets {
    /// What is met first comes first.
    #[must_use]
    pub const fn order(self) -> i64 {
        match self {
            Self::Already => i64::MIN,
            Self::At { week_ms } => week_ms,
            Self::NotWithin { .. } => i64::MAX,
        }
    }
}

/// What the weeks ahead rest on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ground {
    /// A trend that is beyond chance.
    Trend {
        /// Whole weeks behind it.
        weeks: usize,
        /// How often chance gives one as clear.
        chance_ratio: f64,
    },
    /// Too few whole weeks to tell a trend: the level of the weeks is held.
    FewWeeks {
        /// Whole weeks there are.
        have: usize,
        /// Whole weeks that a trend needs.
        need: usize,
    },
    /// One step from a level to another tells the weeks best: the new level is held.
    LevelShift {
        /// First week after it, milliseconds UTC.
        week_ms: i64,
        /// Level before, in GPUs.
        before_gpus: f64,
        /// Level since, in GPUs.
        after_gpus: f64,
    },
    /// No trend that chance does not give as well: the level of the weeks is held.
    Steady {
        /// Whole weeks looked at.
        weeks: usize,
    },
}

impl Ground {
    /// Whether the weeks ahead follow a trend.
    #[must_use]
    pub const fn is_trend(&self) -> bool {
        matches!(self, Self::Trend { .. })
    }
}

/// One week of the plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanWeek {
    /// Start, milliseconds UTC.
    pub week_ms: i64,
    /// Level of the week at the plan's quantile, in GPUs.
    pub demand_gpus: f64,
    /// Capacity minus that; negative is a shortfall.
    pub headroom_gpus: f64,
}

/// A capacity plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Name of the series.
    pub series: String,
    /// Capacity after `add_gpus`, in GPUs.
    pub capacity_gpus: f64,
    /// When demand meets capacity.
    pub meets: Meets,
    /// GPUs missing at the largest shortfall of the horizon, rounded up.
    pub gpus_needed: u32,
    /// When they are needed, milliseconds UTC.
    pub needed_ms: Option<i64>,
    /// When to order them: lead time earlier. It may lie in the past.
    pub order_by_ms: Option<i64>,
    /// The order date has passed at the origin.
    pub order_late: bool,
    /// Trend in GPUs per week; 0 where there is none.
    pub trend_gpus_per_week: f64,
    /// What the weeks ahead rest on.
    pub ground: Ground,
    /// What-if: growth was assumed, which is ground enough for the weeks ahead.
    pub growth_assumed: bool,
    /// The last [`PLAN_WEEKS_MIN`] weeks were all at or above capacity.
    pub full_for_weeks: bool,
    /// GPUs that the reclaimed idle hours give back at once.
    pub reclaimed_gpus: f64,
    /// Weekly levels of the past: start and GPUs.
    pub past: Vec<(i64, f64)>,
    /// Weeks ahead.
    pub weeks: Vec<PlanWeek>,
    /// The fan over the weeks ahead.
    pub fan: QuantileForecast,
    /// Why the horizon is what it is.
    pub horizon_reason: String,
}

impl Plan {
    /// GPUs left free in the fullest week ahead; `None` where none is looked at.
    #[must_use]
    pub fn spare_gpus(&self) -> Option<f64> {
        let free = self.weeks.iter().map(|week| week.headroom_gpus).reduce(f64::min);
        free.map(|gpus| gpus.max(0.0))
    }
}

/// Plans capacity for one series.
///
/// # Errors
/// [`ForecastError::TooLittleHistory`] under [`PLAN_WEEKS_MIN`] weeks seen for half or more,
/// [`ForecastError::Setting`] for a setting outside its range, [`ForecastError::TooManyGpus`] for a
/// shortfall that no count holds.
pub fn plan(
    series: &Series,
    capacity_gpus: f64,
    settings: &PlanSettings,
) -> Result<Plan, ForecastError> {
    check(capacity_gpus, settings)?;
    let weeks = Weeks::of(series, settings)?;
    let seen = weeks.levels(series);
    let past: Vec<(i64, f64)> = seen.iter().map(|week| (week.week_ms, week.gpus)).collect();
    if past.len() < PLAN_WEEKS_MIN {
        return Err(too_short(series, past.len()));
    }
    let horizon = settings.horizon_weeks.min(past.len());
    let reclaimed_gpus = settings.reclaim_idle_gpu_hours_per_week / 168.0;
    let capacity_gpus = capacity_gpus + settings.add_gpus;
    let starts = weeks.ahead(horizon)?;
    let trend = Trend::fit(&seen);
    let mut levels = QuantileLevel::defaults();
    levels.push(settings.level);
    levels.sort_unstable();
    levels.dedup();
    let mut gpus = Vec::new();
    for ahead in 1..=horizon {
        let growth = 1.0 + settings.growth_ratio_per_year * ahead as f64 * 7.0 / 365.25;
        for level in &levels {
            let demand = trend.at(ahead, level.ratio()) * growth - reclaimed_gpus;
            gpus.push(demand.max(0.0));
        }
    }
    let fan = QuantileForecast::new(levels, gpus)?;
    let end_ms = series.end_ms();
    let weeks: Vec<PlanWeek> = fan
        .path(settings.level)
        .into_iter()
        .zip(starts)
        .map(|(demand_gpus, week_ms)| PlanWeek {
            week_ms: *week_ms,
            demand_gpus,
            headroom_gpus: capacity_gpus - demand_gpus,
        })
        .collect();
    let full = |weeks: usize| {
        let recent = &past[past.len() - weeks..];
        recent.iter().all(|(_, level)| level - reclaimed_gpus >= capacity_gpus)
    };
    let (already, full_for_weeks) = (full(2), full(PLAN_WEEKS_MIN));
    let first = weeks.iter().find(|week| week.headroom_gpus < 0.0).map(|week| week.week_ms);
    let meets = match first {
        _ if already => Meets::Already,
        Some(week_ms) => Meets::At { week_ms },
        None => Meets::NotWithin { weeks: horizon },
    };
    let needed_ms = if already { Some(end_ms) } else { first };
    let short = weeks.iter().map(|week| -week.headroom_gpus).fold(0.0, f64::max);
    let now_short = past[past.len() - 1].1 - reclaimed_gpus - capacity_gpus;
    let short = if already { short.max(now_short) } else { short };
    let order_by_ms = needed_ms.map(|at| at - i64::from(settings.lead_time_days) * 86_400_000);
    Ok(Plan {
        series: series.name().to_owned(),
        capacity_gpus,
        meets,
        gpus_needed: whole_gpus("missing", short.ceil())?,
        needed_ms,
        order_by_ms,
        order_late: order_by_ms.is_some_and(|at| at < end_ms),
        trend_gpus_per_week: trend.gpus_per_week(),
        ground: trend.ground,
        growth_assumed: settings.growth_ratio_per_year > 0.0,
        full_for_weeks,
        reclaimed_gpus,
        horizon_reason: horizon_reason(settings.horizon_weeks, past.len()),
        past,
        weeks,
        fan,
    })
}

/// The level of the fullest week behind, in GPUs: the highest that a week of the history counted
/// with, or, under half a week of it, the level of all its steps. `None` where nothing was seen.
/// A history that is too short to plan from tells that much.
///
/// # Errors
/// [`ForecastError::Setting`] for weeks that do not lie around the end of the series.
pub fn fullest_week(
    series: &Series,
    settings: &PlanSettings,
) -> Result<Option<f64>, ForecastError> {
    let weeks = Weeks::of(series, settings)?.levels(series);
    let highest = weeks.iter().map(|week| week.gpus).reduce(f64::max);
    Ok(highest.or_else(|| {
        let first = crate::basis::first_demand(series);
        let mut seen: Vec<f64> = series.values()[first..].iter().flatten().copied().collect();
        seen.sort_by(f64::total_cmp);
        of_sorted(&seen, 0.9)
    }))
}

fn horizon_reason(asked: usize, have: usize) -> String {
    if asked <= have {
        let s = if asked == 1 { "" } else { "s" };
        return format!("{asked} week{s} ahead, behind which stand {have} weeks of history");
    }
    format!(
        "{have} weeks ahead instead of {asked}: no further than the {have} weeks of history are long"
    )
}

fn check(capacity_gpus: f64, settings: &PlanSettings) -> Result<(), ForecastError> {
    let refuse = |what, value: f64, rule| {
        Err(ForecastError::Setting { what, value: value.to_string(), rule })
    };
    let count = |v: f64| v.is_finite() && v >= 0.0;
    if !count(capacity_gpus) {
        return refuse("capacity in GPUs", capacity_gpus, "finite and at least 0");
    }
    if !settings.add_gpus.is_finite() || capacity_gpus + settings.add_gpus < 0.0 {
        return refuse("GPUs to add", settings.add_gpus, "finite, leaving at least 0");
    }
    let reclaim = settings.reclaim_idle_gpu_hours_per_week;
    if !count(reclaim) {
        return refuse("idle GPU-hours to reclaim", reclaim, "finite and at least 0");
    }
    if !(-0.9..=100.0).contains(&settings.growth_ratio_per_year) {
        return refuse("growth ratio per year", settings.growth_ratio_per_year, "-0.9 to 100");
    }
    if !(1..=PLAN_WEEKS_MAX).contains(&settings.horizon_weeks) {
        return refuse("horizon in weeks", settings.horizon_weeks as f64, "1 to 104");
    }
    Ok(())
}

fn too_short(series: &Series, weeks: usize) -> ForecastError {
    ForecastError::TooLittleHistory {
        model: "weekly_plan",
        series: series.name().to_owned(),
        have_days: 7 * weeks as u32,
        need_days: 7 * PLAN_WEEKS_MIN as u32,
        from_ms: series.step_start_ms(crate::basis::first_demand(series)),
        until_ms: series.end_ms(),
        why: "a plan needs four weeks, each seen for half or more",
    }
}

#[cfg(test)]
mod tests;
