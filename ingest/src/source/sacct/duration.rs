//! Slurm's spans of time: `[DD-]HH:MM:SS[.mmm]`, `MM:SS`, and the words for "no limit".

use std::fmt;

/// Seconds as Slurm prints them: `10-13:27:06`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlurmSeconds(pub u64);

impl fmt::Display for SlurmSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, rest) = (self.0 / 86_400, self.0 % 86_400);
        if days > 0 {
            write!(f, "{days}-")?;
        }
        write!(f, "{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
    }
}

/// Reads a span in seconds; `None` for `UNLIMITED`, `Partition_Limit` and whatever is no span.
///
/// `[[DD-]HH:]MM:SS[.mmm]`, `DD-HH[:MM]` and a bare number of seconds are read.
///
/// # Example
/// ```
/// use loadline_ingest::source::sacct::duration_s;
///
/// assert_eq!(duration_s("10-13:27:06"), Some(912_426.0));
/// assert_eq!(duration_s("00:15.500"), Some(15.5));
/// assert_eq!(duration_s("UNLIMITED"), None);
/// ```
#[must_use]
pub fn duration_s(text: &str) -> Option<f64> {
    let text = text.trim();
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (Some(whole(days)?), clock),
        None => (None, text),
    };
    let mut parts = clock.split(':');
    let mut next = || parts.next().map(span);
    let (first, second, third) = (next()??, next(), next());
    if parts.next().is_some() {
        return None;
    }
    let clock_s = match (days, second, third) {
        (_, Some(minutes), Some(seconds)) => first * 3600.0 + minutes? * 60.0 + seconds?,
        (Some(_), Some(minutes), None) => first * 3600.0 + minutes? * 60.0,
        (Some(_), None, None) => first * 3600.0,
        (None, Some(seconds), None) => first * 60.0 + seconds?,
        (None, None, _) => first,
        (Some(_), None, Some(_)) => return None,
    };
    Some(days.unwrap_or(0.0) * 86_400.0 + clock_s)
}

fn whole(text: &str) -> Option<f64> {
    let digits = !text.is_empty() && text.len() <= 15 && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

fn span(text: &str) -> Option<f64> {
    match text.split_once('.') {
        Some((seconds, fraction)) => {
            let plain = fraction.bytes().all(|b| b.is_ascii_digit());
            whole(seconds)?;
            if plain { text.parse().ok() } else { None }
        }
        None => whole(text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_form_of_a_span_is_read() {
        // Breaks when minutes are taken for hours; sums worked by hand.
        assert_eq!(duration_s("00:00:24"), Some(24.0));
        assert_eq!(duration_s("5-00:00:26"), Some(432_026.0));
        assert_eq!(duration_s("37-14:00:00"), Some(3_247_200.0));
        assert_eq!(duration_s("15:30"), Some(930.0));
        assert_eq!(duration_s("1-12"), Some(129_600.0));
        assert_eq!(duration_s("1-12:30"), Some(131_400.0));
        assert_eq!(duration_s("3600"), Some(3600.0));
        for text in ["Partition_Limit", "UNLIMITED", "INVALID", "", "1:2:3:4", "-5", "1e3:00"] {
            assert_eq!(duration_s(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_is_identity(seconds in 0_u64..100_000_000_000) {
            #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
            let expected = seconds as f64;
            prop_assert_eq!(duration_s(&SlurmSeconds(seconds).to_string()), Some(expected));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,40}") {
            let _ = duration_s(&text);
        }
    }
}
