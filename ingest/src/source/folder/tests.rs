//! A folder that files come into.

use std::path::Path;

use super::*;
use crate::source::collected::{Collected, texts};
use crate::workload::{WorkloadRule, WorkloadRules};

fn collector(folder: &Path, format: &str) -> FolderCollector {
    let rule: WorkloadRule =
        toml::from_str("match = { name = \"sft-*\" }\nworkload = \"finetune\"").unwrap();
    let rules = WorkloadRules::new(&[rule]).unwrap();
    let options = SacctOptions { rules, ..SacctOptions::default() };
    let format = format.to_owned();
    let settings = FolderSettings {
        path: folder.into(),
        format,
        file_bytes_max: 4_096,
        ..FolderSettings::default()
    };
    FolderCollector::new(settings, &options).unwrap()
}

fn round(collector: &mut FolderCollector) -> (Vec<Option<String>>, Option<String>) {
    let mut out = Collected::default();
    let failed = collector.collect(DateTime::UNIX_EPOCH, &mut out).err();
    let ids = out.batches.iter().flat_map(|(_, rows)| texts(rows, "job_id")).collect();
    (ids, failed.map(|error| error.to_string()))
}

fn job(id: &str) -> String {
    format!("job_id,name,submitted_at\n{id},sft-7,2026-03-02T09:00:00Z\n")
}

fn ids(ids: &[&str]) -> Vec<Option<String>> {
    ids.iter().map(|id| Some((*id).to_owned())).collect()
}

#[test]
fn a_file_is_read_once_and_not_while_it_grows() {
    // Breaks when half of a file is taken for the whole, or one is read at every look.
    let folder = tempfile::tempdir().unwrap();
    let mut collector = collector(folder.path(), "jobs");
    assert_eq!(round(&mut collector), (vec![], None));
    std::fs::write(folder.path().join("a.csv"), job("1")).unwrap();
    std::fs::write(folder.path().join(".b.csv"), job("2")).unwrap();
    std::fs::create_dir(folder.path().join("done")).unwrap();
    assert_eq!(round(&mut collector), (vec![], None), "it may grow yet");
    std::fs::write(folder.path().join("a.csv"), job("1") + "3,x,2026-03-02T09:00:00Z\n").unwrap();
    assert_eq!(round(&mut collector), (vec![], None), "it grew");
    assert_eq!(round(&mut collector), (ids(&["1", "3"]), None));
    assert_eq!(round(&mut collector), (vec![], None));
    std::fs::write(folder.path().join("c.csv"), job("4")).unwrap();
    round(&mut collector);
    assert_eq!(round(&mut collector), (ids(&["4"]), None));
}

#[test]
fn a_file_that_cannot_be_read_is_told_until_it_is_gone_and_stops_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut collector = collector(folder.path(), "sacct");
    std::fs::write(folder.path().join("a"), "hello\n").unwrap();
    std::fs::write(folder.path().join("b"), "x".repeat(5_000)).unwrap();
    let good = "JobIDRaw|State|Submit|Start|JobName\n7|RUNNING|2026-03-02T09:00:00|\
                2026-03-02T09:00:00|sft-1\n";
    std::fs::write(folder.path().join("c"), good).unwrap();
    round(&mut collector);
    let (found, failed) = round(&mut collector);
    assert_eq!(found, ids(&["7"]));
    let failed = failed.unwrap();
    assert!(failed.contains("`a`: the first line names no JobID"), "{failed}");
    assert!(failed.contains("`b`: 5000 bytes are more than 4096"), "{failed}");
    let (found, again) = round(&mut collector);
    assert_eq!((found, again.as_deref()), (vec![], Some(failed.as_str())));
    for name in ["a", "b"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    assert_eq!(round(&mut collector), (vec![], None));
    drop(folder);
    assert!(round(&mut collector).1.unwrap().starts_with("could not read `"));
}

#[test]
fn rules_of_the_configuration_hold_for_jobs_in_files() {
    // Breaks when polled jobs are unlabelled that an import would label.
    let folder = tempfile::tempdir().unwrap();
    let mut collector = collector(folder.path(), "jobs");
    std::fs::write(folder.path().join("a.csv"), job("1")).unwrap();
    round(&mut collector);
    let mut out = Collected::default();
    collector.collect(DateTime::UNIX_EPOCH, &mut out).unwrap();
    assert_eq!(texts(&out.table(Table::Jobs), "workload"), [Some("finetune".into())]);
}

#[test]
fn settings_that_make_no_sense_are_refused_with_the_legal_values() {
    let told = |text: &str| {
        let settings: FolderSettings = toml::from_str(text).unwrap();
        FolderCollector::new(settings, &SacctOptions::default()).unwrap_err().to_string()
    };
    assert!(told("format = \"xml\"").contains("must be one of sacct, nvidia-smi, dcgm, nodes"));
    assert!(told("interval_s = 0").contains("0.1 to 86400"));
    assert_eq!(told("mapping = \"/no/such.toml\""), "could not read `/no/such.toml`");
}
