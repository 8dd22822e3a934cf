//! From the text of a time to what it says: an instant, or a wall clock.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};

/// An instant as printed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stamp {
    /// Milliseconds since 1970, UTC.
    Utc(i64),
    /// Wall clock, with the abbreviation of its zone where one was printed.
    Local(NaiveDateTime, Option<String>),
}

/// Reads an instant in any form that drivers and `date` print: `2026/07/14 09:00:27.792`,
/// ISO 8601 with or without offset, `Fri Aug  4 11:44:30 2023`, `Mon Nov 30 04:10:56 UTC 2026`,
/// `Mon 30 Nov 2026 04:10:56 PM CET`, `2026年 11月 30日 星期一 04:10:56 CST`, epoch seconds,
/// milliseconds or nanoseconds. Decoration around it (`=== ... ===`, `# ...`) is passed over.
pub(crate) fn stamp(text: &str) -> Option<Stamp> {
    let text = text.trim();
    let mark = |c: char| matches!(c, '#' | '=' | '*' | '-' | '[' | ']' | '"' | '>') || c == ' ';
    let text = text.trim_matches(mark);
    // A `date` in any locale fits in this; longer text is no stamp.
    if text.len() < 10 || text.len() > 64 {
        return None;
    }
    slashed(text).or_else(|| epoch(text)).or_else(|| iso(text)).or_else(|| spelled(text))
}

/// The common case, by hand: `2026/07/14 09:00:27.792`, also with `-` and `T`.
fn slashed(text: &str) -> Option<Stamp> {
    let b = text.as_bytes();
    let shape = b.len() >= 19
        && matches!((b[4], b[7]), (b'/', b'/') | (b'-', b'-'))
        && matches!(b[10], b' ' | b'T')
        && b[13] == b':'
        && b[16] == b':';
    if !shape {
        return None;
    }
    let number = |range: std::ops::Range<usize>| -> Option<u32> {
        b[range].iter().try_fold(0, |sum, digit| {
            digit.is_ascii_digit().then(|| sum * 10 + u32::from(digit - b'0'))
        })
    };
    let date =
        NaiveDate::from_ymd_opt(i32::try_from(number(0..4)?).ok()?, number(5..7)?, number(8..10)?)?;
    let mut millis = 0;
    if b.len() > 19 {
        let digits = &b[20..];
        if !matches!(b[19], b'.' | b',') || digits.is_empty() || digits.len() > 9 {
            return None;
        }
        for place in 0..3 {
            let digit = digits.get(place).copied().unwrap_or(b'0');
            millis = millis * 10 + u32::from(digit.is_ascii_digit().then(|| digit - b'0')?);
        }
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
    }
    let time =
        NaiveTime::from_hms_milli_opt(number(11..13)?, number(14..16)?, number(17..19)?, millis)?;
    Some(Stamp::Local(date.and_time(time), None))
}

fn epoch(text: &str) -> Option<Stamp> {
    if !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let number: i64 = whole.parse().ok()?;
    let ms = match whole.len() {
        10 => {
            let millis = format!("{:0<3.3}", fraction);
            number.checked_mul(1000)? + millis.parse::<i64>().ok()?
        }
        13 => number,
        16 => number / 1000,
        19 => number / 1_000_000,
        _ => return None,
    };
    Some(Stamp::Utc(ms))
}

fn iso(text: &str) -> Option<Stamp> {
    if !text.as_bytes()[0].is_ascii_digit() {
        return None;
    }
    let zoned =
        text.replacen(' ', "T", 1).replace([' ', ','], if text.contains(',') { "." } else { "" });
    let forms = ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y/%m/%dT%H:%M:%S%.f%#z"];
    let parsed = forms.iter().find_map(|form| DateTime::parse_from_str(&zoned, form).ok());
    if let Some(at) = parsed {
        return Some(Stamp::Utc(at.timestamp_millis()));
    }
    // `2026-11-30 04:10:56 UTC`
    let (stamp, zone) = text.rsplit_once(' ')?;
    match slashed(stamp)? {
        Stamp::Local(local, _) if word(zone) => Some(named(local, zone)),
        _ => None,
    }
}

/// A date in words: month, day, year and time in any order, weekday and zone beside them.
fn spelled(text: &str) -> Option<Stamp> {
    let (mut month, mut day, mut year, mut time, mut zone) = (None, None, None, None, None);
    let mut afternoon = None;
    for token in text.split([' ', ',']).filter(|token| !token.is_empty()) {
        if token.contains(':') && time.is_none() {
            time = Some(clock_time(token)?);
        } else if let Some(number) = month_named(token) {
            month = month.or(Some(number));
        } else if let Some(number) = token.strip_suffix('年') {
            year = Some(number.parse().ok()?);
        } else if let Some(number) = token.strip_suffix('月') {
            month = Some(number.parse().ok()?);
        } else if let Some(number) = token.strip_suffix('日') {
            day = Some(number.parse().ok()?);
        } else if token.bytes().all(|b| b.is_ascii_digit()) {
            let number: i32 = token.parse().ok()?;
            if number >= 1970 && year.is_none() {
                year = Some(number);
            } else if day.is_none() {
                day = Some(u32::try_from(number).ok()?);
            } else {
                return None;
            }
        } else if matches!(token, "AM" | "am" | "上午") {
            afternoon = Some(false);
        } else if matches!(token, "PM" | "pm" | "下午") {
            afternoon = Some(true);
        } else if time.is_some() && (word(token) || token.starts_with(['+', '-'])) {
            zone = zone.or(Some(token));
        } else if !weekday(token) {
            return None;
        }
    }
    let mut time: NaiveTime = time?;
    if let Some(afternoon) = afternoon {
        use chrono::Timelike;
        let hour = time.hour() % 12 + if afternoon { 12 } else { 0 };
        time = time.with_hour(hour)?;
    }
    let local = NaiveDate::from_ymd_opt(year?, month?, day?)?.and_time(time);
    Some(match zone {
        Some(zone) => named(local, zone),
        None => Stamp::Local(local, None),
    })
}

fn clock_time(token: &str) -> Option<NaiveTime> {
    NaiveTime::parse_from_str(token, "%H:%M:%S%.f").ok()
}

fn month_named(token: &str) -> Option<u32> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let start = token.get(..3)?.to_ascii_lowercase();
    let number = MONTHS.iter().position(|month| *month == start)?;
    token.bytes().all(|b| b.is_ascii_alphabetic()).then_some(number as u32 + 1)
}

fn weekday(token: &str) -> bool {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let start = token.get(..3).unwrap_or("").to_ascii_lowercase();
    DAYS.contains(&start.as_str()) || token.starts_with("星期") || token.starts_with('周')
}

fn word(token: &str) -> bool {
    (1..=5).contains(&token.len()) && token.bytes().all(|b| b.is_ascii_uppercase())
}

fn named(local: NaiveDateTime, zone: &str) -> Stamp {
    if matches!(zone, "UTC" | "GMT" | "Z") {
        return Stamp::Utc(local.and_utc().timestamp_millis());
    }
    let offset = format!("{}{zone}", local.format("%Y-%m-%dT%H:%M:%S%.f"));
    match DateTime::parse_from_str(&offset, "%Y-%m-%dT%H:%M:%S%.f%#z") {
        Ok(at) => Stamp::Utc(at.timestamp_millis()),
        Err(_) => Stamp::Local(local, Some(zone.to_owned())),
    }
}
