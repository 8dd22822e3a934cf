//! The text of a question with the values of its parameters in it.

use datafusion::common::ScalarValue;

/// Replaces each `$name` in the text of a query by its value. Text values are quoted; a `$` inside
/// quotes or a comment is left alone.
///
/// # Why
/// A placeholder has no type until it is filled in, and the planner asks for the type of a
/// function's arguments before.
pub(crate) fn bind(
    sql: &str,
    values: &[(String, ScalarValue)],
) -> Result<String, datafusion::error::DataFusionError> {
    let mut bound = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(place) = rest.find(['$', '\'', '"', '-']) {
        bound.push_str(&rest[..place]);
        rest = &rest[place..];
        let taken = match rest.as_bytes()[0] {
            b'-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            quote @ (b'\'' | b'"') => {
                rest[1..].find(char::from(quote)).map_or(rest.len(), |end| end + 2)
            }
            b'$' => {
                let name = rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let name = &rest[1..name.map_or(rest.len(), |end| end + 1)];
                let Some((_, value)) = values.iter().find(|(known, _)| known == name) else {
                    return datafusion::common::plan_err!("parameter `${name}` is not declared");
                };
                bound.push_str(&literal(value));
                rest = &rest[1 + name.len()..];
                continue;
            }
            _ => 1,
        };
        bound.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    bound.push_str(rest);
    Ok(bound)
}

fn literal(value: &ScalarValue) -> String {
    match value {
        ScalarValue::Utf8(Some(text)) => format!("'{}'", text.replace('\'', "''")),
        ScalarValue::Float64(Some(number)) => format!("CAST({number:e} AS DOUBLE)"),
        ScalarValue::TimestampMillisecond(Some(at), _) => {
            format!("arrow_cast({at}, 'Timestamp(Millisecond, Some(\"UTC\"))')")
        }
        other => other.to_string(),
    }
}
