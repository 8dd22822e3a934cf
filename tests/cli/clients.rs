//! Other programs read the same store.

use std::process::Command;

use super::fleet::{ask, fleet, words};

/// Names an interpreter that has the readers; set where their absence is a failure.
const INTERPRETER: &str = "LOADLINE_PYTHON";

/// The packages that read a store or an export.
const READERS: &str = "deltalake, duckdb, polars, pyarrow";

/// The interpreter that has `packages`; `None` where there is none and none is demanded.
pub(crate) fn python(test: &str, packages: &str) -> Option<String> {
    let asked = std::env::var(INTERPRETER).ok();
    let python = asked.clone().unwrap_or_else(|| "python3".to_owned());
    let known = Command::new(&python).args(["-c", &format!("import {packages}")]).output();
    if asked.is_none() && !known.is_ok_and(|known| known.status.success()) {
        println!("skipped: {test} needs {packages} in python3");
        return None;
    }
    Some(python)
}

#[test]
fn deltalake_duckdb_and_polars_read_the_store_alike() {
    let Some(python) = python("deltalake_duckdb_and_polars_read_the_store_alike", READERS) else {
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/open_store.py");
    let read =
        Command::new(python).arg(script).arg(fleet().folder.join("fleet/data")).output().unwrap();
    let (told, failed) =
        (String::from_utf8(read.stdout).unwrap(), String::from_utf8(read.stderr).unwrap());
    assert!(read.status.success(), "{told}{failed}");
    for table in ["samples", "node_samples", "jobs", "allocations", "gpus"] {
        assert!(
            told.lines().any(|line| line.starts_with(&format!("{table}: "))),
            "{table}: {told}"
        );
    }
}

#[test]
fn pyarrow_duckdb_and_polars_read_local_days_in_an_export() {
    // Breaks if a zone that we write is one that they do not know, or a folder's date is no date.
    let Some(python) = python("pyarrow_duckdb_and_polars_read_local_days_in_an_export", READERS)
    else {
        return;
    };
    let asked = "export gpu_hours --param per=day --param from=2026-03-02 --param until=2026-03-09";
    ask(&words(&format!("{asked} --to out/read")));
    ask(&words(&format!("{asked} --to out/read/by-day --partition-by period_started_at")));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/open_export.py");
    let read = Command::new(python)
        .arg(script)
        .arg(fleet().folder.join("out/read"))
        .args(["Asia/Shanghai", "2026-03-02"])
        .output()
        .unwrap();
    let (told, failed) =
        (String::from_utf8(read.stdout).unwrap(), String::from_utf8(read.stderr).unwrap());
    assert!(read.status.success(), "{told}{failed}");
    assert_eq!(told, "Asia/Shanghai: 2026-03-02T00:00:00+08:00\n");
}
