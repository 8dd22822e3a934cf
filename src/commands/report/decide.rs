//! Buy, scale, clean up or nothing: the decision of a report, from the plans and the idle time.

use chrono::DateTime;
use chrono_tz::Tz;
use loadline_forecast::{Advice, Meets, Together};

use super::super::outlook::idle::Idle;
use super::super::outlook::local;
use super::super::outlook::planner::{Made, Plans};
use crate::report::data::{Action, Decision, Local, Outlook, PoolDecision, Totals};

/// Below this share of held GPU-hours a fleet that fits its load has GPUs to switch off.
const SLACK_HELD_RATIO: f64 = 0.6;
/// From this share of the capacity on, the load swings enough to switch GPUs with it.
const SWING_RATIO: f64 = 0.1;
/// From this share of the GPU-hours held on, idle time is worth taking back by itself.
const WASTE_RATIO: f64 = 0.1;

/// What the decision rests on.
pub(super) struct Grounds<'a> {
    /// The plans of the load as it is; `None` where nothing can be planned.
    pub(super) now: Option<&'a Plans<'a>>,
    /// The same with the GPUs that are held idle given back; `None` where nothing tells them.
    pub(super) after_clean_up: Option<&'a Plans<'a>>,
    /// Idle-held GPU-hours of the last weeks.
    pub(super) idle: &'a Idle,
    /// Sums of the period.
    pub(super) totals: &'a Totals,
    /// Demand and capacity.
    pub(super) outlook: &'a Outlook,
    /// Zone of the instants.
    pub(super) zone: Tz,
}

/// What to do: the sum of what the pools come to. Without a plan there is no all-clear: a history
/// too short to plan from says nothing about whether the load stays below capacity. Where giving
/// back what is held idle is enough, or the expansion rule does not agree, nothing is bought.
pub(super) fn decide(grounds: &Grounds<'_>) -> Decision {
    let Grounds { now: plans, after_clean_up, idle, totals, outlook, zone } = grounds;
    let (now, after) = (plans.and_then(Plans::together), after_clean_up.and_then(Plans::together));
    let slack =
        totals.held_ratio().is_some_and(|ratio| ratio < SLACK_HELD_RATIO) && swings(outlook);
    let waste = totals.gpu_hours_idle_held.is_some_and(|hours| {
        hours >= WASTE_RATIO * totals.gpu_hours_held.unwrap_or(0.0) && hours > 0.0
    });
    let action = action(now.as_ref(), after.as_ref(), waste, slack);
    // What must be bought is what is missing after the clean-up.
    let bought = match action {
        Action::Buy => after.or(now),
        _ => None,
    };
    let day = &outlook.history[outlook.history.len().saturating_sub(24)..];
    let demand: f64 = day.iter().map(|hour| hour.gpus).sum();
    let at = |ms: Option<i64>| Some(local(DateTime::from_timestamp_millis(ms?)?, *zone));
    let pools = plans.map_or_else(Vec::new, |plans| pools(plans, *after_clean_up, action, *zone));
    Decision {
        action,
        demand_gpus_last_day: (!day.is_empty()).then(|| demand / day.len() as f64),
        gpus_to_add: bought.map(|told| f64::from(told.gpus_to_buy)),
        gpus_missing: now.map(|told| f64::from(told.gpus_needed)),
        gpus_missing_after_clean_up: after.map(|told| f64::from(told.gpus_needed)),
        order_by: at(bought.and_then(|told| told.order_by_ms)),
        order_late: bought.is_some_and(|told| told.order_late),
        wait: now.and_then(|told| match told.advice {
            Advice::NotYet(wait) if action == Action::Watch => Some(wait),
            _ => None,
        }),
        trend: now.is_some_and(|told| told.trend),
        full_at: now.and_then(|told| full_at(told.meets, *zone)),
        full_already: now.is_some_and(|told| told.meets == Meets::Already),
        planned: now.is_some(),
        gpus_reclaimable: idle.gpu_hours_per_week.map(|hours| hours / 168.0),
        gpus_spare: (!pools.is_empty())
            .then(|| pools.iter().filter_map(|pool| pool.gpus_free).sum()),
        pools,
    }
}

