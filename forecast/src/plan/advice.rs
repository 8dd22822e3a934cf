//! Whether a plan is ground enough to buy: the plan and the expansion rule must say the same.
//!
//! # Why
//! The plan looks ahead along a line, the rule looks back at what was full while the queue grew.
//! Each is wrong at times, and a purchase cannot be taken back. Where they differ, the answer is to
//! watch, with the day on which the fleet is full at the earliest.

use super::{Meets, Plan};

/// What the expansion rule says of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rule {
    /// So many weeks in a row were above the share, and the queue grew.
    Expand,
    /// They were not, or it did not.
    No,
    /// Fewer weeks were seen than it asks for.
    #[default]
    Unknown,
}

/// Why nothing is bought yet although a shortfall lies ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The expansion rule says no.
    Rule,
    /// The expansion rule cannot be asked.
    RuleUnknown,
    /// No trend leads to it, and the weeks behind were not full.
    NoTrend,
}

/// What to do about a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Order what is missing.
    Buy,
    /// Not yet: watch.
    NotYet(Wait),
    /// The load fits.
    Fits,
}

impl Advice {
    /// How much is to be done: 0 where the load fits, 1 to watch, 2 to buy.
    #[must_use]
    pub const fn weight(self) -> u8 {
        match self {
            Self::Fits => 0,
            Self::NotYet(_) => 1,
            Self::Buy => 2,
        }
    }

    /// Its name in answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Buy => "buy",
            Self::NotYet(_) => "not-yet",
            Self::Fits => "fits",
        }
    }
}

/// What to do: buy where a trend leads to the shortfall, or the load was above capacity for the last
/// four weeks, and the expansion rule says so too. Growth that is assumed is ground enough, and the
/// rule, which looks back, has no say in it.
///
/// # Example
/// ```
/// use loadline_forecast::{Advice, PlanSettings, Rule, Series, Wait, advise, plan};
///
/// let load = Series::new("fleet", 0, 3_600, vec![Some(110.0); 8 * 168])?;
/// let plan = plan(&load, 100.0, &PlanSettings::default())?;
/// assert_eq!(advise(&plan, Rule::Expand), Advice::Buy);
/// assert_eq!(advise(&plan, Rule::No), Advice::NotYet(Wait::Rule));
/// # Ok::<(), loadline_forecast::ForecastError>(())
/// ```
#[must_use]
pub fn advise(plan: &Plan, rule: Rule) -> Advice {
    if plan.gpus_needed == 0 || matches!(plan.meets, Meets::NotWithin { .. }) {
        return Advice::Fits;
    }
    let grounded = plan.ground.is_trend() || plan.full_for_weeks;
    match rule {
        _ if plan.growth_assumed => Advice::Buy,
        _ if !grounded => Advice::NotYet(Wait::NoTrend),
        Rule::No => Advice::NotYet(Wait::Rule),
        Rule::Unknown => Advice::NotYet(Wait::RuleUnknown),
        Rule::Expand => Advice::Buy,
    }
}
