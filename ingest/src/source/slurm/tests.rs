//! Slurm as scripts play it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;
use crate::schema::Table;
use crate::source::collected::{Collected, millis, numbers, texts};
use crate::workload::{WorkloadRule, WorkloadRules};

const HEADER: &str = "JobIDRaw|Cluster|Account|User|Partition|ReqTRES|AllocTRES|Submit|Eligible|\
    Start|End|Suspended|State|Restarts|NodeList|Timelimit|ExitCode|JobName";

fn line(id: u32, state: &str) -> String {
    let end = if state == "RUNNING" { "Unknown" } else { "2026-03-02T09:00:30" };
    format!(
        "{id}|c|vision|eve|gpu|gres/gpu=4|gres/gpu=4|2026-03-02T08:00:00|2026-03-02T08:00:00|\
         2026-03-02T08:30:00|{end}|00:00:00|{state}|0|n1|1-00:00:00|0:0|sft-{id}|x"
    )
}

/// A command that runs these lines of the shell.
fn script(folder: &Path, name: &str, lines: &str) -> Vec<String> {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    // Through the shell: a file that was just written may still be open in a child of another test.
    vec!["/bin/sh".into(), path.to_string_lossy().into_owned()]
}

fn collector(sacct: Vec<String>, squeue: Vec<String>) -> SlurmCollector {
    let rule: WorkloadRule =
        toml::from_str("match = { name = \"sft-*\" }\nworkload = \"finetune\"").unwrap();
    let rules = WorkloadRules::new(&[rule]).unwrap();
    let settings = SlurmSettings { sacct, squeue, timeout_s: 10.0, ..SlurmSettings::default() };
    SlurmCollector::new(settings, SacctOptions { rules, ..SacctOptions::default() }).unwrap()
}

fn nine() -> DateTime<Utc> {
    "2026-03-02T09:00:00Z".parse().unwrap()
}

fn round(collector: &mut SlurmCollector, at: DateTime<Utc>) -> (Vec<Option<String>>, String) {
    let mut out = Collected::default();
    let failed = collector.collect(at, &mut out).err();
    assert!(out.notices.is_empty(), "{:?}", out.notices);
    let ids = out.batches.iter().flat_map(|(_, rows)| texts(rows, "job_id")).collect();
    (ids, failed.map_or_else(String::new, |error| error.to_string()))
}

#[test]
fn each_round_asks_from_before_the_last_good_answer_and_tells_what_is_new() {
    // Breaks when a job that ended between two answers is lost, zones are mixed up, or the whole
    // ledger goes into the log at every round.
    let folder = tempfile::tempdir().unwrap();
    let (answer, asked) = (folder.path().join("answer"), folder.path().join("asked"));
    let lines = format!(
        "echo \"$TZ $*\" >> {}\n[ -e {answer} ] || exit 1\ncat {answer}",
        asked.display(),
        answer = answer.display()
    );
    let sacct = script(folder.path(), "sacct", &lines);
    let mut collector = collector(sacct, Vec::new());
    let answers = |lines: &[String]| {
        std::fs::write(&answer, format!("{HEADER}\n{}\n", lines.join("\n"))).unwrap();
    };
    answers(&[line(1, "RUNNING"), line(2, "RUNNING")]);
    let some = |id: &str| Some(id.to_owned());
    let mut out = Collected::default();
    collector.collect(nine(), &mut out).unwrap();
    let jobs = out.table(Table::Jobs);
    assert_eq!(texts(&jobs, "job_id"), [some("1"), some("2")]);
    assert_eq!(texts(&jobs, "workload"), [some("finetune"), some("finetune")]);
    assert_eq!(texts(&jobs, "name")[0], some("sft-1|x"));
    let started = "2026-03-02T08:30:00Z".parse::<DateTime<Utc>>().unwrap().timestamp_millis();
    assert_eq!(millis(&jobs, "started_at"), [Some(started); 2]);
    answers(&[line(1, "RUNNING"), line(2, "COMPLETED"), line(3, "RUNNING")]);
    let minute = TimeDelta::minutes(1);
    assert_eq!(round(&mut collector, nine() + minute).0, [some("2"), some("3")]);
    std::fs::remove_file(&answer).unwrap();
    let failed = round(&mut collector, nine() + minute * 2).1;
    assert_eq!(failed, "could not collect from `/bin/sh`: exit status: 1: no word of it");
    answers(&[line(1, "RUNNING")]);
    assert!(round(&mut collector, nine() + minute * 3).0.is_empty());
    assert_eq!(round(&mut collector, nine() + minute * 61).0, [some("1")], "all again in an hour");
    let asked = std::fs::read_to_string(asked).unwrap();
    let spans: Vec<String> = asked
        .lines()
        .filter(|line| *line != "UTC --helpformat")
        .map(|line| {
            assert!(line.starts_with("UTC --allusers --allocations --duplicates --parsable2 -S "));
            // The answer's header stands for what this release has: all but the shown id.
            assert!(line.ends_with(&format!(" -o {}", ASKED.replacen("JobID,", "", 1))));
            let words: Vec<&str> = line.split(' ').collect();
            format!("{} {}", words[6], words[8])
        })
        .collect();
    assert_eq!(
        spans,
        [
            "2026-02-28T09:00:00 2026-03-02T09:00:01",
            "2026-03-02T08:00:00 2026-03-02T09:01:01",
            "2026-03-02T08:01:00 2026-03-02T09:02:01",
            "2026-03-02T08:01:00 2026-03-02T09:03:01",
            "2026-03-02T08:03:00 2026-03-02T10:01:01",
        ]
    );
}

