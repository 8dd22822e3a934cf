//! One printed value: is it there, what is its unit, can it be true.
//!
//! Three answers are kept apart. *Unavailable* is what the driver says when it has no figure
//! (`[N/A]`, `[Not Supported]`, an empty cell): NULL. *Impossible* is a figure outside what the
//! measurement can be, a blank sentinel of DCGM or NaN: NULL, and counted. *Unreadable* is text
//! that is neither.

mod state;

use crate::batch::Output;
pub(crate) use state::{distress, distressed, kind};

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reading {
    /// The source says that it has no figure.
    Unavailable,
    /// A figure that cannot be true.
    Impossible,
    /// Text that is no figure.
    Unreadable,
    /// The figure, in the unit of the column.
    Value(f64),
}

/// A measurement of a sample: one column of `samples` that a source fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    GpuUtil,
    MemCopyUtil,
    MemUsed,
    MemTotal,
    Power,
    Energy,
    Temp,
    MemTemp,
    Fan,
    SmClock,
    MemClock,
    PcieRx,
    PcieTx,
    NvlinkRx,
    NvlinkTx,
    SmActive,
    SmOccupancy,
    TensorActive,
    DramActive,
    Fp64Active,
    Fp32Active,
    Fp16Active,
    EccCorrected,
    EccUncorrected,
    Xid,
    Throttle,
    Processes,
    GpuUtilMin,
    GpuUtilMax,
    PowerMin,
    PowerMax,
}

/// What a measurement may be, and how it is stored.
#[derive(Debug)]
pub(crate) struct Column {
    /// Name in the table.
    pub(crate) name: &'static str,
    /// Least figure that can be true.
    pub(crate) least: f64,
    /// Greatest figure that can be true.
    pub(crate) most: f64,
    /// Stored as.
    pub(crate) kind: Kind,
}

/// Type of a measurement's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Float,
    Long,
    Int,
}

const fn column(name: &'static str, least: f64, most: f64, kind: Kind) -> Column {
    Column { name, least, most, kind }
}

/// One entry a [`Measure`], in its order. The bounds are far outside what any device of today
/// reports and far inside what a sentinel is: 10 kW, 150 °C, 100 TB, 10 TB/s.
pub(crate) const COLUMNS: [Column; Measure::COUNT] = [
    column("gpu_util_ratio", 0.0, 1.0, Kind::Float),
    column("mem_copy_util_ratio", 0.0, 1.0, Kind::Float),
    column("mem_used_bytes", 0.0, 1e14, Kind::Long),
    column("mem_total_bytes", 0.0, 1e14, Kind::Long),
    column("power_w", 0.0, 1e4, Kind::Float),
    column("energy_j", 0.0, 1e13, Kind::Float),
    column("temp_c", -50.0, 150.0, Kind::Float),
    column("mem_temp_c", -50.0, 150.0, Kind::Float),
    column("fan_ratio", 0.0, 1.0, Kind::Float),
    column("sm_clock_mhz", 0.0, 2e4, Kind::Float),
    column("mem_clock_mhz", 0.0, 2e4, Kind::Float),
    column("pcie_rx_bytes_per_s", 0.0, 1e13, Kind::Float),
    column("pcie_tx_bytes_per_s", 0.0, 1e13, Kind::Float),
    column("nvlink_rx_bytes_per_s", 0.0, 1e13, Kind::Float),
    column("nvlink_tx_bytes_per_s", 0.0, 1e13, Kind::Float),
    column("sm_active_ratio", 0.0, 1.0, Kind::Float),
    column("sm_occupancy_ratio", 0.0, 1.0, Kind::Float),
    column("tensor_active_ratio", 0.0, 1.0, Kind::Float),
    column("dram_active_ratio", 0.0, 1.0, Kind::Float),
    column("fp64_active_ratio", 0.0, 1.0, Kind::Float),
    column("fp32_active_ratio", 0.0, 1.0, Kind::Float),
    column("fp16_active_ratio", 0.0, 1.0, Kind::Float),
    column("ecc_corrected_total", 0.0, 1e12, Kind::Long),
    column("ecc_uncorrected_total", 0.0, 1e12, Kind::Long),
    column("xid", 0.0, 1e4, Kind::Int),
    column("throttle_reasons", 0.0, 4_294_967_295.0, Kind::Long),
    column("processes", 0.0, 1e6, Kind::Int),
    column("gpu_util_min_ratio", 0.0, 1.0, Kind::Float),
    column("gpu_util_max_ratio", 0.0, 1.0, Kind::Float),
    column("power_min_w", 0.0, 1e4, Kind::Float),
    column("power_max_w", 0.0, 1e4, Kind::Float),
];

