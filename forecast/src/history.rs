//! A series made ready for models: trimmed, filled for features only, with its seasons.

use crate::basis::first_demand;
use crate::series::Series;

/// Weeks of history a model looks back at most.
pub(crate) const WEEKS_MAX: usize = 16;

/// The last weeks of a series.
#[derive(Debug, Clone)]
pub(crate) struct History {
    /// Values; gaps filled from one season earlier. Features read these, scores never do.
    pub(crate) filled: Vec<f64>,
    seen: Vec<bool>,
    /// Index of `filled[0]` in the series.
    pub(crate) from: usize,
    /// Steps of the short season.
    pub(crate) season: usize,
    /// Steps of the long season.
    pub(crate) long: usize,
    /// Short seasons averaged into a profile.
    pub(crate) cycles: usize,
    /// Largest value seen.
    pub(crate) most: f64,
}

impl History {
    /// Starts at the first demand, reaches back [`WEEKS_MAX`] weeks at most.
    ///
    /// `None` where nothing was seen.
    pub(crate) fn new(series: &Series) -> Option<Self> {
        let (season, long) = (series.season_short(), series.season_long());
        let week = (604_800 / series.step_s() as usize).max(1);
        let reach = series.len().saturating_sub(WEEKS_MAX * week.max(4));
        let from = first_demand(series).max(reach);
        let values = &series.values()[from..];
        let first = values.iter().flatten().next()?;
        let mut filled: Vec<f64> = Vec::with_capacity(values.len());
        for (i, value) in values.iter().enumerate() {
            let earlier = [long, season, 1].into_iter().find_map(|lag| i.checked_sub(lag));
            let stand_in = earlier.map_or(*first, |j| filled[j]);
            filled.push(value.unwrap_or(stand_in));
        }
        let cycles = if long > season { long / season } else { 4 };
        let most = values.iter().flatten().copied().fold(0.0, f64::max);
        let seen = values.iter().map(Option::is_some).collect();
        Some(Self { filled, seen, from, season, long, cycles, most })
    }

    pub(crate) fn len(&self) -> usize {
        self.filled.len()
    }

    /// The value of step `i`, where it was seen.
    pub(crate) fn actual(&self, i: usize) -> Option<f64> {
        (*self.seen.get(i)?).then(|| self.filled[i])
    }

    /// Share of the steps that were seen.
    pub(crate) fn seen_ratio(&self) -> f64 {
        self.seen.iter().filter(|s| **s).count() as f64 / self.seen.len() as f64
    }

    /// The cap of every forecast: a model may not explode past what was ever seen.
    pub(crate) fn cap(&self) -> f64 {
        3.0 * self.most + 1.0
    }

    /// Earliest step after which every feature is known.
    pub(crate) fn first_origin(&self) -> usize {
        self.long.max(self.season * self.cycles) + self.season - 1
    }

    /// Steps the elastic net needs.
    pub(crate) fn steps_needed(&self) -> usize {
        2 * self.long.max(self.season * self.cycles)
    }
}
