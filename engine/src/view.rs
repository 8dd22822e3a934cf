//! Views over the tables: the files of `queries/views/`.

use datafusion::prelude::SessionContext;

use crate::error::EngineError;
use crate::query::embedded::VIEWS;

/// Registers every view after those that its text names.
pub(crate) async fn register(context: &SessionContext) -> Result<(), EngineError> {
    for (name, text) in ordered(VIEWS) {
        context
            .sql(&format!("CREATE VIEW {name} AS\n{text}"))
            .await
            .map_err(|error| EngineError::sql(format!("view `{name}`"), error))?;
    }
    Ok(())
}

/// Views with those they read before them. Views that read each other keep their order, and the
/// planner says which table is missing.
fn ordered<'a>(views: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut waiting = views.to_vec();
    let mut ready = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let names: Vec<&str> = waiting.iter().map(|(name, _)| *name).collect();
        let free = |(name, text): &(&str, &str)| {
            let mut words = text.lines().filter(|line| !line.trim_start().starts_with("--"));
            !words.any(|line| {
                line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .any(|word| word != *name && names.contains(&word))
            })
        };
        let (now, later): (Vec<_>, Vec<_>) = waiting.iter().copied().partition(free);
        if now.is_empty() {
            ready.extend(later);
            break;
        }
        ready.extend(now);
        waiting = later;
    }
    ready
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_stands_after_those_it_reads() {
        // Breaks if views are registered by name, or if a comment counts as reading.
        let views = [
            ("a", "-- not z\nSELECT * FROM b, m"),
            ("b", "SELECT * FROM m"),
            ("m", "SELECT 1"),
            ("z", "SELECT * FROM a"),
        ];
        let names: Vec<&str> = ordered(&views).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["m", "b", "a", "z"]);
    }
}