/// Every measurement, in its order.
pub(crate) const MEASURES: [Measure; Measure::COUNT] = {
    use Measure as M;
    [
        M::GpuUtil,
        M::MemCopyUtil,
        M::MemUsed,
        M::MemTotal,
        M::Power,
        M::Energy,
        M::Temp,
        M::MemTemp,
        M::Fan,
        M::SmClock,
        M::MemClock,
        M::PcieRx,
        M::PcieTx,
        M::NvlinkRx,
        M::NvlinkTx,
        M::SmActive,
        M::SmOccupancy,
        M::TensorActive,
        M::DramActive,
        M::Fp64Active,
        M::Fp32Active,
        M::Fp16Active,
        M::EccCorrected,
        M::EccUncorrected,
        M::Xid,
        M::Throttle,
        M::Processes,
        M::GpuUtilMin,
        M::GpuUtilMax,
        M::PowerMin,
        M::PowerMax,
    ]
};

/// How far above 1 a share may lie through rounding and be read as 1.
const SHARE_ROUNDING: f64 = 0.02;

impl Measure {
    /// Number of measurements.
    pub(crate) const COUNT: usize = Self::PowerMax as usize + 1;

    /// The column it fills.
    pub(crate) const fn column(self) -> &'static Column {
        &COLUMNS[self as usize]
    }

    /// Whether it is a share of 1.
    pub(crate) fn share(self) -> bool {
        self.column().name.ends_with("_ratio")
    }

    /// Checks a figure in the unit of the column: finite, no blank sentinel, in range. A share
    /// up to 2 % above 1 is rounding and becomes 1.
    pub(crate) fn check(self, value: f64) -> Reading {
        let column = self.column();
        if self.share() && value > 1.0 && value <= 1.0 + SHARE_ROUNDING {
            return Reading::Value(1.0);
        }
        let possible = value >= column.least && value <= column.most;
        if possible && !blank(value) { Reading::Value(value) } else { Reading::Impossible }
    }

    /// Reads a printed cell. The unit stands in the cell, else in `header_unit`, else it is the
    /// one in which the driver prints this measurement.
    pub(crate) fn read(self, cell: &str, header_unit: &str) -> Reading {
        let Some(text) = available(cell) else { return Reading::Unavailable };
        let (digits, unit) = split_unit(text);
        let Ok(number) = digits.parse::<f64>() else { return Reading::Unreadable };
        let unit = if unit.is_empty() { header_unit } else { unit };
        match scale(self, unit) {
            // The sentinel is told before scaling: 2147483632 MiB are no bytes.
            Some(_) if blank(number) => Reading::Impossible,
            Some(factor) => self.check(number * factor),
            None => Reading::Unreadable,
        }
    }
}

/// An index or instance number as printed: none where the text is no number, and none, counted for
/// `column`, where it is one that no GPU can have.
pub(crate) fn index(text: &str, column: &'static str, out: &mut dyn Output) -> Option<i16> {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let found = text.parse().ok().filter(|index| *index >= 0);
    if found.is_none() {
        out.nulled(column, 1);
    }
    found
}

