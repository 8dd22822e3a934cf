//! Other programs read the same store.

use std::process::Command;

use super::fleet::fleet;

/// Names an interpreter that has the readers; set where their absence is a failure.
const INTERPRETER: &str = "LOADLINE_PYTHON";

#[test]
fn deltalake_duckdb_and_polars_read_the_store_alike() {
    let asked = std::env::var(INTERPRETER).ok();
    let python = asked.as_deref().unwrap_or("python3");
    let known =
        Command::new(python).args(["-c", "import deltalake, duckdb, polars, pyarrow"]).output();
    if asked.is_none() && !known.is_ok_and(|known| known.status.success()) {
        println!("skipped: deltalake_duckdb_and_polars_read_the_store_alike needs them in python3");
        return;
    }
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
