//! Units that a source may use, and the factor to ours.

/// Units by what the end of our column's name says it holds, with the factor to ours.
const UNITS: &[(&str, &[(&str, f64)])] = &[
    ("_ratio", &[("ratio", 1.0), ("percent", 0.01), ("%", 0.01), ("permille", 0.001)]),
    (
        "_bytes_per_s",
        &[
            ("B/s", 1.0),
            ("KB/s", 1e3),
            ("kB/s", 1e3),
            ("MB/s", 1e6),
            ("GB/s", 1e9),
            ("KiB/s", 1024.0),
            ("MiB/s", 1_048_576.0),
            ("GiB/s", 1_073_741_824.0),
        ],
    ),
    (
        "_bytes",
        &[
            ("B", 1.0),
            ("KB", 1e3),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("TB", 1e12),
            ("KiB", 1024.0),
            ("MiB", 1_048_576.0),
            ("GiB", 1_073_741_824.0),
            ("TiB", 1_099_511_627_776.0),
        ],
    ),
    ("_w", &[("W", 1.0), ("mW", 1e-3), ("kW", 1e3)]),
    ("_j", &[("J", 1.0), ("mJ", 1e-3), ("kJ", 1e3), ("Wh", 3600.0), ("kWh", 3.6e6)]),
    ("_mhz", &[("MHz", 1.0), ("GHz", 1e3), ("kHz", 1e-3), ("Hz", 1e-6)]),
    ("_c", &[("C", 1.0), ("°C", 1.0)]),
    (
        "_s",
        &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("min", 60.0), ("h", 3600.0), ("day", 86_400.0)],
    ),
    ("_months", &[("month", 1.0), ("year", 12.0)]),
    ("_tflops", &[("TFLOPS", 1.0), ("GFLOPS", 1e-3)]),
];

/// The factor from `unit` to that of `column`.
///
/// # Errors
/// The units that `column` knows.
pub(crate) fn factor(column: &str, unit: &str) -> Result<f64, String> {
    let known = UNITS.iter().find(|(end, _)| column.ends_with(end)).map(|(_, units)| *units);
    let Some(units) = known else { return Err(format!("`{column}` has no unit")) };
    let found = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    found.ok_or_else(|| {
        let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        format!("`{column}` is read from one of {}", names.join(", "))
    })
}

/// The least and the most that a measurement of `column` can be.
pub(crate) fn limits(column: &str) -> (f64, f64) {
    if column == "gpu_share_ratio" || column.ends_with("_ratio") {
        (0.0, 1.0)
    } else if column.ends_with("temp_c") {
        (-100.0, 1000.0)
    } else if column == "exit_code" || column == "priority" || column == "xid" {
        (-2_147_483_648.0, f64::MAX)
    } else {
        (0.0, f64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_lead_to_ours() {
        // Breaks when MiB are taken for MB, or a rate for an amount.
        assert_eq!(factor("gpu_util_ratio", "percent"), Ok(0.01));
        assert_eq!(factor("mem_used_bytes", "MiB"), Ok(1_048_576.0));
        assert_eq!(factor("pcie_rx_bytes_per_s", "MB/s"), Ok(1e6));
        assert_eq!(factor("energy_j", "mJ"), Ok(1e-3));
        assert_eq!(factor("time_limit_s", "min"), Ok(60.0));
        assert!(factor("power_w", "hp").unwrap_err().contains("W, mW, kW"));
        assert!(factor("gpus_held", "percent").unwrap_err().contains("no unit"));
    }
}
