//! Which series of dcgm-exporter fills which column, under its names of every release.
//!
//! # Source
//! `default-counters.csv` of dcgm-exporter and the field lists of DCGM 4.5 to 4.7, which renamed
//! fields after their units and kept the old names as aliases.

use crate::source::value::{Measure, Reading, blank};

/// What a series tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Told {
    /// A measurement. Of two series for one, the lower rank counts.
    Measure { measure: Measure, unit: Unit, rank: u8 },
    /// `GR_ENGINE_ACTIVE`: utilisation where the driver has none, as on slices.
    Engine,
    /// Framebuffer that is free, in bytes per unit.
    MemFree(f64),
    /// Framebuffer that the driver keeps, in bytes per unit.
    MemReserved(f64),
}

/// Unit of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unit {
    /// Times this is the unit of the column.
    Scale(f64),
    /// A share that DCGM before 4.7 prints in whole percent under the name of a ratio, and 4.7
    /// as a ratio with decimals.
    Share,
}

const MIB: f64 = 1_048_576.0;

/// What the series of this name tells; `None` for one that fills no column.
pub(super) fn told(name: &str) -> Option<Told> {
    let field = ["DCGM_FI_DEV_", "DCGM_FI_PROF_", "dcgm_fi_prof_", "dcgm_"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))?;
    // OpenMetrics ends the name of a counter in `_total`.
    of_field(field).or_else(|| of_field(field.strip_suffix("_total")?))
}

fn of_field(field: &str) -> Option<Told> {
    use Measure as M;
    const ONE: Unit = Unit::Scale(1.0);
    const PERCENT: Unit = Unit::Scale(0.01);
    let (measure, unit, rank) = match field {
        "GPU_UTIL" | "gpu_utilization" => (M::GpuUtil, PERCENT, 0),
        "GPU_UTIL_RATIO" => (M::GpuUtil, Unit::Share, 0),
        "MEM_COPY_UTIL" | "mem_copy_utilization" => (M::MemCopyUtil, PERCENT, 0),
        "MEM_COPY_UTIL_RATIO" | "MEMORY_UTIL_RATIO" => (M::MemCopyUtil, Unit::Share, 0),
        "GR_ENGINE_ACTIVE"
        | "GR_ENGINE_UTIL_RATIO"
        | "GR_ENGINE_ACTIVE_RATIO"
        | "gr_engine_active" => return Some(Told::Engine),
        "SM_ACTIVE" | "SM_UTIL_RATIO" | "SM_ACTIVE_RATIO" | "sm_active" => (M::SmActive, ONE, 0),
        "SM_OCCUPANCY" | "SM_OCCUPANCY_RATIO" | "sm_occupancy" => (M::SmOccupancy, ONE, 0),
        "PIPE_TENSOR_ACTIVE"
        | "TENSOR_UTIL_RATIO"
        | "PIPE_TENSOR_ACTIVE_RATIO"
        | "pipe_tensor_active"
        | "tensor_active" => (M::TensorActive, ONE, 0),
        "DRAM_ACTIVE" | "DRAM_UTIL_RATIO" | "DRAM_ACTIVE_RATIO" | "dram_active" => {
            (M::DramActive, ONE, 0)
        }
        "PIPE_FP64_ACTIVE" | "FP64_UTIL_RATIO" | "PIPE_FP64_ACTIVE_RATIO" => {
            (M::Fp64Active, ONE, 0)
        }
        "PIPE_FP32_ACTIVE" | "FP32_UTIL_RATIO" | "PIPE_FP32_ACTIVE_RATIO" => {
            (M::Fp32Active, ONE, 0)
        }
        "PIPE_FP16_ACTIVE" | "FP16_UTIL_RATIO" | "PIPE_FP16_ACTIVE_RATIO" => {
            (M::Fp16Active, ONE, 0)
        }
        "POWER_USAGE" | "POWER_USAGE_WATTS" | "BOARD_POWER_WATTS" | "power_usage" => {
            (M::Power, ONE, 0)
        }
        "POWER_USAGE_INSTANT" | "BOARD_POWER_INSTANT_WATTS" | "BOARD_POWER_RAW_WATTS" => {
            (M::Power, ONE, 1)
        }
        "GPU_ENERGY_JOULES_TOTAL" | "TOTAL_ENERGY_CONSUMPTION_JOULES" => (M::Energy, ONE, 0),
        "TOTAL_ENERGY_CONSUMPTION"
        | "TOTAL_ENERGY_CONSUMPTION_MILLIJOULES"
        | "TOTAL_ENERGY_CONSUMPTION_MJ"
        | "total_energy_consumption" => (M::Energy, Unit::Scale(1e-3), 1),
        "GPU_TEMP" | "GPU_TEMP_CELSIUS" | "gpu_temp" => (M::Temp, ONE, 0),
        "MEMORY_TEMP" | "MEMORY_TEMP_CELSIUS" | "memory_temp" => (M::MemTemp, ONE, 0),
        "FAN_SPEED" | "fan_speed_percent" => (M::Fan, PERCENT, 1),
        "FAN_SPEED_RATIO" => (M::Fan, ONE, 0),
        "SM_CLOCK" | "SM_CLOCK_MHZ" | "SM_CLOCK_MEGAHERTZ" | "sm_clock" => (M::SmClock, ONE, 0),
        "SM_CLOCK_HERTZ" => (M::SmClock, Unit::Scale(1e-6), 0),
        "MEM_CLOCK" | "MEM_CLOCK_MHZ" | "MEM_CLOCK_MEGAHERTZ" | "memory_clock" => {
            (M::MemClock, ONE, 0)
        }
        "MEM_CLOCK_HERTZ" | "MEMORY_CLOCK_HERTZ" => (M::MemClock, Unit::Scale(1e-6), 0),
        "FB_USED_BYTES" => (M::MemUsed, ONE, 0),
        "FB_USED" | "fb_used" => (M::MemUsed, Unit::Scale(MIB), 1),
        "FB_CAPACITY_BYTES" | "FB_TOTAL_BYTES" => (M::MemTotal, ONE, 0),
        "FB_TOTAL" | "fb_total" => (M::MemTotal, Unit::Scale(MIB), 1),
        "FB_FREE_BYTES" => return Some(Told::MemFree(1.0)),
        "FB_FREE" | "fb_free" => return Some(Told::MemFree(MIB)),
        "FB_RESERVED_BYTES" => return Some(Told::MemReserved(1.0)),
        "FB_RESERVED" => return Some(Told::MemReserved(MIB)),
        "PCIE_RX_BYTES" | "PCIE_RX_BYTES_PER_SECOND" | "pcie_rx_bytes" => (M::PcieRx, ONE, 0),
        "PCIE_TX_BYTES" | "PCIE_TX_BYTES_PER_SECOND" | "pcie_tx_bytes" => (M::PcieTx, ONE, 0),
        "PCIE_RX_THROUGHPUT" | "pcie_rx_throughput" => (M::PcieRx, Unit::Scale(1e3), 1),
        "PCIE_TX_THROUGHPUT" | "pcie_tx_throughput" => (M::PcieTx, Unit::Scale(1e3), 1),
        "NVLINK_RX_BYTES" | "NVLINK_RX_BYTES_PER_SECOND" => (M::NvlinkRx, ONE, 0),
        "NVLINK_TX_BYTES" | "NVLINK_TX_BYTES_PER_SECOND" => (M::NvlinkTx, ONE, 0),
        "XID_ERRORS" | "XID_ERROR" | "xid_errors" => (M::Xid, ONE, 0),
        "ECC_SBE_AGG_TOTAL" | "ecc_sbe_aggregate_total" => (M::EccCorrected, ONE, 0),
        "ECC_SBE_VOL_TOTAL" | "ecc_sbe_volatile_total" => (M::EccCorrected, ONE, 1),
        "ECC_DBE_AGG_TOTAL" | "ecc_dbe_aggregate_total" => (M::EccUncorrected, ONE, 0),
        "ECC_DBE_VOL_TOTAL" | "ecc_dbe_volatile_total" => (M::EccUncorrected, ONE, 1),
        "CLOCK_THROTTLE_REASONS" | "CLOCKS_EVENT_REASONS" | "CLOCK_EVENT_REASONS" => {
            (M::Throttle, ONE, 0)
        }
        _ => return None,
    };
    Some(Told::Measure { measure, unit, rank })
}

