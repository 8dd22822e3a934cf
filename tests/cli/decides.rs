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

/// A store in UTC of ten weeks from Monday 2026-01-05, counted once an hour. Each row is cluster,
/// pool, GPUs held, waiting and installed, where `WEEK` is the number of the week, from 0.
fn counted(rows: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = "[calendar]\ntimezone = \"UTC\"\n";
    std::fs::write(folder.path().join("loadline.toml"), config).unwrap();
    let mut text =
        "counted_at,cluster,partition,gpus_held,gpus_waiting,gpus_installed,period_s\n".to_owned();
    let start = chrono::DateTime::parse_from_rfc3339("2026-01-05T00:00:00Z").unwrap();
    for hour in 0..10 * 168 {
        let at = (start + chrono::TimeDelta::hours(hour)).to_rfc3339();
        let week = (hour / 168).to_string();
        for row in rows {
            text.push_str(&format!("{at},{},3600\n", row.replace("WEEK", &week)));
        }
    }
    let run = run_in(folder.path(), &words("import gpu-counts -"), &text);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    folder
}

#[test]
fn the_decision_is_the_sum_of_the_pools() {
    // Breaks if GPUs that are free in one pool hide those that are missing in another: the fleet's
    // 48 GPUs would hold the load of both for the ten weeks ahead.
    let folder = counted(&["c,short,16,WEEK,16", "c,free,4,0,32"]);
    let folder = folder.path();
    let json = |args: &str| -> serde_json::Value {
        serde_json::from_str(&ask(folder, args).stdout).unwrap()
    };
    let plan = json("plan --json");
    let of = |scope: &str| {
        let plans = plan["plans"].as_array().unwrap();
        plans.iter().find(|plan| plan["scope"] == scope).unwrap().clone()
    };
    let (fleet, short, free) = (of("fleet"), of("short"), of("free"));
    // The load of `short` is 16 to 25 and rises by 1 a week: 35 after ten more weeks, less 16.
    assert_eq!((&short["advice"], &short["gpus_needed"]), (&"buy".into(), &19.into()), "{plan}");
    assert_eq!(free["advice"], "fits");
    assert_eq!((&fleet["advice"], &fleet["gpus_needed"]), (&"buy".into(), &19.into()));
    assert_eq!((&fleet["gpus_to_buy"], &free["gpus_to_buy"]), (&19.into(), &0.into()));
    let meets = fleet["meets"].as_str().unwrap();
    assert!(meets.contains("1 of 2 pools needs more than its own: 19 GPUs"), "{meets}");
    assert!(meets.contains("the other pools leave 28 free"), "{meets}");

    let report = json("report --json --output -");
    let decision = &report["decision"];
    assert_eq!((&decision["action"], &decision["gpus_to_add"]), (&"buy".into(), &19.0.into()));
    assert_eq!(decision["pools"][0]["pool"], "short");
    assert_eq!(decision["pools"][0]["gpus_to_add"], 19.0);
    assert_eq!(decision["pools"][1]["advice"], "fits");
    let page = ask(folder, "report --format md --output -").stdout;
    let told = "in 1 of 2 pools: 19 GPUs are missing at the largest shortfall of each. 19 more (19 \
                in short) would let";
    assert!(page.contains(told), "{page}");
    assert!(page.contains("| short | 16 | now | 19 | – | 19 | now | buy |"), "{page}");
    assert!(page.contains("| free | 32 | – | 0 | 28 | – | – | fits |"), "{page}");

    // What is added goes where it lacks; what is taken away must be named.
    let added = ask(folder, "plan --add-gpus 19").stdout;
    assert!(added.contains("capacity  35 GPUs, known from counts, 19 added"), "{added}");
    assert!(added.contains("the load of each of 2 pools stays within its capacity"), "{added}");
    let lost = run_in(folder, &words("plan --add-gpus -8"), "");
    assert!(lost.code == Some(2) && lost.stderr.contains("--pool"), "{}", lost.stderr);
}

#[test]
fn a_pool_that_nothing_tells_is_not_held_against_the_others() {
    // Breaks if the load of a pool whose GPUs nobody counted is planned on the GPUs of another.
    let folder = counted(&["c,known,50,0,100", "c,unknown,70,WEEK,"]);
    let folder = folder.path();
    let plan = ask(folder, "plan --json").stdout;
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    let plans = plan["plans"].as_array().unwrap();
    let of = |scope: &str| plans.iter().find(|plan| plan["scope"] == scope).unwrap();
    assert_eq!(of("known")["advice"], "fits");
    let lack = "how many GPUs it has is not known";
    assert!(of("unknown")["no_plan"].as_str().unwrap().contains(lack), "{plan}");
    assert_eq!(of("fleet")["gpus_needed"], serde_json::Value::Null, "{plan}");
    let report = ask(folder, "report --format md --output -").stdout;
    // 50 of 100; the 70 of the other pool are held beyond them: 70 h x 1680.
    let used = "Of 100 GPUs, jobs held 50 % of the time (201 600 GPU-hours). 117 600 of these were";
    assert!(report.replace('\u{202f}', " ").contains(used), "{report}");
    assert!(report.contains("| unknown | – |") && !report.contains(" more ("), "{report}");
    let named = run_in(folder, &words("plan --pool unknown"), "");
    assert!(named.stdout.contains(lack), "{}{}", named.stdout, named.stderr);
}

#[test]
fn pools_of_one_name_in_two_clusters_are_two() {
    // Breaks if the free GPUs of one cluster hide those that are missing in the other: both have a
    // pool `gpu`, c1's 16 GPUs are all held and one more waits in each week, of c2's 64 few are.
    let folder = counted(&["c1,gpu,16,WEEK,16", "c2,gpu,2,0,64"]);
    let folder = folder.path();
    let plan = ask(folder, "plan --json").stdout;
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    let told: Vec<(&str, &serde_json::Value, &serde_json::Value)> = plan["plans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plan| (plan["scope"].as_str().unwrap(), &plan["advice"], &plan["gpus_needed"]))
        .collect();
    let (buy, fits) = ("buy".into(), "fits".into());
    let (short, none) = (19.into(), 0.into());
    assert_eq!(told, [("fleet", &buy, &short), ("c1/gpu", &buy, &short), ("c2/gpu", &fits, &none)]);
    let plan = ask(folder, "plan").stdout;
    assert!(plan.contains("expand    c1/gpu: expand: 10 consecutive weeks"), "{plan}");
    assert!(plan.contains("expand    c2/gpu: keep: 0 of 4"), "{plan}");
    let one = ask(folder, "plan --pool c2/gpu").stdout;
    assert!(one.contains("c2/gpu") && !one.contains("c1/gpu"), "{one}");
}
