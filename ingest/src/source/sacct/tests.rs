mod gpus;

use std::io::Write;

use arrow::array::{Array, RecordBatch};
use chrono::DateTime;
use proptest::prelude::*;

use super::*;
use crate::source::collected::{
    Collected, gpu_hours, inputs, integers, millis, numbers, shared, texts,
};
use crate::workload::WorkloadRule;

fn try_import(text: &str, options: &SacctOptions) -> Result<Collected, IngestError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let mut out = Collected::default();
    read(&inputs(file.path()), options, &mut out)?;
    Ok(out)
}

fn import(text: &str) -> Collected {
    try_import(text, &SacctOptions::default()).unwrap()
}

fn jobs(text: &str) -> RecordBatch {
    import(text).table(Table::Jobs)
}

fn at(text: &str) -> Option<i64> {
    Some(DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis())
}

const HEADER: &str = "JobIDRaw|Account|User|Partition|ReqTRES|AllocTRES|Submit|Start|End|\
                      Elapsed|State|NodeList|Timelimit|ExitCode|JobName\n";

fn row(id: &str, start: &str, end: &str, elapsed: &str, state: &str, nodes: &str) -> String {
    format!(
        "{HEADER}{id}|chaff|eve|gpu||cpu=8,gres/gpu:a100=2,gres/gpu=2|2026-01-01T00:00:00|{start}\
         |{end}|{elapsed}|{state}|{nodes}|UNLIMITED|0:0|train\n"
    )
}

#[test]
fn case_16_allocated_gpus_come_first_and_once() {
    // Breaks when typed and untyped add up, or GPUs that only AllocTRES tells are not requested.
    let text = row("7", "2026-01-01T01:00:00", "2026-01-01T05:00:00", "04:00:00", "COMPLETED", "a");
    let jobs = jobs(&text);
    assert_eq!(numbers(&jobs, "gpus_allocated"), [Some(2.0)]);
    assert_eq!(numbers(&jobs, "gpus_requested"), [Some(2.0)]);
    assert_eq!(texts(&jobs, "gpu_model_requested"), [Some("a100".into())]);
    assert_eq!(gpu_hours(&jobs), 8.0); // 2 GPUs for 4 hours
}

#[test]
fn case_16_older_ledgers_tell_gpus_elsewhere() {
    // Breaks when GresUsed, ReqGRES (a node) or `--gpus` is not looked at.
    let jobs = jobs(
        "JobID|State|Start|End|NNodes|AllocTRES|AllocGRES|ReqGRES|SubmitLine\n\
         1|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|2|cpu=8|gpu:v100:3(IDX:0,1,2)||\n\
         2|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|2|||gpu:4|\n\
         3|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|2||||sbatch --gpus=5 x.sh\n\
         4|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|2|cpu=8,node=2|||sbatch x.sh\n\
         5|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|2||||sbatch x.sh\n",
    );
    let expected = [Some(3.0), Some(8.0), Some(5.0), Some(0.0), None];
    assert_eq!(numbers(&jobs, "gpus_allocated"), expected);
}

#[test]
fn case_17_words_for_what_is_not_known() {
    // Breaks when `CANCELLED by UID` is a state of its own or `Unknown` takes the row down.
    let jobs = jobs(
        "JobID|State|Submit|Start|End|Timelimit|NodeList|Elapsed|ExitCode\n\
         1|CANCELLED by 380693|2026-01-01T00:00:00|2026-01-01T03:00:00|2026-01-01T03:00:00|\
         Partition_Limit|None assigned|00:00:00|0:0\n\
         2|RUNNING|2026-01-01T00:00:00|2026-01-01T03:00:00|Unknown|10-13:27:06|cn-[01-02]|05:00|0:0\n\
         3|PENDING|2026-01-01T00:00:00|Unknown|Unknown|UNLIMITED||00:00:00|0:0\n\
         4|FAILED|2026-01-01T00:00:00|2026-01-01T03:00:00|Unknown|60:00|n1|00:10:00|0:9\n",
    );
    let states = ["CANCELLED", "RUNNING", "PENDING", "FAILED"].map(|s| Some(s.to_owned()));
    assert_eq!(texts(&jobs, "state"), states);
    let three = at("2026-01-01T03:00:00Z");
    assert_eq!(millis(&jobs, "started_at"), [None, three, None, three]);
    let ended = [three, None, None, at("2026-01-01T03:10:00Z")];
    assert_eq!(millis(&jobs, "ended_at"), ended);
    let limits = [None, Some(912_426.0), None, Some(3600.0)];
    assert_eq!(numbers(&jobs, "time_limit_s"), limits);
    let nodes = [None, Some("cn-01,cn-02".into()), None, Some("n1".into())];
    assert_eq!(texts(&jobs, "nodes"), nodes);
    assert_eq!(integers(&jobs, "exit_code"), [Some(0), Some(0), Some(0), Some(137)]);
}

