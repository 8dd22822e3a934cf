//! Readings are summed up, then dropped for their age, and what asks of them says so.

use std::path::Path;

use super::fleet::{Run, run_in, words};

fn ask(folder: &Path, args: &str) -> Run {
    let run = run_in(folder, &words(args), "");
    assert_eq!(run.code, Some(0), "{args}: {}", run.stderr);
    run
}

/// Four days of one GPU at 0.5 and 200 W, from 2026-01-01T00:10Z on, a reading every ten minutes.
fn readings() -> String {
    let reading = |n: i64| {
        let at = chrono::DateTime::from_timestamp(1_767_225_600 + n * 600, 0).unwrap();
        format!("{},n1,0,GPU-a,0.5,200\n", at.format("%Y-%m-%dT%H:%M:%SZ"))
    };
    "sampled_at,node,gpu,gpu_uuid,gpu_util_ratio,power_w\n".to_owned()
        + &(1..4 * 144).map(reading).collect::<String>()
}

#[test]
fn old_readings_go_when_rollups_tell_of_them_and_that_is_said() {
    // Breaks when readings go unasked or untold, when a rollup goes with them, or when a question
    // about the time before looks as if nothing had been on.
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("loadline.toml"), "[retention]\nsamples = \"1d\"\n").unwrap();
    let run = run_in(folder, &words("import samples - --interval 600"), &readings());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let now = "--now 2026-01-04T00:00:00Z";

    let told = ask(folder, &format!("{now} retain --apply")).stdout;
    assert!(
        told.contains("2 days from 2026-01-01 on kept: gpu_5m and gpu_1h do not tell"),
        "{told}"
    );
    assert!(told.ends_with("no day goes\n"), "{told}");
    assert!(ask(folder, "rollup --dry-run").stdout.ends_with("4 days would be rolled up\n"));
    let rolled = ask(folder, "rollup").stdout;
    assert!(
        rolled.starts_with("2026-01-01  new      143 readings to 288 of gpu_5m and 24 of gpu_1h\n"),
        "{rolled}"
    );
    assert!(rolled.ends_with("4 days rolled up\n"), "{rolled}");
    assert_eq!(ask(folder, "rollup").stdout, "0 days rolled up\n");
    assert!(ask(folder, "rollup --rebuild").stdout.ends_with("4 days rolled up\n"));

    // 2026-01-03 is a day old at the earliest at its end.
    let told = ask(folder, &format!("{now} retain")).stdout;
    assert!(
        told.starts_with("samples      2026-01-01 to 2026-01-02  287 rows of 2 days"),
        "{told}"
    );
    assert!(
        told.ends_with("2 days would be dropped: do so with `loadline retain --apply`\n"),
        "{told}"
    );
    // Ages count from the latest instant of the store, whatever the clock shows.
    assert_eq!(ask(folder, "retain").stdout, told);
    let count = "SELECT count(*) AS n FROM samples";
    let counted = || run_in(folder, &["sql", count, "--format", "csv"], "").stdout;
    assert_eq!(counted(), "n\n575\n");
    let told = ask(folder, &format!("{now} retain --apply --json")).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["tables"][0]["dropped"], serde_json::json!(["2026-01-01", "2026-01-02"]));
    assert_eq!(counted(), "n\n288\n");

    // The hours tell of all four days: 95 h 50 min in all, 0.5, 200 W.
    let hours = "SELECT sum(covered_s) AS s, sum(gpu_util_ratio_sum) / sum(gpu_util_ratio_known_s) \
                 AS busy, sum(energy_j) / sum(energy_known_s) AS w FROM gpu_1h";
    let hours = run_in(folder, &["sql", hours, "--format", "csv"], "").stdout;
    assert_eq!(hours, "s,busy,w\n345000.0,0.5,200.0\n");
    assert_eq!(ask(folder, "rollup").stdout, "0 days rolled up\n");

    let from =
        |day: &str| ask(folder, &format!("query utilisation_fleet --param from={day}")).stderr;
    assert!(
        from("2026-01-02").contains(
            "note: readings before 2026-01-03T00:00:00Z were dropped on 2026-01-04: of the \
             time before, only gpu_5m and gpu_1h tell of utilisation"
        ),
        "{}",
        from("2026-01-02")
    );
    assert!(!from("2026-01-03").contains("dropped"));
    // A page says so itself: whoever reads it does not see what its making told.
    let page = |args: &str| ask(folder, &format!("report --output - {args}")).stdout;
    let told = "Readings before 2026-01-03 00:00 were dropped on 2026-01-04 for their age.";
    for format in ["md", "html"] {
        assert!(page(&format!("--format {format}")).contains(told), "{format}");
    }
    assert!(page("--lang zh --format md").contains("2026-01-03 00:00 之前的采样已于 2026-01-04"));
    let json: serde_json::Value = serde_json::from_str(&page("--json")).unwrap();
    assert_eq!(json["readings_dropped"]["before"], "2026-01-03T00:00:00Z");
    assert!(!page("--format md --from 2026-01-03").contains("dropped"));
}

#[test]
fn a_slip_in_the_ages_is_refused_before_anything_goes() {
    // Breaks when `sample = "1d"` quietly keeps readings for ever, or `1h` takes today's.
    let folder = tempfile::tempdir().unwrap();
    for (slip, word) in [
        ("sample = \"1d\"", "2 | sample = \"1d\""),
        ("samples = 90", "2 | samples = 90"),
        ("samples = \"1h\"", "whole days"),
    ] {
        std::fs::write(folder.path().join("loadline.toml"), format!("[retention]\n{slip}\n"))
            .unwrap();
        let run = run_in(folder.path(), &["retain", "--apply"], "");
        assert_ne!(run.code, Some(0));
        assert!(run.stderr.contains(word), "{}", run.stderr);
    }
}
