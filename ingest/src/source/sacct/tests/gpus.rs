//! Case 16: GPUs as ledgers of all ages and sites write them, each counted once.

use super::*;

/// One job a line, two nodes each, held for one hour.
fn held(columns: &str, rows: &[&str], options: &SacctOptions) -> Collected {
    let mut text = format!("JobID|State|Start|End|NNodes|{columns}\n");
    for (id, row) in rows.iter().enumerate() {
        let hour = "2026-01-01T00:00:00|2026-01-01T01:00:00|2";
        text.push_str(&format!("{id}|COMPLETED|{hour}|{row}\n"));
    }
    try_import(&text, options).unwrap()
}

fn allocated(columns: &str, rows: &[&str]) -> Vec<Option<f64>> {
    let out = held(columns, rows, &SacctOptions::default());
    numbers(&out.table(Table::Jobs), "gpus_allocated")
}

#[test]
fn tres_of_all_kinds_count_each_gpu_once() {
    // Breaks when GPUs that only AllocTRES tells are lost, or typed and untyped add up.
    let rows = [
        "billing=12,cpu=12,node=1|billing=12,cpu=12,gres/gpu=2,mem=31000M,node=1",
        "cpu=8,gres/gpu=1|cpu=8,gres/gpu:a100=1,gres/gpu=1,mem=62.50G,node=1",
        "1=20,2=170000,4=1,5=20|1=20,2=170000,4=1,5=20,1001=2",
        "1=20|1=20,4=1,1001=2,1002=2",
        "cpu=8,gres/gpu=2|",
        "|cpu=14,gres/gpu:1g.10gb=2,gres/gpu=2,node=1",
    ];
    let seven = 2.0 / 7.0;
    let expected = [2.0, 1.0, 2.0, 2.0, 2.0, seven].map(Some);
    assert_eq!(allocated("ReqTRES|AllocTRES", &rows), expected);
    // The database's own columns.
    let text = "id_job,state,time_submit,time_start,time_end,tres_req,tres_alloc\n\
                5,3,1767225000,1767225600,1767229200,\"1=4,4=1\",\"1=4,4=1,1001=3\"\n";
    assert_eq!(numbers(&jobs(text), "gpus_allocated"), [Some(3.0)]);
}

#[test]
fn older_columns_and_those_of_the_queue_tell_gpus_too() {
    // Breaks when a column of an older or newer Slurm is passed over, or one for each node or task
    // is not multiplied.
    assert_eq!(allocated("GresUsed", &["gpu:v100:3(IDX:0,1,2)"]), [Some(3.0)]);
    assert_eq!(allocated("GresUsed", &["gpu:(null):4(IDX:0-3)"]), [Some(4.0)]);
    assert_eq!(allocated("AllocGRES|ReqGRES", &["gpu:4|gpu:2", "|gpu:2"]), [Some(4.0); 2]);
    assert_eq!(allocated("AllocGRES", &["7696487:4"]), [Some(4.0)]);
    assert_eq!(
        allocated("TresPerJob|TresPerNode", &["gres/gpu:3|", "|gres:gpu:a100:2"]),
        [Some(3.0), Some(4.0)]
    );
    assert_eq!(allocated("TRES_PER_JOB", &["gres/gpu=5"]), [Some(5.0)]);
    assert_eq!(allocated("TresPerTask|NTasks", &["cpu=2,gres/gpu:1|6"]), [Some(6.0)]);
    // What is allocated goes before what was asked for.
    let both = allocated("AllocTRES|TresPerJob", &["cpu=2,gres/gpu=8|gres/gpu:3"]);
    assert_eq!(both, [Some(8.0)]);
}

#[test]
fn a_queue_listing_tells_jobs_that_wait() {
    // Breaks when what squeue expects a job to do is taken for what it did.
    let jobs = jobs(
        "JOBID|STATE|SUBMIT_TIME|START_TIME|END_TIME|NODES|NODELIST|TRES_PER_NODE\n\
         8|PENDING|2026-01-01T00:00:00|2026-01-02T00:00:00|2026-01-03T00:00:00|2||gres/gpu:4\n\
         9|RUNNING|2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-05T00:00:00|1|n1|gres/gpu:4\n",
    );
    assert_eq!(millis(&jobs, "started_at"), [None, at("2026-01-01T01:00:00Z")]);
    assert_eq!(millis(&jobs, "ended_at"), [None, None]);
    assert_eq!(numbers(&jobs, "gpus_requested"), [Some(8.0), Some(4.0)]);
    assert_eq!(numbers(&jobs, "gpus_allocated"), [None, Some(4.0)]);
}

