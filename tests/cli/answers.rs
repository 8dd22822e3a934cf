//! Questions, forecasts and plans on the fleet.

use super::fleet::{ask, fleet, try_ask, words};

#[test]
fn the_demo_tells_the_fleet_on_one_screen() {
    insta::assert_snapshot!(fleet().demo);
}

#[test]
fn every_question_is_listed_and_answers_without_parameters() {
    let listed = ask(&["query"]).stdout;
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() > 25, "{names:?}");
    for name in names {
        let run = try_ask(&["query", name, "--format", "csv"], "");
        match name {
            // One job has to be named.
            "job_profile" => {
                assert_eq!(run.code, Some(1));
                assert!(run.stderr.contains("--param job="), "{}", run.stderr);
            }
            _ => {
                assert_eq!(run.code, Some(0), "{name}: {}", run.stderr);
                assert!(run.stdout.lines().next().is_some_and(|head| head.contains(',')), "{name}");
            }
        }
    }
    let shown = ask(&words("query queue --show")).stdout;
    assert!(shown.starts_with("-- Queue time") && shown.contains("$step text"), "{shown}");
}

#[test]
fn teams_sum_to_the_fleet_and_days_to_the_whole() {
    let sum = |args: &str, column: usize| -> f64 {
        let run = ask(&words(args));
        let rows = run.stdout.lines().skip(1).map(|line| line.split(',').nth(column).unwrap());
        rows.map(|value| value.parse::<f64>().unwrap()).sum()
    };
    let teams = sum("query gpu_hours_total --format csv", 1);
    let fleet = sum("query gpu_hours_total --param by=fleet --format csv", 1);
    let days = sum("query gpu_hours --param by=workload --param per=day --format csv", 2);
    assert!(fleet > 1_000.0);
    assert!((teams - fleet).abs() < 1e-6 && (days - fleet).abs() < 1e-6, "{teams} {fleet} {days}");
}

#[test]
fn sql_answers_in_every_form_and_the_shell_reads_a_pipe() {
    let text = "SELECT count(*) AS gpus FROM gpus";
    assert_eq!(ask(&["sql", text, "--format", "csv"]).stdout, "gpus\n16\n");
    assert_eq!(ask(&["sql", text, "--json"]).stdout, "[{\"gpus\":16}]\n");
    assert_eq!(ask(&["sql", text, "--format", "ndjson"]).stdout, "{\"gpus\":16}\n");
    for (form, magic) in [("parquet", &b"PAR1"[..]), ("arrow", b"ARROW1")] {
        let file = format!("gpus.{form}");
        ask(&["sql", text, "--format", form, "--output", &file]);
        assert!(std::fs::read(fleet().folder.join(file)).unwrap().starts_with(magic));
    }
    // What is no plain file is written to, never replaced: a link stays one, as a device would.
    std::fs::write(fleet().folder.join("real.csv"), "old").unwrap();
    std::os::unix::fs::symlink("real.csv", fleet().folder.join("link.csv")).unwrap();
    ask(&["sql", text, "--format", "csv", "--output", "link.csv"]);
    assert!(fleet().folder.join("link.csv").is_symlink());
    assert_eq!(std::fs::read_to_string(fleet().folder.join("real.csv")).unwrap(), "gpus\n16\n");
    let shell = try_ask(&["sql"], "SELECT count(*) AS gpus\nFROM gpus;\n\\d\n\\q\n");
    assert_eq!(shell.code, Some(0), "{}", shell.stderr);
    assert!(shell.stdout.contains("16") && shell.stdout.contains("demand_hourly"));
    let failed = try_ask(&["sql"], "SELECT nothing;\nSELECT 1;\n");
    assert_eq!(failed.code, Some(1));
    assert_eq!(
        ask(&["sql", "SELECT job_id,cluster,team FROM jobs LIMIT 0", "-f", "csv"]).stdout,
        "job_id,cluster,team\n"
    );
    let json = try_ask(&["sql", "--json"], "SELECT 1 AS one");
    assert_eq!(json.stdout, "[{\"one\":1}]\n");
    let listed: serde_json::Value =
        serde_json::from_str(&ask(&["query", "--json"]).stdout).unwrap();
    assert!(listed.as_array().unwrap().iter().any(|row| row["name"] == "gpu_hours"));
    let unended = try_ask(&["sql"], "SELECT 41 + 1 AS answer");
    assert!(unended.stdout.contains("42"), "{}", unended.stdout);
}

#[test]
fn questions_of_a_folder_stand_beside_the_program_s_own() {
    let folder = fleet().folder.join("own");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("mine.sql"), "-- Mine.\n-- columns: n int64\nSELECT 7 AS n\n")
        .unwrap();
    let run = ask(&["--queries", "own", "query", "mine", "--format", "csv"]);
    assert_eq!(run.stdout, "n\n7\n");
    assert!(ask(&["--queries", "own", "query"]).stdout.contains("Mine."));
}

