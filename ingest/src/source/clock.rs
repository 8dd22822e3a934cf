//! Instants as logs print them: with a zone, with an abbreviation, or as bare local time.
//!
//! A local time is resolved in the zone that the user gave. An hour that clocks skip is no
//! instant. An hour that happens twice is resolved by the abbreviation printed with it, else by
//! order ([`doubled`]): a log that runs through the change is followed from reading to reading. One
//! that begins inside the doubled hour cannot be told, and is kept aside.

use chrono::{DateTime, MappedLocalTime, NaiveDate, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::{OffsetName, Tz};

use super::instant::{YEARS, plausible};

pub(crate) mod doubled;
mod stamp;

use doubled::{Doubled, Who};
pub(crate) use stamp::{Stamp, stamp};

/// Why a local time is no instant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    /// No zone was given.
    NoZone,
    /// It never was, or happened twice; in words.
    Unclear(String),
}

/// Resolves local times, one file after the other in the order of its lines.
#[derive(Debug)]
pub(crate) struct Clock {
    zone: Option<Tz>,
    offset_ms: Option<i64>,
    doubled: Doubled,
    /// The quarter of an hour of the last local time, its offset, and whether a doubled hour
    /// follows within [`AHEAD_QUARTERS`] of it.
    quarter: Option<(i64, i64, bool)>,
    told_day: Option<NaiveDate>,
    notice: Option<String>,
}

const QUARTER_MS: i64 = 900_000;
/// Readings so long before a doubled hour are remembered one by one: two of an hourly log.
const AHEAD_QUARTERS: i32 = 13;

impl Clock {
    pub(crate) fn new(zone: Option<Tz>) -> Self {
        Self {
            zone,
            offset_ms: None,
            doubled: Doubled::default(),
            quarter: None,
            told_day: None,
            notice: None,
        }
    }

    /// Takes the offset from UTC from a local time and the instant at which it was printed, to a
    /// quarter of an hour. Only used where no zone was given.
    pub(crate) fn learn(&mut self, local: NaiveDateTime, printed_at_ms: i64) {
        let apart = local.and_utc().timestamp_millis() - printed_at_ms;
        let offset = (apart + QUARTER_MS / 2).div_euclid(QUARTER_MS) * QUARTER_MS;
        if self.zone.is_none() && offset.abs() <= 14 * 3_600_000 {
            self.offset_ms.get_or_insert(offset);
        }
    }

    /// Whether a local time cannot be resolved yet.
    pub(crate) fn lost(&self) -> bool {
        self.zone.is_none() && self.offset_ms.is_none()
    }

    /// What is worth telling about the last resolution, once.
    pub(crate) fn notice(&mut self) -> Option<String> {
        self.notice.take()
    }

    /// The instant that was resolved last, in milliseconds since 1970.
    pub(crate) fn last(&self) -> Option<i64> {
        self.doubled.last()
    }

    /// Whether it may matter whose reading a time is of: a doubled hour is near, or not yet asked
    /// for.
    pub(crate) fn follows(&self, stamp: &Stamp) -> bool {
        let Stamp::Local(local, _) = stamp else { return false };
        let quarter = local.and_utc().timestamp_millis().div_euclid(QUARTER_MS);
        self.quarter.is_none_or(|(known, _, ahead)| ahead || known != quarter)
    }

    /// Milliseconds since 1970, UTC, of a time of the log as a whole.
    pub(crate) fn resolve(&mut self, stamp: &Stamp) -> Result<i64, Fault> {
        self.resolve_of(0, stamp)
    }

    /// Milliseconds since 1970, UTC, of a reading of `who`.
    pub(crate) fn resolve_of(&mut self, who: Who, stamp: &Stamp) -> Result<i64, Fault> {
        let resolved = match stamp {
            Stamp::Utc(ms) => *ms,
            Stamp::Local(local, name) => self.local(who, *local, name.as_deref())?,
        };
        if !plausible(resolved) {
            return Err(Fault::Unclear(format!("its time is outside the years {YEARS}")));
        }
        self.doubled.passed(resolved);
        Ok(resolved)
    }

    fn local(&mut self, who: Who, local: NaiveDateTime, name: Option<&str>) -> Result<i64, Fault> {
        let wall = local.and_utc().timestamp_millis();
        let Some(zone) = self.zone else {
            return self.offset_ms.map(|offset| wall - offset).ok_or(Fault::NoZone);
        };
        // No zone changes its offset inside a quarter of an hour of its clock.
        let quarter = wall.div_euclid(QUARTER_MS);
        if let Some((known, offset, ahead)) = self.quarter
            && known == quarter
        {
            if ahead {
                self.doubled.saw(who, wall - offset);
            }
            return Ok(wall - offset);
        }
        match zone.from_local_datetime(&local) {
            MappedLocalTime::Single(at) => {
                let at = at.timestamp_millis();
                let ahead = doubled_ahead(zone, local);
                self.quarter = Some((quarter, wall - at, ahead));
                if ahead {
                    self.doubled.saw(who, at);
                }
                Ok(at)
            }
            MappedLocalTime::Ambiguous(one, other) => {
                let at = self.twice(who, local, zone, name, [one, other])?;
                self.doubled.saw(who, at);
                Ok(at)
            }
            MappedLocalTime::None => Err(Fault::Unclear(format!(
                "`{local}` never was in `{zone}`: clocks went forward over it"
            ))),
        }
    }

    fn twice(
        &mut self,
        who: Who,
        local: NaiveDateTime,
        zone: Tz,
        name: Option<&str>,
        mut both: [DateTime<Tz>; 2],
    ) -> Result<i64, Fault> {
        both.sort();
        let named = |at: &&DateTime<Tz>| name.is_some() && at.offset().abbreviation() == name;
        if let Some(at) = both.iter().find(named) {
            return Ok(at.timestamp_millis());
        }
        let Some(at) = self.doubled.pick(who, both.map(|at| at.timestamp_millis())) else {
            return Err(Fault::Unclear(format!(
                "`{local}` happens twice in `{zone}` and no earlier reading says which it is"
            )));
        };
        let day = local.date();
        if self.told_day.replace(day) != Some(day) {
            let offsets = both.map(|at| at.offset().fix().to_string());
            self.notice = Some(format!(
                "local times around `{local}` happen twice in `{zone}`: told apart by their \
                 order, offset {} first, then {}",
                offsets[0], offsets[1]
            ));
        }
        Ok(at)
    }
}

/// Whether a local time that happens twice follows soon.
fn doubled_ahead(zone: Tz, local: NaiveDateTime) -> bool {
    (1..=AHEAD_QUARTERS).any(|quarters| {
        let later = local + TimeDelta::minutes(15) * quarters;
        matches!(zone.from_local_datetime(&later), MappedLocalTime::Ambiguous(..))
    })
}

#[cfg(test)]
mod tests;
