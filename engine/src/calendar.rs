//! Which local hour, day or week is it, and is it worked?
//!
//! A calendar is a named time zone, a weekly pattern of working hours, holidays and make-up
//! working days. Bins are half-open and labelled by the UTC instant at which they start; elapsed
//! time is counted in UTC, so local days of 23 and 25 hours need no special case.
//!
//! # Why two rules for bins
//! Bins of an hour or less are counted in elapsed time under the offset in force, so an hour that
//! the clock shows twice is two bins. Longer bins follow the wall clock: a day runs from midnight
//! to midnight, whatever its length.

mod bin;
mod pattern;
mod spec;
mod working;

pub use bin::{BinUnit, LocalBin};
pub use pattern::{Weekly, WeeklyError};

use std::collections::BTreeMap;

use chrono::{
    DateTime, NaiveDate, NaiveDateTime, Offset, SecondsFormat, TimeDelta, TimeZone, Utc, Weekday,
};
use chrono_tz::Tz;

/// Time zone, weekly working hours, holidays and make-up days of a site.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(try_from = "spec::CalendarSpec")]
pub struct Calendar {
    zone: Tz,
    weekly: Weekly,
    holidays: BTreeMap<NaiveDate, String>,
    makeup: BTreeMap<NaiveDate, Weekday>,
}

impl Default for Calendar {
    fn default() -> Self {
        Self::new(Tz::UTC, Weekly::default())
    }
}

impl Calendar {
    /// A calendar without holidays.
    #[must_use]
    pub fn new(zone: Tz, weekly: Weekly) -> Self {
        Self { zone, weekly, holidays: BTreeMap::new(), makeup: BTreeMap::new() }
    }

    /// The same calendar with `date` not worked.
    #[must_use]
    pub fn with_holiday(mut self, date: NaiveDate, name: &str) -> Self {
        self.holidays.insert(date, name.to_owned());
        self
    }

    /// The same calendar with `date` worked as if it were `like`; wins over a holiday.
    #[must_use]
    pub fn with_makeup(mut self, date: NaiveDate, like: Weekday) -> Self {
        self.makeup.insert(date, like);
        self
    }

    /// The zone whose clock the site lives by.
    #[must_use]
    pub fn zone(&self) -> Tz {
        self.zone
    }

    /// The weekly pattern of working hours.
    #[must_use]
    pub fn weekly(&self) -> &Weekly {
        &self.weekly
    }

    /// The name of the holiday on a local date, if it is one and not made up for.
    #[must_use]
    pub fn holiday(&self, date: NaiveDate) -> Option<&str> {
        if self.makeup.contains_key(&date) {
            return None;
        }
        self.holidays.get(&date).map(String::as_str)
    }

    /// The local date on which an instant falls.
    #[must_use]
    pub fn local_date(&self, at: DateTime<Utc>) -> NaiveDate {
        at.with_timezone(&self.zone).date_naive()
    }

    /// An instant in RFC 3339, as local time with its offset.
    #[must_use]
    pub fn told(&self, at: DateTime<Utc>) -> String {
        at.with_timezone(&self.zone).to_rfc3339_opts(SecondsFormat::AutoSi, true)
    }

    /// Instants in ms since 1970 at which local weeks begin, Monday by Monday: from the week that
    /// holds `from` until the first that begins at `until` or later.
    #[must_use]
    pub fn week_starts_ms(&self, from: i64, until: i64) -> Vec<i64> {
        let mut week = LocalBin::at(BinUnit::WEEK, self.zone, from);
        let mut starts = vec![week.started_at];
        while week.started_at < until {
            week = LocalBin::at(BinUnit::WEEK, self.zone, week.ended_at);
            starts.push(week.started_at);
        }
        starts
    }

    /// The instant in ms since 1970 at which the clock showed the same as at `at`, so many local
    /// days before.
    #[must_use]
    pub fn days_before_ms(&self, at: i64, days: u32) -> i64 {
        let days = TimeDelta::days(i64::from(days));
        match to_local(self.zone, at).0.checked_sub_signed(days) {
            Some(local) => from_local(self.zone, local),
            None => at - days.num_milliseconds(),
        }
    }