#[test]
fn shards_are_parts_of_a_gpu_or_not_known() {
    // Breaks when a quarter of a GPU costs a whole one, or nothing, or a guess stands for it.
    let rows = ["cpu=4,gres/shard=1"; 4];
    let out = held("AllocTRES", &rows, &SacctOptions::default());
    let jobs = out.table(Table::Jobs);
    assert_eq!(numbers(&jobs, "gpus_allocated"), [None; 4]);
    assert_eq!(numbers(&jobs, "gpus_requested"), [None; 4]);
    let told = out.notices.iter().find(|notice| notice.text.contains("gres/shard")).unwrap();
    assert!(told.text.starts_with("4 jobs have shards"), "{}", told.text);
    assert!(told.text.contains("--shards-per-gpu"), "{}", told.text);
    let options = SacctOptions { shards_per_gpu: Some(4.0), ..SacctOptions::default() };
    let out = held("AllocTRES", &rows, &options);
    // Four 25 % shares for one hour are one GPU-hour.
    assert_eq!(gpu_hours(&out.table(Table::Jobs)), 1.0);
    assert!(!out.notices.iter().any(|notice| notice.text.contains("gres/shard")));
}

#[test]
fn an_id_that_nobody_named_is_told() {
    // Breaks when GPUs under a number of the site's own vanish without a word.
    let out = held("AllocTRES", &["1=4,1005=2", "1=4", "1001=1,1005=1"], &SacctOptions::default());
    let told = out.notices.iter().find(|notice| notice.text.contains("1005")).unwrap();
    assert!(
        told.text.starts_with("numeric resources 1005 (1 jobs) are not known"),
        "{}",
        told.text
    );
    let ids = TresIds::from([(1005, "gres/gpu:h100".to_owned())]);
    let options = SacctOptions { tres_ids: ids, ..SacctOptions::default() };
    let jobs = held("AllocTRES", &["1=4,1005=2"], &options).table(Table::Jobs);
    assert_eq!(numbers(&jobs, "gpus_allocated"), [Some(2.0)]);
    assert_eq!(texts(&jobs, "gpu_model_requested"), [Some("h100".into())]);
}

#[test]
fn the_step_with_most_gpus_tells_those_of_its_job() {
    // Breaks when the batch step, which sees the first of two nodes, tells for both.
    let jobs = jobs(
        "JobID|State|Start|End|AllocTRES\n\
         9|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|\n\
         9.batch|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|gres/gpu=4\n\
         9.extern|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|gres/gpu=8\n\
         9.0|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|gres/gpu=1\n",
    );
    assert_eq!(numbers(&jobs, "gpus_allocated"), [Some(8.0)]);
    assert_eq!(numbers(&jobs, "gpus_requested"), [Some(8.0)]);
}

#[test]
fn numbers_that_cannot_be_are_counted_and_not_known() {
    // Breaks when two GPUs below zero are none, or a number beyond its column leaves without a word.
    let out = held(
        "ReqTRES|AllocTRES|Restarts|ExitCode",
        &[
            "gres/gpu=2|cpu=4,gres/gpu=-2|0|0:0",
            "gres/gpu=-2|gres/gpu=1|99999999999|99999999999:0",
            "cpu=4|cpu=4|-1|",
        ],
        &SacctOptions::default(),
    );
    let jobs = out.table(Table::Jobs);
    assert_eq!(numbers(&jobs, "gpus_allocated"), [None, Some(1.0), Some(0.0)]);
    let counted: std::collections::BTreeMap<_, _> = out.nulled.iter().copied().collect();
    let expected = [("attempt", 2), ("exit_code", 1), ("gpus_allocated", 1), ("gpus_requested", 1)];
    assert_eq!(counted, expected.into());
}