/// Whether demand over the last weeks swings from hour to hour: a tenth of the hours above and one
/// below lie apart.
fn swings(outlook: &Outlook) -> bool {
    let mut gpus: Vec<f64> = outlook.history.iter().map(|hour| hour.gpus).collect();
    gpus.sort_by(f64::total_cmp);
    let at = |share: f64| gpus.get(((gpus.len() as f64 - 1.0) * share).round() as usize).copied();
    let apart = at(0.9).zip(at(0.1)).map_or(0.0, |(high, low)| high - low);
    outlook.capacity_gpus.is_some_and(|capacity| apart >= SWING_RATIO * capacity && apart > 0.0)
}

fn action(now: Option<&Together>, after: Option<&Together>, waste: bool, slack: bool) -> Action {
    let Some(now) = now else { return if waste { Action::CleanUp } else { Action::Undecided } };
    match now.advice {
        _ if after.is_some_and(|after| after.advice.weight() < now.advice.weight()) => {
            Action::CleanUp
        }
        Advice::Buy => Action::Buy,
        Advice::NotYet(_) => Action::Watch,
        Advice::Fits if waste => Action::CleanUp,
        Advice::Fits if slack => Action::Scale,
        Advice::Fits => Action::Nothing,
    }
}

/// What each pool comes to, those that lack the most first. What is ordered, what is left free and
/// what remains to be watched is so after what is held idle is given back, where that is known.
fn pools(
    plans: &Plans<'_>,
    after: Option<&Plans<'_>>,
    action: Action,
    zone: Tz,
) -> Vec<PoolDecision> {
    let at = |ms: Option<i64>| Some(local(DateTime::from_timestamp_millis(ms?)?, zone));
    let waits = |advice: Advice| match advice {
        Advice::NotYet(wait) => Some(wait),
        Advice::Buy | Advice::Fits => None,
    };
    let of = |made: &Made<'_>| {
        let name = &made.scope.pool;
        let same = |other: &&Made<'_>| other.scope.pool == *name;
        let cleaned = after.and_then(|plans| plans.pools.iter().find(same));
        let (decided, after) = (made.decided(), cleaned.and_then(Made::decided));
        let (left, advised) = (cleaned.unwrap_or(made), after.or(decided));
        let bought = advised
            .filter(|(_, advice)| *advice == Advice::Buy && action == Action::Buy)
            .map(|(plan, _)| plan);
        PoolDecision {
            pool: name.clone().unwrap_or_default(),
            gpus_available: made.scope.capacity.as_ref().map(|capacity| capacity.gpus),
            advice: decided.map(|(_, advice)| advice),
            advice_after_clean_up: after.map(|(_, advice)| advice),
            wait: decided.and_then(|(_, advice)| waits(advice)),
            wait_after_clean_up: after.and_then(|(_, advice)| waits(advice)),
            gpus_missing: decided.map(|(plan, _)| f64::from(plan.gpus_needed)),
            gpus_missing_after_clean_up: after.map(|(plan, _)| f64::from(plan.gpus_needed)),
            gpus_free: left.gpus_free,
            gpus_to_add: bought.map(|plan| f64::from(plan.gpus_needed)),
            order_by: at(bought.and_then(|plan| plan.order_by_ms)),
            order_late: bought.is_some_and(|plan| plan.order_late),
            full_at: decided.and_then(|(plan, _)| full_at(plan.meets, zone)),
            full_already: decided.is_some_and(|(plan, _)| plan.meets == Meets::Already),
            no_plan: made.plan.as_ref().err().cloned(),
        }
    };
    let mut told: Vec<PoolDecision> = plans.pools.iter().map(of).collect();
    let missing = |pool: &PoolDecision| pool.gpus_missing.unwrap_or(0.0);
    told.sort_by(|a, b| missing(b).total_cmp(&missing(a)).then_with(|| a.pool.cmp(&b.pool)));
    told
}

fn full_at(meets: Meets, zone: Tz) -> Option<Local> {
    match meets {
        Meets::At { week_ms } => Some(local(DateTime::from_timestamp_millis(week_ms)?, zone)),
        Meets::Already | Meets::NotWithin { .. } => None,
    }
}

#[cfg(test)]
mod tests;
