//! Collecting as a user meets it, and what a store is like afterwards.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use super::fleet::{run_in, words};

const COUNT: &str = "SELECT count(*) AS n, count(DISTINCT sampled_at) AS apart FROM node_samples";

/// Readings in the store, in tables or in a log, and how many of them differ in their time.
fn readings(folder: &Path) -> (u64, u64) {
    let run = run_in(folder, &["sql", "-f", "csv", COUNT], "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let counts = run.stdout.lines().nth(1).unwrap().split_once(',').unwrap();
    (counts.0.parse().unwrap(), counts.1.parse().unwrap())
}

#[test]
fn what_is_collected_is_in_the_tables_and_the_store_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    let args = words("collect --node-samples --interval 1s --for 3s --name n1");
    let run = run_in(folder.path(), &args, "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.starts_with("node every 1s\n"), "{}", run.stderr);
    assert!(run.stderr.contains("kept, 0 dropped, 1 move into the tables"), "{}", run.stderr);
    let (rows, apart) = readings(folder.path());
    assert!(rows >= 1 && rows == apart, "{rows} {apart}");
    let doctor = run_in(folder.path(), &["doctor"], "");
    assert_eq!(doctor.code, Some(0), "{}{}", doctor.stdout, doctor.stderr);
    assert!(doctor.stdout.contains("1 of them held against a checksum"), "{}", doctor.stdout);
    let compact = run_in(folder.path(), &words("compact --dry-run"), "");
    assert!(compact.stdout.contains("0 days would be compacted"), "{}", compact.stdout);
}

#[test]
fn a_collector_that_is_killed_loses_nothing_that_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut kept = 0;
    for _ in 0..3 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(words("collect --node-samples --interval 1s --name n1"))
            .current_dir(folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut told).unwrap();
        // It writes on its own; what a reader has seen once was kept.
        let seen = loop {
            let (rows, apart) = match folder.path().join("loadline-data/_wal").exists() {
                true => readings_or_none(folder.path()),
                false => (0, 0),
            };
            assert_eq!(rows, apart);
            if rows > kept {
                break rows;
            }
        };
        child.kill().unwrap();
        child.wait().unwrap();
        kept = seen;
    }
    let (rows, apart) = readings(folder.path());
    assert!(rows >= kept && rows == apart, "{rows} {apart} {kept}");
    let run = run_in(folder.path(), &words("collect --node-samples --for 1s --name n1"), "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let (after, apart) = readings(folder.path());
    assert!(after >= rows && after == apart, "{after} {apart} {rows}");
}

/// The same before the first row.
fn readings_or_none(folder: &Path) -> (u64, u64) {
    let run = run_in(folder, &["sql", "-f", "csv", COUNT], "");
    match run.code {
        Some(0) => readings(folder),
        _ => (0, 0),
    }
}

#[test]
fn a_run_in_which_nothing_came_says_so() {
    // Breaks when moves are told of rows that there were none of.
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("jobs")).unwrap();
    let run = run_in(folder.path(), &words("collect --watch jobs --for 1s"), "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let wanted = "no rows came, none had to be moved into the tables\n";
    assert!(run.stderr.ends_with(wanted), "{}", run.stderr);
    let run = run_in(folder.path(), &words("serve --listen 127.0.0.1:0 --for 1s"), "");
    assert!(run.stderr.ends_with(wanted), "{}", run.stderr);
}

#[test]
fn a_driver_that_is_not_there_is_told_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("loadline.toml"),
        "[collect]\nnvml_library = \"/nowhere/libnvidia-ml.so.1\"\n",
    )
    .unwrap();
    let run = run_in(folder.path(), &["collect"], "");
    assert_eq!(run.code, Some(1));
    let told = "error: cannot read GPUs through `/nowhere/libnvidia-ml.so.1`: it cannot be loaded";
    assert!(run.stderr.starts_with(told) && run.stderr.contains("hint: "), "{}", run.stderr);
}

#[test]
fn a_damaged_file_is_found_set_aside_and_the_rest_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let text = "sampled_at,node,gpu,gpu_uuid,power_w\n2026-01-01T00:00:00Z,n1,0,GPU-a,90.5\n\
                2026-01-02T00:00:00Z,n1,0,GPU-a,91.5\n";
    let run = run_in(folder.path(), &words("import samples -"), text);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let day = folder.path().join("loadline-data/samples/date=2026-01-01");
    let file = std::fs::read_dir(&day).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[30] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let found = run_in(folder.path(), &["doctor"], "");
    assert_eq!(found.code, Some(1));
    assert!(found.stdout.contains("damaged-file  samples/date=2026-01-01/"), "{}", found.stdout);
    assert!(found.stdout.contains("its one row is lost with it"), "{}", found.stdout);
    assert!(found.stderr.contains("`loadline doctor --repair`"), "{}", found.stderr);
    let mended = run_in(folder.path(), &words("doctor --repair"), "");
    assert_eq!(mended.code, Some(0), "{}{}", mended.stdout, mended.stderr);
    let count =
        run_in(folder.path(), &["sql", "-f", "csv", "SELECT count(*) AS n FROM samples"], "");
    assert_eq!(count.stdout, "n\n1\n");
}

#[test]
fn beyond_this_machine_rows_are_taken_with_a_token_alone() {
    let folder = tempfile::tempdir().unwrap();
    let open = words("collect --node-samples --interval 1s --for 1s --listen 0.0.0.0:0");
    let run = run_in(folder.path(), &open, "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("only the health page is served"), "{}", run.stderr);
    std::fs::write(folder.path().join("token"), "secret").unwrap();
    let door = "[collect]\ndoor = { listen = \"0.0.0.0:0\", bearer_token_file = \"token\" }\n\
        remote_write = {}\n";
    std::fs::write(folder.path().join("loadline.toml"), door).unwrap();
    let guarded = run_in(folder.path(), &words("collect --node-samples --for 1s"), "");
    assert_eq!(guarded.code, Some(0), "{}", guarded.stderr);
    assert!(!guarded.stderr.contains("only the health page"), "{}", guarded.stderr);
    assert!(guarded.stderr.contains("listening on "), "{}", guarded.stderr);
}
