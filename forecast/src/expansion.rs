//! The expansion rule: "N consecutive weeks above a share of capacity, and the queue grows".

use crate::error::ForecastError;

/// One week of use and queue, oldest first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpansionWeek {
    /// Start, milliseconds UTC.
    pub week_ms: i64,
    /// Share of capacity in use; `None` where it was not seen.
    pub used_ratio: Option<f64>,
    /// GPUs waited for, on average; `None` where it was not seen.
    pub waiting_gpus: Option<f64>,
}

/// What the rule says.
#[derive(Debug, Clone, PartialEq)]
pub struct Expansion {
    /// Both parts hold: expand.
    pub expand: bool,
    /// The latest weeks in a row above the share, oldest first; a week not seen ends the row.
    pub weeks: Vec<ExpansionWeek>,
    /// Growth of the queue over these weeks in GPUs per week; `None` under two weeks with a queue
    /// reading.
    pub queue_gpus_per_week: Option<f64>,
}

/// Asks whether the latest `consecutive` weeks were all above `above_ratio` while the queue grew.
///
/// The queue grows when the least-squares slope of its weekly means is above 0.
///
/// # Errors
/// [`ForecastError::Setting`] for fewer than 2 weeks or a share outside 0 to 1.
pub fn expansion(
    weeks: &[ExpansionWeek],
    consecutive: usize,
    above_ratio: f64,
) -> Result<Expansion, ForecastError> {
    if !(2..=520).contains(&consecutive) {
        let value = consecutive.to_string();
        let rule = "2 to 520";
        return Err(ForecastError::Setting { what: "number of weeks in a row", value, rule });
    }
    if !(0.0..=1.0).contains(&above_ratio) {
        let value = above_ratio.to_string();
        return Err(ForecastError::Setting { what: "share of capacity", value, rule: "0 to 1" });
    }
    let row = weeks.iter().rev().take_while(|w| w.used_ratio.is_some_and(|u| u > above_ratio));
    let mut row: Vec<ExpansionWeek> = row.copied().collect();
    row.reverse();
    let asked = &row[row.len().saturating_sub(consecutive)..];
    let queue_gpus_per_week = slope(asked);
    let grows = queue_gpus_per_week.is_some_and(|s| s > 0.0);
    Ok(Expansion { expand: row.len() >= consecutive && grows, weeks: row, queue_gpus_per_week })
}

fn slope(weeks: &[ExpansionWeek]) -> Option<f64> {
    let points: Vec<(f64, f64)> = weeks
        .iter()
        .map(|w| w.week_ms as f64 / 604_800_000.0)
        .zip(weeks.iter().map(|w| w.waiting_gpus))
        .filter_map(|(t, q)| Some((t, q.filter(|q| q.is_finite())?)))
        .collect();
    let n = points.len() as f64;
    let (mt, mq) =
        (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let spread: f64 = points.iter().map(|p| (p.0 - mt).powi(2)).sum();
    let shared: f64 = points.iter().map(|p| (p.0 - mt) * (p.1 - mq)).sum();
    (points.len() >= 2 && spread > 0.0).then(|| shared / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weeks(rows: &[(Option<f64>, f64)]) -> Vec<ExpansionWeek> {
        rows.iter()
            .enumerate()
            .map(|(i, (used_ratio, waiting))| ExpansionWeek {
                week_ms: i as i64 * 604_800_000,
                used_ratio: *used_ratio,
                waiting_gpus: Some(*waiting),
            })
            .collect()
    }

    #[test]
    fn four_weeks_above_70_and_a_growing_queue() {
        // Breaks if either half of the rule decides alone.
        let high = Some(0.8);
        let grow = weeks(&[(Some(0.5), 9.0), (high, 1.0), (high, 2.0), (high, 3.0), (high, 4.0)]);
        let verdict = expansion(&grow, 4, 0.7).unwrap();
        assert!(verdict.expand);
        assert_eq!(verdict.weeks.len(), 4);
        assert!((verdict.queue_gpus_per_week.unwrap() - 1.0).abs() < 1e-9);

        let shrink = weeks(&[(high, 4.0), (high, 3.0), (high, 2.0), (high, 1.0)]);
        assert!(!expansion(&shrink, 4, 0.7).unwrap().expand);
        let gap = weeks(&[(high, 1.0), (None, 2.0), (high, 3.0), (high, 4.0)]);
        let verdict = expansion(&gap, 4, 0.7).unwrap();
        assert!(!verdict.expand);
        assert_eq!(verdict.weeks.len(), 2);
        let exactly = weeks(&[(Some(0.7), 1.0); 4].map(|w| w));
        assert_eq!(expansion(&exactly, 4, 0.7).unwrap().weeks, []);
        assert!(expansion(&gap, 1, 0.7).is_err() && expansion(&gap, 4, f64::NAN).is_err());
        assert!(!expansion(&[], 4, 0.7).unwrap().expand);
    }
}