/// The text of a cell, or `None` where the source says that it has no figure.
pub(crate) fn available(cell: &str) -> Option<&str> {
    let text = cell.trim();
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text).trim();
    if inner.is_empty() || inner.starts_with('-') && inner.bytes().all(|b| b == b'-') {
        return None;
    }
    // Digits and letters of names come first in the common case: only these starts can be one.
    let first = inner.as_bytes()[0].to_ascii_lowercase();
    if text.starts_with("GPU-") || text.starts_with("NVIDIA ") {
        return Some(text);
    }
    if !matches!(first, b'n' | b'r' | b'u' | b'g' | b'e' | b'i') {
        return (inner.len() == text.len()).then_some(text);
    }
    let said = inner.to_ascii_lowercase();
    let absent = matches!(
        said.as_str(),
        "n/a"
            | "na"
            | "none"
            | "null"
            | "not available"
            | "not supported"
            | "not found"
            | "not active"
            | "err!"
            | "error"
            | "unknown"
            | "unknown error"
            | "requested functionality has been deprecated"
            | "insufficient permissions"
            | "insufficient size"
            | "no permission"
            | "gpu requires reset"
            | "gpu is lost"
    ) || said.ends_with("unknown error");
    // Anything else in brackets is a message of the driver, never a figure.
    (!absent && inner.len() == text.len()).then_some(text)
}

/// Whether a figure is one of DCGM's "no value": the top of its 32-bit, 64-bit and
/// floating-point ranges, each with its variants for not found, not supported and not permitted.
pub(crate) fn blank(value: f64) -> bool {
    !value.is_finite()
        || (2_147_483_632.0..=2_147_483_647.0).contains(&value)
        || (140_737_488_355_328.0..=140_737_488_355_343.0).contains(&value)
        || value == 4_294_967_295.0
        || value >= 9.223e18
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|b| !matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+'))
        .unwrap_or(text.len());
    // An exponent belongs to the number: `1.4e+16`.
    if matches!(text.as_bytes().get(end), Some(b'e' | b'E')) && text.parse::<f64>().is_ok() {
        return (text, "");
    }
    if text.starts_with(['n', 'N', 'i', 'I']) {
        return (text, "");
    }
    (&text[..end], text[end..].trim())
}

/// What a figure in `unit` is multiplied by; `None` for a unit that this measurement cannot have.
fn scale(measure: Measure, unit: &str) -> Option<f64> {
    use Measure as M;
    const MIB: f64 = 1_048_576.0;
    // As the driver spells them, without a copy.
    match (measure, unit) {
        (M::MemUsed | M::MemTotal, "MiB") => return Some(MIB),
        (M::Power, "W") | (M::SmClock | M::MemClock, "MHz") => return Some(1.0),
        _ => {}
    }
    let unit = unit.to_ascii_lowercase();
    let unit = unit.as_str();
    Some(match (measure, unit) {
        (M::GpuUtil | M::MemCopyUtil | M::Fan, "" | "%") => 0.01,
        (m, "%") if m.share() => 0.01,
        (M::MemUsed | M::MemTotal, "" | "mib") => MIB,
        (M::MemUsed | M::MemTotal, "b" | "bytes") => 1.0,
        (M::MemUsed | M::MemTotal, "kib") => 1024.0,
        (M::MemUsed | M::MemTotal, "gib") => 1024.0 * MIB,
        (M::MemUsed | M::MemTotal, "mb") => 1e6,
        (M::MemUsed | M::MemTotal, "gb") => 1e9,
        (M::Power, "mw") => 1e-3,
        (M::Power, "kw") => 1e3,
        (M::Power, "w") => 1.0,
        (M::Energy, "mj") => 1e-3,
        (M::Energy, "j") => 1.0,
        (M::Energy, "kj") => 1e3,
        (M::Temp | M::MemTemp, "c" | "°c") => 1.0,
        (M::SmClock | M::MemClock, "mhz") => 1.0,
        (M::SmClock | M::MemClock, "ghz") => 1e3,
        (M::PcieRx | M::PcieTx | M::NvlinkRx | M::NvlinkTx, "b/s") => 1.0,
        (M::PcieRx | M::PcieTx | M::NvlinkRx | M::NvlinkTx, "" | "kb/s") => 1e3,
        (M::PcieRx | M::PcieTx | M::NvlinkRx | M::NvlinkTx, "mb/s") => 1e6,
        (M::PcieRx | M::PcieTx | M::NvlinkRx | M::NvlinkTx, "gb/s") => 1e9,
        (_, "") => 1.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