    /// Reads an instant as people write it: RFC 3339, or a local date (its midnight), with a local
    /// time after a space or a `T` if need be.
    ///
    /// # Errors
    /// Text that says what an instant looks like.
    pub fn instant(&self, text: &str) -> Result<DateTime<Utc>, String> {
        if let Ok(at) = DateTime::parse_from_rfc3339(text) {
            return Ok(at.to_utc());
        }
        let text = text.trim();
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").map(midnight);
        let local = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"]
            .iter()
            .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
            .or(date.ok());
        let at = local.map(|local| from_local(self.zone, local));
        at.and_then(DateTime::from_timestamp_millis).ok_or_else(|| {
            format!(
                "must be an instant such as 2026-04-01T00:00:00Z, or a date such as 2026-04-01 in {}",
                self.zone
            )
        })
    }

    /// Whether an instant is inside working hours.
    #[must_use]
    pub fn working(&self, at: DateTime<Utc>) -> bool {
        working::working(self, at.timestamp_millis(), &mut None)
    }

    /// [`Calendar::working`] for many instants in ms since 1970, keeping the day last looked at.
    pub(crate) fn working_at(&self, at: i64, day: &mut Option<working::Day>) -> bool {
        working::working(self, at, day)
    }

    /// Seconds of `[started_at, ended_at)` inside working hours.
    #[must_use]
    pub fn working_s(&self, started_at: DateTime<Utc>, ended_at: DateTime<Utc>) -> f64 {
        self.working_ms(started_at.timestamp_millis(), ended_at.timestamp_millis()) as f64 / 1000.0
    }

    pub(crate) fn working_ms(&self, started: i64, ended: i64) -> i64 {
        working::working_ms(self, started, ended)
    }

    /// The weekday whose pattern applies on `date`; `None` on a holiday.
    fn worked_as(&self, date: NaiveDate) -> Option<Weekday> {
        use chrono::Datelike as _;
        if let Some(like) = self.makeup.get(&date) {
            return Some(*like);
        }
        (!self.holidays.contains_key(&date)).then(|| date.weekday())
    }
}

/// Reads a zone name of the IANA database.
///
/// # Errors
/// Text that says what is wrong with the name.
pub fn parse_zone(name: &str) -> Result<Tz, String> {
    name.parse::<Tz>().map_err(|_| {
        format!("unknown time zone `{name}`: must be a name of the IANA database such as `Europe/Berlin`")
    })
}

/// How many seconds the clock of `zone` is ahead of UTC at an instant in ms since 1970.
#[must_use]
pub fn offset_s(zone: Tz, at: i64) -> i32 {
    zone.offset_from_utc_datetime(&naive(at)).fix().local_minus_utc()
}

/// Wall clock of `zone` at a UTC instant in ms, and the offset in ms.
pub(crate) fn to_local(zone: Tz, at: i64) -> (NaiveDateTime, i64) {
    let offset = i64::from(offset_s(zone, at)) * 1000;
    (naive(at + offset), offset)
}

/// First UTC instant in ms at which the clock of `zone` shows `local` or, where the clock skips
/// it, anything later.
pub(crate) fn from_local(zone: Tz, local: NaiveDateTime) -> i64 {
    let wall = local.and_utc().timestamp_millis();
    match zone.from_local_datetime(&local).earliest() {
        Some(at) => at.timestamp_millis(),
        None => end_of_gap(zone, wall),
    }
}

/// A skipped wall-clock time lies between two offsets: the clock jumps at the first instant whose
/// local time is past it.
fn end_of_gap(zone: Tz, wall: i64) -> i64 {
    const DAY: i64 = 86_400_000;
    let (mut before, mut after) = (wall - 2 * DAY, wall + 2 * DAY);
    while after - before > 1 {
        let middle = before.midpoint(after);
        let (_, offset) = to_local(zone, middle);
        if middle + offset >= wall {
            after = middle;
        } else {
            before = middle;
        }
    }
    after
}

/// A UTC date-time from ms since 1970, held inside chrono's range.
pub(crate) fn naive(at: i64) -> NaiveDateTime {
    DateTime::from_timestamp_millis(at)
        .unwrap_or(if at < 0 { DateTime::<Utc>::MIN_UTC } else { DateTime::<Utc>::MAX_UTC })
        .naive_utc()
}

/// Midnight of the day after.
fn midnight(date: NaiveDate) -> NaiveDateTime {
    date.and_time(chrono::NaiveTime::MIN)
}

fn plus_seconds(date: NaiveDate, seconds: u32) -> NaiveDateTime {
    midnight(date) + TimeDelta::seconds(i64::from(seconds))
}

#[cfg(test)]
mod tests;
