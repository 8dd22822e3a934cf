//! The feature frame of a history, and the row of features of one origin and horizon.
//!
//! # Why
//! *Why is everything relative?* Each row is centred on the mean of the last long season before
//! its origin and divided by the recent spread, so that a level shift or a growing fleet does not
//! make old rows useless, and coefficients mean the same everywhere.

use polars::prelude::*;

use crate::forecast::CalendarColumn;
use crate::history::History;

/// Features are cut here, in units of the recent spread.
const CUT: f64 = 15.0;
/// Features that do not come from the calendar: nine levels and lags, six Fourier terms.
const PLAIN: usize = 15;

/// Columns of the history and horizon, ready to be read by row.
#[derive(Debug)]
pub(crate) struct Features {
    levels: [Vec<f64>; 5],
    mean_long: Vec<f64>,
    spread: Vec<f64>,
    profile: Vec<f64>,
    lag_long: Vec<f64>,
    value: Vec<f64>,
    fourier: [Vec<f64>; 6],
    calendar: Vec<Vec<f64>>,
    season: usize,
    long: usize,
}

impl Features {
    /// Builds the frame in Polars and takes its columns.
    pub(crate) fn new(
        history: &History,
        start_step: i64,
        calendar: &[CalendarColumn],
        horizon: usize,
    ) -> PolarsResult<Self> {
        let frame = frame(history, start_step, calendar, horizon)?;
        let take = |name: &str| -> PolarsResult<Vec<f64>> {
            Ok(frame.column(name)?.f64()?.iter().map(|v| v.unwrap_or(f64::NAN)).collect())
        };
        let levels = ["value", "mean_quarter", "mean_season", "ewm_fast", "ewm_slow"].map(take);
        let fourier = FOURIER.map(|(name, ..)| take(name));
        let [last, quarter, season, fast, slow] = levels;
        let [a, b, c, d, e, f] = fourier;
        Ok(Self {
            levels: [last?, quarter?, season?, fast?, slow?],
            mean_long: take("mean_long")?,
            spread: take("spread")?,
            profile: take("profile")?,
            lag_long: take("lag_long")?,
            value: take("value")?,
            fourier: [a?, b?, c?, d?, e?, f?],
            calendar: plain(calendar).map(|c| take(&c.name)).collect::<PolarsResult<_>>()?,
            season: history.season,
            long: history.long,
        })
    }

    /// Number of features in a row.
    pub(crate) fn width(&self) -> usize {
        PLAIN + 2 * self.calendar.len()
    }

    /// Centre and scale of an origin whose last known step is `last`, in GPUs.
    pub(crate) fn frame_of(&self, last: usize) -> (f64, f64) {
        (self.mean_long[last], self.spread[last])
    }

    /// Writes the features of step `last + h` as known after step `last`.
    pub(crate) fn row(&self, last: usize, h: usize, out: &mut Vec<f64>) {
        let (centre, scale) = self.frame_of(last);
        let back = |season: usize| last + h - season * ((h - 1) / season + 1);
        let (same_season, same_long) = (back(self.season), back(self.long));
        let before = self.lag_long[same_long];
        let long = self.value[same_long];
        let two = if before.is_finite() { (long + before) / 2.0 } else { long };
        let relative = |v: f64| ((v - centre) / scale).clamp(-CUT, CUT);
        out.clear();
        out.extend(self.levels.iter().map(|level| relative(level[last])));
        let lags = [self.value[same_season], self.profile[same_season], long, two];
        out.extend(lags.map(relative));
        out.extend(self.fourier.iter().map(|term| term[last + h]));
        for column in &self.calendar {
            let then = column[last + h];
            out.extend([then - column[same_season], then - column[same_long]]);
        }
    }

    /// A forecast that needs no fit, in units of the row: the last level fading into the recent
    /// mean, plus most of the daily profile.
    pub(crate) fn prior(&self, row: &[f64], h: usize) -> f64 {
        let near = (-(h as f64) / self.season.max(2) as f64).exp();
        near * row[0] + (1.0 - near) * (0.4 * row[2] + 0.4 * row[6] + 0.2 * row[8])
    }
}

/// Name, steps of the long season per turn of the wave, cosine.
const FOURIER: [(&str, f64, bool); 6] = [
    ("day_sin", 7.0, false),
    ("day_cos", 7.0, true),
    ("half_day_sin", 14.0, false),
    ("half_day_cos", 14.0, true),
    ("week_sin", 1.0, false),
    ("week_cos", 1.0, true),
];

/// Columns that enter as numbers; `hour_of_week` only turns the waves.
fn plain(calendar: &[CalendarColumn]) -> impl Iterator<Item = &CalendarColumn> {
    calendar.iter().filter(|c| c.name != "hour_of_week")
}

