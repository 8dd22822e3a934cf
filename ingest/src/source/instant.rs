//! From times as ledgers and exports write them to instants.
//!
//! A time without an offset is local to a named zone. Where that zone's clock shows a time twice
//! or never, a named policy decides and the case is counted, so that it can be told.

use chrono::offset::LocalResult;
use chrono::{DateTime, NaiveDateTime, TimeDelta, TimeZone};
use chrono_tz::Tz;
use serde::Deserialize;

use super::clock::doubled::Doubled;
use civil::civil;

mod civil;

/// What a local time that exists twice means; one that never existed is read with the offset
/// before the gap, unless it is to be rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ambiguous {
    /// The first time round (daylight-saving time, as a rule).
    #[default]
    Earlier,
    /// The second time round.
    Later,
    /// Neither: the row is kept aside, and so is one at a time that never existed.
    Reject,
    /// What the rows before it say, which were written in order; the first time where they do not.
    Order,
}

/// Unit of a bare number of time since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EpochUnit {
    #[default]
    Second,
    Milli,
    Micro,
    Nano,
}

impl EpochUnit {
    /// Milliseconds in one unit.
    pub(crate) const fn millis(self) -> f64 {
        match self {
            Self::Second => 1e3,
            Self::Milli => 1.0,
            Self::Micro => 1e-3,
            Self::Nano => 1e-6,
        }
    }
}

/// An instant in ms since 1970, and of a time that happened twice the second one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) at: i64,
    pub(crate) second: Option<i64>,
}

/// Reads times of one file and remembers what was doubtful.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    zone: Tz,
    ambiguous: Ambiguous,
    unit: EpochUnit,
    format: Option<String>,
    twice: u64,
    never: u64,
    unzoned: u64,
    example: Option<String>,
    doubled: Doubled,
    /// The second instant of the time that was read last.
    second: Option<i64>,
    /// Whether who asks chooses between the two.
    chosen: bool,
}

impl Moments {
    pub(crate) fn new(zone: Tz, ambiguous: Ambiguous) -> Self {
        Self {
            zone,
            ambiguous,
            unit: EpochUnit::Second,
            format: None,
            twice: 0,
            never: 0,
            unzoned: 0,
            example: None,
            doubled: Doubled::default(),
            second: None,
            chosen: false,
        }
    }

    /// Reads bare numbers in `unit` and other text by `format` (chrono's `strftime` letters).
    #[must_use]
    pub(crate) fn reading(mut self, unit: EpochUnit, format: Option<&str>) -> Self {
        self.unit = unit;
        self.format = format.map(str::to_owned);
        self
    }

    /// Milliseconds since 1970 in UTC; `None` for a time that is not known, such as `Unknown`.
    ///
    /// # Errors
    /// Why `text` is no time, or which time exists twice or never.
    pub(crate) fn parse(&mut self, text: &str) -> Result<Option<i64>, String> {
        match self.read(text)? {
            Some(0) | None => Ok(None),
            Some(at) if plausible(at) => Ok(Some(at)),
            Some(_) => Err(format!("`{text}` is outside the years {YEARS}")),
        }
    }