impl Unit {
    /// The figure in the unit of the column, checked. `ratio` says that a [`Unit::Share`] is
    /// known to be printed as a ratio, which only decides about figures near 1.
    pub(super) fn read(self, measure: Measure, value: f64, ratio: bool) -> Reading {
        if blank(value) {
            return Reading::Impossible;
        }
        match self {
            Self::Scale(factor) => measure.check(value * factor),
            Self::Share if ratio && measure.check(value) != Reading::Impossible => {
                measure.check(value)
            }
            Self::Share => measure.check(value * 0.01),
        }
    }
}

/// Measurements that DCGM repeats on every slice though they are the board's. They stay on the
/// board's row alone, so that a sum over rows counts them once. Utilisation of the driver is
/// here too: on a slice it reads 0 whatever runs there.
pub(super) fn of_board_only(measure: Measure) -> bool {
    use Measure as M;
    matches!(
        measure,
        M::Power
            | M::Energy
            | M::GpuUtil
            | M::MemCopyUtil
            | M::PcieRx
            | M::PcieTx
            | M::NvlinkRx
            | M::NvlinkTx
            | M::Fan
            | M::EccCorrected
            | M::EccUncorrected
    )
}

/// Above its top by more than this part, engine activity is told against the slice itself.
const TOP_TOLERANCE: f64 = 1.05;

