//! Rows of the made-up fleet as columns of the store's tables.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, Int16Array, Int32Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use chrono::DateTime;

use super::Columns;
use crate::demo::arrivals::{TEAMS, Workload};
use crate::demo::files::{NODE_MEM_BYTES, instants, node_load, seen};
use crate::demo::fleet::{Gpu, POOLS, Pool};
use crate::demo::ledger::{attempt_number, job_id, node_list, paused_s, share};
use crate::demo::queue::{Attempt, State};
use crate::demo::signal::{Device, Reading, holdings};
use crate::demo::{CLUSTER, Scene};

/// A reading holds for no more than this many intervals.
const HOLD_INTERVALS: f64 = 3.0;

pub(super) fn gpus(scene: &Scene) -> Columns {
    let rows: Vec<(&Gpu, &Pool)> =
        scene.fleet.gpus.iter().map(|gpu| (gpu, &POOLS[gpu.pool])).collect();
    let state = |gpu: usize| if gpu == scene.fleet.failing { "lost" } else { "online" };
    let bought = |pool: &Pool| {
        DateTime::parse_from_rfc3339(pool.bought).expect("an instant").timestamp() * 1000
    };
    vec![
        ("gpu_uuid", text(rows.iter().map(|row| Some(row.0.uuid.clone())))),
        ("cluster", text(rows.iter().map(|_| Some(CLUSTER)))),
        ("node", text(rows.iter().map(|row| Some(scene.fleet.nodes[row.0.node].name.clone())))),
        ("gpu", index(rows.iter().map(|row| row.0.index))),
        ("partition", text(rows.iter().map(|row| Some(row.1.name)))),
        ("gpu_model", text(rows.iter().map(|row| Some(row.1.model)))),
        ("mem_total_bytes", whole(rows.iter().map(|row| i64::from(row.1.mem_mib) << 20))),
        ("state", text((0..rows.len()).map(|gpu| Some(state(gpu))))),
        ("price_per_hour", real(rows.iter().map(|row| row.1.price_per_hour.parse().ok()))),
        ("bought_at", instant(rows.iter().map(|row| Some(bought(row.1))))),
        ("purchase_price", real(rows.iter().map(|row| Some(f64::from(row.1.purchase_price))))),
        ("depreciation_months", real(rows.iter().map(|_| Some(48.0)))),
    ]
}

pub(super) fn jobs(scene: &Scene) -> Columns {
    let rows: Vec<_> = scene.attempts.iter().map(|row| (row, &scene.jobs[row.job])).collect();
    let gpus = |sliced: bool, gpus: usize| (!sliced).then_some(gpus as f64);
    let held = |row: &Attempt, gpus: Option<f64>| row.started.and(gpus);
    let nodes = |row: &Attempt| row.started.map(|_| node_list(scene, row));
    vec![
        ("job_id", text(rows.iter().map(|row| Some(job_id(row.0.job))))),
        ("attempt", count(rows.iter().map(|row| Some(attempt_number(row.0) as i32)))),
        ("cluster", text(rows.iter().map(|_| Some(CLUSTER)))),
        ("name", text(rows.iter().map(|row| Some(row.1.name.clone())))),
        ("user", text(rows.iter().map(|row| Some(TEAMS[row.1.team].1[row.1.user])))),
        ("team", text(rows.iter().map(|row| Some(TEAMS[row.1.team].0)))),
        ("workload", text(rows.iter().map(|row| Some(workload(row.1.workload))))),
        ("partition", text(rows.iter().map(|row| Some(POOLS[row.1.pool].name)))),
        ("state", text(rows.iter().map(|row| Some(state(row.0.state))))),
        ("submitted_at", instant(rows.iter().map(|row| Some(row.0.submitted * 1000)))),
        ("started_at", instant(rows.iter().map(|row| row.0.started.map(|at| at * 1000)))),
        ("ended_at", instant(rows.iter().map(|row| row.0.ended.map(|at| at * 1000)))),
        ("suspended_s", real(rows.iter().map(|row| Some(paused_s(row.1, row.0) as f64)))),
        ("gpus_requested", real(rows.iter().map(|row| gpus(row.1.sliced, row.1.gpus)))),
        (
            "gpus_allocated",
            real(rows.iter().map(|row| held(row.0, gpus(row.1.sliced, row.1.gpus)))),
        ),
        ("nodes", text(rows.iter().map(|row| nodes(row.0)))),
        ("time_limit_s", real(rows.iter().map(|row| row.1.limit_s.map(|limit_s| limit_s as f64)))),
    ]
}

