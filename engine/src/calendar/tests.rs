//! Local time: tiling, daylight saving, half-hour zones, holidays.

use chrono::{DateTime, NaiveDate, Utc, Weekday};
use chrono_tz::Tz;
use proptest::prelude::*;

use super::*;

fn at(text: &str) -> i64 {
    text.parse::<DateTime<Utc>>().unwrap().timestamp_millis()
}

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

#[test]
fn a_day_of_daylight_saving_has_23_or_25_hours() {
    // Breaks if days are counted as 24 h of UTC.
    for (zone, noon, hours) in [
        (Tz::America__Los_Angeles, "2026-03-08T20:00:00Z", 23),
        (Tz::America__Los_Angeles, "2026-11-01T20:00:00Z", 25),
        (Tz::Europe__Berlin, "2026-03-29T12:00:00Z", 23),
        (Tz::Europe__Berlin, "2026-10-25T12:00:00Z", 25),
        (Tz::Asia__Kolkata, "2026-10-25T12:00:00Z", 24),
    ] {
        let day = LocalBin::at(BinUnit::DAY, zone, at(noon));
        assert_eq!((day.ended_at - day.started_at) / 3_600_000, hours, "{zone} {noon}");
    }
}

#[test]
fn an_hour_shown_twice_is_two_bins() {
    // Breaks if the hour is looked up by its wall clock: 01:30 PDT and 01:30 PST are an hour apart.
    let zone = Tz::America__Los_Angeles;
    let first = LocalBin::at(BinUnit::HOUR, zone, at("2026-11-01T08:30:00Z"));
    let second = LocalBin::at(BinUnit::HOUR, zone, at("2026-11-01T09:30:00Z"));
    assert_eq!(first.started_at, at("2026-11-01T08:00:00Z"));
    assert_eq!(second.started_at, at("2026-11-01T09:00:00Z"));
    assert_eq!(first.ended_at, second.started_at);
}

#[test]
fn hours_of_a_half_hour_zone_start_on_the_half_hour() {
    // Breaks if hours are truncated in UTC.
    let start = LocalBin::start(BinUnit::HOUR, Tz::Asia__Kolkata, at("2026-07-01T04:45:00Z"));
    assert_eq!(start, at("2026-07-01T04:30:00Z"));
}

#[test]
fn a_shift_of_half_an_hour_cuts_the_hour() {
    // Lord Howe goes back from 02:00 to 01:30 at 15:00 UTC: 01:30-02:00 comes again, alone.
    let zone = Tz::Australia__Lord_Howe;
    let bin = LocalBin::at(BinUnit::HOUR, zone, at("2026-04-04T15:10:00Z"));
    assert_eq!(bin.started_at, at("2026-04-04T15:00:00Z"));
    assert_eq!(bin.ended_at, at("2026-04-04T15:30:00Z"));
}

#[test]
fn a_day_whose_midnight_is_skipped_starts_after_the_gap() {
    // Cairo skipped 00:00-01:00 on 2026-04-24: that day starts at 01:00 local, 22:00 UTC.
    let day = LocalBin::at(BinUnit::DAY, Tz::Africa__Cairo, at("2026-04-24T10:00:00Z"));
    assert_eq!(day.started_at, at("2026-04-23T22:00:00Z"));
    assert_eq!((day.ended_at - day.started_at) / 3_600_000, 23);
}

#[test]
fn weeks_start_on_monday_and_months_on_the_first() {
    let zone = Tz::Asia__Shanghai;
    let sunday_night = at("2026-07-05T15:59:59Z"); // 23:59:59 on Sunday in Shanghai
    let week = LocalBin::at(BinUnit::WEEK, zone, sunday_night);
    assert_eq!(week.started_at, at("2026-06-28T16:00:00Z"));
    assert_eq!(week.ended_at, sunday_night + 1000);
    let month = LocalBin::at(BinUnit::MONTH, zone, at("2026-06-30T16:00:00Z"));
    assert_eq!(month.started_at, at("2026-06-30T16:00:00Z"));
    assert_eq!(month.ended_at, at("2026-07-31T16:00:00Z"));
}

