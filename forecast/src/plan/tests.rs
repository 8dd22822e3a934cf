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
    assert!((plan.trend_gpus_per_week - 9.7).abs() < 0.4, "{}", plan.trend_gpus_per_week);
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
fn normal_quantiles_match_the_tables() {
    // Breaks if the fan is too wide or too narrow; 1.2816 and -1.96 are in any table.
    assert!((normal_quantile(0.9) - 1.2816).abs() < 5e-4);
    assert!((normal_quantile(0.025) + 1.96).abs() < 5e-4);
    assert!(normal_quantile(0.5).abs() < 5e-4);
}