#[test]
fn case_17_steps_fill_in_and_are_counted() {
    // Breaks when a step counts as a job, or a job without AllocTRES of its own holds nothing.
    let out = import(
        "JobID|State|Start|End|AllocTRES|NodeList\n\
         9|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00||\n\
         9.batch|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|gres/gpu=4|n1\n\
         9.extern|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|gres/gpu=4|n1\n\
         8.0|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|gres/gpu=4|n1\n",
    );
    let jobs = out.table(Table::Jobs);
    assert_eq!((jobs.num_rows(), out.read), (1, 4));
    assert_eq!(numbers(&jobs, "gpus_allocated"), [Some(4.0)]);
    assert_eq!(texts(&jobs, "nodes"), [Some("n1".into())]);
    assert_eq!(out.notices.len(), 4);
    assert!(out.notices[2].text.starts_with("3 job steps"));
}

#[test]
fn case_17_no_header_other_delimiters_and_epoch_seconds() {
    // Breaks when the first row of a file without header is taken for one.
    let options = SacctOptions {
        columns: vec!["JobIDRaw,State,Start,End,AllocTRES,JobName".into()],
        delimiter: Some("::".into()),
        ..SacctOptions::default()
    };
    let text = "5::COMPLETED::1767225600::1767229200::gres/gpu=1::a::b\n";
    let jobs = try_import(text, &options).unwrap().table(Table::Jobs);
    assert_eq!(millis(&jobs, "started_at"), [at("2026-01-01T00:00:00Z")]);
    assert_eq!(texts(&jobs, "name"), [Some("a::b".into())]);
    assert_eq!(gpu_hours(&jobs), 1.0);
    let refused = try_import(text, &SacctOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("no columns were given"), "{refused}");
    assert!(refused.hint().unwrap().contains("--columns"));
}

#[test]
fn case_17_what_cannot_be_read_is_kept_aside_with_its_line() {
    // Breaks when one bad line takes its neighbours along.
    let good = "1|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|gres/gpu=1\n";
    let text = format!(
        "JobID|State|Start|End|AllocTRES\r\n{good}slurm: error\n\
         2|COMPLETED|noon|2026-01-01T01:00:00|\n\
         3|COMPLETED|2026-01-01T02:00:00|2026-01-01T01:00:00|gres/gpu=1\n\
         JobID|State|Start|End|AllocTRES\n\
         5|COMPLETED|2026-01-01T02:00:00|2031-01-07T02:00:00|gres/gpu=1\n4|COMPL"
    );
    let out = import(&text);
    assert_eq!(out.table(Table::Jobs).num_rows(), 1);
    let lines: Vec<_> = out.rejects.iter().map(|r| r.line.unwrap()).collect();
    assert_eq!(lines, [3, 4, 5, 7, 8]);
    assert!(out.rejects[1].reason.contains("`noon`"));
    assert!(out.rejects[2].reason.contains("ended before it started"));
    assert!(out.rejects[3].reason.contains("more than 5 years after it started"));
    assert!(out.rejects[4].reason.contains("no end"));
    assert_eq!(out.read, 6);
}

#[test]
fn what_a_ledger_cannot_tell_is_told_once() {
    // Breaks if queue times of 0 or GPUs of nobody come without a word, or a zone is assumed silently.
    let told = |text: &str, zone: Option<Tz>| -> Vec<String> {
        let out = try_import(text, &SacctOptions { zone, ..SacctOptions::default() }).unwrap();
        out.notices.into_iter().map(|notice| notice.text).collect()
    };
    let bare = told("JobID|State|Start|End\n1|COMPLETED|2026-01-01T00:00:00|Unknown\n", None);
    assert!(
        bare[0].starts_with("among the columns is no Submit: how long jobs waited is not known")
    );
    assert!(bare[0].contains("; no Eligible: ") && !bare[0].contains("no Start"), "{bare:?}");
    assert!(
        bare[0]
            .contains("how many GPUs jobs held is not known; ask with `sacct -o JobID,JobIDRaw,")
    );
    assert!(bare[1].contains("were read as UTC") && bare[1].contains("`--zone`"), "{bare:?}");
    let whole = "JobID|State|Submit|Eligible|Start|End|ReqTRES\n";
    let local =
        format!("{whole}1|PENDING|2026-01-01T00:00:00|Unknown|Unknown|Unknown|gres/gpu=1\n");
    assert_eq!(told(&local, Some(Tz::Asia__Shanghai)), Vec::<String>::new());
    assert_eq!(told(&local, None).len(), 1);
    let zoned = format!("{whole}1|PENDING|1767225600|Unknown|Unknown|Unknown|gres/gpu=1\n");
    assert_eq!(told(&zoned, None), Vec::<String>::new());
    // Every column that is asked for is one that is used.
    let asked = untold::ASKED.replace(',', "|");
    assert_eq!(untold::untold(&Layout::of_header(&asked, None).unwrap()), None);
}