/// One row a step, history first, then horizon: what is not known there is null.
fn frame(
    history: &History,
    start_step: i64,
    calendar: &[CalendarColumn],
    horizon: usize,
) -> PolarsResult<DataFrame> {
    let (n, rows) = (history.len(), history.len() + horizon);
    let known = |name: &str, values: Vec<f64>| {
        let padded: Vec<Option<f64>> =
            values.into_iter().map(Some).chain(std::iter::repeat_n(None, rows - n)).collect();
        Column::new(name.into(), padded)
    };
    let values = &history.filled;
    let mean_long = rolling_mean(values, history.long);
    let spread = spreads(values, &mean_long, history.long);
    let value = known("value", values.clone());
    let mut profile = value.as_materialized_series().clone();
    for cycle in 1..history.cycles {
        let earlier = value.shift((cycle * history.season) as i64);
        profile = (&profile + earlier.as_materialized_series())?;
    }
    let profile = (&profile / history.cycles as f64).with_name("profile".into());
    let mut columns = vec![
        value.shift(history.long as i64).with_name("lag_long".into()),
        profile.into_column(),
        known("mean_quarter", rolling_mean(values, (history.season / 4).max(1))),
        known("mean_season", rolling_mean(values, history.season)),
        known("mean_long", mean_long),
        known("spread", spread),
        known("ewm_fast", ewm(values, 0.3)),
        known("ewm_slow", ewm(values, 1.2 / history.season.max(4) as f64)),
        value,
    ];
    let phase = phases(history, start_step, calendar, rows);
    columns.extend(FOURIER.map(|(name, turns, cosine)| {
        let wave = phase.iter().map(|p| {
            let angle = p * turns * std::f64::consts::TAU;
            if cosine { angle.cos() } else { angle.sin() }
        });
        Column::new(name.into(), wave.collect::<Vec<f64>>())
    }));
    columns.extend(plain(calendar).map(|c| {
        Column::new(c.name.as_str().into(), c.values[history.from..history.from + rows].to_vec())
    }));
    DataFrame::new(rows, columns)
}

/// Where in the week each row lies, 0 to 1: local time where the calendar tells it.
fn phases(
    history: &History,
    start_step: i64,
    calendar: &[CalendarColumn],
    rows: usize,
) -> Vec<f64> {
    if let Some(hours) = calendar.iter().find(|c| c.name == "hour_of_week") {
        return hours.values[history.from..history.from + rows].iter().map(|h| h / 168.0).collect();
    }
    let long = history.long as i64;
    (0..rows as i64).map(|i| (start_step + i).rem_euclid(long) as f64 / long as f64).collect()
}

/// Mean of the last `window` values; of fewer at the start.
fn rolling_mean(values: &[f64], window: usize) -> Vec<f64> {
    let mut sums = vec![0.0];
    for v in values {
        sums.push(sums[sums.len() - 1] + v);
    }
    (1..sums.len())
        .map(|i| {
            let from = i.saturating_sub(window);
            ((sums[i] - sums[from]) / (i - from) as f64).max(0.0)
        })
        .collect()
}

/// Half the mean deviation of the last long season, half three times its mean change.
fn spreads(values: &[f64], means: &[f64], long: usize) -> Vec<f64> {
    (0..values.len())
        .map(|i| {
            let window = &values[(i + 1).saturating_sub(long)..=i];
            let n = window.len() as f64;
            let deviation = window.iter().map(|v| (v - means[i]).abs()).sum::<f64>() / n;
            let change = window.windows(2).map(|w| (w[1] - w[0]).abs()).sum::<f64>() / n;
            (0.5 * deviation + 1.5 * change).max(1e-6 + 1e-3 * means[i])
        })
        .collect()
}

fn ewm(values: &[f64], weight: f64) -> Vec<f64> {
    let mut level = values[0];
    values
        .iter()
        .map(|v| {
            level += weight * (v - level);
            level
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Series;

    #[test]
    fn a_row_holds_worked_levels_and_lags() {
        // Breaks if a lag points at the wrong step or reads past the origin.
        let values = (0..400).map(|i| Some(f64::from(i))).collect();
        let series = Series::new("s", 0, 3600, values).unwrap();
        let history = History::new(&series).unwrap();
        let from = history.from as f64; // the first zero is trimmed
        let working = CalendarColumn {
            name: "working".into(),
            values: (0..500).map(|i| f64::from(u8::from(i >= 320))).collect(),
        };
        let features = Features::new(&history, 1, &[working], 48).unwrap();
        assert_eq!(features.width(), 17);
        let last = 300;
        let (centre, scale) = features.frame_of(last);
        assert!((centre - (300.0 + from - 83.5)).abs() < 1e-9); // mean of the last 168
        assert!((scale - (0.5 * 42.0 + 1.5 * 167.0 / 168.0)).abs() < 1e-9);
        let mut row = Vec::new();
        features.row(last, 30, &mut row); // step 330: a day and a week back are 282 and 162
        let gpus = |i: usize| row[i] * scale + centre - from;
        for (i, want) in [(0, 300.0), (1, 297.5), (2, 288.5), (5, 282.0), (6, 210.0), (7, 162.0)] {
            assert!((gpus(i) - want).abs() < 1e-6, "feature {i}: {} not {want}", gpus(i));
        }
        assert!(row[8].is_finite());
        assert_eq!(&row[15..], [1.0, 1.0]);
    }
}
