use proptest::prelude::*;

use super::*;

fn utc(text: &str) -> i64 {
    DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis()
}

fn at(clock: &mut Clock, text: &str) -> Result<i64, Fault> {
    clock.resolve(&stamp(text).unwrap())
}

#[test]
fn every_common_print_of_an_instant_is_read() {
    // Breaks when the `date` of some locale is taken for text.
    let instant = utc("2026-11-30T04:10:56Z");
    for text in [
        "Mon Nov 30 04:10:56 UTC 2026",
        "Mon 30 Nov 2026 04:10:56 AM UTC",
        "2026-11-30T04:10:56Z",
        "2026-11-30T05:10:56+01:00",
        "2026-11-30T05:10:56+0100",
        "2026-11-30 05:10:56 +0100",
        "2026-11-30 04:10:56 UTC",
        "2026-11-30T04:10:56,000000000+00:00",
        "Mon, 30 Nov 2026 05:10:56 +0100",
        "1796011856",
        "1796011856.000",
        "1796011856000",
        "1796011856000000000",
        "=== Mon Nov 30 04:10:56 UTC 2026 ===",
        "2026年 11月 30日 星期一 04:10:56 UTC",
    ] {
        assert_eq!(stamp(text), Some(Stamp::Utc(instant)), "{text}");
    }
    for text in ["Mon Nov 30 04:10:56 2026", "2026/11/30 04:10:56.000", "2026-11-30 04:10:56"] {
        assert_eq!(Clock::new(Some(Tz::UTC)).resolve(&stamp(text).unwrap()), Ok(instant));
    }
    for text in ["index, name", "GPU-df6e7a7c-7314", "No devices were found", "100 %, 631.95"] {
        assert_eq!(stamp(text), None, "{text}");
    }
}

#[test]
fn a_doubled_hour_is_told_by_order_and_said_once() {
    // Breaks when the second 01:30 of the night is stored as the first (case 4).
    let mut clock = Clock::new(Some(Tz::America__Los_Angeles));
    assert_eq!(at(&mut clock, "2026/11/01 00:50:00.000"), Ok(utc("2026-11-01T07:50:00Z")));
    assert_eq!(at(&mut clock, "2026/11/01 01:30:00.000"), Ok(utc("2026-11-01T08:30:00Z")));
    assert!(clock.notice().unwrap().contains("happen twice"));
    assert_eq!(at(&mut clock, "2026/11/01 01:10:00.000"), Ok(utc("2026-11-01T09:10:00Z")));
    assert_eq!(at(&mut clock, "2026/11/01 01:30:00.000"), Ok(utc("2026-11-01T09:30:00Z")));
    assert_eq!(at(&mut clock, "2026/11/01 02:00:00.000"), Ok(utc("2026-11-01T10:00:00Z")));
    assert_eq!(clock.notice(), None);

    let mut fresh = Clock::new(Some(Tz::America__Los_Angeles));
    let unclear = at(&mut fresh, "2026/11/01 01:30:00.000");
    assert!(matches!(unclear, Err(Fault::Unclear(why)) if why.contains("happens twice")));
    let named = at(&mut fresh, "Sun Nov  1 01:30:00 PST 2026");
    assert_eq!(named, Ok(utc("2026-11-01T09:30:00Z")));
}

/// Resolves local times of 2026-11-01, day and night, of some GPUs one after the other; prints
/// the UTC times.
fn through(readings: &[(&str, u64)]) -> Vec<String> {
    let mut clock = Clock::new(Some(Tz::America__Los_Angeles));
    let resolve = |(time, who): &(&str, u64)| {
        let stamp = stamp(&format!("2026/11/01 {time}.000")).unwrap();
        let ms = clock.resolve_of(*who, &stamp).unwrap();
        DateTime::from_timestamp_millis(ms).unwrap().format("%H:%M:%S").to_string()
    };
    readings.iter().map(resolve).collect()
}