pub(super) fn allocations(scene: &Scene) -> Columns {
    let each = |row: &'_ Attempt| row.gpus.clone();
    let rows: Vec<(&Attempt, &Gpu)> = scene
        .attempts
        .iter()
        .flat_map(|row| each(row).into_iter().map(move |gpu| (row, gpu)))
        .map(|(row, gpu)| (row, &scene.fleet.gpus[gpu]))
        .collect();
    vec![
        ("job_id", text(rows.iter().map(|row| Some(job_id(row.0.job))))),
        ("attempt", count(rows.iter().map(|row| Some(attempt_number(row.0) as i32)))),
        ("cluster", text(rows.iter().map(|_| Some(CLUSTER)))),
        ("node", text(rows.iter().map(|row| Some(scene.fleet.nodes[row.1.node].name.clone())))),
        ("gpu_uuid", text(rows.iter().map(|row| Some(row.1.uuid.clone())))),
        ("gpu", index(rows.iter().map(|row| row.1.index))),
        ("gpu_share_ratio", real(rows.iter().map(|row| Some(share(&scene.jobs[row.0.job]))))),
        ("started_at", instant(rows.iter().map(|row| row.0.started.map(|at| at * 1000)))),
        ("ended_at", instant(rows.iter().map(|row| row.0.ended.map(|at| at * 1000)))),
    ]
}

/// A node's reading: node, instant in ms, load.
type NodeReading = (usize, i64, [u64; 6]);

/// `samples` and `node_samples`.
pub(super) fn readings(scene: &Scene) -> (Columns, Columns) {
    let holdings = holdings(scene);
    let step_s = i64::from(scene.options.interval_s);
    let (mut samples, mut loads): (Vec<Reading>, Vec<NodeReading>) = (Vec::new(), Vec::new());
    for (node, row) in scene.fleet.nodes.iter().enumerate() {
        let held = |gpu: &usize| Device::new(scene, *gpu, holdings[*gpu].clone());
        let mut devices: Vec<_> = row.gpus.iter().map(held).collect();
        for at_ms in instants(scene, node) {
            let read: Vec<_> = devices.iter_mut().map(|gpu| gpu.read(at_ms, step_s)).collect();
            if !seen(scene, node, at_ms) {
                continue;
            }
            let cpu = read.iter().map(|reading| reading.cpu_ratio).sum::<f64>();
            loads.push((node, at_ms, node_load(cpu / read.len() as f64)));
            let lost = at_ms / 1000 >= scene.fleet.lost_at;
            samples.extend(read.into_iter().filter(|r| !lost || r.gpu != scene.fleet.failing));
        }
    }
    samples.sort_by_key(|reading| (reading.gpu, reading.at_ms));
    (sample_columns(scene, &samples), node_columns(scene, &loads))
}

fn sample_columns(scene: &Scene, rows: &[Reading]) -> Columns {
    let gpu = |row: &Reading| &scene.fleet.gpus[row.gpu];
    let pool = |row: &Reading| &POOLS[gpu(row).pool];
    let period = periods(scene, rows.iter().map(|row| (row.gpu, row.at_ms)));
    vec![
        ("sampled_at", instant(rows.iter().map(|row| Some(row.at_ms)))),
        ("cluster", text(rows.iter().map(|_| Some(CLUSTER)))),
        ("node", text(rows.iter().map(|row| Some(scene.fleet.nodes[gpu(row).node].name.clone())))),
        ("gpu", index(rows.iter().map(|row| gpu(row).index))),
        ("gpu_uuid", text(rows.iter().map(|row| Some(gpu(row).uuid.clone())))),
        ("gpu_model", text(rows.iter().map(|row| Some(pool(row).model)))),
        ("gpu_util_ratio", real(rows.iter().map(|row| hundredth(row.util_percent)))),
        ("mem_copy_util_ratio", real(rows.iter().map(|row| hundredth(row.mem_util_percent)))),
        ("mem_used_bytes", whole(rows.iter().map(|row| i64::from(row.mem_used_mib) << 20))),
        ("mem_total_bytes", whole(rows.iter().map(|row| i64::from(pool(row).mem_mib) << 20))),
        ("power_w", real(rows.iter().map(|row| hundredth(row.power_cw)))),
        ("temp_c", real(rows.iter().map(|row| Some(f64::from(row.temp_c))))),
        ("sm_clock_mhz", real(rows.iter().map(|row| Some(f64::from(row.sm_clock_mhz))))),
        ("ecc_corrected_total", whole(rows.iter().map(|row| row.ecc_corrected.into()))),
        ("ecc_uncorrected_total", whole(rows.iter().map(|row| row.ecc_uncorrected.into()))),
        ("throttle_reasons", whole(rows.iter().map(|row| row.throttle_reasons.into()))),
        ("period_s", real(period.into_iter().map(Some))),
    ]
}

