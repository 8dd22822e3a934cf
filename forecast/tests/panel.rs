//! Does the forecast beat the seasonal naive on the demand of a real cluster?
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use loadline_forecast::{Basis, ForecastSettings, Series, backtest, origins};

fn panel() -> Option<PathBuf> {
    let root = std::env::var_os("LOADLINE_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")),
        PathBuf::from,
    );
    let path = root.join("forecast/panel.csv.gz");
    path.is_file().then_some(path)
}

#[test]
fn beats_the_seasonal_naive_on_philly() {
    // Breaks if the model stops being worth its name on a real fleet.
    let Some(path) = panel() else {
        eprintln!("skipped: ../shared/data is absent");
        return;
    };
    let file = std::fs::File::open(path).unwrap();
    let prefix = "philly/all/gpu_hours_demand,";
    let values: Vec<Option<f64>> = BufReader::new(flate2::read::GzDecoder::new(file))
        .lines()
        .map(Result::unwrap)
        .filter(|line| line.starts_with(prefix))
        .map(|line| Some(line.rsplit(',').next().unwrap().parse().unwrap()))
        .collect();
    assert_eq!(values.len(), 1872);
    let start_ms = 1_506_816_000_000; // 2017-10-01
    let series = Series::new("philly", start_ms, 3600, values).unwrap();
    let settings = ForecastSettings { horizon_steps: 24, ..Default::default() };
    let origins = origins(&series, 24, 6);
    assert_eq!(origins.len(), 6);
    let result = backtest(&series, &[], &settings, &origins).unwrap();
    assert!(result.forecasts.iter().all(|f| f.basis == Basis::WeeklyElasticNet));
    let skill = result.overall.skill().unwrap();
    assert!(skill > 0.1, "skill over seasonal naive is {skill}");
    assert!(result.overall.coverage_95_ratio > 0.85, "{:?}", result.overall);
}
