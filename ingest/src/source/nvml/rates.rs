//! Traffic over PCIe and NVLink, from counters of the driver: two readings make a rate.

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::PcieUtilCounter;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::sys_exports::field_id::{
    NVML_FI_DEV_MEMORY_TEMP, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_PCIE_COUNT_RX_BYTES,
    NVML_FI_DEV_PCIE_COUNT_TX_BYTES,
};

use super::reading::Row;
use super::unwrapped::{Field, field_values};
use crate::source::value::Measure;

/// All links of a board together.
const ALL_LINKS: u32 = u32::MAX;

const KIB: f64 = 1024.0;

/// Memory temperature, then the counters: one call answers all.
const FIELDS: [Field; 5] = [
    Field { id: NVML_FI_DEV_MEMORY_TEMP, scope: 0 },
    Field { id: NVML_FI_DEV_PCIE_COUNT_RX_BYTES, scope: 0 },
    Field { id: NVML_FI_DEV_PCIE_COUNT_TX_BYTES, scope: 0 },
    Field { id: NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, scope: ALL_LINKS },
    Field { id: NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, scope: ALL_LINKS },
];

/// What each counter becomes, and the bytes of its unit.
const COUNTED: [(Measure, f64); 4] = [
    (Measure::PcieRx, 1.0),
    (Measure::PcieTx, 1.0),
    (Measure::NvlinkRx, KIB),
    (Measure::NvlinkTx, KIB),
];

/// Counters of the reading before.
#[derive(Debug, Default)]
pub(super) struct Counters {
    at_ms: i64,
    last: [Option<f64>; 4],
}

impl Counters {
    /// Reads memory temperature and counters into `row`.
    pub(super) fn read(&mut self, device: &Device<'_>, now_ms: i64, row: &mut Row) {
        let fields = row.take(field_values(device, &FIELDS));
        let [memory_c, counters @ ..] = fields.unwrap_or_default();
        // A GPU without a sensor at its memory answers 0.
        if let Some(celsius) = memory_c.filter(|celsius| *celsius > 0.0) {
            row.put(Measure::MemTemp, celsius);
        }
        let seconds = (now_ms - self.at_ms) as f64 / 1e3;
        for ((counter, last), (measure, bytes)) in counters.iter().zip(&self.last).zip(COUNTED) {
            if let (Some(counter), Some(last)) = (counter, last)
                && counter >= last
                && seconds > 0.0
            {
                row.put(measure, (counter - last) * bytes / seconds);
            }
        }
        *self = Self { at_ms: now_ms, last: counters };
    }

    /// Whether the board counts what passes over PCIe.
    pub(super) fn pcie_counted(&self) -> bool {
        self.last[0].is_some()
    }
}

/// What passed over PCIe in the last 20 ms: the driver waits for as long at each of two calls, so
/// it is asked only where nothing else tells.
pub(super) fn pcie_throughput(device: &Device<'_>, row: &mut Row) {
    let directions =
        [(PcieUtilCounter::Receive, Measure::PcieRx), (PcieUtilCounter::Send, Measure::PcieTx)];
    for (counter, measure) in directions {
        let answer: Result<u32, NvmlError> = device.pcie_throughput(counter);
        if let Some(kilobytes) = row.take(answer) {
            row.put(measure, f64::from(kilobytes) * 1e3);
        }
    }
}
