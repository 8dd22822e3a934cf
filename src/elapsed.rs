//! Elapsed time as people type it: `90m`, `24h`, `7d`, `2w`.

/// Seconds of `text`.
///
/// # Errors
/// A text without number or unit, or 0.
pub fn parse(text: &str) -> Result<i64, String> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        unit => return Err(format!("unknown unit `{unit}`: must be one of s, m, h, d, w")),
    };
    match number.parse::<i64>() {
        Ok(count) if count > 0 => {
            count.checked_mul(unit).ok_or_else(|| format!("`{text}` is too long"))
        }
        _ => Err(format!("`{number}` is not a whole number above 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reads_what_people_type_and_refuses_the_rest() {
        assert_eq!(parse("7d"), Ok(604_800));
        assert_eq!(parse("90m"), Ok(5_400));
        assert!(parse("7").is_err() && parse("0h").is_err() && parse("-1h").is_err());
        assert!(parse("9223372036854775807w").is_err());
    }
}