#[test]
fn tasks_of_an_array_that_wait_in_one_row_all_count() {
    // Seen with Slurm 22.05: until a task runs, one row stands for all that wait.
    let jobs = jobs(
        "JobID|JobIDRaw|State|Submit|Start|End|ReqTRES\n\
         14_[1-3]|14|PENDING|2026-01-01T00:00:00|Unknown|Unknown|gres/gpu=2\n\
         15_[1-9%4]|15|CANCELLED|2026-01-01T00:00:00|Unknown|2026-01-01T01:00:00|gres/gpu=1\n\
         16_7|17|RUNNING|2026-01-01T00:00:00|2026-01-01T01:00:00|Unknown|gres/gpu=2\n",
    );
    assert_eq!(texts(&jobs, "job_id").len(), 3);
    assert_eq!(numbers(&jobs, "gpus_requested"), [Some(6.0), Some(4.0), Some(2.0)]);
}

#[test]
fn case_18_suspension_is_kept_and_every_attempt_counts() {
    // Breaks when suspended time is used time or a requeue overwrites the first attempt.
    let jobs = jobs(
        "JobIDRaw|State|Submit|Start|End|Suspended|AllocTRES|NodeList\n\
         6|PREEMPTED|2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-01T02:00:00|00:00:00|gres/gpu=1|a\n\
         6|COMPLETED|2026-01-01T02:00:00|2026-01-01T03:00:00|2026-01-01T06:00:00|01:00:00|gres/gpu=1|a\n",
    );
    // Without `Restarts` the import numbers them.
    assert_eq!(integers(&jobs, "attempt"), [None, None]);
    assert_eq!(numbers(&jobs, "suspended_s"), [Some(0.0), Some(3600.0)]);
    assert_eq!(gpu_hours(&jobs), 3.0); // 1 h, and 3 h less one suspended
}

#[test]
fn suspension_is_told_by_the_elapsed_time_too() {
    // Breaks when a ledger without the column loses suspension: 4 h held, 3 h elapsed.
    let text = row("7", "2026-01-01T01:00:00", "2026-01-01T05:00:00", "03:00:00", "COMPLETED", "a");
    assert_eq!(numbers(&jobs(&text), "suspended_s"), [Some(3600.0)]);
}

#[test]
fn rules_name_the_workload_and_a_column_the_project() {
    // Breaks when labels are kept from the rules.
    let rule = WorkloadRule {
        matches: [("label.qos".to_owned(), "serve".to_owned())].into(),
        workload: "inference".into(),
    };
    let options = SacctOptions {
        project: Some("WCKey".into()),
        rules: WorkloadRules::new(&[rule]).unwrap(),
        zone: Some(Tz::Asia__Shanghai),
        ..SacctOptions::default()
    };
    let text = "JobID|State|Submit|QOS|WCKey\n1|PENDING|2026-01-01T08:00:00|serve|apollo\n\
                2|PENDING|2026-01-01T08:00:00|low|\n";
    let jobs = try_import(text, &options).unwrap().table(Table::Jobs);
    let workloads = [Some("inference".into()), Some("unlabelled".into())];
    assert_eq!(texts(&jobs, "workload"), workloads);
    assert_eq!(texts(&jobs, "project"), [Some("apollo".into()), None]);
    assert_eq!(millis(&jobs, "submitted_at")[0], at("2026-01-01T00:00:00Z"));
}

const PHILLIPS: &str = "JobID|JobIDRaw|Cluster|Partition|QOS|Account|Group|GID|User|UID|Submit|\
    Eligible|Start|End|Elapsed|ExitCode|State|NNodes|NCPUS|ReqCPUS|ReqMem|ReqTRES|AllocTRES|\
    Timelimit|NodeList|JobName";

#[test]
fn phillips_keeps_every_row() {
    // Breaks when a row is lost. Counts and hours from a separate Python reading of the file:
    // 4,285 rows, 239 without a node, GPUs x Elapsed = 506.9127777777... h.
    let Some(path) = shared("captures/sacct/phillips.log.gz") else { return };
    let options = SacctOptions { columns: vec![PHILLIPS.into()], ..SacctOptions::default() };
    let mut out = Collected::default();
    read(&inputs(&path), &options, &mut out).unwrap();
    let jobs = out.table(Table::Jobs);
    assert_eq!((jobs.num_rows(), out.read, out.rejects.len()), (4285, 4285, 0));
    let states = texts(&jobs, "state");
    let count = |state: &str| states.iter().filter(|s| s.as_deref() == Some(state)).count();
    let counts = ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"].map(count);
    assert_eq!(counts, [2324, 1717, 243, 1]);
    assert_eq!(jobs.column_by_name("nodes").unwrap().null_count(), 239);
    assert!((gpu_hours(&jobs) - 506.912_777_777_8).abs() < 1e-6);
}

