//! What is decided on loads, capacities and rules that are stated.

use loadline_engine::calendar::Calendar;
use loadline_forecast::{Rule, Series};

use super::*;
use crate::commands::outlook::Capacity;
use crate::commands::outlook::planner::{Planner, Scope, WhatIf};
use crate::report::data::{HourDemand, ReportData};
use crate::report::planned::LoadBasis;
use crate::report::{Format, Language, render};

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
    // 40, and the 2 that jobs hold there while idle.
    assert_eq!(told.gpus_spare, Some(42.0));
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
fn the_sentence_the_table_and_the_sums_tell_one_thing() {
    // Breaks if the sentence counts other pools than the table says are full, or its sums are not
    // those of a column: before and after what is held idle is given back.
    let short = |pool, gpus, idle_gpus, rule| scope(Some(pool), gpus, 100.0, idle_gpus, rule);
    let weeks = |gpus| Series::new("load", 0, 3_600, vec![Some(gpus); 2 * 168]).ok();
    let pools = vec![
        short("buy", 110.0, 2.0, Rule::Expand),
        short("clean", 105.0, 20.0, Rule::Expand),
        short("watch", 103.0, 1.0, Rule::No),
        short("even", 100.0, 0.0, Rule::No),
        short("free", 60.0, 0.0, Rule::No),
        // Two weeks are too few to plan from, and tell what they left free.
        Scope { load: weeks(5.0), ..scope(Some("young"), 0.0, 24.0, 0.0, Rule::Unknown) },
    ];
    let decision = decided(scope(None, 483.0, 524.0, 23.0, Rule::Expand), pools, 483.0);
    let sum = |of: fn(&PoolDecision) -> Option<f64>| decision.pools.iter().filter_map(of).sum();
    let columns: [f64; 4] = [
        sum(|pool| pool.gpus_missing),
        sum(|pool| pool.gpus_missing_after_clean_up),
        sum(|pool| pool.gpus_to_add),
        sum(|pool| pool.gpus_free),
    ];
    assert_eq!(columns, [18.0, 10.0, 8.0, 15.0 + 40.0 + 19.0]);
    let told = [
        decision.gpus_missing,
        decision.gpus_missing_after_clean_up,
        decision.gpus_to_add,
        decision.gpus_spare,
    ];
    assert_eq!(told, columns.map(Some));
    assert_eq!(decision.full(), (4, 0));
    let data = ReportData { decision, timezone: "UTC".to_owned(), ..ReportData::default() };
    let page = render(&data, Format::Md, Language::En).unwrap();
    for told in [
        "is at capacity already in 4 of 6 pools: 18 GPUs are missing at the largest shortfall of \
         each, and 10 after what jobs hold while idle, 23 GPUs on average, is given back, which \
         comes first. 8 more (8 in buy) would let jobs start at once there in nine hours of ten: \
         order them now, the lead time is longer than what is left. The other 2 (2 in watch) are \
         no ground to buy yet: watch. The other pools leave 74 free in their fullest weeks, 19 of \
         them in pools without a plan, which rests on their fullest week so far: where GPUs can \
         change pools, move those first. 1 pool has no plan (young).",
        "| buy | 100 | now | 10 | 8 | – | 8 | now | buy |",
        "| clean | 100 | now | 5 | 0 | 15 | – | – | clean up: that is enough |",
        "| watch | 100 | now | 3 | 2 | – | – | – | watch: the expansion rule says no |",
        "| even | 100 | now | 0 | 0 | 0 | – | – | full, and no GPU is missing: fits |",
        "| free | 100 | – | 0 | 0 | 40 | – | – | fits |",
        "| young | 24 | – | – | – | 19 | – | – | no plan: 14 days",
    ] {
        assert!(page.contains(told), "{told}\nin\n{page}");
    }
    let page = render(&data, Format::Md, Language::Zh).unwrap();
    let told = "6 个分区中有 4 个的作业负载已达到容量：各自缺口最大时共缺 18 块 GPU，先收回占而不用的部分（平均 23 块）后仍缺 10 块";
    assert!(page.contains(told), "{page}");
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
    let steady =
        |swing| swinging(scope(None, 40.0, 100.0, 1.0, Rule::No), Vec::new(), 40.0, swing).action;
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
    for (hours, action) in
        [(None, Action::Undecided), (Some(5.0), Action::Undecided), (Some(30.0), Action::CleanUp)]
    {
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
