//! Figures of the kernel, and what two readings of its counters make.

use std::path::{Path, PathBuf};

use procfs_core::net::InterfaceDeviceStatus;
use procfs_core::prelude::*;
use procfs_core::{CpuTime, DiskStats, ExplicitSystemInfo, KernelStats, Meminfo, MountEntry};

use crate::error::IngestError;

/// Bytes of the unit in which the kernel counts what disks move, whatever their blocks are.
const SECTOR_BYTES: u64 = 512;

/// Where the kernel tells its figures.
#[derive(Debug)]
pub(super) struct Roots {
    pub(super) proc: PathBuf,
    pub(super) sys: PathBuf,
}

/// Counters since the node began: ticks of its processors, and what disks and network moved.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters {
    busy: u64,
    ticks: u64,
    moved: [u64; 6],
}

/// Columns of [`Counters::moved`].
const MOVED: [&str; 6] = [
    "disk_read_bytes_per_s",
    "disk_write_bytes_per_s",
    "disk_read_iops",
    "disk_write_iops",
    "net_rx_bytes_per_s",
    "net_tx_bytes_per_s",
];

impl Counters {
    /// Reads them.
    ///
    /// # Errors
    /// [`IngestError::Read`] where the kernel does not tell them.
    pub(super) fn read(roots: &Roots) -> Result<Self, IngestError> {
        // Only shares of ticks are used: how long one is does not matter.
        let ticks = ExplicitSystemInfo {
            boot_time_secs: 0,
            ticks_per_second: 100,
            page_size: 4096,
            is_little_endian: true,
        };
        let path = roots.proc.join("stat");
        let stat = KernelStats::from_file(&path, &ticks).map_err(|error| unread(&path, error))?;
        let (busy, ticks) = cpu(&stat.total);
        let path = roots.proc.join("diskstats");
        let disks = DiskStats::from_file(&path).map_err(|error| unread(&path, error))?;
        let path = roots.proc.join("net/dev");
        let net = InterfaceDeviceStatus::from_file(&path).map_err(|error| unread(&path, error))?;
        let mut moved = [0; 6];
        // Partitions, volumes and loops repeat what the disk below them moves.
        for disk in disks.0.iter().filter(|disk| roots.device("block", &disk.name)) {
            let of_disk = [
                disk.sectors_read * SECTOR_BYTES,
                disk.sectors_written * SECTOR_BYTES,
                disk.reads,
                disk.writes,
            ];
            moved.iter_mut().zip(of_disk).for_each(|(sum, counter)| *sum += counter);
        }
        // Bridges and bonds repeat what their cards move; a container may have no card at all.
        let cards = net.0.values().any(|card| roots.device("class/net", &card.name));
        for card in net.0.values() {
            let counts = roots.device("class/net", &card.name) || !cards && card.name != "lo";
            if counts {
                moved[4] += card.recv_bytes;
                moved[5] += card.sent_bytes;
            }
        }
        Ok(Self { busy, ticks, moved })
    }

    /// Share of the processors' time since `last` that was not idle.
    pub(super) fn cpu_ratio(&self, last: &Self) -> Option<f64> {
        let ticks = self.ticks.checked_sub(last.ticks).filter(|ticks| *ticks > 0)?;
        let busy = self.busy.checked_sub(last.busy)?;
        Some((busy as f64 / ticks as f64).min(1.0))
    }

    /// Rates since `last`; `None` where a counter began anew or a device went away.
    pub(super) fn rates<'l>(
        &'l self,
        last: &'l Self,
        seconds: f64,
    ) -> impl Iterator<Item = (&'static str, Option<f64>)> + 'l {
        MOVED.into_iter().zip(self.moved.iter().zip(&last.moved)).map(move |(name, (new, old))| {
            (name, new.checked_sub(*old).map(|moved| moved as f64 / seconds))
        })
    }
}

impl Roots {
    /// Whether a name is that of a device with hardware below it.
    fn device(&self, class: &str, name: &str) -> bool {
        self.sys.join(class).join(name).join("device").exists()
    }
}

/// Ticks in which the processors worked, and all ticks. What guests use is in `user` already.
fn cpu(time: &CpuTime) -> (u64, u64) {
    let some = |ticks: Option<u64>| ticks.unwrap_or(0);
    let busy = time.user + time.nice + time.system + some(time.irq) + some(time.softirq);
    let busy = busy + some(time.steal);
    (busy, busy + time.idle + some(time.iowait))
}

/// Memory that programs use, and all of it.
///
/// # Errors
/// [`IngestError::Read`] where the kernel does not tell it.
pub(super) fn memory_bytes(roots: &Roots) -> Result<(i64, i64), IngestError> {
    let path = roots.proc.join("meminfo");
    let memory = Meminfo::from_file(&path).map_err(|error| unread(&path, error))?;
    // Before Linux 3.14 there is no estimate of what could be had.
    let free = memory.mem_free + memory.buffers + memory.cached;
    let used = memory.mem_total.saturating_sub(memory.mem_available.unwrap_or(free));
    Ok((used as i64, memory.mem_total as i64))
}

/// How full the fullest file system on a disk of this node is; `None` where none can be asked.
pub(super) fn used_ratio(roots: &Roots) -> Option<f64> {
    let mounts = Vec::<MountEntry>::from_file(roots.proc.join("mounts")).ok()?;
    let local = mounts.iter().filter(|mount| {
        // Images are full by nature.
        let image = matches!(mount.fs_vfstype.as_str(), "squashfs" | "iso9660" | "erofs" | "udf");
        mount.fs_spec.starts_with("/dev/") && !image
    });
    let ratios = local.filter_map(|mount| {
        let space = rustix::fs::statvfs(mount.fs_file.as_str()).ok()?;
        let used = space.f_blocks.checked_sub(space.f_bfree)?;
        // As `df` counts it: what is kept for the administrator cannot be had.
        let usable = used + space.f_bavail;
        (usable > 0).then(|| used as f64 / usable as f64)
    });
    ratios.reduce(f64::max)
}

fn unread(path: &Path, error: procfs_core::ProcError) -> IngestError {
    IngestError::Read {
        path: path.display().to_string(),
        source: std::io::Error::other(error.to_string()),
    }
}
