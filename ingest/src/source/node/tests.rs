//! The node collector on figures of our own, and on those of this machine.

use std::path::Path;

use super::*;
use crate::source::collected::{Collected, numbers};

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A node whose disk and card moved `done` times so much, and whose processors worked so long.
fn figures(folder: &Path, done: u64, busy: u64, idle: u64) {
    let cpu = format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0");
    let stat = format!("{cpu}\ncpu0 {busy} 0 0 {idle} 0 0 0 0 0 0\nctxt 1\nbtime 1\nprocesses 1\n");
    write(folder, "proc/stat", &stat);
    let memory = "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 600 kB\nBuffers: 1 kB\n\
                  Cached: 1 kB\nSwapCached: 0 kB\nActive: 0 kB\nInactive: 0 kB\nSwapTotal: 0 kB\n\
                  SwapFree: 0 kB\nDirty: 0 kB\nWriteback: 0 kB\nMapped: 0 kB\nSlab: 0 kB\n\
                  Committed_AS: 0 kB\nVmallocTotal: 0 kB\nVmallocUsed: 0 kB\nVmallocChunk: 0 kB\n";
    write(folder, "proc/meminfo", memory);
    let disk = |name: &str| {
        let (reads, sectors) = (done * 30, done * 600);
        format!("8 0 {name} {reads} 0 {sectors} 0 {} 0 {} 0 0 0 0\n", reads * 2, sectors * 2)
    };
    write(folder, "proc/diskstats", &(disk("nvme0n1") + &disk("nvme0n1p1") + &disk("dm-0")));
    let card = |name: &str| {
        format!("{name}: {} 0 0 0 0 0 0 0 {} 0 0 0 0 0 0 0\n", done * 3_000, done * 6_000)
    };
    let net = format!("Inter-|\n face |\n{}{}{}", card("lo"), card("eth0"), card("br0"));
    write(folder, "proc/net/dev", &net);
    let here = folder.display();
    write(
        folder,
        "proc/mounts",
        &format!("/dev/sda1 {here} ext4 rw 0 0\nproc /proc proc rw 0 0\n"),
    );
}

fn read(collector: &mut NodeCollector, at_s: i64) -> RecordBatch {
    let mut out = Collected::default();
    let now = DateTime::from_timestamp(1_784_019_600 + at_s, 0).unwrap();
    collector.collect(now, &mut out).unwrap();
    out.table(Table::NodeSamples)
}

#[test]
fn rates_come_from_two_readings_and_count_each_device_once() {
    // Breaks when a partition counts beside its disk, or a counter since boot is taken for a rate.
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "sys/block/nvme0n1/device/x", "");
    write(root, "sys/class/net/eth0/device/x", "");
    let settings = NodeSettings {
        proc_root: root.join("proc"),
        sys_root: root.join("sys"),
        ..NodeSettings::new("n1")
    };
    let mut collector = NodeCollector::new(settings);
    figures(root, 100, 1_000, 9_000);
    let first = read(&mut collector, 0);
    assert!(first.column_by_name("cpu_util_ratio").is_none());
    assert!(first.column_by_name("net_rx_bytes_per_s").is_none());
    figures(root, 101, 1_750, 9_250);
    let second = read(&mut collector, 30);
    for (column, expected) in [
        ("cpu_util_ratio", 0.75),
        ("disk_read_bytes_per_s", 10_240.0),
        ("disk_write_bytes_per_s", 20_480.0),
        ("disk_read_iops", 1.0),
        ("disk_write_iops", 2.0),
        ("net_rx_bytes_per_s", 100.0),
        ("net_tx_bytes_per_s", 200.0),
    ] {
        assert_eq!(numbers(&second, column), [Some(expected)], "{column}");
    }
    let used = &second["mem_used_bytes"];
    assert_eq!(**used, Int64Array::from(vec![400 * 1024]));
    let full = numbers(&second, "disk_used_ratio")[0].unwrap();
    assert!((0.0..=1.0).contains(&full), "{full}");
    // Counters that began anew are no rate.
    figures(root, 5, 10, 90);
    let third = read(&mut collector, 60);
    assert_eq!(numbers(&third, "disk_read_iops"), [None]);
    assert_eq!(numbers(&third, "cpu_util_ratio"), [None]);
    assert_eq!(third.schema().fields().len(), Table::NodeSamples.schema().fields().len() - 1);
}

#[test]
fn this_machine_tells_its_figures() {
    // Breaks when the kernel's files are not as the tests above write them.
    let mut collector = NodeCollector::new(NodeSettings::new("here"));
    read(&mut collector, 0);
    let rows = read(&mut collector, 30);
    assert!(numbers(&rows, "net_rx_bytes_per_s")[0].is_some());
    let mut broken = NodeSettings::new("here");
    broken.proc_root = "/nowhere".into();
    let mut out = Collected::default();
    let error = NodeCollector::new(broken).collect(Utc::now(), &mut out).unwrap_err();
    assert_eq!(error.to_string(), "could not read `/nowhere/meminfo`");
}
