#![allow(clippy::unwrap_used, missing_docs)]

//! Real traces, answered by the program and by a slow obvious loop over the same files.
//!
//! The traces are no part of this repository. Where they are is told by `LOADLINE_SHARED`, or they
//! lie in `../shared`; a test whose trace is absent says that it was skipped.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

const HOUR: i64 = 3_600;

/// Files of a trace whose names end so, or nothing with a word of it.
fn trace(test: &str, folder: &str, suffix: &str) -> Vec<PathBuf> {
    let shared = std::env::var("LOADLINE_SHARED")
        .map_or_else(|_| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let listed = std::fs::read_dir(shared.join("data").join(folder)).into_iter().flatten();
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(suffix));
    files.sort();
    if files.is_empty() {
        println!("skipped: {test} needs the trace {folder}");
    }
    files
}

/// Rows of a `.csv.gz` without its header, in cells.
fn cells(path: &Path) -> impl Iterator<Item = Vec<String>> {
    let file = flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap());
    let lines = BufReader::new(file).lines().skip(1);
    let lines =
        lines.map(|line| line.unwrap().trim_end().to_owned()).filter(|line| !line.is_empty());
    lines.map(|line| line.split(',').map(str::to_owned).collect())
}

/// Runs the program in `folder`; its standard output.
fn run(folder: &Path, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(args)
        .current_dir(folder)
        .env_remove("LOADLINE_STORE")
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Imports files by a mapping of the examples.
fn import(folder: &Path, format: &str, files: &[PathBuf], mapping: &str, more: &[&str]) {
    let mapping = format!("{}/examples/mappings/{mapping}", env!("CARGO_MANIFEST_DIR"));
    let mut args = vec!["import", format, "--mapping", &mapping];
    args.extend(more);
    args.extend(files.iter().map(|path| path.to_str().unwrap()));
    run(folder, &args);
}

/// Rows of CSV without its header.
fn rows(csv: &str) -> impl Iterator<Item = Vec<&str>> {
    csv.lines().skip(1).map(|line| line.split(',').collect())
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(1.0)
}

#[test]
fn philly_s_gpu_hours_by_team_are_those_of_its_rows() {
    let files = trace("philly", "philly", "philly.csv.gz");
    if files.is_empty() {
        return;
    }
    let mut direct: BTreeMap<String, f64> = BTreeMap::new();
    let mut jobs = 0;
    for row in cells(&files[0]) {
        let (seconds, gpus): (f64, f64) = (row[1].parse().unwrap(), row[2].parse().unwrap());
        *direct.entry(row[4].clone()).or_default() += seconds * gpus / 3_600.0;
        jobs += 1;
    }
    assert_eq!(jobs, 82_247);
    let folder = tempfile::tempdir().unwrap();
    import(folder.path(), "jobs", &files, "philly.toml", &[]);
    let told = run(folder.path(), &["query", "gpu_hours_total", "--format", "csv"]);
    let told: BTreeMap<String, f64> =
        rows(&told).map(|row| (row[0].to_owned(), row[1].parse().unwrap())).collect();
    assert_eq!(told.keys().collect::<Vec<_>>(), direct.keys().collect::<Vec<_>>());
    for (team, hours) in &direct {
        assert!((told[team] / hours - 1.0).abs() < 1e-4, "{team}: {} not {hours}", told[team]);
    }
    let (told, direct): (f64, f64) = (told.values().sum(), direct.values().sum());
    assert!((told / direct - 1.0).abs() < 1e-6, "{told} not {direct}");
}

#[test]
fn helios_counts_by_team_and_hour_are_the_means_of_its_minutes() {
    let files = trace("helios", "helios-earth", ".csv.gz");
    if files.is_empty() {
        return;
    }
    // Sums of held, waiting and installed over the minutes of a team and hour, and their number.
    let mut direct: BTreeMap<(String, String), [f64; 4]> = BTreeMap::new();
    for file in &files {
        let team = file.file_name().unwrap().to_str().unwrap().split('.').next().unwrap();
        for row in cells(file) {
            let hour = row[0][..13].replace(' ', "T");
            let sums = direct.entry((team.to_owned(), hour)).or_default();
            for (sum, cell) in sums.iter_mut().zip([&row[8], &row[9], &row[7], &"1".to_owned()]) {
                *sum += cell.parse::<f64>().unwrap();
            }
        }
    }
    assert_eq!(direct.len(), 16 * 31 * 24);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("loadline.toml"),
        "[calendar]\ntimezone = \"Asia/Shanghai\"\n",
    )
    .unwrap();
    import(folder.path(), "gpu-counts", &files, "helios-earth.toml", &[]);
    let text = "SELECT d.team, local_text(d.hour_started_at, '%Y-%m-%dT%H') AS hour, \
        sum(d.gpus_held) AS held, sum(d.gpus_waiting) AS waiting, max(c.gpus_installed) AS installed \
        FROM demand_hourly d JOIN capacity_hourly c ON c.hour_started_at = d.hour_started_at \
        AND c.\"partition\" = d.\"partition\" GROUP BY 1, 2";
    let told = run(folder.path(), &["sql", text, "--format", "csv"]);
    let mut seen = 0;
    for row in rows(&told) {
        let [held, waiting, installed, minutes] = direct[&(row[0].to_owned(), row[1].to_owned())];
        for (told, sum) in row[2..].iter().zip([held, waiting, installed]) {
            let told: f64 = told.parse().unwrap();
            assert!(near(told, sum / minutes), "{row:?}: {told} not {}", sum / minutes);
        }
        seen += 1;
    }
    assert_eq!(seen, direct.len());
}

