//! Columns of the rollups `gpu_5m` and `gpu_1h`.
//!
//! A row is what the readings of one GPU or slice, under one job, tell of one bin. A reading is in
//! a bin with the time of its stretch that lies in it: one that reaches over a boundary is split by
//! time. Bins begin on UTC multiples of their length.
//!
//! For each of [`MEASURES`], weighted with seconds: `_sum` and `_sum_sq` (of the value and of its
//! square, times seconds), `_known_s` (seconds of which the value is known), `_min` and `_max`. All
//! five are NULL where it never is. So a mean over time is `sum(x_sum) / sum(x_known_s)`, over any
//! rows, and its variance `sum(x_sum_sq) / sum(x_known_s)` less the square of the mean.
//!
//! There is no sketch for quantiles yet: it would take a crate that the tree lacks.

use arrow::datatypes::{DataType, Field};

use super::instant;

/// What the columns are, for people.
pub const LEGEND: &str = "\
One row for each GPU or slice, job and bin that any reading tells of. A reading is in a bin with the
time of its stretch that lies in it.
  readings          readings whose instant is in the bin
  covered_s         seconds of the bin that readings stand for
  energy_j          J: the energy counter's rise, else power, times seconds; known for energy_known_s
  X_sum, X_sum_sq   of measure X and of its square, weighted with seconds
  X_known_s         seconds of which X is known: a mean over time is sum(X_sum) / sum(X_known_s)
  X_min, X_max      least and most, within a reading too where it tells (gpu_util_min_ratio, ...)
  reported_ratio    as X: utilisation, else SM activity where a slice has no utilisation
  throttle_reasons  bits that any reading had set";

/// The instant at which a bin begins.
pub const BIN: &str = "bin_started_at";

/// Columns that tell one row from another.
pub(super) const KEY: [&str; 8] =
    ["cluster", "node", "gpu", "gpu_uuid", "mig", BIN, "gpu_model", "job_id"];

/// Readings whose instant is in the bin; one that stands for the time before a boundary and was
/// taken on it is counted after it. Of a count at an instant half-open bins say the same.
pub const READINGS: &str = "readings";

/// Seconds of the bin that readings stand for.
pub const COVERED_S: &str = "covered_s";

/// Energy in J: power times time. Power is what the energy counter rose by since the reading
/// before, where that is where the stretch begins and the counter did not fall, else the power read.
/// Slices that tell of their board each tell all of it.
pub const ENERGY_J: &str = "energy_j";

/// Seconds of which the energy is known.
pub const ENERGY_KNOWN_S: &str = "energy_known_s";

/// Utilisation, else SM activity where a slice has no utilisation, as `gpu_readings` has it. The
/// only measure that is no column of `samples`.
pub const REPORTED: &str = "reported_ratio";

/// What is integrated over time: columns of `samples`, and [`REPORTED`].
pub const MEASURES: [&str; 22] = [
    REPORTED,
    "gpu_util_ratio",
    "mem_copy_util_ratio",
    "mem_used_bytes",
    "power_w",
    "temp_c",
    "mem_temp_c",
    "fan_ratio",
    "sm_clock_mhz",
    "mem_clock_mhz",
    "pcie_rx_bytes_per_s",
    "pcie_tx_bytes_per_s",
    "nvlink_rx_bytes_per_s",
    "nvlink_tx_bytes_per_s",
    "sm_active_ratio",
    "sm_occupancy_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "fp64_active_ratio",
    "fp32_active_ratio",
    "fp16_active_ratio",
    "processes",
];

/// Those of which a reading may tell the least and the most within its stretch: measure, least, most.
pub(crate) const WITHIN: [(&str, &str, &str); 2] = [
    ("gpu_util_ratio", "gpu_util_min_ratio", "gpu_util_max_ratio"),
    ("power_w", "power_min_w", "power_max_w"),
];

/// Columns of `samples` of which only the least and the most are kept: sizes, counters, codes.
pub const EXTREMES: [&str; 4] =
    ["mem_total_bytes", "ecc_corrected_total", "ecc_uncorrected_total", "xid"];

/// Bits that any reading of the bin had set.
pub const BITS: &str = "throttle_reasons";

/// What is kept of each of [`MEASURES`].
pub(crate) const SUFFIXES: [&str; 5] = ["_sum", "_sum_sq", "_min", "_max", "_known_s"];

pub(super) fn fields() -> Vec<Field> {
    use DataType::{Float64, Int16, Int64, Utf8};
    let field = |name: &str, kind: DataType| Field::new(name, kind, true);
    let mut fields = vec![
        field(BIN, instant()),
        field("cluster", Utf8),
        field("node", Utf8),
        field("gpu", Int16),
        field("gpu_uuid", Utf8),
        field("mig", Int16),
        field("gpu_model", Utf8),
        field("job_id", Utf8),
        field(READINGS, Int64),
        field(COVERED_S, Float64),
        field(ENERGY_J, Float64),
        field(ENERGY_KNOWN_S, Float64),
    ];
    for measure in MEASURES {
        fields.extend(SUFFIXES.map(|suffix| field(&format!("{measure}{suffix}"), Float64)));
    }
    for measure in EXTREMES {
        fields.extend(["_min", "_max"].map(|end| field(&format!("{measure}{end}"), Int64)));
    }
    fields.push(field(BITS, Int64));
    fields
}
