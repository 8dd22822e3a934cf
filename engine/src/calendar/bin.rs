//! Bins of local time: hours, days, weeks, months, or any whole number of minutes or hours.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike as _, Months, NaiveDate, NaiveDateTime, TimeDelta};
use chrono_tz::Tz;

use super::{from_local, midnight, to_local};

const HOUR_S: i64 = 3600;
const DAY_S: i64 = 86_400;

/// Length of a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinUnit {
    /// Seconds, a divisor of a day; counted from local midnight.
    Seconds(i64),
    /// Whole days, counted from 1970-01-01.
    Days(i64),
    /// Whole weeks that start on Monday, counted from 1970-01-05.
    Weeks(i64),
    /// Calendar months, counted from January 1970.
    Months(i64),
}

impl BinUnit {
    /// One local hour.
    pub const HOUR: Self = Self::Seconds(HOUR_S);
    /// One local day.
    pub const DAY: Self = Self::Days(1);
    /// One week from Monday.
    pub const WEEK: Self = Self::Weeks(1);
    /// One calendar month.
    pub const MONTH: Self = Self::Months(1);

    /// Bins of up to an hour are counted in elapsed time, longer ones on the wall clock.
    fn elapsed(self) -> Option<i64> {
        match self {
            Self::Seconds(seconds) if seconds <= HOUR_S => Some(seconds * 1000),
            _ => None,
        }
    }

    /// Start on the wall clock of the bin that holds `local`.
    fn floor(self, local: NaiveDateTime) -> NaiveDateTime {
        let date = local.date();
        match self {
            Self::Seconds(seconds) => {
                let of_day = (local - midnight(date)).num_seconds();
                midnight(date) + TimeDelta::seconds(of_day / seconds * seconds)
            }
            Self::Days(days) => midnight(floor_days(date, epoch(), days)),
            Self::Weeks(weeks) => midnight(floor_days(date, monday(), weeks * 7)),
            Self::Months(months) => {
                let index = i64::from(date.year()) * 12 + i64::from(date.month0());
                midnight(month(index.div_euclid(months) * months))
            }
        }
    }

    /// Start on the wall clock of the bin after the one that starts at `local`.
    fn next(self, local: NaiveDateTime) -> NaiveDateTime {
        match self {
            Self::Seconds(seconds) => local + TimeDelta::seconds(seconds),
            Self::Days(days) => local + TimeDelta::days(days),
            Self::Weeks(weeks) => local + TimeDelta::weeks(weeks),
            Self::Months(months) => {
                let months = Months::new(u32::try_from(months).unwrap_or(u32::MAX));
                local.checked_add_months(months).unwrap_or(NaiveDateTime::MAX)
            }
        }
    }
}

impl FromStr for BinUnit {
    type Err = String;

    /// Reads `hour`, `15 minutes`, `6h`, `1 day`, `2 weeks`, `month`, `quarter`, `year`.
    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
        let count: i64 = match &trimmed[..digits] {
            "" => 1,
            number => number.parse().map_err(|_| refuse(text))?,
        };
        let unit = trimmed[digits..].trim().to_ascii_lowercase();
        let unit = if unit.len() > 3 { unit.trim_end_matches('s') } else { &unit };
        let bin = match unit {
            "s" | "sec" | "second" => Self::Seconds(count),
            "m" | "min" | "minute" => Self::Seconds(count * 60),
            "h" | "hr" | "hour" => Self::Seconds(count * HOUR_S),
            "d" | "day" => Self::Days(count),
            "w" | "week" => Self::Weeks(count),
            "mon" | "month" => Self::Months(count),
            "quarter" => Self::Months(count * 3),
            "y" | "year" => Self::Months(count * 12),
            _ => return Err(refuse(text)),
        };
        match bin {
            _ if count == 0 => Err(refuse(text)),
            Self::Seconds(DAY_S) => Ok(Self::DAY),
            Self::Seconds(seconds) if DAY_S % seconds != 0 => Err(format!(
                "cannot count bins of `{text}` from midnight: must divide a day evenly"
            )),
            bin => Ok(bin),
        }
    }
}

