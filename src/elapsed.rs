//! Elapsed time as people type it: `90m`, `24h`, `7d`, `2w`.

/// Seconds of `text`.
///
/// # Errors
/// A text without number or unit, or 0.
pub fn parse(text: &str) -> Result<i64, String> {
    parse_in(text, "s, m, h, d, w")
}

/// The same, where `units` are told to be those that are known.
fn parse_in(text: &str, units: &str) -> Result<i64, String> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        "" if number.parse::<f64>().is_ok() => {
            return Err(format!(
                "`{text}` has no unit: for seconds write `{text}s`; one of {units}"
            ));
        }
        "" => return Err(format!("`{text}` is no time: write a number and one of {units}")),
        unit => return Err(format!("unknown unit `{unit}`: must be one of {units}")),
    };
    match number.parse::<i64>() {
        Ok(count) if count > 0 => {
            count.checked_mul(unit).ok_or_else(|| format!("`{text}` is too long"))
        }
        _ => Err(format!("`{number}` is not a whole number above 0")),
    }
}

/// Seconds between two readings: as [`parse`], or `100ms`, from 0.1 s to an hour.
///
/// # Errors
/// A text that [`parse`] refuses, or another length.
pub fn parse_interval(text: &str) -> Result<f64, String> {
    let seconds = match text.strip_suffix("ms") {
        Some(millis) => millis
            .parse::<u32>()
            .map(|millis| f64::from(millis) / 1e3)
            .map_err(|_| format!("`{millis}` is not a whole number above 0"))?,
        None => parse_in(text, "ms, s, m, h")? as f64,
    };
    match (0.1..=3_600.0).contains(&seconds) {
        true => Ok(seconds),
        false => Err(format!("`{text}` is no interval: must be from 100ms to 1h")),
    }
}

/// Seconds of a step of a forecast: whole hours that divide a day.
///
/// # Errors
/// A text that [`parse`] refuses, or another length.
pub fn parse_step(text: &str) -> Result<u32, String> {
    let seconds = parse(text)?;
    match u32::try_from(seconds) {
        Ok(step) if step % 3_600 == 0 && 86_400 % step == 0 => Ok(step),
        _ => Err(format!("`{text}` is no step: must be 1h, 2h, 3h, 4h, 6h, 8h, 12h or 1d")),
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, parse_interval, parse_step};

    #[test]
    fn reads_what_people_type_and_refuses_the_rest() {
        assert_eq!(parse("7d"), Ok(604_800));
        assert_eq!(parse("90m"), Ok(5_400));
        assert!(parse("7").is_err() && parse("0h").is_err() && parse("-1h").is_err());
        assert!(parse("9223372036854775807w").is_err());
        // Breaks when a number without a unit is answered with an empty pair of quotes.
        let told = parse_interval("1").unwrap_err();
        assert_eq!(told, "`1` has no unit: for seconds write `1s`; one of ms, s, m, h");
        let told = parse("90").unwrap_err();
        assert_eq!(told, "`90` has no unit: for seconds write `90s`; one of s, m, h, d, w");
        assert_eq!(
            parse("").unwrap_err(),
            "`` is no time: write a number and one of s, m, h, d, w"
        );
        assert_eq!((parse_interval("100ms"), parse_interval("1m")), (Ok(0.1), Ok(60.0)));
        assert!(parse_interval("99ms").is_err() && parse_interval("2h").is_err());
        assert_eq!(parse_step("6h"), Ok(21_600));
        assert!(parse_step("5h").is_err() && parse_step("90m").is_err());
    }
}
