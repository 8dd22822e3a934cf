//! The weekly pattern of working hours, as written in the config file: `mon-fri 09:00-18:00`.

use std::fmt;
use std::str::FromStr;

use chrono::Weekday;

/// Seconds in a day of the weekly pattern.
const DAY_S: u32 = 86_400;

/// Working hours of each weekday, as seconds since local midnight; ranges are half-open, sorted
/// and do not touch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Weekly([Vec<(u32, u32)>; 7]);

/// A line of the weekly pattern that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read working hours `{text}`: {reason}")]
pub struct WeeklyError {
    /// The line as written.
    pub text: String,
    /// What it should have been.
    pub reason: String,
}

impl Default for Weekly {
    /// Monday to Friday, 09:00 to 18:00.
    fn default() -> Self {
        Self::parse(["mon-fri 09:00-18:00"]).expect("the default pattern is well formed")
    }
}

impl Weekly {
    /// Reads lines such as `mon-fri 09:00-12:00 13:00-18:00` or `sat,sun 10:00-14:00`; a range
    /// that ends at or before its start runs into the next day.
    ///
    /// # Errors
    /// The first line that does not read so.
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Self, WeeklyError> {
        let mut days: [Vec<(u32, u32)>; 7] = Default::default();
        for line in lines {
            let refuse = |reason: String| WeeklyError { text: line.to_owned(), reason };
            let mut words = line.split_whitespace();
            let weekdays = words.next().ok_or_else(|| refuse("it is empty".into()))?;
            let weekdays = parse_weekdays(weekdays).map_err(refuse)?;
            let ranges = words.map(parse_range).collect::<Result<Vec<_>, _>>().map_err(refuse)?;
            if ranges.is_empty() {
                return Err(refuse("a time range such as `09:00-18:00` is missing".into()));
            }
            for weekday in weekdays {
                for range in &ranges {
                    add(&mut days, weekday, *range);
                }
            }
        }
        for ranges in &mut days {
            merge(ranges);
        }
        Ok(Self(days))
    }

    /// Working ranges of a weekday in seconds since local midnight.
    #[must_use]
    pub fn ranges(&self, weekday: Weekday) -> &[(u32, u32)] {
        &self.0[weekday.num_days_from_monday() as usize]
    }

    /// The first weekday with working hours, taken for a make-up day that names none.
    #[must_use]
    pub fn first_worked(&self) -> Option<Weekday> {
        (0..7_u8)
            .find(|day| !self.0[usize::from(*day)].is_empty())
            .map(|day| Weekday::try_from(day).expect("a day of the week is below 7"))
    }
}

impl fmt::Display for Weekly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
        let mut first = true;
        for (name, ranges) in names.iter().zip(&self.0) {
            if ranges.is_empty() {
                continue;
            }
            write!(f, "{}{name}", if first { "" } else { ", " })?;
            first = false;
            for (from, until) in ranges {
                write!(f, " {}-{}", clock(*from), clock(*until))?;
            }
        }
        Ok(())
    }
}

fn clock(seconds: u32) -> String {
    format!("{:02}:{:02}", seconds / 3600, seconds / 60 % 60)
}

fn add(days: &mut [Vec<(u32, u32)>; 7], weekday: usize, (from, until): (u32, u32)) {
    if from < until {
        days[weekday].push((from, until));
        return;
    }
    days[weekday].push((from, DAY_S));
    if until > 0 {
        days[(weekday + 1) % 7].push((0, until));
    }
}

fn merge(ranges: &mut Vec<(u32, u32)>) {
    ranges.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
    for (from, until) in ranges.drain(..) {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => merged.push((from, until)),
        }
    }
    *ranges = merged;
}

fn parse_weekdays(text: &str) -> Result<Vec<usize>, String> {
    let mut days = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => days.push(parse_weekday(part)?),
            Some((from, until)) => {
                let (from, until) = (parse_weekday(from)?, parse_weekday(until)?);
                let span = (until + 7 - from) % 7;
                days.extend((0..=span).map(|step| (from + step) % 7));
            }
        }
    }
    Ok(days)
}

fn parse_weekday(text: &str) -> Result<usize, String> {
    Weekday::from_str(text).map(|day| day.num_days_from_monday() as usize).map_err(|_| {
        format!("`{text}` is no weekday: must be one of mon, tue, wed, thu, fri, sat, sun")
    })
}

fn parse_range(text: &str) -> Result<(u32, u32), String> {
    let (from, until) = text
        .split_once('-')
        .ok_or_else(|| format!("`{text}` is no time range: must be like `09:00-18:00`"))?;
    let (from, until) = (parse_clock(from)?, parse_clock(until)?);
    if from == DAY_S {
        return Err(format!("`{text}` starts at the end of the day"));
    }
    if from == until {
        return Err(format!("`{text}` is empty: write `00:00-24:00` for a whole day"));
    }
    Ok((from, until))
}

fn parse_clock(text: &str) -> Result<u32, String> {
    let refuse = || format!("`{text}` is no time of day: must be between 00:00 and 24:00");
    let (hour, minute) = text.split_once(':').ok_or_else(refuse)?;
    let hour: u32 = hour.parse().map_err(|_| refuse())?;
    let minute: u32 = minute.parse().map_err(|_| refuse())?;
    let seconds = hour * 3600 + minute * 60;
    if minute > 59 || hour > 24 || seconds > DAY_S { Err(refuse()) } else { Ok(seconds) }
}
