//! The axis of local days, with its labels on round days and hours.

use std::ops::Range;

use chrono::{DateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

/// From `start` to `end` in days, labelled at `places`.
pub(super) struct DayAxis {
    /// First day.
    pub(super) start: f64,
    /// Last day.
    pub(super) end: f64,
    /// Labels.
    pub(super) places: Vec<f64>,
}

impl Ranged for DayAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let length = f64::from(limit.1 - limit.0);
        limit.0 + ((value - self.start) / (self.end - self.start) * length).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.places.clone()
    }

    fn range(&self) -> Range<f64> {
        self.start..self.end
    }
}

/// Whole days since 1970 in local time, with the fraction of the day: the x axis.
pub(super) fn local_days(at: DateTime<Utc>, zone: Tz) -> f64 {
    let offset = zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc();
    (at.timestamp() + i64::from(offset)) as f64 / 86_400.0
}

/// Hours between labels: whole days where there are enough of them.
const LABEL_HOURS: [f64; 14] =
    [1.0, 2.0, 3.0, 6.0, 12.0, 24.0, 48.0, 72.0, 120.0, 168.0, 336.0, 672.0, 1_344.0, 2_688.0];

/// Where an axis of time has its labels: on round local hours and days, never two of one day
/// where days are told, and where no hour is told on whole days only.
pub(super) fn label_days(start: f64, end: f64, labels_max: usize) -> Vec<f64> {
    let places = |hours: f64| -> Vec<f64> {
        let step = hours / 24.0;
        let first = (start / step).ceil() as i64;
        (first..).map(|k| k as f64 * step).take_while(|day| *day <= end + 1e-9).collect()
    };
    let fitting = LABEL_HOURS.iter().find(|hours| places(**hours).len() <= labels_max);
    places(*fitting.unwrap_or(&8_766.0))
}

/// The local day, and its hour where one is told.
pub(super) fn day_label(days: f64, hours_told: bool) -> String {
    let form = if hours_told { "%m-%d %H:%M" } else { "%m-%d" };
    DateTime::from_timestamp((days * 86_400.0).round() as i64, 0)
        .map_or_else(String::new, |at| at.format(form).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_time_are_round_and_never_twice_the_same() {
        for (days, most) in [(0.3, 4), (1.0, 5), (2.5, 5), (5.0, 11), (35.0, 5), (400.0, 11)] {
            let places = label_days(20_514.4, 20_514.4 + days, most);
            assert!(!places.is_empty() && places.len() <= most, "{days}: {places:?}");
            let told = places.iter().any(|day| (day - day.round()).abs() > 1e-6);
            let mut labels: Vec<String> = places.iter().map(|day| day_label(*day, told)).collect();
            labels.dedup();
            assert_eq!(labels.len(), places.len(), "{days}: {labels:?}");
        }
    }
}