#[test]
fn working_hours_follow_holidays_and_makeup_days() {
    let calendar = Calendar::new(Tz::Asia__Shanghai, Weekly::default())
        .with_holiday(date("2026-10-01"), "National Day")
        .with_makeup(date("2026-10-10"), Weekday::Mon);
    let hours = |from: &str, until: &str| {
        calendar.working_s(from.parse().unwrap(), until.parse().unwrap()) / 3600.0
    };
    // Thursday 1 October is free; Friday 2 October 09:00-18:00 local is 01:00-10:00 UTC.
    assert_eq!(hours("2026-09-30T16:00:00Z", "2026-10-01T16:00:00Z"), 0.0);
    assert_eq!(hours("2026-10-01T16:00:00Z", "2026-10-02T16:00:00Z"), 9.0);
    // Saturday 10 October is worked, Sunday is not.
    assert_eq!(hours("2026-10-09T16:00:00Z", "2026-10-11T16:00:00Z"), 9.0);
    assert!(calendar.working("2026-10-10T01:00:00Z".parse().unwrap()));
    assert!(!calendar.working("2026-10-10T10:00:00Z".parse().unwrap()));
    assert_eq!(calendar.holiday(date("2026-10-01")), Some("National Day"));
    assert_eq!(calendar.holiday(date("2026-10-10")), None);
}

#[test]
fn a_night_shift_runs_into_the_next_day() {
    let weekly = Weekly::parse(["fri 22:00-06:00", "sat 05:00-08:00"]).unwrap();
    assert_eq!(weekly.to_string(), "fri 22:00-24:00, sat 00:00-08:00");
    let many = Weekly::parse(["mon-fri 09:00-12:00 13:00-18:00", "sat-sun 10:00-14:00"]).unwrap();
    assert_eq!(many.ranges(Weekday::Wed), [(9 * 3600, 12 * 3600), (13 * 3600, 18 * 3600)]);
    assert_eq!(many.ranges(Weekday::Sun), [(10 * 3600, 14 * 3600)]);
}

#[test]
fn a_pattern_that_cannot_be_read_says_why() {
    for (line, reason) in [
        ("mon-fri", "a time range such as `09:00-18:00` is missing"),
        (
            "moo 09:00-18:00",
            "`moo` is no weekday: must be one of mon, tue, wed, thu, fri, sat, sun",
        ),
        ("mon 9-18", "`9` is no time of day: must be between 00:00 and 24:00"),
        ("mon 09:00-25:00", "`25:00` is no time of day: must be between 00:00 and 24:00"),
        ("mon 09:00-09:00", "`09:00-09:00` is empty: write `00:00-24:00` for a whole day"),
    ] {
        assert_eq!(Weekly::parse([line]).unwrap_err().reason, reason);
    }
}

#[test]
fn bins_are_read_from_text() {
    for (text, unit) in [
        ("hour", BinUnit::HOUR),
        ("15 minutes", BinUnit::Seconds(900)),
        ("6h", BinUnit::Seconds(21_600)),
        ("24 hours", BinUnit::DAY),
        ("1 day", BinUnit::DAY),
        ("2 weeks", BinUnit::Weeks(2)),
        ("quarter", BinUnit::Months(3)),
    ] {
        assert_eq!(text.parse::<BinUnit>(), Ok(unit), "{text}");
    }
    assert!("7 hours".parse::<BinUnit>().unwrap_err().contains("must divide a day evenly"));
    assert!("0 days".parse::<BinUnit>().is_err());
    assert!("fortnight".parse::<BinUnit>().is_err());
}

/// Instants that always include those around shifts of the clock.
fn instants() -> impl Strategy<Value = i64> {
    let shifts = prop::sample::select(vec![
        at("2026-03-08T10:00:00Z"),
        at("2026-11-01T09:00:00Z"),
        at("2026-03-29T01:00:00Z"),
        at("2026-10-25T01:00:00Z"),
        at("2026-04-04T15:00:00Z"),
        at("2026-10-03T15:30:00Z"),
        at("2026-04-23T22:00:00Z"),
        at("2011-12-30T10:00:00Z"),
    ]);
    let near = (shifts, -200_000_000_i64..200_000_000).prop_map(|(shift, by)| shift + by);
    prop_oneof![near, at("2015-01-01T00:00:00Z")..at("2035-01-01T00:00:00Z")]
}

fn zones() -> impl Strategy<Value = Tz> {
    prop::sample::select(vec![
        Tz::UTC,
        Tz::Asia__Shanghai,
        Tz::Asia__Kolkata,
        Tz::Asia__Kathmandu,
        Tz::America__Los_Angeles,
        Tz::Europe__Berlin,
        Tz::Australia__Lord_Howe,
        Tz::Africa__Cairo,
        Tz::Pacific__Apia,
    ])
}

