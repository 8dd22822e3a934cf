//! Writes the files; query logs are made on all cores, each by one.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::thread;

use chrono::DateTime;

use super::fleet::POOLS;
use super::ledger::{allocations, instant_z, sacct};
use super::signal::{Device, Holding, Reading, holdings};
use super::{CLUSTER, DemoError, Progress, Scene, Written, config_toml};

/// Readings after which a worker says how far it is.
const REPORT_EVERY: u64 = 20_000;

/// Writes everything into `dir`.
pub(super) fn write(
    dir: &Path,
    scene: &Scene,
    progress: &mut dyn FnMut(Progress),
) -> Result<Written, DemoError> {
    let logs = dir.join("nvidia-smi");
    fs::create_dir_all(&logs).map_err(|source| DemoError::write(&logs, source))?;
    let put = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|source| DemoError::write(&path, source))?;
        Ok(path)
    };
    let config = put("loadline.toml", &config_toml(&scene.options))?;
    let gpus = put("gpus.csv", &inventory(scene))?;
    let sacct = put("sacct.txt", &sacct(scene))?;
    let allocations = put("allocations.csv", &allocations(scene))?;
    let xid_events = put("xid_events.csv", &xid_events(scene))?;
    let nodes = write_nodes(&logs, scene, progress)?;
    let mut text = String::from(NODE_HEADER);
    text.extend(nodes.iter().map(|node| node.readings.as_str()));
    let node_samples = put("node_samples.csv", &text)?;
    Ok(Written {
        samples: nodes.iter().map(|node| node.samples).sum(),
        nvidia_smi: nodes.into_iter().map(|node| node.path).collect(),
        sacct,
        allocations,
        gpus,
        node_samples,
        xid_events,
        config,
        attempts: scene.attempts.len() as u64,
    })
}

/// What one node's worker made.
struct NodeLog {
    path: PathBuf,
    readings: String,
    samples: u64,
}

