use proptest::prelude::*;

use super::*;

fn at(zone: Tz, ambiguous: Ambiguous, text: &str) -> Result<Option<String>, String> {
    let millis = Moments::new(zone, ambiguous).parse(text)?;
    Ok(millis.map(|ms| {
        let at = DateTime::from_timestamp_millis(ms).unwrap();
        at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
    }))
}

#[test]
fn times_in_many_spellings_are_one_instant() {
    // Breaks when an offset is ignored or a fraction is lost.
    for text in [
        "2026-07-14T09:00:27.792+08:00",
        "2026-07-14 01:00:27.792Z",
        "2026/07/14 01:00:27.792",
        "2026-07-14T01:00:27.7929-0000",
        "1783990827.792",
    ] {
        let got = at(Tz::UTC, Ambiguous::Earlier, text);
        assert_eq!(got, Ok(Some("2026-07-14T01:00:27.792Z".into())), "{text}");
    }
    for text in ["", "Unknown", "None", " N/A ", "NULL"] {
        assert_eq!(at(Tz::UTC, Ambiguous::Earlier, text), Ok(None), "{text}");
    }
    for text in ["yesterday", "2026-13-01", "2026-07-14T25:00:00", "2026-07-14T09:00+99:00"] {
        assert!(at(Tz::UTC, Ambiguous::Earlier, text).is_err(), "{text}");
    }
}

#[test]
fn an_hour_that_exists_twice_or_never_follows_the_policy() {
    // Breaks when the pick is silent or the wrong way round.
    let la = Tz::America__Los_Angeles;
    let twice = "2017-11-05 01:30:00";
    let got = |policy, text| at(la, policy, text).map(Option::unwrap);
    assert_eq!(got(Ambiguous::Earlier, twice), Ok("2017-11-05T08:30:00Z".into()));
    assert_eq!(got(Ambiguous::Later, twice), Ok("2017-11-05T09:30:00Z".into()));
    assert!(got(Ambiguous::Reject, twice).unwrap_err().contains("twice"));
    let never = "2017-03-12 02:30:00";
    assert_eq!(got(Ambiguous::Earlier, never), Ok("2017-03-12T10:30:00Z".into()));
    assert!(got(Ambiguous::Reject, never).unwrap_err().contains("never"));
    let mut moments = Moments::new(la, Ambiguous::Earlier);
    moments.parse(twice).unwrap();
    assert!(moments.doubts().unwrap().starts_with("1 local times happened twice"));
    assert_eq!(moments.doubts(), None);
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in ".{0,40}") {
        let _ = Moments::new(Tz::Europe__Berlin, Ambiguous::Earlier).parse(&text);
    }

    #[test]
    fn printing_and_reading_an_instant_is_identity(ms in 946_684_800_000_i64..4_102_444_800_000) {
        let text = DateTime::from_timestamp_millis(ms).unwrap().to_rfc3339();
        prop_assert_eq!(Moments::new(Tz::UTC, Ambiguous::Earlier).parse(&text), Ok(Some(ms)));
    }
}
