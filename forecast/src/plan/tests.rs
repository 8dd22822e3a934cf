use super::*;

fn weeks(levels: &[f64]) -> Series {
    let values = levels.iter().flat_map(|l| vec![Some(*l); 168]).collect();
    Series::new("fleet", 0, 3600, values).unwrap()
}

const DAY: i64 = 86_400_000;

#[test]
fn a_steady_rise_meets_capacity_in_a_known_week() {
    // Breaks if trend, week count or order date drift by one.
    let rise: Vec<f64> = (0..20).map(|w| 100.0 + 10.0 * f64::from(w)).collect();
    let plan = plan(&weeks(&rise), 325.0, &PlanSettings::default()).unwrap();
    assert!((plan.trend_gpus_per_week - 10.0).abs() < 1e-9, "{}", plan.trend_gpus_per_week);
    let Meets::At { week_ms } = plan.meets else { panic!("{:?}", plan.meets) };
    let ahead = (week_ms - 140 * DAY) / (7 * DAY);
    assert!((2..=4).contains(&ahead), "{ahead}"); // 290 + 10 a week passes 325 in the fourth
    assert_eq!(plan.order_by_ms, Some(week_ms - 60 * DAY));
    assert!(plan.order_late && plan.gpus_needed > 100);
    assert_eq!(plan.weeks.len(), 20);
    assert!(plan.horizon_reason.contains("20 weeks ahead instead of 26"));
}

#[test]
fn what_ifs_move_the_answer_the_right_way() {
    // Breaks if adding GPUs or reclaiming idle hours makes things worse.
    let flat = weeks(&[100.0, 102.0, 98.0, 100.0, 101.0, 99.0, 100.0, 100.0]);
    let asked = |settings: PlanSettings| plan(&flat, 99.0, &settings).unwrap();
    let base = asked(PlanSettings::default());
    assert_eq!(base.meets, Meets::Already);
    let added = asked(PlanSettings { add_gpus: 20.0, ..Default::default() });
    assert_eq!(added.meets, Meets::NotWithin { weeks: 8 });
    let reclaimed =
        asked(PlanSettings { reclaim_idle_gpu_hours_per_week: 1680.0, ..Default::default() });
    assert_eq!(reclaimed.reclaimed_gpus, 10.0);
    assert_eq!(reclaimed.meets, Meets::NotWithin { weeks: 8 });
    let grown =
        asked(PlanSettings { add_gpus: 20.0, growth_ratio_per_year: 3.0, ..Default::default() });
    assert!(matches!(grown.meets, Meets::At { .. }));
    assert!(grown.gpus_needed > added.gpus_needed);
}

#[test]
fn weeks_begin_where_the_calendar_says() {
    // Breaks if a plan tells of weeks that begin on UTC days, or loses hours where a local week
    // has 167 or 169.
    const HOUR: i64 = 3_600_000;
    let week = 168 * HOUR;
    // Mondays at 16:00 UTC on Sunday; in the third week the clock is put forward.
    let starts: Vec<i64> =
        (0..40).map(|i| i * week - 8 * HOUR - if i > 2 { HOUR } else { 0 }).collect();
    // The level of each of these weeks, hour by hour, until four days into the ninth.
    let end = starts[8] + 96 * HOUR;
    let level = |at: i64| 10.0 * starts.partition_point(|start| *start <= at) as f64;
    let hours = (end - starts[0]) / HOUR;
    let values = (0..hours).map(|hour| Some(level(starts[0] + hour * HOUR))).collect();
    let series = Series::new("fleet", starts[0], 3600, values).unwrap();
    let asked = |end_step: usize| {
        let settings =
            PlanSettings { week_starts_ms: starts.clone(), horizon_weeks: 4, ..Default::default() };
        plan(&series.before(end_step), 200.0, &settings).unwrap()
    };
    let told = |plan: &Plan| plan.weeks.iter().map(|week| week.week_ms).collect::<Vec<_>>();
    let over = asked(series.len());
    let levels = (0..9).map(|i| (starts[i], 10.0 * (i + 1) as f64));
    assert_eq!(over.past, levels.collect::<Vec<_>>());
    assert_eq!(told(&over), starts[9..13]);
    // A day into the ninth week, that week still lies ahead.
    let young = asked(series.len() - 72);
    assert_eq!((young.past.len(), told(&young)), (8, starts[8..12].to_vec()));
    assert!((over.trend_gpus_per_week - 10.0).abs() < 1e-9, "{}", over.trend_gpus_per_week);

    let refused = |week_starts_ms: Vec<i64>| {
        let settings = PlanSettings { week_starts_ms, ..Default::default() };
        plan(&series, 200.0, &settings).unwrap_err().to_string()
    };
    assert!(refused(vec![7, 7]).contains("each later than the one before it"));
    assert!(refused(starts[..10].to_vec()).contains("up to the end of the horizon"));
    assert!(refused(starts[..5].to_vec()).contains("on both sides of the end of the series"));
}

