//! What is not decided, and what is said instead: on stores of a few rows.

use std::path::Path;

use super::fleet::{Run, run_in, words};

const CONFIG: &str = "[calendar]\ntimezone = \"Asia/Shanghai\"\n";

/// Ten weeks from Monday 2026-01-05 in Shanghai, counted once an hour: 12 of 16 GPUs held, 2 more on
/// workdays waiting.
fn counts() -> String {
    let mut text =
        "counted_at,cluster,partition,gpus_held,gpus_waiting,gpus_installed,period_s\n".to_owned();
    let start = chrono::DateTime::parse_from_rfc3339("2026-01-05T00:00:00+08:00").unwrap();
    for hour in 0..10 * 168 - 7 {
        let at = start + chrono::TimeDelta::hours(hour);
        let waiting = if hour / 24 % 7 < 5 { 2 } else { 0 };
        text.push_str(&format!("{},c,a,12,{waiting},16,3600\n", at.to_rfc3339()));
    }
    text
}

fn ask(folder: &Path, args: &str) -> Run {
    let run = run_in(folder, &words(args), "");
    assert_eq!(run.code, Some(0), "{args}: {}", run.stderr);
    run
}

#[test]
fn what_the_store_does_not_hold_decides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("loadline.toml"), CONFIG).unwrap();
    let import = run_in(folder, &words("import gpu-counts -"), &counts());
    // Local time with the name of its zone, not UTC.
    let time = "  time    2026-01-05T00:00:00+08:00 to 2026-03-15T16:00:00+08:00 (Asia/Shanghai)";
    assert!(import.stdout.contains(time), "{}{}", import.stdout, import.stderr);

    let late = "report --from 2026-06-01 --to 2026-07-01 --json --output -";
    let report: serde_json::Value = serde_json::from_str(&ask(folder, late).stdout).unwrap();
    assert_eq!(report["decision"]["action"], "undecided");
    assert_eq!(report["from"], "2026-06-01T00:00:00+08:00");
    let told = report["outlook"]["notes"].to_string();
    let holds = "the store holds nothing of this period: it holds 2026-01-05 00:00 +08:00 to";
    assert!(told.contains(holds), "{told}");

    let plan = ask(folder, "--now 2026-03-20 plan").stdout;
    assert!(
        plan.contains("no plan   the store ends at 2026-03-15 17:00 +08:00, 4.3 days"),
        "{plan}"
    );
    assert!(!plan.contains("full  "), "{plan}");
    let plan = ask(folder, "plan").stdout;
    assert!(
        plan.contains("basis     GPUs held plus GPUs waited for, not the load offered"),
        "{plan}"
    );
    assert!(plan.contains("does not meet capacity"), "{plan}");

    // Sunday is not over: the first day ahead is Monday.
    let days = ask(folder, "forecast --step 1d --horizon 2d --format csv").stdout;
    let first: Vec<&str> =
        days.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(first, ["2026-03-16T00:00:00+08:00", "2026-03-17T00:00:00+08:00"], "{days}");

    let scale = ask(folder, "scale --hours 2 --max 14 --unit 8 --on 0 --format csv");
    let told = "the maximum of 14 GPUs holds 1 whole unit of 8: 8 at most are on";
    assert!(scale.stderr.contains(told), "{}", scale.stderr);
    assert_eq!(scale.stdout.lines().nth(1).unwrap().split(',').nth(1), Some("8"));

    let shell = run_in(folder, &["sql"], "\\d nope\n");
    assert_eq!(shell.code, Some(2), "{}", shell.stderr);
    assert!(shell.stderr.contains("no table or view `nope`"), "{}", shell.stderr);
    assert!(shell.stderr.contains("gpu_counts"), "{}", shell.stderr);
    let shell = run_in(folder, &["sql"], "\\x\n");
    assert!(shell.stderr.contains("no command `\\x`"), "{}", shell.stderr);
    assert!(shell.stderr.contains("\\d TABLE"), "{}", shell.stderr);
}

#[test]
fn a_bad_question_is_named_and_a_missing_folder_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let made = ask(folder, "init new/site/loadline.toml");
    assert!(folder.join("new/site/loadline.toml").exists(), "{}", made.stdout);
    std::fs::write(folder.join("file"), "").unwrap();
    let run = run_in(folder, &["init", "file/loadline.toml"], "");
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("`file"), "{}", run.stderr);

    std::fs::create_dir(folder.join("own")).unwrap();
    std::fs::write(folder.join("own/mine.sql"), "-- Mine.\nSELECT 1\n").unwrap();
    std::fs::write(folder.join("own/slip.sql"), "-- Slip.\n-- parameters: $a txet\n").unwrap();
    let run = ask(folder, "--queries own query");
    assert!(run.stdout.contains("Mine.") && run.stdout.contains("gpu_hours"), "{}", run.stdout);
    assert!(run.stderr.contains("own/slip.sql`, line 2: "), "{}", run.stderr);
}