fn units() -> impl Strategy<Value = BinUnit> {
    prop::sample::select(vec![
        BinUnit::Seconds(300),
        BinUnit::HOUR,
        BinUnit::Seconds(21_600),
        BinUnit::DAY,
        BinUnit::WEEK,
        BinUnit::MONTH,
    ])
}

proptest! {
    #[test]
    fn a_bin_holds_its_instant_and_meets_the_next(
        zone in zones(), unit in units(), at in instants()
    ) {
        let bin = LocalBin::at(unit, zone, at);
        prop_assert!(bin.started_at <= at && at < bin.ended_at);
        prop_assert_eq!(LocalBin::start(unit, zone, at), bin.started_at);
        prop_assert_eq!(LocalBin::start(unit, zone, bin.started_at), bin.started_at);
        prop_assert_eq!(LocalBin::start(unit, zone, bin.ended_at - 1), bin.started_at);
        prop_assert_eq!(LocalBin::at(unit, zone, bin.ended_at).started_at, bin.ended_at);
    }

    #[test]
    fn later_instants_are_in_later_bins(
        zone in zones(), unit in units(), at in instants(), later in 0_i64..400_000_000
    ) {
        let (first, second) = (LocalBin::start(unit, zone, at), LocalBin::start(unit, zone, at + later));
        prop_assert!(first <= second);
    }

    #[test]
    fn working_time_of_the_parts_is_that_of_the_whole(
        zone in zones(), at in instants(), first in 0_i64..900_000_000, second in 0_i64..900_000_000
    ) {
        let weekly = Weekly::parse(["mon-fri 01:15-12:00 13:00-18:00", "sat 22:00-02:30"]).unwrap();
        let calendar = Calendar::new(zone, weekly);
        let (middle, end) = (at + first, at + first + second);
        let whole = calendar.working_ms(at, end);
        prop_assert!(0 <= whole && whole <= end - at);
        prop_assert_eq!(calendar.working_ms(at, middle) + calendar.working_ms(middle, end), whole);
    }

    #[test]
    fn an_instant_is_worked_when_the_millisecond_after_it_is(zone in zones(), at in instants()) {
        let weekly = Weekly::parse(["mon-sun 01:15-02:30 13:00-18:00"]).unwrap();
        let calendar = Calendar::new(zone, weekly);
        let worked = calendar.working(DateTime::from_timestamp_millis(at).unwrap());
        prop_assert_eq!(calendar.working_ms(at, at + 1), i64::from(worked));
    }
}

#[test]
fn an_instant_reads_as_people_write_it() {
    let shanghai = Calendar::new(Tz::Asia__Shanghai, Weekly::default());
    let at = |text: &str| shanghai.instant(text).map(|at| at.to_rfc3339());
    assert_eq!(at("2026-04-01T08:00:00+02:00").unwrap(), "2026-04-01T06:00:00+00:00");
    assert_eq!(at("2026-04-01").unwrap(), "2026-03-31T16:00:00+00:00");
    assert_eq!(at("2026-04-01 08:30").unwrap(), "2026-04-01T00:30:00+00:00");
    let wrong = at("April").unwrap_err();
    assert!(wrong.contains("2026-04-01") && wrong.contains("Asia/Shanghai"), "{wrong}");
}

#[test]
fn local_weeks_begin_on_monday_and_instants_are_told_with_their_offset() {
    // Breaks if a week of a site begins on a UTC day, or is always 168 hours long.
    let berlin = Calendar::new(Tz::Europe__Berlin, Weekly::default());
    let starts = berlin.week_starts_ms(at("2026-03-25T12:00:00Z"), at("2026-04-05T22:00:00Z"));
    let told: Vec<String> = starts
        .iter()
        .map(|start| berlin.told(DateTime::from_timestamp_millis(*start).unwrap()))
        .collect();
    assert_eq!(
        told,
        ["2026-03-23T00:00:00+01:00", "2026-03-30T00:00:00+02:00", "2026-04-06T00:00:00+02:00"]
    );
    // A lead time over the shorter day is counted in days, not hours.
    let ordered = berlin.days_before_ms(at("2026-04-05T22:00:00Z"), 60);
    assert_eq!(ordered, at("2026-02-04T23:00:00Z"));
    let utc = Calendar::default();
    assert_eq!(utc.told("2026-03-23T00:00:00Z".parse().unwrap()), "2026-03-23T00:00:00Z");
}