#[test]
fn a_command_that_is_absent_fails_hangs_or_says_too_much_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let failed = |lines: &str, settings: &dyn Fn(&mut SlurmSettings)| {
        let mut collector = collector(script(folder.path(), "sacct", lines), Vec::new());
        settings(&mut collector.settings);
        round(&mut collector, nine()).1
    };
    let slow = failed("exec sleep 1000", &|settings| settings.timeout_s = 0.3);
    assert_eq!(slow, "could not collect from `/bin/sh`: no answer within 0.3 s");
    let said = failed("echo; echo 'slurmdbd: no route' >&2; exit 3", &|_| ());
    assert!(said.ends_with("exit status: 3: slurmdbd: no route"), "{said}");
    let long = failed("exec yes", &|settings| settings.answer_bytes_max = 4_096);
    assert!(long.ends_with("it answered more than 4096 bytes"), "{long}");
    let mut absent = collector(vec!["/no/such/sacct".into()], Vec::new());
    let error = absent.collect(nine(), &mut Collected::default()).unwrap_err();
    let told = "could not collect from `/no/such/sacct`: there is no such command";
    assert_eq!(error.to_string(), told);
    assert!(error.hint().unwrap().contains("collect.slurm.sacct"));
    assert!(failed("echo rubbish", &|_| ()).contains("names no JobID"));
}

