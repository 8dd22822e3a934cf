//! Working hours as stretches of UTC: each local day's ranges, resolved through the zone.

use chrono::NaiveDate;

use super::{Calendar, from_local, plus_seconds, to_local};

/// The working stretches of one local day, in ms since 1970, and the stretch of UTC for which
/// they are known. Kept by callers that ask for one instant after another.
#[derive(Debug)]
pub(crate) struct Day {
    starts: i64,
    ends: i64,
    stretches: Vec<(i64, i64)>,
}

impl Day {
    fn of(calendar: &Calendar, date: NaiveDate) -> Self {
        let zone = calendar.zone();
        let starts = from_local(zone, plus_seconds(date, 0));
        let ends = from_local(zone, plus_seconds(date, 86_400));
        let stretches = match calendar.worked_as(date) {
            None => Vec::new(),
            Some(weekday) => calendar
                .weekly()
                .ranges(weekday)
                .iter()
                .map(|(from, until)| {
                    let from = from_local(zone, plus_seconds(date, *from));
                    (from, from_local(zone, plus_seconds(date, *until)))
                })
                .collect(),
        };
        Self { starts, ends, stretches }
    }
}

pub(crate) fn working(calendar: &Calendar, at: i64, day: &mut Option<Day>) -> bool {
    let known = day.as_ref().is_some_and(|day| (day.starts..day.ends).contains(&at));
    if !known {
        let (local, _) = to_local(calendar.zone(), at);
        *day = Some(Day::of(calendar, local.date()));
    }
    let day = day.as_ref().expect("just set");
    day.stretches.iter().any(|(from, until)| (*from..*until).contains(&at))
}

pub(super) fn working_ms(calendar: &Calendar, started: i64, ended: i64) -> i64 {
    if ended <= started {
        return 0;
    }
    let (first, _) = to_local(calendar.zone(), started);
    let mut total = 0;
    for date in first.date().iter_days() {
        let day = Day::of(calendar, date);
        if day.starts >= ended {
            break;
        }
        for (from, until) in day.stretches {
            total += (until.min(ended) - from.max(started)).max(0);
        }
    }
    total
}
