//! Questions of a folder, beside those of the program: a bad file is told and leaves the rest theirs.

use std::collections::BTreeMap;
use std::path::Path;

use super::{NamedQuery, queries};
use crate::error::EngineError;

/// The questions that come with the program and those of `folder`, by name, and why a file of it is
/// none. A file of `folder` stands in for the program's own of that name.
///
/// # Errors
/// [`EngineError::Read`] for a folder that cannot be listed.
pub fn queries_with(folder: &Path) -> Result<(Vec<NamedQuery>, Vec<EngineError>), EngineError> {
    let failed = |path: &Path, source: std::io::Error| EngineError::Read {
        path: path.display().to_string(),
        source,
    };
    let mut all: BTreeMap<String, NamedQuery> =
        queries()?.into_iter().map(|query| (query.name.clone(), query)).collect();
    let mut bad = Vec::new();
    let entries: Result<Vec<_>, _> = std::fs::read_dir(folder)
        .and_then(Iterator::collect)
        .map_err(|error| failed(folder, error));
    let mut paths: Vec<_> = entries?.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.extension().is_none_or(|extension| extension != "sql") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let read = std::fs::read_to_string(&path).map_err(|error| failed(&path, error));
        match read.and_then(|text| NamedQuery::parse(&name, &text)) {
            Ok(query) => drop(all.insert(name, query)),
            Err(EngineError::Header { line, reason, .. }) => {
                let query = path.display().to_string();
                bad.push(EngineError::Header { query, line, reason });
            }
            Err(error) => bad.push(error),
        }
    }
    Ok((all.into_values().collect(), bad))
}

#[cfg(test)]
mod tests {
    use super::super::find_in;
    use super::*;

    #[test]
    fn a_bad_file_is_named_with_its_line_and_leaves_the_others() {
        // Breaks if one slip in one file takes every question away.
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| {
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        write("mine.sql", b"-- Mine.\nSELECT 2");
        write("slip.sql", b"-- Slip.\n-- parameters: $from timestamp,\n--   $job txet\nSELECT 1");
        write("queue.sql", b"SELECT 1");
        write("bytes.sql", &[0xff, 0xfe]);
        let (all, bad) = queries_with(folder.path()).unwrap();
        assert_eq!(all.len(), queries().unwrap().len() + 1);
        assert_eq!(find_in(all.clone(), "mine").unwrap().purpose(), "Mine.");
        assert!(!find_in(all, "queue").unwrap().purpose().is_empty());
        let told: Vec<String> = bad.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].contains("bytes.sql"), "{told:?}");
        assert!(told[1].contains("queue.sql`, line 1: "), "{told:?}");
        assert!(told[2].contains("slip.sql`, line 3: `txet` is no type"), "{told:?}");
    }
}