#[test]
fn three_weeks_are_too_few_and_settings_are_checked() {
    // Breaks if a trend is drawn through nothing, or NaN slips into a plan.
    let error = plan(&weeks(&[1.0, 2.0, 3.0]), 10.0, &PlanSettings::default()).unwrap_err();
    assert!(error.to_string().contains("21 days of history, 28 needed"));
    let four = weeks(&[1.0, 2.0, 3.0, 4.0]);
    assert!(plan(&four, f64::NAN, &PlanSettings::default()).is_err());
    let bad = PlanSettings { growth_ratio_per_year: f64::NAN, ..Default::default() };
    assert!(plan(&four, 10.0, &bad).is_err());
}

#[test]
fn nothing_is_bought_against_the_rule_or_without_ground() {
    // Breaks if a step, a short history or noise leads to a purchase, or the rule is not heard.
    let asked = |levels: &[f64], capacity: f64| {
        plan(&weeks(levels), capacity, &PlanSettings::default()).unwrap()
    };
    let rise: Vec<f64> = (0..12).map(|w| 40.0 + 5.0 * f64::from(w)).collect();
    let rising = asked(&rise, 110.0);
    assert!(rising.ground.is_trend());
    assert_eq!(advise(&rising, Rule::Expand), Advice::Buy);
    assert_eq!(advise(&rising, Rule::No), Advice::NotYet(Wait::Rule));
    assert_eq!(advise(&rising, Rule::Unknown), Advice::NotYet(Wait::RuleUnknown));
    // Moved in two weeks ago: full, but for how long?
    let stepped = asked(&[40.0, 41.0, 39.0, 40.0, 40.0, 40.0, 111.0, 112.0], 110.0);
    assert!(matches!(stepped.ground, Ground::LevelShift { .. }), "{:?}", stepped.ground);
    assert_eq!((stepped.trend_gpus_per_week, stepped.meets), (0.0, Meets::Already));
    assert_eq!(advise(&stepped, Rule::Expand), Advice::NotYet(Wait::NoTrend));
    let young = asked(&rise[..5], 62.0);
    assert_eq!(young.ground, Ground::FewWeeks { have: 5, need: TREND_WEEKS_MIN });
    assert_eq!(advise(&young, Rule::Expand), Advice::NotYet(Wait::NoTrend));
    // Full for weeks is ground enough where the rule agrees.
    let full = asked(&[112.0; 5], 110.0);
    assert_eq!(advise(&full, Rule::Expand), Advice::Buy);
    assert_eq!(advise(&asked(&[80.0; 8], 110.0), Rule::Expand), Advice::Fits);
}

#[test]
fn a_history_too_short_to_plan_from_tells_its_fullest_week() {
    // Breaks if a pool of three weeks is said to leave nothing free, or its quiet weeks count.
    let settings = PlanSettings::default();
    let of = |series: &Series| fullest_week(series, &settings).unwrap();
    let young = weeks(&[2.0, 8.0, 5.0]);
    assert!(plan(&young, 24.0, &settings).is_err());
    assert_eq!(of(&young), Some(8.0));
    // Two days after years of nothing: the level of these days, nine hours of ten of which are 3.
    let days = |hour: u32| Some(if hour < 44 { 3.0 } else { 9.0 });
    let short = Series::new("pool", 0, 3_600, (0..48).map(days).collect()).unwrap();
    assert_eq!(of(&short), Some(3.0));
    let unseen = Series::new("pool", 0, 3_600, vec![None; 48]).unwrap();
    assert_eq!(of(&unseen), None);
}