#[test]
fn baselines_and_health_are_told_in_words_and_numbers() {
    insta::assert_snapshot!(ask(&["baseline"]).stdout);
    insta::assert_snapshot!(ask(&words("health --limit 5")).stdout);
    let sick = ask(&words("health --format csv")).stdout;
    let head: Vec<&str> = sick.lines().next().unwrap().split(',').collect();
    let place = head.iter().position(|name| *name == "job_id").unwrap();
    let job = sick.lines().nth(1).unwrap().split(',').nth(place).unwrap();
    let one = ask(&["health", job]).stdout;
    assert!(one.contains(&format!("job {job} of ")) && one.contains("usual_mean"), "{one}");
}

#[test]
fn a_forecast_says_how_it_did_and_never_crosses_its_quantiles() {
    let run = ask(&words("forecast --by team --horizon 2d --step 6h --format csv"));
    assert!(run.stderr.contains("seasonal naive"), "{}", run.stderr);
    let mut lines = run.stdout.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let quantiles: Vec<usize> =
        (0..head.len()).filter(|i| head[*i].starts_with("gpus_p")).collect();
    let rows: Vec<Vec<f64>> = lines
        .map(|line| {
            let values: Vec<&str> = line.split(',').collect();
            quantiles.iter().map(|i| values[*i].parse().unwrap()).collect()
        })
        .collect();
    assert_eq!(rows.len() % 8, 0);
    assert!(rows.len() >= 8 * 5);
    for row in &rows {
        assert!(row[0] >= 0.0 && row.is_sorted(), "{row:?}");
    }
}

#[test]
fn a_forecast_above_capacity_is_said_and_not_cut() {
    let run = ask(&words("forecast --horizon 2d --step 12h --json"));
    // 15 of the 16 GPUs are up, and the demo asks for more.
    let told = "fleet: 15 GPUs are available and 1 more down, known from inventory: the median";
    assert!(run.stderr.contains(told), "{}", run.stderr);
    assert!(run.stderr.contains("of 4 steps, first at 2026-03-"), "{}", run.stderr);
    let rows: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    for row in rows.as_array().unwrap() {
        assert_eq!(
            (&row["gpus_available"], &row["capacity_source"]),
            (&15.0.into(), &"inventory".into())
        );
        assert!(row["gpus_p90"].as_f64().unwrap() > 15.0, "{row}");
    }
}

#[test]
fn a_plan_says_when_and_how_many_and_answers_what_if() {
    insta::assert_snapshot!(ask(&["plan"]).stdout);
    let needed = |args: &str| -> f64 {
        let plan: serde_json::Value = serde_json::from_str(&ask(&words(args)).stdout).unwrap();
        plan["plans"][0]["gpus_needed"].as_f64().unwrap()
    };
    let base = needed("plan --json");
    assert!(needed("plan --json --add-gpus 4") <= base);
    assert!(needed("plan --json --growth 2.0") >= base);
    assert!(needed("plan --json --reclaim-idle") <= base);
}

#[test]
fn scaling_keeps_to_its_limits() {
    let run = ask(&words("scale --hours 12 --min 4 --max 12 --unit 4 --format csv"));
    let on: Vec<u32> =
        run.stdout.lines().skip(1).map(|l| l.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert_eq!(on.len(), 12);
    assert!(on.iter().all(|gpus| (4..=12).contains(gpus) && gpus % 4 == 0), "{on:?}");
}

#[test]
fn an_export_is_whole_partitioned_and_never_replaces_unasked() {
    let args = words("export usage_daily --to out/usage --partition-by team");
    assert!(ask(&args).stdout.starts_with("exported"));
    let folder = fleet().folder.join("out/usage");
    let teams = std::fs::read_dir(&folder).unwrap().count();
    assert!(teams > 3);
    let again = try_ask(&args, "");
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("--replace"), "{}", again.stderr);
    let replaced: Vec<&str> = args.iter().copied().chain(["--replace"]).collect();
    ask(&replaced);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), teams);
    ask(&["export", "SELECT team, 1 AS n FROM jobs", "--to", "out/sql", "--format", "csv"]);
    std::fs::create_dir_all(fleet().folder.join("mine")).unwrap();
    std::fs::write(fleet().folder.join("mine/letters.txt"), "dear").unwrap();
    let refused = try_ask(&words("export gpus --to mine --replace"), "");
    assert!(refused.stderr.contains("holds more than an export"), "{}", refused.stderr);
    assert!(fleet().folder.join("mine/letters.txt").exists());
    // The labels of a job are a map, which CSV holds as JSON.
    ask(&["export", "jobs", "--to", "out/jobs", "--format", "csv"]);
    assert!(ask(&["sql", "SELECT * FROM jobs", "-f", "csv"]).stdout.lines().count() > 1_000);
    assert!(fleet().folder.join("out/sql").is_dir());
}
