//! The span of history and the local clock in it.

use chrono::{Datelike, Days, NaiveDate, TimeZone, Timelike};
use chrono_tz::Tz;

use super::Options;

/// Days off (from, until inclusive, name) in the zones that the fleet knows.
const HOLIDAYS: [(Tz, &str, &str, &str); 5] = [
    (Tz::Asia__Shanghai, "2026-02-15", "2026-02-23", "Spring Festival"),
    (Tz::Asia__Shanghai, "2026-04-04", "2026-04-06", "Qingming"),
    (Tz::Asia__Shanghai, "2026-05-01", "2026-05-05", "Labour Day"),
    (Tz::Europe__Berlin, "2026-04-03", "2026-04-06", "Easter"),
    (Tz::Europe__Berlin, "2026-05-01", "2026-05-01", "Labour Day"),
];

/// Saturdays that are worked.
const MAKEUP_DAYS: [(Tz, &str); 3] = [
    (Tz::Asia__Shanghai, "2026-02-14"),
    (Tz::Asia__Shanghai, "2026-02-28"),
    (Tz::Asia__Shanghai, "2026-05-09"),
];

/// A holiday: first day, last day, name.
pub(super) type Holiday = (NaiveDate, NaiveDate, &'static str);

/// Hour and kind of day for every hour of the span. Instants are UTC seconds.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) started: i64,
    pub(super) ended: i64,
    hours: Vec<(usize, bool)>,
}

impl Local {
    pub(super) fn new(options: &Options) -> Self {
        let last = options.start + Days::new(u64::from(options.weeks) * 7);
        let started = midnight(options.zone, options.start);
        let ended = midnight(options.zone, last);
        let holidays = holidays(options);
        let makeup = makeup_days(options);
        let hours = (started..ended + 3600)
            .step_by(3600)
            .map(|at| {
                let clock =
                    options.zone.timestamp_opt(at, 0).single().expect("UTC is never ambiguous");
                (clock.hour() as usize, worked(clock.date_naive(), &holidays, &makeup))
            })
            .collect();
        Self { started, ended, hours }
    }

    /// Local hour of the day, and whether the day is worked.
    pub(super) fn hour(&self, at: i64) -> (usize, bool) {
        let hour = (at - self.started).max(0) / 3600;
        self.hours[(hour as usize).min(self.hours.len() - 1)]
    }

    /// The instant after this share of the span.
    pub(super) fn at(&self, share: f64) -> i64 {
        self.started + ((self.ended - self.started) as f64 * share) as i64
    }

    /// The share of the span that lies before an instant.
    pub(super) fn share(&self, at: i64) -> f64 {
        (at - self.started) as f64 / (self.ended - self.started) as f64
    }
}

fn worked(day: NaiveDate, holidays: &[Holiday], makeup: &[NaiveDate]) -> bool {
    let off = holidays.iter().any(|(from, until, _)| (*from..=*until).contains(&day));
    makeup.contains(&day) || (!off && day.weekday().number_from_monday() < 6)
}

/// Holidays of the zone.
pub(super) fn holidays(options: &Options) -> Vec<Holiday> {
    let of_zone = HOLIDAYS.iter().filter(|(zone, ..)| *zone == options.zone);
    of_zone.map(|(_, from, until, name)| (day(from), day(until), *name)).collect()
}

/// Make-up working days of the zone.
pub(super) fn makeup_days(options: &Options) -> Vec<NaiveDate> {
    let of_zone = MAKEUP_DAYS.iter().filter(|(zone, _)| *zone == options.zone);
    of_zone.map(|(_, date)| day(date)).collect()
}

fn day(text: &str) -> NaiveDate {
    text.parse().expect("a day of the calendar")
}

/// UTC second at which a local day begins; 1 a.m. where midnight is skipped.
fn midnight(zone: Tz, day: NaiveDate) -> i64 {
    let hour = |hour| day.and_hms_opt(hour, 0, 0).expect("an hour of the clock");
    let find = |hour| zone.from_local_datetime(&hour).earliest();
    find(hour(0)).or_else(|| find(hour(1))).expect("no zone skips two hours").timestamp()
}