fn node_columns(scene: &Scene, rows: &[NodeReading]) -> Columns {
    let load = |at: usize| rows.iter().map(move |row| Some(row.2[at] as f64));
    let period = periods(scene, rows.iter().map(|row| (row.0, row.1)));
    vec![
        ("sampled_at", instant(rows.iter().map(|row| Some(row.1)))),
        ("cluster", text(rows.iter().map(|_| Some(CLUSTER)))),
        ("node", text(rows.iter().map(|row| Some(scene.fleet.nodes[row.0].name.clone())))),
        ("cpu_util_ratio", real(load(0).map(|mille| mille.map(|mille| mille / 1000.0)))),
        ("mem_used_bytes", whole(rows.iter().map(|row| row.2[1] as i64))),
        ("mem_total_bytes", whole(rows.iter().map(|_| NODE_MEM_BYTES as i64))),
        ("disk_read_bytes_per_s", real(load(2))),
        ("disk_write_bytes_per_s", real(load(3))),
        ("net_rx_bytes_per_s", real(load(4))),
        ("net_tx_bytes_per_s", real(load(5))),
        ("period_s", real(period.into_iter().map(Some))),
    ]
}

/// Seconds that each reading stands for; `rows` are (series, instant in ms) in that order.
fn periods(scene: &Scene, rows: impl Iterator<Item = (usize, i64)>) -> Vec<f64> {
    let interval_s = f64::from(scene.options.interval_s);
    let mut previous: Option<(usize, i64)> = None;
    rows.map(|(series, at_ms)| {
        let since = previous.filter(|last| last.0 == series).map(|last| at_ms - last.1);
        previous = Some((series, at_ms));
        since.map_or(interval_s, |ms| (ms as f64 / 1000.0).min(HOLD_INTERVALS * interval_s))
    })
    .collect()
}

fn workload(workload: Workload) -> &'static str {
    match workload {
        Workload::Train => "train",
        Workload::Finetune => "finetune",
        Workload::Inference => "inference",
        Workload::Dataprep => "dataprep",
        Workload::Interactive => "interactive",
        Workload::Unlabelled => "unlabelled",
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Pending => "PENDING",
        State::Running => "RUNNING",
        State::Completed => "COMPLETED",
        State::Failed => "FAILED",
        State::Timeout => "TIMEOUT",
        State::Cancelled => "CANCELLED",
        State::Preempted => "PREEMPTED",
        State::NodeFail => "NODE_FAIL",
    }
}

fn hundredth(value: u32) -> Option<f64> {
    Some(f64::from(value) / 100.0)
}

fn text<T: AsRef<str>>(values: impl Iterator<Item = Option<T>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn index(values: impl Iterator<Item = usize>) -> ArrayRef {
    Arc::new(values.map(|value| Some(value as i16)).collect::<Int16Array>())
}

fn count(values: impl Iterator<Item = Option<i32>>) -> ArrayRef {
    Arc::new(values.collect::<Int32Array>())
}

fn whole(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(values.map(Some).collect::<Int64Array>())
}

fn real(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.collect::<Float64Array>())
}

fn instant(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    let micros = values.map(|at_ms| at_ms.map(|at_ms| at_ms * 1000));
    Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
}