/// Engine activity of a slice as a share of the slice.
///
/// A slice of one is told against itself, and so is one that is the whole board. A slice of two
/// to four tops out below 1: at its share of the board's slices, or, with one compute instance
/// in it, at one over its own. Which of the two it is cannot be read off a page, so the lower top
/// is taken and what is above it is full: a full slice is never told as idle, a partly busy one
/// may be told as busier than it is. A value above both tops can only be told against the slice
/// itself, as several compute instances in one make it, and stays as it is.
///
/// # Source
/// NVIDIA/DCGM issue 138: maxima of 100 %, 50 % and 33 % for 1g, 2g and 3g on an A100, and 100 %
/// where more compute instances fill the slice.
pub(super) fn of_slice(share: f64, profile: &str, model: Option<&str>) -> f64 {
    let slices = profile.split('g').next().and_then(|n| n.rsplit('.').next()?.parse().ok());
    let board = if model.is_some_and(|model| model.contains("A30")) { 4.0 } else { 7.0 };
    let (low, high) = match slices {
        Some(slices @ 2.0..=4.0) if slices < board => {
            let (one, other): (f64, f64) = (1.0 / slices, slices / board);
            (one.min(other), one.max(other))
        }
        _ => return share,
    };
    if share > high * TOP_TOLERANCE { share } else { f64::min(1.0, share / low) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_names_of_a_field_are_one() {
        // Breaks when an upgrade of DCGM empties a column.
        let measure = |name: &str| match told(name) {
            Some(Told::Measure { measure, .. }) => Some(measure),
            _ => None,
        };
        for (old, new, expected) in [
            ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", Measure::GpuUtil),
            ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS", Measure::Temp),
            ("DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", Measure::MemTemp),
            ("dcgm_power_usage", "DCGM_FI_DEV_BOARD_POWER_WATTS", Measure::Power),
            ("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR", Measure::Xid),
            ("DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO", Measure::SmActive),
            ("dcgm_fi_prof_dram_active", "DCGM_FI_PROF_DRAM_UTIL_RATIO", Measure::DramActive),
            (
                "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
                "DCGM_FI_PROF_TENSOR_UTIL_RATIO",
                Measure::TensorActive,
            ),
        ] {
            assert_eq!(measure(old), Some(expected), "{old}");
            assert_eq!(measure(new), Some(expected), "{new}");
        }
        assert_eq!(told("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"), Some(Told::Engine));
        let energy = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION";
        assert_eq!(told(&format!("{energy}_total")), told(energy));
        assert_eq!(told("DCGM_FI_DEV_PCIE_REPLAY_COUNTER"), None);
        assert_eq!(told("node_load1"), None);
    }

    #[test]
    fn percent_and_ratio_become_one_ratio() {
        // Breaks when 65 % and 0.65 differ in the store (case 8).
        let close = |reading: Reading| match reading {
            Reading::Value(value) => (value - 0.65).abs() < 1e-12,
            _ => false,
        };
        assert!(close(Unit::Scale(0.01).read(Measure::GpuUtil, 65.0, false)));
        assert!(close(Unit::Scale(1.0).read(Measure::SmActive, 0.65, true)));
        assert!(close(Unit::Share.read(Measure::GpuUtil, 0.65, true)));
        for ratio in [false, true] {
            assert!(close(Unit::Share.read(Measure::GpuUtil, 65.0, ratio)));
            for sentinel in [f64::NAN, 4_294_967_295.0] {
                let read = Unit::Share.read(Measure::GpuUtil, sentinel, ratio);
                assert_eq!(read, Reading::Impossible);
            }
        }
        // `1` is one percent, `1.000000` is all of it.
        assert_eq!(Unit::Share.read(Measure::GpuUtil, 1.0, false), Reading::Value(0.01));
        assert_eq!(Unit::Share.read(Measure::GpuUtil, 1.0, true), Reading::Value(1.0));
    }

    #[test]
    fn a_full_slice_is_full() {
        // Breaks when a 2g or 3g at its top is told as half idle (case 6).
        for (profile, top) in [
            ("1g.5gb", 1.0),
            ("2g.10gb", 0.5),
            ("2g.10gb", 2.0 / 7.0),
            ("3g.20gb", 1.0 / 3.0),
            ("3g.40gb", 3.0 / 7.0),
            ("4g.40gb", 4.0 / 7.0),
            ("7g.80gb", 1.0),
            ("1c.3g.40gb", 3.0 / 7.0),
        ] {
            let full = of_slice(top, profile, None);
            assert!((full - 1.0).abs() < 1e-9, "{profile} {top}: {full}");
        }
        // What is above any top of a part of the board is told against the slice, and stays.
        for (share, profile, model, expected) in [
            (0.95, "3g.20gb", None, 0.95),
            (0.6, "2g.10gb", None, 0.6),
            (0.44, "3g.20gb", None, 1.0),
            (0.1, "3g.20gb", None, 0.3),
            (0.25, "2g.12gb", Some("NVIDIA A30"), 0.5),
            (0.25, "4g.24gb", Some("NVIDIA A30"), 0.25),
            (0.25, "odd", None, 0.25),
        ] {
            let told = of_slice(share, profile, model);
            assert!((told - expected).abs() < 1e-9, "{share} {profile}: {told}");
        }
    }
}
