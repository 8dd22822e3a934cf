use proptest::prelude::*;

use super::*;

#[test]
fn units_stand_in_the_cell_in_the_header_or_nowhere() {
    // Breaks when a percent or a mebibyte is taken for a ratio or a byte.
    let reads = [
        (Measure::GpuUtil, "100 %", "", 1.0),
        (Measure::GpuUtil, "37", "%", 0.37),
        (Measure::GpuUtil, "37", "", 0.37),
        (Measure::Power, "631.95 W", "W", 631.95),
        (Measure::Power, "631950 mW", "W", 631.95),
        (Measure::MemUsed, "575 MiB", "MiB", 602_931_200.0),
        (Measure::MemUsed, "2", "", 2_097_152.0),
        (Measure::PcieTx, "4000 KB/s", "", 4e6),
        (Measure::Temp, "-3", "", -3.0),
    ];
    for (measure, cell, header, expected) in reads {
        let Reading::Value(got) = measure.read(cell, header) else { panic!("{cell}") };
        assert!((got - expected).abs() < 1e-9, "{cell}: {got}");
    }
}

#[test]
fn what_the_driver_has_not_is_unavailable_not_zero() {
    // Breaks when a token of case 2 becomes a figure or costs the row.
    for cell in [
        "[N/A]",
        "N/A",
        "-",
        "",
        " ",
        "[Not Supported]",
        "[Requested functionality has been deprecated]",
        "Requested functionality has been deprecated",
        "[Unknown Error]",
        "[GPU requires reset]",
        "[GPU is lost]",
        "ERR!",
        "[Some New Words]",
    ] {
        assert_eq!(Measure::Power.read(cell, "W"), Reading::Unavailable, "{cell}");
    }
    assert_eq!(distress("[GPU requires reset]"), Some("needs reset"));
    assert_eq!(distress("[GPU is lost]"), Some("lost"));
    assert_eq!(distress("[N/A]"), None);
    assert_eq!(Measure::Power.read("abc", "W"), Reading::Unreadable);
}

#[test]
fn impossible_figures_are_told_from_missing_ones() {
    // Breaks when a sentinel or an overflow enters a mean (case 7).
    let impossible = [
        (Measure::SmActive, "1.7"),
        (Measure::GpuUtil, "4294967295"),
        (Measure::Energy, "1.4e16"),
        (Measure::MemTemp, "9223372036854775794"),
        (Measure::Power, "NaN"),
        (Measure::MemUsed, "2147483632"),
        (Measure::Power, "-5"),
    ];
    for (measure, cell) in impossible {
        assert_eq!(measure.read(cell, ""), Reading::Impossible, "{cell}");
    }
    assert_eq!(Measure::SmActive.read("1.003", ""), Reading::Value(1.0));
}

proptest! {
    #[test]
    fn every_accepted_value_is_in_range(cell in "\\PC{0,24}", unit in "[a-zA-Z%/]{0,5}") {
        // Breaks when any text panics or slips past its bounds.
        for measure in [Measure::GpuUtil, Measure::MemUsed, Measure::Temp, Measure::Xid] {
            if let Reading::Value(value) = measure.read(&cell, &unit) {
                let column = measure.column();
                prop_assert!(value >= column.least && value <= column.most);
            }
        }
        let _ = distress(&cell);
    }
}

#[test]
fn an_index_that_no_gpu_can_have_is_counted() {
    // Breaks when an index of 70 000 is none without a word, or `N/A` is counted.
    let mut out = crate::source::collected::Collected::default();
    let read: Vec<_> =
        ["3", " 0", "-1", "70000", "N/A", ""].map(|text| index(text, "gpu", &mut out)).into();
    assert_eq!(read, [Some(3), Some(0), None, None, None, None]);
    assert_eq!(out.nulled, [("gpu", 1), ("gpu", 1)]);
}
