//! What is said of stores that hold too little to tell any demand, or how many GPUs there are.

use super::*;

const JOB: &str = "INSERT INTO jobs (job_id, attempt, submitted_at, started_at, ended_at, \
    gpus_requested, gpus_allocated) VALUES";
const COUNT: &str = "INSERT INTO gpu_counts (cluster, \"partition\", counted_at, period_s, gpus_installed, \
     gpus_held, gpus_waiting) VALUES";

/// Demand and capacity of a store of these rows, at noon of 2026-03-02.
fn known(rows: String) -> (Known, Option<f64>, Option<String>) {
    // Planning goes deeper than the 2 MiB of a test's thread, as it does in `main.rs`.
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.thread_stack_size(16 << 20).enable_all().build().unwrap();
    let asked = async move {
        let now = "2026-03-02T12:00:00Z".parse().ok();
        let config = loadline_engine::EngineConfig::default();
        let session = Session::in_memory(&config, now).await.unwrap();
        session.sql(&rows).await.unwrap();
        let demand = demand_known(&session, None).await.unwrap();
        let capacity = capacity_known(&session).await.unwrap();
        let refused = capacity::capacity(&session).await.err();
        let told = refused.map(|failure| format!("{failure:?}"));
        (demand, capacity.map(|(fleet, _)| fleet.gpus), told)
    };
    runtime.block_on(runtime.spawn(asked)).unwrap()
}

fn lack(rows: String) -> (Lack, Option<f64>, String) {
    let (demand, gpus, told) = known(rows);
    (demand.unwrap_err(), gpus, told.unwrap_or_default())
}

#[test]
fn readings_tell_neither_demand_nor_capacity() {
    let (lack, gpus, told) = lack(
        "INSERT INTO samples (cluster, node, gpu, gpu_uuid, sampled_at, gpu_util_ratio, period_s) \
         VALUES ('c', 'n', 0, 'GPU-0', '2026-03-02T08:00:00Z', 0.5, 3600)"
            .to_owned(),
    );
    assert_eq!((lack, gpus), (Lack::Ledger, None));
    // Both are missing, and the first is told first.
    assert!(told.contains("no job and no count") && told.contains("how many GPUs"), "{told}");
}

#[test]
fn jobs_that_ask_for_no_gpu_are_no_demand() {
    let row = format!(
        "{JOB} ('1', 0, '2026-03-02T01:00:00Z', '2026-03-02T02:00:00Z', '2026-03-02T09:00:00Z', 0, 0)"
    );
    assert_eq!(lack(row).0, Lack::GpuJobs { jobs: 1 });
}

#[test]
fn a_job_of_this_very_minute_spans_no_whole_hour() {
    let row = format!("{JOB} ('1', 0, '2026-03-02T12:00:00Z', NULL, NULL, 8, NULL)");
    let (lack, gpus, told) = lack(row);
    assert_eq!((lack, gpus), (Lack::WholeHour, None));
    assert!(told.contains("no job ever held one"), "{told}");
}

#[test]
fn a_job_that_waits_is_a_demand_and_no_floor_of_0() {
    let row = format!("{JOB} ('1', 0, '2026-03-02T08:00:00Z', NULL, NULL, 8, NULL)");
    let (demand, gpus, told) = known(row);
    assert_eq!(demand.unwrap()[0].values(), [Some(8.0); 4]);
    assert_eq!(gpus, None);
    assert!(told.unwrap().contains("no job ever held one"));
}

#[test]
fn counts_without_a_queue_tell_capacity_and_no_demand() {
    let rows = format!(
        "{COUNT} ('c', 'gpu', '2026-03-02T08:00:00Z', 3600, 16, 9, NULL), \
         ('c', 'gpu', '2026-03-02T09:00:00Z', 3600, 16, 9, NULL)"
    );
    let (lack, gpus, told) = lack(rows);
    assert_eq!((lack, gpus, told.as_str()), (Lack::Counts, Some(16.0), ""));
}

#[test]
fn hours_of_a_half_part_the_steps_by_time() {
    // Breaks when the half hour of Lord Howe Island, or an hour after it, counts as a whole step.
    let minute = 60_000;
    let bin =
        |from: i64, until: i64| LocalBin { started_at: from * minute, ended_at: until * minute };
    let hours = [(0, 60, 2.0), (60, 90, 8.0), (90, 150, 4.0), (150, 210, 6.0)];
    let hours = hours.map(|(from, until, gpus)| (bin(from, until), Some(gpus)));
    assert_eq!(steps_of(hours.to_vec(), 0, 3), [Some(2.0), Some(6.0), Some(5.0)]);
    // What is not known of a step does not count.
    let unknown = vec![(bin(0, 30), Some(3.0)), (bin(30, 90), None)];
    assert_eq!(steps_of(unknown, 0, 2), [Some(3.0), None]);
}