fn write_nodes(
    logs: &Path,
    scene: &Scene,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<NodeLog>, DemoError> {
    let span_s = scene.local.ended - scene.local.started;
    let steps = span_s as u64 / u64::from(scene.options.interval_s);
    let samples_total = steps * u64::from(scene.options.gpus);
    let holdings = holdings(scene);
    let workers =
        thread::available_parallelism().map_or(1, usize::from).min(scene.fleet.nodes.len());
    let (sender, receiver) = mpsc::channel();
    let mut done: Vec<(usize, Result<NodeLog, DemoError>)> = thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|worker| {
                let (sender, holdings) = (sender.clone(), &holdings);
                scope.spawn(move || {
                    let mine = (worker..scene.fleet.nodes.len()).step_by(workers);
                    mine.map(|node| (node, write_node(logs, scene, node, holdings, &sender)))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        drop(sender);
        let mut samples_done = 0;
        for samples in receiver {
            samples_done += samples;
            progress(Progress { samples_done, samples_total });
        }
        let join = |handle: thread::ScopedJoinHandle<'_, Vec<_>>| {
            handle.join().expect("a worker panics only by a broken promise of ours")
        };
        handles.into_iter().flat_map(join).collect()
    });
    done.sort_by_key(|(node, _)| *node);
    done.into_iter().map(|(_, log)| log).collect()
}

/// The instants at which a node is read, in UTC ms: each node a little after the full interval.
pub(super) fn instants(scene: &Scene, node: usize) -> impl Iterator<Item = i64> + use<> {
    let phase_ms = (node as i64 * 1_370 + 112) % (i64::from(scene.options.interval_s) * 500);
    let (started, ended) = (scene.local.started, scene.local.ended);
    (started..ended).step_by(scene.options.interval_s as usize).map(move |at| at * 1000 + phase_ms)
}

/// Whether a node's collector reported at an instant.
pub(super) fn seen(scene: &Scene, node: usize, at_ms: i64) -> bool {
    let at = at_ms / 1000;
    let (gap_node, from, until) = scene.fleet.node_gap;
    let fleet_gap = (scene.fleet.fleet_gap.0..scene.fleet.fleet_gap.1).contains(&at);
    !fleet_gap && (node != gap_node || !(from..until).contains(&at))
}

fn write_node(
    logs: &Path,
    scene: &Scene,
    node: usize,
    holdings: &[Vec<Holding>],
    progress: &Sender<u64>,
) -> Result<NodeLog, DemoError> {
    let path = logs.join(format!("{}.csv", scene.fleet.nodes[node].name));
    let (readings, samples) = fill_node(&path, scene, node, holdings, progress)
        .map_err(|source| DemoError::write(&path, source))?;
    Ok(NodeLog { path, readings, samples })
}

fn fill_node(
    path: &Path,
    scene: &Scene,
    node: usize,
    holdings: &[Vec<Holding>],
    progress: &Sender<u64>,
) -> io::Result<(String, u64)> {
    let mut out = BufWriter::with_capacity(1 << 18, fs::File::create(path)?);
    out.write_all(SMI_HEADER.as_bytes())?;
    let gpus = &scene.fleet.nodes[node].gpus;
    let mut devices: Vec<_> =
        gpus.iter().map(|gpu| Device::new(scene, *gpu, holdings[*gpu].clone())).collect();
    let (mut row, mut nodes) = (Vec::with_capacity(256), String::new());
    let (mut samples, mut unreported) = (0, 0);
    for at_ms in instants(scene, node) {
        let stamp = smi_stamp(at_ms);
        let seen = seen(scene, node, at_ms);
        let mut cpu = 0.0;
        for device in &mut devices {
            let reading = device.read(at_ms, i64::from(scene.options.interval_s));
            cpu += reading.cpu_ratio;
            unreported += 1;
            if !seen {
                continue;
            }
            row.clear();
            if reading.gpu == scene.fleet.failing && at_ms / 1000 >= scene.fleet.lost_at {
                row.extend_from_slice(LOST.as_bytes());
            } else {
                smi_row(&mut row, &stamp, scene, &reading);
                samples += 1;
            }
            out.write_all(&row)?;
        }
        if seen {
            node_row(&mut nodes, scene, node, at_ms, cpu / gpus.len() as f64);
        }
        if unreported >= REPORT_EVERY {
            let _ = progress.send(std::mem::take(&mut unreported));
        }
    }
    let _ = progress.send(unreported);
    out.flush()?;
    Ok((nodes, samples))
}

const SMI_HEADER: &str = "timestamp, name, uuid, index, utilization.gpu [%], \
    utilization.memory [%], memory.used [MiB], memory.total [MiB], power.draw [W], \
    temperature.gpu, clocks.current.sm [MHz], clocks.current.memory [MHz], \
    ecc.errors.corrected.volatile.total, ecc.errors.uncorrected.volatile.total, \
    clocks_event_reasons.active\n";

/// What nvidia-smi prints in place of a GPU that the driver has lost.
const LOST: &str = "Unable to determine the device handle for GPU0000:9B:00.0: GPU is lost.  Reboot the system to \
     recover this GPU\n";

fn smi_stamp(at_ms: i64) -> String {
    let at = DateTime::from_timestamp_millis(at_ms).expect("inside the span");
    at.format("%Y/%m/%d %H:%M:%S%.3f").to_string()
}

fn smi_row(row: &mut Vec<u8>, stamp: &str, scene: &Scene, reading: &Reading) {
    let gpu = &scene.fleet.gpus[reading.gpu];
    let pool = &POOLS[gpu.pool];
    let mut text = |text: &str| row.extend_from_slice(text.as_bytes());
    text(stamp);
    text(", ");
    text(pool.model);
    text(", ");
    text(&gpu.uuid);
    let cells = [
        (gpu.index as u32, ""),
        (reading.util_percent, " %"),
        (reading.mem_util_percent, " %"),
        (reading.mem_used_mib, " MiB"),
        (pool.mem_mib, " MiB"),
        (reading.power_cw / 100, ""),
        (reading.temp_c, ""),
        (reading.sm_clock_mhz, " MHz"),
        (reading.mem_clock_mhz, " MHz"),
        (reading.ecc_corrected, ""),
        (reading.ecc_uncorrected, ""),
    ];
    for (position, (value, unit)) in cells.into_iter().enumerate() {
        row.extend_from_slice(b", ");
        number(row, value);
        if position == 5 {
            let cents = reading.power_cw % 100;
            row.extend_from_slice(&[b'.', b'0' + (cents / 10) as u8, b'0' + (cents % 10) as u8]);
            row.extend_from_slice(b" W");
        }
        row.extend_from_slice(unit.as_bytes());
    }
    row.extend_from_slice(b", 0x00000000000000");
    let digit = |value: u32| b"0123456789abcdef"[(value & 15) as usize];
    row.extend_from_slice(&[digit(reading.throttle_reasons >> 4), digit(reading.throttle_reasons)]);
    row.push(b'\n');
}

fn number(row: &mut Vec<u8>, mut value: u32) {
    let mut digits = [0; 10];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    row.extend_from_slice(&digits[first..]);
}

const NODE_HEADER: &str = "sampled_at,cluster,node,cpu_util_ratio,mem_used_bytes,mem_total_bytes,\
    disk_read_bytes_per_s,disk_write_bytes_per_s,net_rx_bytes_per_s,net_tx_bytes_per_s\n";

/// Memory of a node.
pub(super) const NODE_MEM_BYTES: u64 = 2 << 40;

/// CPU share to the per-mille, memory, disk and network in bytes that follow from it.
pub(super) fn node_load(cpu_ratio: f64) -> [u64; 6] {
    let mille = ((cpu_ratio + 0.015).min(1.0) * 1000.0) as u64;
    let mem_bytes = (96 + mille) << 30;
    [mille, mem_bytes, mille * 1_900_000, mille * 240_000, mille * 2_600_000, mille * 700_000]
}

fn node_row(text: &mut String, scene: &Scene, node: usize, at_ms: i64, cpu_ratio: f64) {
    let [mille, mem_bytes, read, write, rx, tx] = node_load(cpu_ratio);
    let at = DateTime::from_timestamp_millis(at_ms).expect("inside the span");
    writeln!(
        text,
        "{},{CLUSTER},{},{}.{:03},{mem_bytes},{NODE_MEM_BYTES},{read},{write},{rx},{tx}",
        at.format("%Y-%m-%dT%H:%M:%S%.3fZ"),
        scene.fleet.nodes[node].name,
        mille / 1000,
        mille % 1000,
    )
    .expect("a String takes any text");
}

fn inventory(scene: &Scene) -> String {
    let mut text = String::from(
        "gpu_uuid,cluster,node,gpu,partition,gpu_model,mem_total_bytes,driver_version,site,rack,\
         state,price_per_hour,bought_at,purchase_price,depreciation_months,fp16_tflops,fp32_tflops\n",
    );
    for (index, gpu) in scene.fleet.gpus.iter().enumerate() {
        let pool = &POOLS[gpu.pool];
        let state = if index == scene.fleet.failing { "lost" } else { "online" };
        writeln!(
            text,
            "{},{CLUSTER},{},{},{},{},{},580.95.05,north,r{:02},{state},{},{},{},48,{},{}",
            gpu.uuid,
            scene.fleet.nodes[gpu.node].name,
            gpu.index,
            pool.name,
            pool.model,
            u64::from(pool.mem_mib) << 20,
            gpu.node / 2 + 1,
            pool.price_per_hour,
            pool.bought,
            pool.purchase_price,
            pool.fp16_tflops,
            pool.fp32_tflops,
        )
        .expect("a String takes any text");
    }
    text
}

fn xid_events(scene: &Scene) -> String {
    let mut text = String::from("sampled_at,cluster,node,gpu,gpu_uuid,gpu_model,xid\n");
    for (at, gpu, xid) in scene.fleet.xids() {
        let device = &scene.fleet.gpus[gpu];
        let (node, model) = (&scene.fleet.nodes[device.node].name, POOLS[device.pool].model);
        let (at, index, uuid) = (instant_z(at), device.index, &device.uuid);
        writeln!(text, "{at},{CLUSTER},{node},{index},{uuid},{model},{xid}")
            .expect("a String takes any text");
    }
    text
}
