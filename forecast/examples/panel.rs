//! Scores the forecast on a tidy panel (`series,ts,value`) from standard input at the origins of a
//! file (`series,origin`; the origin is the last observation known), and prints skill.

use std::collections::BTreeMap;
use std::io::BufRead;

use chrono::{DateTime, NaiveDateTime};
use loadline_forecast::{ForecastSettings, QuantileLevel, Series, forecast, pinball_loss};

fn at_ms(text: &str) -> Option<i64> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.timestamp_millis());
    }
    let naive = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").ok()?;
    Some(naive.and_utc().timestamp_millis())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("the file of origins is needed")?;
    let origins = std::fs::read_to_string(path)?;
    let mut panel: BTreeMap<String, Vec<(i64, f64)>> = BTreeMap::new();
    for line in std::io::stdin().lock().lines().skip(1) {
        let line = line?;
        let fields: Vec<&str> = line.split(',').collect();
        let at = at_ms(fields[1]).ok_or("a time is needed")?;
        panel.entry(fields[0].to_owned()).or_default().push((at, fields[2].parse()?));
    }
    for (name, rows) in &panel {
        let start = rows[0].0;
        let values: Vec<Option<f64>> = rows.iter().map(|r| Some(r.1)).collect();
        let series = Series::new(name, start, 3600, values)?;
        let mine = origins.lines().filter_map(|l| l.strip_prefix(&format!("{name},")));
        let mut sums = BTreeMap::new();
        for origin in mine.filter_map(at_ms) {
            let o = ((origin - start) / 3_600_000 + 1) as usize;
            let train: Vec<f64> = rows[..o].iter().map(|r| r.1).collect();
            let mase = train.windows(25).map(|w| (w[24] - w[0]).abs()).sum::<f64>()
                / (train.len() - 24) as f64;
            let clock = std::time::Instant::now();
            let settings = ForecastSettings::default();
            let answer = forecast(&series.before(o), &[], &settings)?;
            let spent = clock.elapsed().as_secs_f64();
            for cut in [1, 6, 24, 168] {
                let sum: &mut [f64; 8] = sums.entry(cut).or_default();
                for step in 0..cut {
                    let y = rows[o + step].1;
                    for (i, q) in [&answer.quantiles, &answer.naive].into_iter().enumerate() {
                        let get = |p: u16| q.at(step, QuantileLevel::new(p).ok()?);
                        let n = cut as f64 * 8.0;
                        sum[i] += (get(500).unwrap_or(0.0) - y).abs() / mase / n;
                        let deciles = (1..10).filter_map(|d| {
                            let l = QuantileLevel::new(d * 100).ok()?;
                            Some(2.0 * pinball_loss(l, q.at(step, l)?, y) / 9.0)
                        });
                        sum[2 + i] += deciles.sum::<f64>() / mase / n;
                        let inside = |lo, hi| {
                            let both = get(lo).zip(get(hi));
                            f64::from(u8::from(both.is_some_and(|(l, h)| l <= y && y <= h))) / n
                        };
                        if i == 0 {
                            sum[4] += inside(100, 900);
                            sum[5] += inside(25, 975);
                        } else {
                            sum[6] += inside(100, 900);
                        }
                    }
                }
                sum[7] += spent / 8.0;
            }
        }
        for (cut, s) in &sums {
            let cells: Vec<String> = s.iter().map(|v| format!("{v:.3}")).collect();
            println!("{name},{cut},{}", cells.join(","));
        }
    }
    Ok(())
}
