//! A local time and its offset, as text.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

/// `2026-07-14T09:00:27.792+08:00` and its relatives: `/` or `-`, `T` or a space, with or without
/// time, fraction and offset. Returns the local time and the offset in seconds.
pub(super) fn civil(text: &str) -> Option<(NaiveDateTime, Option<i64>)> {
    let bytes = text.as_bytes();
    let sep = *bytes.get(4)?;
    if !(sep == b'-' || sep == b'/') || bytes.get(7) != Some(&sep) {
        return None;
    }
    let year = i32::try_from(digits(bytes, 0, 4)?).ok()?;
    let date = NaiveDate::from_ymd_opt(year, digits(bytes, 5, 2)?, digits(bytes, 8, 2)?)?;
    if bytes.len() == 10 {
        return Some((date.and_time(NaiveTime::MIN), None));
    }
    if !matches!(bytes.get(10), Some(b'T' | b' ' | b't')) || bytes.get(13) != Some(&b':') {
        return None;
    }
    let (hour, minute) = (digits(bytes, 11, 2)?, digits(bytes, 14, 2)?);
    let mut at = 16;
    let second = if bytes.get(at) == Some(&b':') {
        at += 3;
        digits(bytes, 17, 2)?
    } else {
        0
    };
    let mut millis = 0;
    if matches!(bytes.get(at), Some(b'.' | b',')) {
        let end = bytes[at + 1..].iter().position(|b| !b.is_ascii_digit());
        let end = end.map_or(bytes.len(), |length| at + 1 + length);
        millis = bytes[at + 1..end]
            .iter()
            .take(3)
            .zip([100, 10, 1])
            .fold(0, |sum, (b, unit)| sum + u32::from(b - b'0') * unit);
        at = end;
    }
    let time = NaiveTime::from_hms_milli_opt(hour, minute, second, millis)?;
    let offset = offset_s(text.get(at..)?.trim())?;
    Some((date.and_time(time), offset))
}

/// Outer `None`: no offset at all can be read; inner `None`: there is none.
#[expect(clippy::option_option, reason = "absent and unreadable are two things")]
fn offset_s(text: &str) -> Option<Option<i64>> {
    match text {
        "" => return Some(None),
        "Z" | "z" | "UTC" => return Some(Some(0)),
        _ => {}
    }
    let (sign, rest) = match text.as_bytes()[0] {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let bytes = rest.as_bytes();
    let hours = i64::from(digits(bytes, 0, 2)?);
    let minutes = match bytes.len() {
        2 => 0,
        4 => i64::from(digits(bytes, 2, 2)?),
        5 if bytes[2] == b':' => i64::from(digits(bytes, 3, 2)?),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(Some(sign * (hours * 3600 + minutes * 60)))
}

fn digits(bytes: &[u8], from: usize, count: usize) -> Option<u32> {
    bytes
        .get(from..from + count)?
        .iter()
        .try_fold(0, |sum, b| b.is_ascii_digit().then(|| sum * 10 + u32::from(b - b'0')))
}
