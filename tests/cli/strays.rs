//! One row with an impossible date moves neither now nor the start, and is told.

use std::path::Path;

use super::fleet::{Run, run_in, words};

fn import(folder: &Path, what: &str, text: &str) -> Run {
    let run = run_in(folder, &words(&format!("import {what} -")), text);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run
}

fn ask(folder: &Path, args: &str) -> Run {
    let run = run_in(folder, &words(args), "");
    assert_eq!(run.code, Some(0), "{args}: {}", run.stderr);
    run
}

const HEAD: &str = "job_id,team,gpus_allocated,submitted_at,started_at,ended_at\n";

/// Five weeks of a job of four GPUs a day, in 2026.
fn ledger() -> String {
    let job = |day: i64| {
        let date = chrono::DateTime::from_timestamp(1_767_225_600 + day * 86_400, 0).unwrap();
        let day_of = date.format("%Y-%m-%d");
        format!("{day},nlp,4,{day_of}T08:00:00Z,{day_of}T08:00:00Z,{day_of}T20:00:00Z\n")
    };
    HEAD.to_owned() + &(0..35).map(job).collect::<String>()
}

fn readings() -> String {
    let reading = |hour: i64| {
        let at = chrono::DateTime::from_timestamp(1_767_225_600 + hour * 3_600, 0).unwrap();
        format!("{},n1,0,GPU-a,0.5\n", at.format("%Y-%m-%dT%H:%M:%SZ"))
    };
    "sampled_at,node,gpu,gpu_uuid,gpu_util_ratio\n".to_owned()
        + &(0..35 * 24).map(reading).collect::<String>()
}

#[test]
fn plan_and_report_end_where_one_row_is_dated_2099_or_2003() {
    // Breaks if every answer is stretched over 96 years, and none comes.
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    import(folder, "jobs", &ledger());
    import(folder, "samples --interval 3600", &readings());
    let clean = ask(folder, "query gpu_hours --param per=month --format csv").stdout;
    assert!(ask(folder, "plan").stderr.is_empty());
    import(folder, "jobs", &format!("{HEAD}late,nlp,4,2099-01-01T00:00:00Z,,\n"));
    let far = "sampled_at,node,gpu,gpu_uuid,gpu_util_ratio\n2003-06-01T12:00:00Z,n2,0,GPU-b,0.5\n\
               2099-06-01T12:00:00Z,n2,0,GPU-b,0.5\n";
    import(folder, "samples --interval 3600", far);

    let plan = ask(folder, "plan");
    insta::assert_snapshot!(plan.stderr);
    let report = ask(folder, "report --format json --output -");
    assert_eq!(report.stderr, plan.stderr);
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(report["from"], "2025-12-31T23:00:00Z");
    assert_eq!(report["until"], "2026-02-04T23:00:00Z");
    assert_eq!(ask(folder, "query gpu_hours --param per=month --format csv").stdout, clean);

    // A now that is given stands, and says nothing of what lies after it.
    let given = run_in(folder, &["--now", "2026-02-01", "sql", "SELECT 1"], "").stderr;
    assert!(given.contains("2003-06-01") && !given.contains("2099"), "{given}");
    let now = "SELECT CAST(as_of() AS VARCHAR) AS now";
    let run = run_in(folder, &["--now", "2099-06-02", "sql", now, "-f", "csv"], "");
    assert!(run.stdout.contains("2099-06-02"), "{}{}", run.stdout, run.stderr);
}

#[test]
fn an_end_counts_less_and_an_endless_job_is_kept_aside() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    import(folder, "jobs", &ledger());
    let odd = format!(
        "{HEAD}a,nlp,1,2026-01-01T00:00:00Z,2026-01-01T00:00:00Z,2099-01-01T00:00:00Z\n\
         b,nlp,1,2026-01-02T00:00:00Z,2026-01-02T00:00:00Z,2026-01-01T00:00:00Z\n\
         c,nlp,1,2026-01-03T00:00:00Z,2026-01-03T00:00:00Z,2029-01-01T00:00:00Z\n"
    );
    let told = import(folder, "jobs", &odd).stdout;
    assert!(told.contains("it ended more than 5 years after it started"), "{told}");
    assert!(told.contains("it ended before it started"), "{told}");
    // What remains ends three years later: a slip, but no more than that.
    let plan = ask(folder, "plan");
    assert!(
        plan.stderr.contains("1 row of table `jobs` at 2029-01-01T00:00:00Z")
            && plan.stderr.contains("now is 2026-02-04T20:00:00Z"),
        "{}",
        plan.stderr
    );
}

#[test]
fn a_far_date_in_a_small_store_counts_and_is_told() {
    // Breaks when one row of 2099 among three moves now by decades without a word.
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rows = "a,nlp,1,2026-01-01T00:00:00Z,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z\n\
                b,nlp,1,2026-01-02T00:00:00Z,2026-01-02T00:00:00Z,2026-01-02T01:00:00Z\n";
    import(folder, "jobs", &format!("{HEAD}{rows}"));
    assert_eq!(ask(folder, "query queue").stderr, "");
    import(folder, "jobs", &format!("{HEAD}c,nlp,1,2099-01-01T00:00:00Z,,\n"));
    let told = ask(folder, "query queue").stderr;
    assert!(
        told.contains("1 row of table `jobs` at 2099-01-01T00:00:00Z")
            && told.contains("it counts and now is 2099-01-01T00:00:00Z")
            && told.contains("set --now"),
        "{told}"
    );
}

#[test]
fn a_period_without_data_is_told_and_one_turned_round_is_refused() {
    // Breaks when an empty answer does not say that the store begins later or ended before.
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    import(folder, "jobs", &ledger());
    let held = "2026-01-01T08:00:00Z to 2026-02-04T20:00:00Z";
    for (params, side) in [
        ("--param until=2025-06-01", "all that the store holds is after that"),
        ("--param from=2027-06-01", "all that the store holds is before that"),
        ("--param from=2025-01-01 --param until=2025-06-01", "is after that"),
    ] {
        let told = ask(folder, &format!("query gpu_hours {params}")).stderr;
        assert!(told.starts_with("note: ") && told.contains(side), "{told}");
        assert!(told.contains(held), "{told}");
    }
    assert_eq!(ask(folder, "query gpu_hours --param from=2026-02-01").stderr, "");
    for until in ["2026-01-10", "2026-01-20"] {
        let args = format!("query gpu_hours --param from=2026-01-20 --param until={until}");
        let run = run_in(folder, &words(&args), "");
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        let named = format!("2026-01-20T00:00:00Z to {until}T00:00:00Z");
        assert!(run.stderr.contains(&named) && run.stderr.contains(held), "{}", run.stderr);
        assert!(run.stderr.contains("swap them"), "{}", run.stderr);
    }
}
