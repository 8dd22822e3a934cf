//! Proposals on the fleet: part of its rules is taken away, and what is left must tell the rest.

use std::path::Path;

use super::fleet::{fleet, run_in};

/// What the generator makes of a job's name; `None` for names that say nothing.
fn made_as(name: &str) -> Option<&'static str> {
    let kinds = [
        ("train-", "train"),
        ("ft-", "finetune"),
        ("serve-", "inference"),
        ("prep-", "dataprep"),
        ("jupyter", "interactive"),
        ("vscode", "interactive"),
    ];
    kinds.into_iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, workload)| workload)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        match path.is_dir() {
            true => copy(&path, &to.join(name)),
            false => drop(std::fs::copy(&path, to.join(name)).unwrap()),
        }
    }
}

fn asked(config: &str, args: &[&str]) -> super::fleet::Run {
    let place = ["--store", "proposed", "--config", config];
    let all: Vec<&str> = place.iter().chain(args).copied().collect();
    run_in(&fleet().folder, &all, "")
}

fn done(config: &str, args: &[&str]) -> super::fleet::Run {
    let run = asked(config, args);
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
    run
}

#[test]
fn jobs_whose_rule_was_taken_away_are_told_by_their_readings() {
    // Breaks if proposals miss what the generator knows, say so wrongly surely, change the store,
    // or the rules they end with do not label.
    let folder = &fleet().folder;
    copy(&folder.join("fleet/data"), &folder.join("proposed"));
    let mut rules = std::fs::read_to_string(folder.join("fleet/files/loadline.toml")).unwrap();
    for (whole, part) in [
        ("train-*", "/^train-[lva]/"),
        ("ft-*", "/^ft-[lbq]/"),
        ("prep-*", "/^prep-[td]/"),
        ("vscode*", "no such name"),
    ] {
        assert!(rules.contains(whole));
        rules = rules.replace(whole, part);
    }
    std::fs::write(folder.join("part.toml"), &rules).unwrap();
    let ledger = ["import", "sacct", "fleet/files/sacct.txt", "--cluster", "harbour"];
    done("part.toml", &ledger);

    let told = done("part.toml", &["propose", "--json"]);
    assert!(told.stderr.contains("labelled jobs held out (in 5 parts by user)"), "{}", told.stderr);
    let rows: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let mut known = Vec::new();
    for row in rows {
        let share = row["sure_ratio"].as_f64();
        match row["verdict"].as_str().unwrap() {
            "proposed" => {
                assert!(share.unwrap() >= 0.8 && row["proposal"] == row["resembles"], "{row}");
                if let Some(right) = made_as(row["name"].as_str().unwrap()) {
                    known.push((row["proposal"] == right, share.unwrap()));
                }
            }
            "resembles-none" => assert!(row.get("proposal").is_none_or(|p| p.is_null()), "{row}"),
            verdict => assert!(verdict == "not-enough-data" && share.is_none(), "{row}"),
        }
        assert!(!row["reason"].as_str().unwrap().is_empty());
    }
    let right = known.iter().filter(|(right, _)| *right).count() as f64 / known.len() as f64;
    let said = known.iter().map(|(_, share)| share).sum::<f64>() / known.len() as f64;
    assert!(known.len() > 100, "{}", known.len());
    assert!(right > 0.8, "{right} of {}", known.len());
    assert!((right - said).abs() < 0.12, "{right} right, {said} said");
    let table = done("part.toml", &["propose", "--limit", "3"]).stdout;
    assert!(table.starts_with(&told.stderr), "{table}");
    assert!(table.contains("sureness") && table.contains("more: --limit shows more"), "{table}");
    let snippet = &table[table.find("# To label the largest groups").unwrap()..];
    let pasted = snippet.parse::<toml::Table>().unwrap();
    for rule in pasted["workload"].as_array().unwrap() {
        if let Some(name) = rule["match"].get("name").and_then(|name| name.as_str())
            && let Some(right) = made_as(name)
        {
            assert_eq!(rule["workload"].as_str(), Some(right), "{snippet}");
        }
    }
    let job = rows.iter().find(|row| row["verdict"] == "resembles-none").unwrap();
    let job = job["job_id"].as_str().unwrap();
    let one = done("part.toml", &["propose", "--job", job]).stdout;
    assert!(one.contains(&format!("job {job} (")) && !one.contains("[[workload]]"), "{one}");
    let none = asked("part.toml", &["propose", "--job", "no such job"]);
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("`loadline query unlabelled_jobs`"), "{}", none.stderr);

    std::fs::write(folder.join("pasted.toml"), format!("{rules}\n{snippet}")).unwrap();
    done("pasted.toml", &ledger);
    let waiting = done("pasted.toml", &["query", "unlabelled_jobs", "--json"]).stdout;
    let waiting: serde_json::Value = serde_json::from_str(&waiting).unwrap();
    assert!(waiting.as_array().unwrap().len() + 20 < rows.len(), "{}", rows.len());
}

#[test]
fn a_store_without_labelled_jobs_says_what_is_missing() {
    // Breaks if nothing to learn from is an empty table, or a crash.
    let folder = &fleet().folder;
    copy(&folder.join("fleet/data"), &folder.join("bare"));
    std::fs::write(folder.join("bare.toml"), "").unwrap();
    let bare = |args: &[&str]| {
        let place = ["--store", "bare", "--config", "bare.toml"];
        run_in(folder, &place.iter().chain(args).copied().collect::<Vec<_>>(), "")
    };
    let ledger = ["import", "sacct", "fleet/files/sacct.txt", "--cluster", "harbour"];
    assert_eq!(bare(&ledger).code, Some(0));
    let run = bare(&["propose"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("0 of 2 workloads have 20 labelled jobs"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: label jobs by"), "{}", run.stderr);
}
