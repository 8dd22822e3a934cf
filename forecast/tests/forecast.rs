//! Does a forecast keep its promises on series of every kind?
#![allow(clippy::unwrap_used)]

use loadline_forecast::{
    Basis, CalendarColumn, ForecastError, ForecastSettings, ModelChoice, QuantileLevel, Reason,
    Series, backtest, forecast, origins,
};
use proptest::prelude::*;

fn hourly(values: Vec<Option<f64>>) -> Series {
    Series::new("fleet", 1_500_000_000_000 / 604_800_000 * 604_800_000, 3600, values).unwrap()
}

fn settings(horizon_steps: usize) -> ForecastSettings {
    ForecastSettings { horizon_steps, ..Default::default() }
}

/// Noise that looks random and is the same everywhere.
fn noise(i: usize) -> f64 {
    let mixed = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    (mixed % 1000) as f64 / 1000.0 - 0.5
}

fn working(i: usize) -> bool {
    (i / 24) % 7 < 5 && (9..19).contains(&(i % 24))
}

/// Working hours over a level that wanders slowly.
fn fleet(hours: usize) -> Vec<Option<f64>> {
    let mut drift = 0.0;
    (0..hours)
        .map(|i| {
            drift = 0.995 * drift + 3.0 * noise(i);
            Some((60.0 + 30.0 * f64::from(u8::from(working(i))) + drift).max(0.0))
        })
        .collect()
}

fn working_column(hours: usize) -> CalendarColumn {
    let values = (0..hours).map(|i| f64::from(u8::from(working(i)))).collect();
    CalendarColumn { name: "working".into(), values }
}

#[test]
fn beats_the_seasonal_naive_and_covers_what_it_says() {
    // Breaks if the model is worse than copying yesterday, or its intervals are far off.
    let hours = 24 * 56;
    let series = hourly(fleet(hours));
    let origins = origins(&series, 48, 12);
    assert_eq!(origins.len(), 12);
    let columns = [working_column(hours)];
    let result = backtest(&series, &columns, &settings(48), &origins).unwrap();
    assert!(result.forecasts.iter().all(|f| f.basis == Basis::WeeklyElasticNet));
    let (all, skill) = (result.overall, result.overall.skill().unwrap());
    assert_eq!(all.steps, 12 * 48);
    assert!(skill > 0.3, "skill {skill}");
    assert!(all.skill_mae().unwrap() > 0.3);
    assert!((0.65..=0.95).contains(&all.coverage_80_ratio), "{}", all.coverage_80_ratio);
    assert!(all.coverage_95_ratio >= all.coverage_80_ratio);
    let cuts: Vec<usize> = result.by_horizon.iter().map(|s| s.horizon_steps).collect();
    assert_eq!(cuts, [1, 6, 24, 48]);
}

#[test]
fn nothing_at_or_after_the_origin_is_read() {
    // Breaks on a leak: the future is changed and the forecast must not move.
    let values = fleet(24 * 30);
    let origin = 24 * 25 + 7;
    let mut other = values.clone();
    for value in &mut other[origin..] {
        *value = value.map(|v| 1000.0 - v);
    }
    let run = |v: Vec<Option<f64>>| {
        backtest(&hourly(v), &[], &settings(24), &[origin]).unwrap().forecasts
    };
    assert_eq!(run(values), run(other));
}

#[test]
fn origins_must_rise_strictly_inside_the_series() {
    // Breaks if a backtest can score the same origin twice or one without history.
    let series = hourly(fleet(24 * 20));
    for bad in [vec![], vec![400, 400], vec![410, 400], vec![0], vec![480]] {
        let error = backtest(&series, &[], &settings(24), &bad).unwrap_err();
        assert!(matches!(error, ForecastError::Origin { .. }), "{bad:?}: {error}");
    }
    let found = origins(&series, 24, 20);
    assert!(!found.is_empty() && found.windows(2).all(|w| w[0] < w[1]));
    assert!(origins(&hourly(fleet(100)), 168, 20).is_empty());
}