#[test]
fn the_queue_tells_what_waits_in_the_form_of_each_release() {
    // Breaks when a job that waits is only seen once it runs.
    let folder = tempfile::tempdir().unwrap();
    let queue = r#"{"meta": {}, "jobs": [
        {"job_id": 8, "cluster": "c", "account": "vision", "user_name": "eve", "partition": "gpu",
         "name": "sft|8", "job_state": ["PENDING"], "tres_req_str": "cpu=8,gres/gpu=4",
         "submit_time": {"set": true, "infinite": false, "number": 1772442000},
         "eligible_time": {"set": true, "infinite": false, "number": 0},
         "start_time": {"set": true, "infinite": false, "number": 1772450000},
         "node_count": {"set": true, "infinite": false, "number": 1}, "restart_cnt": 2,
         "time_limit": {"set": true, "infinite": true, "number": 0},
         "priority": {"set": true, "infinite": false, "number": 77}},
        {"job_id": 9, "job_state": "PENDING", "submit_time": 1772442000, "eligible_time": 1772442060,
         "name": "b", "tres_req_str": "", "tres_per_node": "gres/gpu:2", "node_count": 3,
         "time_limit": 90, "array_job_id": 0, "array_task_string": ""},
        {"job_id": 14, "array_job_id": 14, "array_task_id": null, "array_task_string": "1-2",
         "job_state": "PENDING", "tres_req_str": "cpu=1,gres/gpu=1", "name": "d",
         "submit_time": 1772442000, "eligible_time": 1772442060, "node_count": 1, "time_limit": 5},
        {"job_id": 10, "job_state": ["RUNNING"], "name": "c", "submit_time": 1772442000}
    ], "errors": []}"#;
    std::fs::write(folder.path().join("queue.json"), queue).unwrap();
    let path = folder.path().join("queue.json");
    let squeue = format!("[ \"$*\" = --json ] && cat {}", path.display());
    let sacct = script(folder.path(), "sacct", &format!("echo '{HEADER}'"));
    let mut collector = collector(sacct, script(folder.path(), "squeue", &squeue));
    let mut out = Collected::default();
    collector.collect(nine(), &mut out).unwrap();
    let jobs = out.table(Table::Jobs);
    assert!(out.notices.is_empty(), "{:?}", out.notices);
    assert_eq!(texts(&jobs, "job_id"), ["8", "9", "14"].map(|id| Some(id.to_owned())));
    assert_eq!(texts(&jobs, "state"), ["PENDING"; 3].map(|state| Some(state.to_owned())));
    assert_eq!(millis(&jobs, "submitted_at"), [Some(1_772_442_000_000); 3]);
    assert_eq!(millis(&jobs, "started_at"), [None; 3]);
    assert_eq!(millis(&jobs, "eligible_at")[1], Some(1_772_442_060_000));
    assert_eq!(numbers(&jobs, "gpus_requested"), [Some(4.0), Some(6.0), Some(2.0)]);
    assert_eq!(numbers(&jobs, "time_limit_s"), [None, Some(5_400.0), Some(300.0)]);
    assert_eq!(texts(&jobs, "name")[0], Some("sft 8".into()));
    // What is told in the same words is no news.
    assert!(round(&mut collector, nine() + TimeDelta::minutes(1)).0.is_empty());
    // Without the command the ledger alone tells.
    collector.settings.squeue = vec!["/no/such/squeue".into()];
    assert_eq!(round(&mut collector, nine() + TimeDelta::minutes(2)).1, "");
    std::fs::write(&path, "no json").unwrap();
    collector.settings.squeue = script(folder.path(), "squeue", &squeue);
    let failed = round(&mut collector, nine() + TimeDelta::minutes(3)).1;
    assert!(
        failed.starts_with("could not collect from `squeue`: no answer of `--json`"),
        "{failed}"
    );
}

#[test]
fn a_ledger_is_asked_for_no_column_that_its_release_does_not_have() {
    // Seen with Slurm 22.05, which knows no `Restarts` and answers nothing where it is asked for it.
    let folder = tempfile::tempdir().unwrap();
    let known = ASKED.replace(",Restarts", "").replace(',', "  ");
    let answer = format!("{HEADER}\n{}", line(1, "RUNNING"))
        .replace("|Restarts", "")
        .replace("|RUNNING|0|", "|RUNNING|");
    std::fs::write(folder.path().join("answer"), answer).unwrap();
    let lines = format!(
        "case \"$*\" in --helpformat) echo '{known}' ;;\n\
         *Restarts*) echo 'sacct: error: Invalid field requested: \"Restarts\"' >&2; exit 1 ;;\n\
         *) cat {} ;; esac",
        folder.path().join("answer").display()
    );
    let mut collector = collector(script(folder.path(), "sacct", &lines), Vec::new());
    assert_eq!(round(&mut collector, nine()), (vec![Some("1".into())], String::new()));
}

#[test]
fn settings_that_make_no_sense_are_refused_with_the_legal_values() {
    let told = |text: &str| {
        let settings: SlurmSettings = toml::from_str(text).unwrap();
        SlurmCollector::new(settings, SacctOptions::default()).unwrap_err().to_string()
    };
    assert!(told("interval_s = 0").contains("must be from 1 to 86400"));
    assert!(told("timeout_s = 1e9").contains("must be from 1 to 3600"));
    assert!(told("sacct = []").contains("must name a command"));
    assert!(toml::from_str::<SlurmSettings>("sacct_path = \"x\"").is_err());
}
