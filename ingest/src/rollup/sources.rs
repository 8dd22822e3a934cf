//! Which files of `samples` a day's rollup is made from, and a fingerprint of them.
//!
//! A day needs its own files and those of later days with a reading that reaches back over a
//! midnight into it. Their names are drawn when they are written, and no file changes: the same
//! names are the same rows. A compaction names anew what it did not change; such a day is rolled up
//! once more.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, NaiveDate, TimeDelta};

use crate::error::IngestError;
use crate::store::{FileEntry, Store, TableSnapshot};

/// Raise it when a rollup of the same readings would be another: all days are then made anew.
const RECIPE: u64 = 2;

/// Days over which a reading reaches back at most. It stands for three sampling intervals at most,
/// and a day is the longest of these.
const REACH_DAYS_MAX: i64 = 4;

/// Files of `samples` by the days that their readings tell of.
#[derive(Debug)]
pub(super) struct Sources<'a> {
    days: BTreeMap<NaiveDate, Vec<&'a FileEntry>>,
}

impl<'a> Sources<'a> {
    pub(super) fn of(store: &Store, samples: &'a TableSnapshot) -> Result<Self, IngestError> {
        let begins = store.begins(samples)?;
        let mut days: BTreeMap<NaiveDate, Vec<&FileEntry>> = BTreeMap::new();
        for file in &samples.files {
            let Some(date) = file.date else { continue };
            let earliest = date - TimeDelta::days(REACH_DAYS_MAX);
            let mut day = first_day(&begins, file, date).clamp(earliest, date);
            while day < date {
                days.entry(day).or_default().push(file);
                day += TimeDelta::days(1);
            }
            days.entry(date).or_default().push(file);
        }
        Ok(Self { days })
    }

    /// Days of which some reading may tell.
    pub(super) fn days(&self) -> impl Iterator<Item = NaiveDate> {
        self.days.keys().copied()
    }

    /// Files with readings that may tell of a day, by path.
    pub(super) fn files(&self, day: NaiveDate) -> &[&'a FileEntry] {
        self.days.get(&day).map(Vec::as_slice).unwrap_or_default()
    }

    /// Files of the day before, in which the readings before the first of a day are found.
    pub(super) fn before(&self, day: NaiveDate) -> impl Iterator<Item = &'a FileEntry> {
        let before = day - TimeDelta::days(1);
        self.files(before).iter().copied().filter(move |file| file.date == Some(before))
    }

    /// A fingerprint of the files that a day is made from (FNV-1a).
    pub(super) fn fingerprint(&self, day: NaiveDate) -> u64 {
        let paths = self.files(day).iter().flat_map(|file| file.path.bytes().chain([0]));
        RECIPE.to_le_bytes().into_iter().chain(paths).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

/// The first day of which the readings of a file tell; the day before its own where its statistics
/// do not say.
fn first_day(
    begins: &HashMap<String, Option<i64>>,
    file: &FileEntry,
    date: NaiveDate,
) -> NaiveDate {
    let begun = begins.get(&file.path).copied().flatten().and_then(DateTime::from_timestamp_millis);
    begun.map_or(date - TimeDelta::days(1), |begun| begun.date_naive())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_tells_of_every_day_into_which_its_readings_reach() {
        // Breaks when a change of the next day's first reading leaves the day before as it was, or
        // when a reading that begins at midnight counts for the day before.
        let date = |day| NaiveDate::from_ymd_opt(2026, 3, day).unwrap();
        let file = |day| FileEntry {
            path: format!("date={}/a.parquet", date(day)),
            size: 1,
            date: Some(date(day)),
            rows: Some(1),
        };
        let at = |day, s: i64| date(day).and_hms_opt(0, 0, 0).unwrap().and_utc().timestamp() + s;
        let begins = |day, s: i64| HashMap::from([(file(day).path, Some(at(day, s) * 1_000))]);
        assert_eq!(first_day(&begins(5, 0), &file(5), date(5)), date(5));
        assert_eq!(first_day(&begins(5, -1), &file(5), date(5)), date(4));
        assert_eq!(first_day(&begins(5, -86_401), &file(5), date(5)), date(3));
        assert_eq!(first_day(&HashMap::new(), &file(5), date(5)), date(4));
    }
}
