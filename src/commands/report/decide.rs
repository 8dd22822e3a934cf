//! Buy, scale, clean up or nothing: the decision of a report, from the plan and the idle time.

use chrono::DateTime;
use chrono_tz::Tz;
use loadline_forecast::{Advice, Meets, Plan, Rule, advise};

use super::super::outlook::idle::Idle;
use super::super::outlook::local;
use crate::report::data::{Action, Decision, Outlook, Totals};

/// Below this share of held GPU-hours a fleet that fits its load has GPUs to switch off.
const SLACK_HELD_RATIO: f64 = 0.6;
/// From this share of the GPU-hours held on, idle time is worth taking back by itself.
const WASTE_RATIO: f64 = 0.1;

/// What the decision rests on.
pub(super) struct Grounds<'a> {
    /// The plan of the load as it is; `None` where none could be made.
    pub(super) plan: Option<&'a Plan>,
    /// The same with the GPUs that are held idle given back.
    pub(super) after_clean_up: Option<&'a Plan>,
    /// What the expansion rule says of the fleet.
    pub(super) rule: Rule,
    /// Idle-held GPU-hours of the last weeks.
    pub(super) idle: &'a Idle,
    /// Sums of the period.
    pub(super) totals: &'a Totals,
    /// Demand and capacity.
    pub(super) outlook: &'a Outlook,
    /// Zone of the instants.
    pub(super) zone: Tz,
}

/// What to do. Without a plan there is no all-clear: a history too short to plan from says nothing
/// about whether the load stays below capacity. Where giving back what is held idle is enough, or
/// the expansion rule does not agree, nothing is bought.
pub(super) fn decide(grounds: &Grounds<'_>) -> Decision {
    let Grounds { plan, after_clean_up, rule, idle, totals, outlook, zone } = grounds;
    let advice = |plan: &Plan| advise(plan, *rule);
    let fits = |plan: &Plan| advice(plan) == Advice::Fits;
    let slack = totals.held_ratio().is_some_and(|ratio| ratio < SLACK_HELD_RATIO);
    let waste = totals.gpu_hours_idle_held.is_some_and(|hours| {
        hours >= WASTE_RATIO * totals.gpu_hours_held.unwrap_or(0.0) && hours > 0.0
    });
    let reclaimable = idle.gpu_hours_per_week.map(|hours| hours / 168.0);
    let action = match plan {
        None if waste => Action::CleanUp,
        None => Action::Undecided,
        Some(plan) if !fits(plan) && after_clean_up.is_some_and(fits) => Action::CleanUp,
        Some(plan) if matches!(advice(plan), Advice::NotYet(_)) => Action::Watch,
        Some(plan) if !fits(plan) => Action::Buy,
        Some(_) if waste => Action::CleanUp,
        Some(_) if slack => Action::Scale,
        Some(_) => Action::Nothing,
    };
    // What must be bought is what is missing after the clean-up.
    let bought = match action {
        Action::Buy => after_clean_up.or(*plan),
        _ => None,
    };
    let day = &outlook.history[outlook.history.len().saturating_sub(24)..];
    let demand: f64 = day.iter().map(|hour| hour.gpus).sum();
    let at = |ms: Option<i64>| Some(local(DateTime::from_timestamp_millis(ms?)?, *zone));
    Decision {
        action,
        demand_gpus_last_day: (!day.is_empty()).then(|| demand / day.len() as f64),
        gpus_to_add: bought.map(|plan| f64::from(plan.gpus_needed)),
        gpus_missing: plan.map(|plan| f64::from(plan.gpus_needed)),
        order_by: at(bought.and_then(|plan| plan.order_by_ms)),
        order_late: bought.is_some_and(|plan| plan.order_late),
        wait: plan.and_then(|plan| match advice(plan) {
            Advice::NotYet(wait) if action == Action::Watch => Some(wait),
            _ => None,
        }),
        trend: plan.is_some_and(|plan| plan.ground.is_trend()),
        full_at: plan.and_then(|plan| match plan.meets {
            Meets::At { week_ms } => at(Some(week_ms)),
            Meets::Already | Meets::NotWithin { .. } => None,
        }),
        full_already: plan.is_some_and(|plan| plan.meets == Meets::Already),
        planned: plan.is_some(),
        gpus_reclaimable: reclaimable,
    }
}

#[cfg(test)]
mod tests {
    use loadline_forecast::{PlanSettings, Series, plan};

    use super::*;

    fn planned(gpus: f64, capacity: f64, reclaim: f64) -> Plan {
        let series = Series::new("fleet", 0, 3_600, vec![Some(gpus); 8 * 168]).unwrap();
        let reclaim_idle_gpu_hours_per_week = reclaim;
        plan(
            &series,
            capacity,
            &PlanSettings { reclaim_idle_gpu_hours_per_week, ..Default::default() },
        )
        .unwrap()
    }

    fn action(load: f64, capacity: f64, held: f64, idle_gpus: f64) -> Action {
        ruled(load, capacity, held, idle_gpus, Rule::Expand)
    }

    fn ruled(load: f64, capacity: f64, held: f64, idle_gpus: f64, rule: Rule) -> Action {
        let (before, after) =
            (planned(load, capacity, 0.0), planned(load, capacity, idle_gpus * 168.0));
        let idle = Idle { gpu_hours_per_week: Some(idle_gpus * 168.0), ..Idle::default() };
        let totals = Totals {
            gpu_hours_installed: Some(capacity * 168.0),
            gpu_hours_held: Some(held * 168.0),
            gpu_hours_idle_held: Some(idle_gpus * 168.0),
            ..Totals::default()
        };
        let grounds = Grounds {
            plan: Some(&before),
            after_clean_up: Some(&after),
            rule,
            idle: &idle,
            totals: &totals,
            outlook: &Outlook::default(),
            zone: Tz::UTC,
        };
        decide(&grounds).action
    }

    #[test]
    fn nothing_is_bought_where_giving_back_is_enough() {
        assert_eq!(action(110.0, 100.0, 95.0, 1.0), Action::Buy);
        assert_eq!(action(110.0, 100.0, 95.0, 20.0), Action::CleanUp);
        assert_eq!(action(80.0, 100.0, 80.0, 1.0), Action::Nothing);
        assert_eq!(action(80.0, 100.0, 80.0, 9.0), Action::CleanUp);
        assert_eq!(action(40.0, 100.0, 40.0, 1.0), Action::Scale);
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
                plan: None,
                after_clean_up: None,
                rule: Rule::Unknown,
                idle: &Idle::default(),
                totals: &idle(hours),
                outlook: &Outlook::default(),
                zone: Tz::UTC,
            });
            assert_eq!(decision.action, action, "{hours:?}");
        }
    }
}