#[test]
fn poor_history_is_an_answer_with_a_reason() {
    // Breaks if a poor series crashes, or one cycle is taken for a pattern.
    let answer = |values: Vec<Option<f64>>| forecast(&hourly(values), &[], &settings(30)).unwrap();
    let day = |n: usize| fleet(n);

    let one_day = answer(day(30));
    assert_eq!(one_day.basis, Basis::Level);
    assert!(matches!(one_day.reasons[0], Reason::TooLittleHistory { .. }));
    let median = one_day.quantiles.path(QuantileLevel::MEDIAN);
    assert!(median.windows(2).all(|w| (w[0] - w[1]).abs() < 15.0), "a copied cycle: {median:?}");

    assert_eq!(answer(day(24 * 9)).basis, Basis::SeasonalNaive);
    assert_eq!(answer(vec![Some(5.0)]).quantiles.at(29, QuantileLevel::MEDIAN), Some(5.0));

    let zero = answer(vec![Some(0.0); 24 * 30]);
    assert_eq!((zero.basis, zero.reasons[0]), (Basis::SeasonalNaive, Reason::AllZero));
    assert_eq!(zero.quantiles.row(29).last(), Some(&0.0));
    let flat = answer(vec![Some(8.0); 24 * 30]);
    assert_eq!(flat.reasons, [Reason::Constant { gpus: 8.0 }]);
    assert_eq!(flat.quantiles.row(0).first(), flat.quantiles.row(0).last());

    let mut young = vec![Some(0.0); 24 * 30];
    young.extend(day(24 * 3));
    let young = answer(young);
    assert_eq!(young.basis, Basis::SeasonalNaive);
    assert!(young.reasons.iter().any(|r| matches!(r, Reason::NewSeries { .. })));

    let mut gaps = day(24 * 40);
    gaps[500..530].fill(None);
    gaps[958..].fill(None);
    let gaps = answer(gaps);
    assert_eq!(gaps.basis, Basis::WeeklyElasticNet);
    assert!(gaps.reasons.iter().any(|r| matches!(r, Reason::Gaps { missing: 32, .. })));
    assert!(gaps.quantiles.at(5, QuantileLevel::MEDIAN).unwrap() > 20.0, "a gap became zero");

    let empty = forecast(&hourly(vec![None; 50]), &[], &settings(30)).unwrap_err();
    assert!(matches!(empty, ForecastError::NoReadings { .. }));
}

#[test]
fn a_model_asked_for_by_name_says_how_much_is_missing() {
    // Breaks if the wrong model answers in silence.
    let asked = ForecastSettings { model: ModelChoice::WeeklyElasticNet, ..settings(24) };
    let error = forecast(&hourly(fleet(24 * 9)), &[], &asked).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot fit `weekly_elastic_net` for `fleet`: 9 days of history, 14 needed"
    );
    assert!(error.hint().is_some() && error.detail().is_some());
}

#[test]
fn a_calendar_must_cover_the_horizon_and_be_finite() {
    // Breaks if a short or NaN column reaches a fit.
    let series = hourly(fleet(24 * 20));
    let column = |values| [CalendarColumn { name: "working".into(), values }];
    let short = forecast(&series, &column(vec![0.0; 480]), &settings(24)).unwrap_err();
    assert!(short.to_string().contains("480 values, 504 needed"), "{short}");
    assert!(forecast(&series, &column(vec![f64::NAN; 504]), &settings(24)).is_err());
    assert!(forecast(&series, &column(vec![0.0; 504]), &settings(24)).is_ok());
    assert!(forecast(&series, &[], &settings(0)).is_err());
}

#[test]
fn a_holiday_ahead_lowers_the_forecast() {
    // Breaks if the calendar of the horizon is not read: day 42 is a Monday without work.
    let history = 24 * 42;
    let series = hourly(fleet(history));
    let mut closed = working_column(history + 24);
    closed.values[history..].fill(0.0);
    let noon = |column: CalendarColumn| {
        let answer = forecast(&series, &[column], &settings(24)).unwrap();
        answer.quantiles.at(12, QuantileLevel::MEDIAN).unwrap()
    };
    let (open, closed) = (noon(working_column(history + 24)), noon(closed));
    assert!(closed < open - 8.0, "open {open}, closed {closed}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_series_gets_ordered_finite_quantiles_or_a_typed_refusal(
        values in prop::collection::vec(prop::option::weighted(0.8, 0.0..1e9_f64), 1..450),
        horizon in 1_usize..30,
    ) {
        // Breaks if any input makes a model crash, cross, or fall below zero.
        match forecast(&hourly(values.clone()), &[], &settings(horizon)) {
            Ok(answer) => for step in 0..horizon {
                let row = answer.quantiles.row(step);
                prop_assert!(row[0] >= 0.0 && row.iter().all(|v| v.is_finite()));
                prop_assert!(row.windows(2).all(|w| w[0] <= w[1]));
            },
            Err(error) => {
                prop_assert!(values.iter().all(Option::is_none), "{}", error);
            }
        }
    }
}