    /// The same, with both instants of a time that happened twice, for who can tell them apart.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub(crate) fn parse_both(&mut self, text: &str) -> Result<Option<Told>, String> {
        (self.second, self.chosen) = (None, true);
        let at = self.parse(text)?;
        Ok(at.map(|at| Told { at, second: self.second.take() }))
    }

    fn read(&mut self, text: &str) -> Result<Option<i64>, String> {
        let text = text.trim();
        if unknown(text) {
            return Ok(None);
        }
        if let Some(format) = &self.format {
            if let Ok(at) = DateTime::parse_from_str(text, format) {
                return Ok(Some(at.timestamp_millis()));
            }
            let local = NaiveDateTime::parse_from_str(text, format)
                .map_err(|_| format!("`{text}` is no time like `{format}`"))?;
            return self.local(local).map(Some);
        }
        if let Some(number) = number(text) {
            return epoch(number, self.unit, text).map(Some);
        }
        let (local, offset_s) = civil(text).ok_or_else(|| format!("`{text}` is no time"))?;
        match offset_s {
            Some(offset_s) => Ok(Some(local.and_utc().timestamp_millis() - offset_s * 1000)),
            None => {
                self.unzoned += 1;
                self.local(local).map(Some)
            }
        }
    }

    /// Times so far that told no zone and were read as those of the named one.
    pub(crate) const fn unzoned(&self) -> u64 {
        self.unzoned
    }

    /// The instant at which the zone's clocks show `local`.
    pub(crate) fn local(&mut self, local: NaiveDateTime) -> Result<i64, String> {
        if self.zone == Tz::UTC {
            return Ok(local.and_utc().timestamp_millis());
        }
        match self.zone.from_local_datetime(&local) {
            LocalResult::Single(at) => {
                self.doubled.passed(at.timestamp_millis());
                Ok(at.timestamp_millis())
            }
            LocalResult::Ambiguous(first, second) => {
                self.twice += 1;
                self.doubt(local, "twice")?;
                let both = [first.timestamp_millis(), second.timestamp_millis()];
                self.second = Some(both[1]);
                let at = match self.ambiguous {
                    Ambiguous::Later => both[1],
                    Ambiguous::Order => self.doubled.pick(0, both).unwrap_or(both[0]),
                    Ambiguous::Earlier | Ambiguous::Reject => both[0],
                };
                self.doubled.passed(at);
                Ok(at)
            }
            LocalResult::None => {
                self.never += 1;
                self.doubt(local, "never")?;
                // The clock of three hours ago had the offset from before the gap.
                let earlier = local - TimeDelta::hours(3);
                let before = self.zone.from_local_datetime(&earlier).earliest();
                let before = before.ok_or_else(|| format!("`{local}` never happened"))?;
                Ok(before.timestamp_millis() + 3 * 3_600_000)
            }
        }
    }

    fn doubt(&mut self, local: NaiveDateTime, times: &str) -> Result<(), String> {
        if self.ambiguous == Ambiguous::Reject {
            return Err(format!("`{local}` happened {times} in `{}`", self.zone));
        }
        self.example.get_or_insert_with(|| local.to_string());
        Ok(())
    }

    /// What was doubtful since the last call, in words.
    pub(crate) fn doubts(&mut self) -> Option<String> {
        let example = self.example.take()?;
        let (twice, never) = (std::mem::take(&mut self.twice), std::mem::take(&mut self.never));
        let taken = match self.ambiguous {
            Ambiguous::Later => "the later instant was taken",
            Ambiguous::Order => "they are told apart by the order of the rows",
            _ if self.chosen => {
                "the other times of the row tell which, or else the earlier instant was taken"
            }
            Ambiguous::Earlier | Ambiguous::Reject => "the earlier instant was taken",
        };
        let zone = self.zone;
        let mut parts = Vec::new();
        if twice > 0 {
            parts.push(format!("{twice} local times happened twice in `{zone}`; {taken}"));
        }
        if never > 0 {
            parts.push(format!(
                "{never} local times never happened in `{zone}`; the clock before the change was \
                 taken"
            ));
        }
        Some(format!("{} (first: {example})", parts.join("; ")))
    }
}

/// Years in which a GPU can have been read: a wrong one would stretch every answer over it.
pub(crate) const YEARS: &str = "2000 to 2099";

/// Whether an instant in ms since 1970 lies in [`YEARS`].
pub(crate) fn plausible(at: i64) -> bool {
    (946_684_800_000..4_102_444_800_000).contains(&at)
}

/// How far ahead of the clock here an instant may lie that somebody sends: a clock that is a little
/// wrong, the end of a reservation. Later ones are slips, and would stretch every answer.
const AHEAD_DAYS_MAX: i64 = 366;

/// The start of 2024: before it the clock here is plainly not set, and says nothing of other instants.
const CLOCK_SET_MS: i64 = 1_704_067_200_000;

/// Why what is sent at `now_ms` cannot tell of the instant `at_ms`, both in ms since 1970.
pub(crate) fn untimely(at_ms: i64, now_ms: i64) -> Option<String> {
    if !plausible(at_ms) {
        return Some(format!("outside the years {YEARS}"));
    }
    let ahead = now_ms >= CLOCK_SET_MS && at_ms - now_ms > AHEAD_DAYS_MAX * 86_400_000;
    ahead.then(|| format!("more than {AHEAD_DAYS_MAX} days ahead of the clock here"))
}

/// Longest that a job may have run: a later end is a slip or a placeholder.
const RUN_YEARS_MAX: i64 = 5;

/// Why a job cannot have run from `started_at` to `ended_at`, both in ms since 1970.
pub(crate) fn check_run(started_at: i64, ended_at: i64) -> Result<(), String> {
    if ended_at < started_at {
        return Err("it ended before it started".to_owned());
    }
    if ended_at - started_at > RUN_YEARS_MAX * 366 * 86_400_000 {
        return Err(format!("it ended more than {RUN_YEARS_MAX} years after it started"));
    }
    Ok(())
}

/// Words for a time that is not known.
fn unknown(text: &str) -> bool {
    matches!(
        text,
        "" | "Unknown"
            | "None"
            | "N/A"
            | "NULL"
            | "null"
            | "NaN"
            | "nan"
            | "NaT"
            | "\\N"
            | "INVALID"
            | "-"
            | "unknown"
            | "none"
    )
}

/// A bare number, with or without fraction or exponent.
fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+'));
    if plain { text.parse().ok() } else { None }
}

/// An epoch as an instant; 0 is how databases write "not yet".
fn epoch(number: f64, unit: EpochUnit, text: &str) -> Result<i64, String> {
    let millis = number * unit.millis();
    // Year 9999.
    if !(0.0..=253_402_300_799_999.0).contains(&millis) {
        return Err(format!("`{text}` is no time between 1970 and 9999"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked to lie below the year 10000")]
    Ok(millis.round() as i64)
}

#[cfg(test)]
mod tests;
