#![allow(clippy::unwrap_used, missing_docs)]

//! Rules of the tree: small files, crates that point one way.

use std::path::{Path, PathBuf};

const LINES_MAX: usize = 350;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

#[test]
fn files_stay_small() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in
        ["src", "ingest/src", "ingest/tests", "engine/src", "forecast/src", "queries", "tests"]
    {
        files(&root.join(folder), &mut found);
    }
    found.retain(|path| path.extension().is_some_and(|kind| kind == "rs" || kind == "sql"));
    assert!(found.len() > 150, "{}", found.len());
    let long: Vec<String> = found
        .iter()
        .map(|path| (path, std::fs::read_to_string(path).unwrap().lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "a noun is missing in {long:#?}");
}

#[test]
fn lines_of_questions_fit_a_page() {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("queries"), &mut found);
    assert!(found.len() > 50, "{}", found.len());
    for path in found {
        for (number, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
            let at = format!("{}:{}", path.display(), number + 1);
            assert!(line.chars().count() <= 100, "{at}: over 100 characters");
        }
    }
}

#[test]
fn crates_point_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, allowed) in [
        ("ingest", &[][..]),
        ("forecast", &[]),
        ("engine", &["loadline-ingest"]),
        (".", &["loadline-ingest", "loadline-engine", "loadline-forecast"]),
    ] {
        let text = std::fs::read_to_string(root.join(name).join("Cargo.toml")).unwrap();
        let manifest: toml::Value = toml::from_str(&text).unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap();
        assert!(dependencies.len() > 2, "{name}");
        let ours = dependencies.keys().filter(|key| key.starts_with("loadline"));
        for dependency in ours {
            assert!(allowed.contains(&dependency.as_str()), "`{name}` depends on `{dependency}`");
        }
    }
}