#[test]
fn slurm2sql_has_steps_and_unknown_dates() {
    // Breaks when steps become jobs.
    let Some(path) = shared("captures/sacct/slurm2sql-1.csv") else { return };
    let mut out = Collected::default();
    read(&inputs(&path), &SacctOptions::default(), &mut out).unwrap();
    let jobs = out.table(Table::Jobs);
    assert_eq!(jobs.num_rows() as u64 + out.rejects.len() as u64, 2, "{:?}", out.rejects);
    assert_eq!(texts(&jobs, "team")[0].as_deref(), Some("cs"));
    // The second job has no end, but ran 17 s from 00:35:27.
    assert_eq!(millis(&jobs, "ended_at")[1], at("2019-08-01T00:35:44Z"));
}

#[test]
fn supercloud_counts_numeric_gpus() {
    // Breaks when ids of GPUs are not known, or 2^32-1 minutes is a limit. From a separate Python
    // reading: 9,628 rows, 2,401 with GPUs, 43847.4633... GPU-hours, 3,216 unlimited.
    let Some(path) = shared("mit-supercloud/slurm.csv.gz") else { return };
    let mut out = Collected::default();
    read(&inputs(&path), &SacctOptions::default(), &mut out).unwrap();
    let jobs = out.table(Table::Jobs);
    assert_eq!((jobs.num_rows(), out.rejects.len()), (9628, 0));
    let with_gpus = numbers(&jobs, "gpus_allocated").iter().flatten().filter(|g| **g > 0.0).count();
    assert_eq!(with_gpus, 2401);
    assert!((gpu_hours(&jobs) - 43_847.463_333_33).abs() < 1e-4);
    let users: std::collections::BTreeSet<_> = texts(&jobs, "user").into_iter().collect();
    assert_eq!(users.len(), 322);
    assert!(texts(&jobs, "job_id").iter().flatten().all(|id| !id.contains('.')));
    assert!(jobs.column_by_name("time_limit_s").unwrap().null_count() >= 3216);
}

proptest! {
    #[test]
    fn any_line_is_taken_without_a_panic(line in "[0-9A-Za-z|.:,=\\[\\]-]{0,80}") {
        let out = import(&format!("JobID|State|Start|End|AllocTRES|NodeList|JobName\n{line}\n"));
        let rows: usize = out.batches.iter().map(|(_, rows)| rows.num_rows()).sum();
        prop_assert!(rows as u64 + out.rejects.len() as u64 <= out.read);
    }
}

#[test]
fn a_doubled_hour_is_told_by_the_rest_of_the_row() {
    // Breaks when a job that ran from the first pass of a doubled hour into the second is kept
    // aside, or the elapsed time of a row does not say which pass it began in.
    let zone = Some(Tz::America__Los_Angeles);
    let text = "JobIDRaw|Submit|Eligible|Start|End|ElapsedRaw|State|NodeList\n\
        2|2026-11-01T00:30:00|2026-11-01T00:30:00|2026-11-01T01:30:00|2026-11-01T01:10:00|2400|\
        COMPLETED|n1\n\
        3|2026-11-01T01:20:00|2026-11-01T01:20:00|2026-11-01T01:30:00|2026-11-01T03:00:00|5400|\
        COMPLETED|n1\n\
        4|2026-11-01T00:30:00|2026-11-01T00:30:00|2026-11-01T01:30:00|Unknown|60|RUNNING|n1\n\
        5|2026-11-01T00:30:00|2026-11-01T00:30:00|2026-11-01T03:30:00|2026-11-01T01:10:00|9|\
        COMPLETED|n1\n";
    let out = try_import(text, &SacctOptions { zone, ..SacctOptions::default() }).unwrap();
    let jobs = out.table(Table::Jobs);
    assert_eq!(texts(&jobs, "job_id"), ["2", "3", "4"].map(|id| Some(id.into())));
    let starts = ["2026-11-01T08:30:00Z", "2026-11-01T09:30:00Z", "2026-11-01T08:30:00Z"];
    assert_eq!(millis(&jobs, "started_at"), starts.map(at));
    let ends = [at("2026-11-01T09:10:00Z"), at("2026-11-01T11:00:00Z"), None];
    assert_eq!(millis(&jobs, "ended_at"), ends);
    // Neither 01:10 comes after 03:30.
    assert_eq!(out.rejects.len(), 1);
    assert!(out.rejects[0].reason.contains("ended before it started"), "{:?}", out.rejects);
    assert!(out.notices.iter().any(|told| told.text.contains("times of the row tell which")));
}