fn refuse(text: &str) -> String {
    format!(
        "unknown bin `{text}`: must be like `15 minutes`, `hour`, `6 hours`, `day`, `week`, `month`"
    )
}

impl fmt::Display for BinUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(HOUR_S) => f.write_str("hour"),
            Self::Seconds(seconds) => write!(f, "{seconds} seconds"),
            Self::Days(days) => write!(f, "{days} days"),
            Self::Weeks(weeks) => write!(f, "{weeks} weeks"),
            Self::Months(months) => write!(f, "{months} months"),
        }
    }
}

/// A half-open stretch of UTC in ms since 1970 that one local bin covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalBin {
    /// First instant of the bin.
    pub started_at: i64,
    /// First instant after the bin.
    pub ended_at: i64,
}

impl LocalBin {
    /// The bin of `zone` that holds the instant `at` (ms since 1970).
    #[must_use]
    pub fn at(unit: BinUnit, zone: Tz, at: i64) -> Self {
        match unit.elapsed() {
            Some(step) => elapsed_bin(step, zone, at),
            None => wall_bin(unit, zone, at),
        }
    }

    /// Start of the bin that holds `at`.
    #[must_use]
    pub fn start(unit: BinUnit, zone: Tz, at: i64) -> i64 {
        match unit.elapsed() {
            Some(step) => elapsed_start(step, zone, at),
            None => from_local(zone, unit.floor(to_local(zone, at).0)),
        }
    }
}

fn elapsed_start(step: i64, zone: Tz, at: i64) -> i64 {
    let (_, offset) = to_local(zone, at);
    let start = (at + offset).div_euclid(step) * step - offset;
    if to_local(zone, start).1 == offset { start } else { shift_before(zone, start, at) }
}

fn elapsed_bin(step: i64, zone: Tz, at: i64) -> LocalBin {
    let started_at = elapsed_start(step, zone, at);
    let (_, offset) = to_local(zone, started_at);
    let end = (started_at + offset).div_euclid(step) * step + step - offset;
    let same = to_local(zone, end - 1).1 == offset;
    let ended_at = if same { end } else { shift_before(zone, started_at, end - 1) };
    LocalBin { started_at, ended_at }
}

/// The instant in `(before, after]` at which the clock was shifted to what it is at `after`.
fn shift_before(zone: Tz, mut before: i64, mut after: i64) -> i64 {
    let (_, offset) = to_local(zone, after);
    while after - before > 1 {
        let middle = before.midpoint(after);
        if to_local(zone, middle).1 == offset {
            after = middle;
        } else {
            before = middle;
        }
    }
    after
}

fn wall_bin(unit: BinUnit, zone: Tz, at: i64) -> LocalBin {
    let mut local = unit.floor(to_local(zone, at).0);
    let started_at = from_local(zone, local);
    // A whole day may be skipped where a zone crosses the date line.
    loop {
        local = unit.next(local);
        let ended_at = from_local(zone, local);
        if ended_at > started_at {
            return LocalBin { started_at, ended_at };
        }
    }
}

fn floor_days(date: NaiveDate, from: NaiveDate, days: i64) -> NaiveDate {
    let since = (date - from).num_days();
    from + TimeDelta::days(since.div_euclid(days) * days)
}

fn epoch() -> NaiveDate {
    NaiveDate::from_ymd_opt(1970, 1, 1).expect("1970 is a year")
}

fn monday() -> NaiveDate {
    NaiveDate::from_ymd_opt(1970, 1, 5).expect("1970 is a year")
}

/// First day of the month with the given number of months since year 0.
fn month(index: i64) -> NaiveDate {
    let year = i32::try_from(index.div_euclid(12)).expect("a year of chrono fits 32 bits");
    let month = u32::try_from(index.rem_euclid(12)).expect("a remainder of 12 is small") + 1;
    NaiveDate::from_ymd_opt(year, month, 1).expect("the first of a month exists")
}
