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
        gpus_spare: now
            .filter(|_| plans.is_some_and(|plans| !plans.pools.is_empty()))
            .map(|told| told.spare_gpus),
        pools: plans.map_or_else(Vec::new, |plans| {
            let bought = bought.is_some().then(|| after_clean_up.unwrap_or(plans));
            pools(plans, *after_clean_up, bought, *zone)
        }),
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

/// What each pool comes to, those that lack the most first. What is ordered is what `bought` tells.
fn pools(
    plans: &Plans<'_>,
    after: Option<&Plans<'_>>,
    bought: Option<&Plans<'_>>,
    zone: Tz,
) -> Vec<PoolDecision> {
    let at = |ms: Option<i64>| Some(local(DateTime::from_timestamp_millis(ms?)?, zone));
    let of = |made: &Made<'_>| {
        let name = &made.scope.pool;
        let same =
            |plans: &'_ Plans<'_>| plans.pools.iter().position(|other| other.scope.pool == *name);
        let after = after.and_then(|plans| plans.pools[same(plans)?].decided());
        let bought = bought
            .and_then(|plans| plans.pools[same(plans)?].decided())
            .filter(|(_, advice)| *advice == Advice::Buy)
            .map(|(plan, _)| plan);
        let decided = made.decided();
        PoolDecision {
            pool: name.clone().unwrap_or_default(),
            gpus_available: made.scope.capacity.as_ref().map(|capacity| capacity.gpus),
            advice: decided.map(|(_, advice)| advice),
            advice_after_clean_up: after.map(|(_, advice)| advice),
            wait: decided.and_then(|(_, advice)| match advice {
                Advice::NotYet(wait) => Some(wait),
                Advice::Buy | Advice::Fits => None,
            }),
            gpus_missing: decided.map(|(plan, _)| f64::from(plan.gpus_needed)),
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
mod tests {
    use loadline_engine::calendar::Calendar;
    use loadline_forecast::{Rule, Series};

    use super::super::super::outlook::Capacity;
    use super::super::super::outlook::planner::{Planner, Scope, WhatIf};
    use super::*;
    use crate::report::data::HourDemand;
    use crate::report::planned::LoadBasis;

    /// A load of so many GPUs over eight weeks, of which jobs hold `idle_gpus` while idle.
    fn scope(pool: Option<&str>, gpus: f64, capacity: f64, idle_gpus: f64, rule: Rule) -> Scope {
        let source = "inventory".to_owned();
        Scope {
            pool: pool.map(str::to_owned),
            capacity: Some(Capacity { gpus: capacity, source, gpus_down: 0.0, gpus_floor: 0.0 }),
            basis: LoadBasis::Offered,
            idle: Idle { gpu_hours_per_week: Some(idle_gpus * 168.0), ..Idle::default() },
            load: Series::new("load", 0, 3_600, vec![Some(gpus); 8 * 168]).ok(),
            rule,
        }
    }

    fn decided(fleet: Scope, pools: Vec<Scope>, held: f64) -> Decision {
        swinging(fleet, pools, held, 20.0)
    }

    fn swinging(fleet: Scope, pools: Vec<Scope>, held: f64, swing: f64) -> Decision {
        let (idle, capacity) = (fleet.idle.clone(), fleet.capacity.clone().unwrap().gpus);
        let calendar = Calendar::default();
        let planner = Planner { calendar: &calendar, late: None, fleet, pools };
        let plans =
            |reclaim_idle| planner.plans(&WhatIf { reclaim_idle, ..WhatIf::default() }).unwrap();
        let totals = Totals {
            gpu_hours_installed: Some(capacity * 168.0),
            gpu_hours_held: Some(held * 168.0),
            gpu_hours_idle_held: idle.gpu_hours_per_week,
            ..Totals::default()
        };
        let hour = |hour: i64| HourDemand {
            at: DateTime::from_timestamp(hour * 3_600, 0).unwrap().fixed_offset(),
            gpus: if hour % 24 < 12 { 10.0 } else { 10.0 + swing },
        };
        let outlook = Outlook {
            capacity_gpus: Some(capacity),
            history: (0..168).map(hour).collect(),
            ..Outlook::default()
        };
        decide(&Grounds {
            now: Some(&plans(false)),
            after_clean_up: Some(&plans(true)),
            idle: &idle,
            totals: &totals,
            outlook: &outlook,
            zone: Tz::UTC,
        })
    }

    fn action(load: f64, capacity: f64, held: f64, idle_gpus: f64) -> Action {
        ruled(load, capacity, held, idle_gpus, Rule::Expand)
    }

    fn ruled(load: f64, capacity: f64, held: f64, idle_gpus: f64, rule: Rule) -> Action {
        decided(scope(None, load, capacity, idle_gpus, rule), Vec::new(), held).action
    }

    #[test]
    fn the_decision_is_the_sum_of_the_pools() {
        // Breaks if 40 GPUs that are free in one pool hide 10 that are missing in another, or if
        // the fleet's own shortfall is ordered.
        let fleet = || scope(None, 170.0, 200.0, 2.0, Rule::Expand);
        let pools = |rule| {
            vec![
                scope(Some("free"), 60.0, 100.0, 2.0, Rule::No),
                scope(Some("short"), 110.0, 100.0, 0.0, rule),
            ]
        };
        let told = decided(fleet(), pools(Rule::Expand), 170.0);
        assert_eq!((told.action, told.gpus_to_add), (Action::Buy, Some(10.0)));
        assert_eq!(told.gpus_spare, Some(40.0));
        let of: Vec<_> = told.pools.iter().map(|p| (&*p.pool, p.advice, p.gpus_to_add)).collect();
        let (buy, fits) = (Some(Advice::Buy), Some(Advice::Fits));
        assert_eq!(of, [("short", buy, Some(10.0)), ("free", fits, None)]);
        let told = decided(fleet(), pools(Rule::No), 170.0);
        assert_eq!((told.action, told.gpus_to_add), (Action::Watch, None));
        // A pool that asks for GPUs, of which nobody knows how many there are, is no all-clear
        // where the fleet's plan lacks some.
        let unknown = || Scope { capacity: None, ..scope(Some("new"), 50.0, 0.0, 0.0, Rule::No) };
        let open = || vec![scope(Some("free"), 60.0, 100.0, 0.0, Rule::No), unknown()];
        let told = decided(scope(None, 110.0, 100.0, 0.0, Rule::No), open(), 100.0);
        assert_eq!((told.action, told.planned), (Action::Undecided, false));
        assert_eq!(told.pools.iter().filter(|pool| pool.no_plan.is_some()).count(), 1);
        let told = decided(scope(None, 90.0, 100.0, 0.0, Rule::No), open(), 90.0);
        assert_eq!((told.action, told.planned), (Action::Nothing, true));
    }

    #[test]
    fn gpus_that_are_added_go_where_they_lack() {
        // Breaks if an added GPU counts for every pool, or for none.
        let calendar = Calendar::default();
        let fleet = scope(None, 220.0, 200.0, 0.0, Rule::Expand);
        let pools = vec![
            scope(Some("a"), 110.0, 100.0, 0.0, Rule::Expand),
            scope(Some("b"), 110.0, 100.0, 0.0, Rule::Expand),
        ];
        let planner = Planner { calendar: &calendar, late: None, fleet, pools };
        let given = |add_gpus| {
            let plans = planner.plans(&WhatIf { add_gpus, ..WhatIf::default() }).unwrap();
            let added: Vec<f64> = plans.pools.iter().map(|made| made.add_gpus).collect();
            (added, plans.together().map(|told| told.gpus_needed))
        };
        assert_eq!(given(0.0), (vec![0.0, 0.0], Some(20)));
        assert_eq!(given(12.0), (vec![10.0, 2.0], Some(8)));
        assert_eq!(given(50.0), (vec![10.0, 10.0], Some(0)));
        let lost = planner.plans(&WhatIf { add_gpus: -4.0, ..WhatIf::default() });
        assert!(lost.unwrap_err().line().contains("which pool"));
    }

    #[test]
    fn nothing_is_bought_where_giving_back_is_enough() {
        assert_eq!(action(110.0, 100.0, 95.0, 1.0), Action::Buy);
        assert_eq!(action(110.0, 100.0, 95.0, 20.0), Action::CleanUp);
        assert_eq!(action(80.0, 100.0, 80.0, 1.0), Action::Nothing);
        assert_eq!(action(80.0, 100.0, 80.0, 9.0), Action::CleanUp);
        assert_eq!(action(40.0, 100.0, 40.0, 1.0), Action::Scale);
        // What never swings is not to be followed with switches.
        let steady = |swing| {
            swinging(scope(None, 40.0, 100.0, 1.0, Rule::No), Vec::new(), 40.0, swing).action
        };
        assert_eq!((steady(0.0), steady(9.9)), (Action::Nothing, Action::Nothing));
        assert_eq!(steady(10.0), Action::Scale);
    }

    #[test]
    fn nothing_is_bought_against_the_expansion_rule() {
        // Breaks if the dearest advice contradicts the rule that stands below it.
        for rule in [Rule::No, Rule::Unknown] {
            assert_eq!(ruled(110.0, 100.0, 95.0, 1.0, rule), Action::Watch);
            assert_eq!(ruled(110.0, 100.0, 95.0, 20.0, rule), Action::CleanUp);
            assert_eq!(ruled(80.0, 100.0, 80.0, 1.0, rule), Action::Nothing);
        }
    }

    #[test]
    fn without_a_plan_there_is_no_all_clear() {
        let idle = |hours| Totals {
            gpu_hours_held: Some(100.0),
            gpu_hours_idle_held: hours,
            ..Totals::default()
        };
        for (hours, action) in [
            (None, Action::Undecided),
            (Some(5.0), Action::Undecided),
            (Some(30.0), Action::CleanUp),
        ] {
            let decision = decide(&Grounds {
                now: None,
                after_clean_up: None,
                idle: &Idle::default(),
                totals: &idle(hours),
                outlook: &Outlook::default(),
                zone: Tz::UTC,
            });
            assert_eq!(decision.action, action, "{hours:?}");
        }
    }
}
