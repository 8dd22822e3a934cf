//! Times as users read them: the local time of the calendar, everywhere but in raw SQL.

use std::path::Path;

use super::fleet::{ask, fleet, run_in, words};

/// The first value of each row.
fn first(text: &str) -> Vec<&str> {
    text.lines().skip(1).filter_map(|line| line.split(',').next()).collect()
}

#[test]
fn answers_tell_local_time_with_its_offset_and_sql_tells_utc() {
    // Breaks if the local day of 2 March in Shanghai reads as 1 March, 16:00.
    let asked = "query gpu_hours --param per=day --param from=2026-03-02 --param until=2026-03-03";
    let csv = ask(&words(&format!("{asked} --format csv"))).stdout;
    let days = first(&csv);
    assert!(
        !days.is_empty() && days.iter().all(|day| *day == "2026-03-02T00:00:00+08:00"),
        "{csv}"
    );
    assert!(ask(&words(asked)).stdout.contains("| 2026-03-02T00:00:00+08:00 "));
    let json = ask(&words(&format!("{asked} --json"))).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["period_started_at"], "2026-03-02T00:00:00+08:00");
    let sql = "SELECT day_started_at FROM usage_daily ORDER BY 1 LIMIT 1";
    let utc = ask(&["sql", sql, "--format", "csv"]).stdout;
    assert!(utc.contains("T16:00:00Z"), "{utc}");
    for asked in ["forecast --horizon 1d --format csv", "scale --hours 3 --format csv"] {
        let told = ask(&words(asked)).stdout;
        let column = if asked.starts_with("scale") { 0 } else { 1 };
        let row: Vec<&str> = told.lines().nth(1).unwrap().split(',').collect();
        assert!(row[column].ends_with("+08:00"), "{told}");
    }
}

#[test]
fn a_calendar_in_utc_tells_utc() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = "job_id,gpus_allocated,started_at,ended_at\n\
        1,8,2026-03-02T09:00:00Z,2026-03-02T19:00:00Z\n";
    let import = run_in(folder.path(), &words("import jobs -"), ledger);
    assert_eq!(import.code, Some(0), "{}", import.stderr);
    let asked = run_in(folder.path(), &words("query gpu_hours --param per=day --format csv"), "");
    assert_eq!(first(&asked.stdout), ["2026-03-02T00:00:00Z"], "{}", asked.stderr);
}

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let names = std::fs::read_dir(folder).unwrap().map(|entry| name(entry).into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn an_export_by_day_has_a_folder_for_each_local_date() {
    // Breaks if a BI tool that reads the folder's name shows every day as the one before.
    ask(&words("export usage_daily --to out/by-day --partition-by day_started_at --format csv"));
    let days = names(&fleet().folder.join("out/by-day"));
    let utc = "SELECT DISTINCT day_started_at FROM usage_daily";
    let asked = ask(&["sql", utc, "--format", "csv"]).stdout;
    assert_eq!(days.len(), first(&asked).len());
    assert!(days.contains(&"day_started_at=2026-03-02".to_owned()), "{days:?}");
    assert!(days.iter().all(|day| day.len() == "day_started_at=2026-03-02".len()), "{days:?}");

    let of = |more: &str| {
        let asked = "export gpu_hours --param per=day --to out/hours --replace --format csv";
        ask(&words(&format!("{asked} {more}")));
        let written = fleet().folder.join("out/hours/part-0.csv");
        first(&std::fs::read_to_string(written).unwrap())[0].to_owned()
    };
    assert!(of("").ends_with("T00:00:00+08:00"));
    assert!(of("--local-times").ends_with("T00:00:00"));
    let help = ask(&words("export --help")).stdout;
    assert!(help.contains("--local-times") && help.contains("twice in autumn"), "{help}");
}

#[test]
fn words_tell_local_dates() {
    // Breaks if a sentence names the UTC day on which a local week begins.
    let plan = ask(&words("plan --json")).stdout;
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    let weeks = plan["expansion"][0]["weeks"].as_array().unwrap();
    assert!(!weeks.is_empty());
    for week in weeks {
        let started_at = week["week_started_at"].as_str().unwrap();
        assert!(started_at.ends_with("T00:00:00+08:00"), "{started_at}");
    }
    let full =
        ask(&words("plan --json --pool train --growth 20 --add-gpus 20 --lead-time-days 3")).stdout;
    let full: serde_json::Value = serde_json::from_str(&full).unwrap();
    let at = full["plans"][0]["full_at"].as_str().expect("twenty times the load in a year");
    let (day, rest) = at.split_once('T').unwrap();
    assert_eq!(rest, "00:00:00+08:00");
    let monday: chrono::NaiveDate = day.parse().unwrap();
    assert_eq!(chrono::Datelike::weekday(&monday), chrono::Weekday::Mon, "{at}");
    let meets = full["plans"][0]["meets"].as_str().unwrap();
    assert!(meets.contains(&format!("the week of {day}")), "{meets}");
    let empty = super::fleet::try_ask(&words("report --from 2030-01-01"), "");
    assert!(empty.stderr.contains("2030-01-01T00:00:00+08:00"), "{}", empty.stderr);
}