#[test]
fn pods_have_hourly_means_weighted_by_time_and_their_gaps_show() {
    let files = trace("pods", "gpu-samples", ".csv.gz");
    if files.is_empty() {
        return;
    }
    const INTERVAL: f64 = 57.0;
    // Duty (0-1) of a pod at an instant; a few instants have memory only.
    let mut pods: BTreeMap<String, BTreeMap<i64, Option<f64>>> = BTreeMap::new();
    let read = |name: &str, at: usize, value: usize| {
        let file = files.iter().find(|path| path.to_string_lossy().contains(name)).unwrap();
        cells(file).map(move |row| {
            let number = |place: usize| row[place].parse::<f64>().unwrap();
            (row[2].clone(), number(at) as i64, number(value))
        })
    };
    for (pod, at, _) in read("memory", 0, 1) {
        pods.entry(pod).or_default().entry(at).or_insert(None);
    }
    for (pod, at, percent) in read("duty", 1, 0) {
        pods.entry(pod).or_default().insert(at, Some(percent / 100.0));
    }
    assert_eq!(pods.len(), 144);
    // A reading stands for the time before it, at most three intervals, split at the hour.
    let mut direct: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    let mut gaps = 0;
    for readings in pods.values() {
        let mut last = None;
        for (at, duty) in readings {
            let since = last.map_or(INTERVAL, |last| (at - last) as f64);
            gaps += usize::from(since > 3.0 * INTERVAL);
            last = Some(*at);
            let Some(duty) = duty else { continue };
            let mut from = *at as f64 - since.min(3.0 * INTERVAL);
            while from < *at as f64 {
                let hour = (from / HOUR as f64).floor() as i64 * HOUR;
                let until = ((hour + HOUR) as f64).min(*at as f64);
                let (seconds, busy) = direct.entry(hour).or_default();
                (*seconds, *busy) = (*seconds + until - from, *busy + duty * (until - from));
                from = until;
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    import(folder.path(), "samples", &files, "pod-samples.toml", &["--interval", "57"]);
    let told = run(folder.path(), &["query", "utilisation_fleet", "--format", "csv"]);
    let head: Vec<&str> = told.lines().next().unwrap().split(',').collect();
    let place = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let (util, hours) = (place("util_ratio"), place("gpu_hours_observed"));
    let mut seen = 0;
    for row in rows(&told) {
        let at = chrono::DateTime::parse_from_rfc3339(row[0]).unwrap().timestamp();
        let (seconds, busy) = direct[&at];
        assert!(near(row[util].parse().unwrap(), busy / seconds), "{row:?}: {}", busy / seconds);
        assert!(near(row[hours].parse().unwrap(), seconds / 3_600.0), "{row:?}");
        seen += 1;
    }
    assert_eq!(seen, direct.len());
    let told = run(
        folder.path(),
        &["sql", "SELECT count(*) FROM gpu_gaps WHERE kind = 'gap'", "--format", "csv"],
    );
    assert_eq!(told.lines().nth(1).unwrap().parse::<usize>().unwrap(), gaps);
}