#[test]
fn an_hourly_log_passes_the_doubled_hour_twice() {
    // Breaks when the second 01:30 of an hourly log is dropped as a duplicate of the first.
    let times = ["00:30:00", "01:30:00", "01:30:00", "02:30:00"];
    let one: Vec<_> = times.iter().map(|time| (*time, 7)).collect();
    assert_eq!(through(&one), ["07:30:00", "08:30:00", "09:30:00", "10:30:00"]);
    // Two GPUs a block, and blocks whose `date` line tells the time.
    let two: Vec<_> = times.iter().flat_map(|time| [(*time, 7), (*time, 8)]).collect();
    let expected = ["07:30:00", "08:30:00", "09:30:00", "10:30:00"].map(|time| [time; 2]);
    assert_eq!(through(&two), expected.concat());
    let log: Vec<_> = times.iter().map(|time| (*time, 0)).collect();
    assert_eq!(through(&log), ["07:30:00", "08:30:00", "09:30:00", "10:30:00"]);
    // 61 minutes apart: the local time moves on by one.
    let odd = ["00:00:00", "01:01:00", "01:02:00", "02:03:00"].map(|time| (time, 7));
    assert_eq!(through(&odd), ["07:00:00", "08:01:00", "09:02:00", "10:03:00"]);
}

#[test]
fn a_log_of_half_minutes_is_right_through_the_doubled_hour() {
    // Breaks when a reading of the night is lost or twice, a line that was written twice begins
    // the second pass, or a GPU that comes back in it is put into the first.
    let mut readings = Vec::new();
    let mut expected = Vec::new();
    let begin = DateTime::parse_from_rfc3339("2026-11-01T07:00:00Z").unwrap();
    for step in 0..480 {
        let at = begin.to_utc() + TimeDelta::seconds(30 * step);
        let local = at.with_timezone(&Tz::America__Los_Angeles).format("%H:%M:%S").to_string();
        // GPU 8 is away from 00:30 to the second 01:20; GPU 7 repeats a line at the first 01:10.
        let gpus: &[u64] = match step {
            60..280 => &[7],
            _ => &[7, 8],
        };
        let twice = if step == 140 { 2 } else { 1 };
        for gpu in gpus.iter().flat_map(|gpu| std::iter::repeat_n(*gpu, twice)) {
            readings.push((local.clone(), gpu));
            expected.push(at.format("%H:%M:%S").to_string());
        }
    }
    let readings: Vec<_> = readings.iter().map(|(time, gpu)| (time.as_str(), *gpu)).collect();
    assert_eq!(through(&readings), expected);
}

#[test]
fn a_skipped_hour_is_no_instant_and_a_missing_zone_is_asked_for() {
    // Breaks when a time that never was is moved somewhere.
    let mut clock = Clock::new(Some(Tz::America__Los_Angeles));
    let never = at(&mut clock, "2026/03/08 02:30:00.000");
    assert!(matches!(never, Err(Fault::Unclear(why)) if why.contains("never was")));
    assert_eq!(at(&mut Clock::new(None), "2026/03/08 02:30:00.000"), Err(Fault::NoZone));
}

#[test]
fn an_offset_is_learnt_from_a_known_instant() {
    // Breaks when a capture with its collection time still needs a zone.
    let mut clock = Clock::new(None);
    let Some(Stamp::Local(local, _)) = stamp("2026/08/12 21:53:45.370") else { panic!() };
    clock.learn(local, utc("2026-08-12T19:53:44Z"));
    let got = at(&mut clock, "2026/08/12 21:54:00.311");
    assert_eq!(got, Ok(utc("2026-08-12T19:54:00.311Z")));
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,70}", number in "[0-9:/. A-Z年月日+-]{8,40}") {
        // Breaks when a stamp is cut inside a character or a number overflows.
        for text in [text, number] {
            if let Some(stamp) = stamp(&text) {
                let _ = Clock::new(Some(Tz::Asia__Kolkata)).resolve(&stamp);
            }
        }
    }
}
