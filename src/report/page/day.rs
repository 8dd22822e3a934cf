//! Days as points of a chart.

use chrono::{DateTime, NaiveDate, TimeZone, Utc};
use chrono_tz::Tz;

use super::super::data::{DayUse, ReportData};

/// A value for each day that is drawn, at its noon.
pub(super) fn daily(
    data: &ReportData,
    zone: Tz,
    value: impl Fn(&DayUse) -> Option<f64>,
) -> Vec<(DateTime<Utc>, Option<f64>)> {
    let noon = |day: &DayUse| {
        let local = day.day.and_hms_opt(12, 0, 0)?;
        zone.from_local_datetime(&local).earliest().map(|at| at.to_utc())
    };
    drawn(data, zone).into_iter().filter_map(|day| Some((noon(day)?, value(day)))).collect()
}

/// Whether days that are not whole are left out.
pub(super) fn days_left_out(data: &ReportData, zone: Tz) -> bool {
    drawn(data, zone).len() < data.days.len()
}

/// Days that the period covers whole, or all where there are fewer than two of those: what a period
/// holds of another day, such as the half hour before its first midnight, would look like a fall.
fn drawn(data: &ReportData, zone: Tz) -> Vec<&DayUse> {
    let midnight = |day: NaiveDate| {
        let local = day.and_hms_opt(0, 0, 0)?;
        zone.from_local_datetime(&local).earliest().map(|at| at.to_utc())
    };
    let whole = |day: &&DayUse| {
        let (from, until) = (midnight(day.day), day.day.succ_opt().and_then(midnight));
        from.is_none_or(|at| data.from <= at) && until.is_none_or(|at| at <= data.until)
    };
    let days: Vec<&DayUse> = data.days.iter().filter(whole).collect();
    if days.len() >= 2 { days } else { data.days.iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(from: &str, until: &str, days: u32) -> ReportData {
        let day = |n| DayUse {
            day: NaiveDate::from_ymd_opt(2026, 3, n).unwrap(),
            held_ratio: Some(f64::from(n)),
            busy_ratio: None,
            coverage_ratio: None,
            queue_time_s_p50: None,
        };
        ReportData {
            from: from.parse().unwrap(),
            until: until.parse().unwrap(),
            days: (1..=days).map(day).collect(),
            ..ReportData::default()
        }
    }

    #[test]
    fn a_line_begins_with_the_first_whole_day_and_ends_with_the_last() {
        // From 23:30 on the 1st to 09:00 on the 5th, in Shanghai.
        let zone = Tz::Asia__Shanghai;
        let data = report("2026-03-01T15:30:00Z", "2026-03-05T01:00:00Z", 5);
        let held: Vec<Option<f64>> =
            daily(&data, zone, |day| day.held_ratio).into_iter().map(|point| point.1).collect();
        assert_eq!(held, [Some(2.0), Some(3.0), Some(4.0)]);
        assert!(days_left_out(&data, zone));
    }

    #[test]
    fn a_period_without_two_whole_days_is_drawn_as_it_is() {
        let zone = Tz::Asia__Shanghai;
        let data = report("2026-03-01T15:30:00Z", "2026-03-02T18:00:00Z", 2);
        assert_eq!(daily(&data, zone, |day| day.held_ratio).len(), 2);
        assert!(!days_left_out(&data, zone));
    }
}
