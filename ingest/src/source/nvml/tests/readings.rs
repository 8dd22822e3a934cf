//! What stands in a row.

use super::*;

/// A board that offers all that the tables hold.
fn hopper() -> Value {
    json!({
        "uuid": "GPU-h", "name": "NVIDIA H200", "vbios": "96.00.A5",
        "util": [97, 61], "memory": [100 * GIB, 140 * GIB], "power_mw": 650_500,
        "energy_mj": 7_200_000_500_u64, "temp": 64, "fans": [30, 45], "clocks": [1980, 1981, 2619],
        "throttle": 4, "ecc": [3, 1], "xids": [],
        "fields": { "82/0": 71, "198/0": 1_000, "197/0": 2_000,
            "139/4294967295": 100, "138/4294967295": 200 },
        "gpm": { "2": 88.0, "3": 41.5, "5": 62.0, "10": 55.0, "11": 1.0, "12": 12.5, "13": 7.0,
            "20": 999.0, "21": 999.0, "60": 999.0, "61": 999.0 },
        "processes": [[10, 60 * GIB], [11, null]], "graphics": [[10, GIB]],
    })
}

#[test]
fn a_row_holds_all_that_the_driver_offers_in_the_units_of_the_columns() {
    // Breaks when a figure is scaled wrongly, lands in another column, or is made up.
    let mut node = Node::new(&driver(&[hopper()]));
    let first = row(&node.well(0), 0);
    for column in ["sm_active_ratio", "pcie_rx_bytes_per_s", "nvlink_tx_bytes_per_s"] {
        assert_eq!(first.get(column), None, "{column} needs two readings");
    }
    let fields = json!({ "82/0": 71, "198/0": 61_000, "197/0": 122_000,
        "139/4294967295": 400, "138/4294967295": 800 });
    node.says(&driver(&[over(hopper(), &json!({ "fields": fields, "xids": [31] }))]));
    let out = node.well(30);
    let expected = json!({
        "cluster": "c1", "node": "n1", "gpu": 0, "gpu_uuid": "GPU-h", "gpu_model": "NVIDIA H200",
        "gpu_util_ratio": 0.97, "mem_copy_util_ratio": 0.61,
        "mem_used_bytes": 100 * GIB, "mem_total_bytes": 140 * GIB,
        "power_w": 650.5, "energy_j": 7_200_000.5, "temp_c": 64.0, "mem_temp_c": 71.0,
        "fan_ratio": 0.45, "sm_clock_mhz": 1981.0, "mem_clock_mhz": 2619.0,
        // 60 000 bytes and 300 KiB in 30 s, and twice as much the other way.
        "pcie_rx_bytes_per_s": 2_000.0, "pcie_tx_bytes_per_s": 4_000.0,
        "nvlink_rx_bytes_per_s": 10_240.0, "nvlink_tx_bytes_per_s": 20_480.0,
        "sm_active_ratio": 0.88, "sm_occupancy_ratio": 0.415, "tensor_active_ratio": 0.62,
        "dram_active_ratio": 0.55, "fp64_active_ratio": 0.01, "fp32_active_ratio": 0.125,
        "fp16_active_ratio": 0.07, "ecc_corrected_total": 3, "ecc_uncorrected_total": 1,
        "xid": 31, "throttle_reasons": 4, "processes": 2,
    });
    assert_eq!(close(row(&out, 0)), close(expected.as_object().unwrap().clone()));
    // Told once: at the next reading it is over.
    assert_eq!(row(&node.well(60), 0)["xid"], json!(0));
}

/// Floating-point figures to nine digits.
fn close(row: serde_json::Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: Value| match value.as_f64() {
        Some(number) => format!("{number:.9}"),
        None => value.to_string(),
    };
    row.into_iter().map(|(name, value)| (name, text(value))).collect()
}

#[test]
fn what_a_gpu_does_not_offer_is_null_and_the_rest_lives() {
    // Breaks when an unsupported figure is read as 0, or takes the row with it.
    let bare = json!({ "uuid": "GPU-b", "memory": [GIB, 24 * GIB], "temp": 41 });
    let mut node = Node::new(&driver(&[bare, plain("GPU-a")]));
    node.well(0);
    let out = node.well(30);
    assert_eq!(rows(&out, Table::Samples), 2);
    let mut names: Vec<String> = row(&out, 0).into_iter().map(|(name, _)| name).collect();
    names.sort();
    let known =
        ["cluster", "gpu", "gpu_uuid", "mem_total_bytes", "mem_used_bytes", "node", "temp_c"];
    assert_eq!(names, known);
    // Zeroes of a GPU that offers the figure are figures.
    node.says(&driver(&[over(plain("GPU-b"), &json!({ "util": [0, 0] })), plain("GPU-a")]));
    assert_eq!(row(&node.well(60), 0)["gpu_util_ratio"], json!(0.0));
}

#[test]
fn what_cannot_be_true_is_null_and_counted() {
    // Breaks when a sentinel of the driver is averaged in.
    let wrong = json!({ "util": [4_294_967_295_u64, 40], "temp": 9_000 });
    let mut node = Node::new(&driver(&[over(plain("GPU-a"), &wrong)]));
    let out = node.well(0);
    let found = row(&out, 0);
    assert_eq!((found.get("gpu_util_ratio"), found.get("temp_c")), (None, None));
    assert_eq!(found["mem_copy_util_ratio"], json!(0.4));
    assert_eq!(out.nulled, [("gpu_util_ratio", 1), ("temp_c", 1)]);
}

#[test]
fn utilisation_and_power_are_means_of_the_drivers_own_samples() {
    // Breaks when a burst between two readings is missed, or a sample counts in two rows.
    let us = |at_s: i64| (START_S + at_s) * 1_000_000;
    let before = json!([[us(-60), 900_000], [us(-20), 100_000], [us(-10), 300_000]]);
    let after = json!([[us(-20), 100_000], [us(-10), 300_000], [us(20), 700_000]]);
    let gpu = |power: &Value| {
        let samples = json!({ "0": power, "1": [[us(-10), 10], [us(-5), 30]] });
        driver(&[over(plain("GPU-a"), &json!({ "samples": samples }))])
    };
    let mut node = Node::new(&gpu(&before));
    let first = row(&node.well(0), 0);
    node.says(&gpu(&after));
    let second = row(&node.well(30), 0);
    assert_eq!(first["gpu_util_ratio"], json!(0.2));
    assert_eq!(first["mem_copy_util_ratio"], json!(0.4), "no buffer: the reading of the instant");
    assert_eq!(second["gpu_util_ratio"], json!(0.8), "no new sample: the reading of the instant");
    assert_eq!(first["power_w"], json!(200.0));
    assert_eq!(second["power_w"], json!(700.0));
    // The least and the most of what lies between two readings, where the driver keeps that.
    let ends = |row: &serde_json::Map<String, Value>| {
        ["gpu_util_min_ratio", "gpu_util_max_ratio", "power_min_w", "power_max_w"]
            .map(|column| row.get(column).and_then(Value::as_f64))
    };
    assert_eq!(ends(&first), [Some(0.1), Some(0.3), Some(100.0), Some(300.0)]);
    assert_eq!(ends(&second), [None, None, Some(700.0), Some(700.0)]);
}

#[test]
fn traffic_over_pcie_comes_from_what_the_driver_has() {
    // Breaks when an older board has no traffic, or a counter that began anew makes a huge rate.
    let old = over(plain("GPU-a"), &json!({ "pcie": [200, 100] }));
    let mut node = Node::new(&driver(&[old]));
    let found = row(&node.well(0), 0);
    assert_eq!(found["pcie_rx_bytes_per_s"], json!(100_000.0));
    assert_eq!(found["pcie_tx_bytes_per_s"], json!(200_000.0));
    let counted =
        |bytes| over(plain("GPU-a"), &json!({ "fields": { "198/0": bytes, "197/0": bytes } }));
    node.says(&driver(&[counted(5_000)]));
    node.well(30);
    node.says(&driver(&[counted(10)]));
    assert_eq!(row(&node.well(60), 0).get("pcie_rx_bytes_per_s"), None);
}

#[test]
fn slices_have_rows_of_their_own_and_power_stands_once() {
    // Breaks when a slice repeats the board's power, or a busy board in slices reads as idle.
    let slice = |gi: u32, used: u64, active: f64| {
        json!({ "uuid": format!("MIG-{gi}"), "gi": gi, "memory": [used * GIB, 20 * GIB],
            "gpm": { "2": active, "60": 5.0 } })
    };
    let board = |slices: &[Value]| {
        let mig = json!({ "mig": slices, "util": null, "gpm": { "2": 50.0 },
            "processes": [[10, 2 * GIB, 1], [11, 3 * GIB, 5], [12, GIB, 5]], "graphics": [] });
        driver(&[over(hopper(), &mig), plain("GPU-a")])
    };
    let slices = [slice(1, 2, 90.0), slice(5, 4, 10.0), slice(5, 4, 10.0)];
    let mut node = Node::new(&board(&slices));
    for (pid, job) in [(10, 100), (11, 101), (12, 102)] {
        node.process(pid, &format!("0::/system.slice/slurmstepd.scope/job_{job}/step_0"), 0);
    }
    node.well(0);
    let out = node.well(30);
    assert_eq!(rows(&out, Table::Samples), 4, "two compute instances of one slice are one row");
    let all: Vec<_> = (0..4).map(|at| row(&out, at)).collect();
    let (main, small, large) = (&all[0], &all[1], &all[2]);
    assert_eq!(
        (main.get("mig"), main.get("gpu_util_ratio"), main.get("job_id")),
        (None, None, None)
    );
    assert_eq!((&main["power_w"], &main["processes"]), (&json!(650.5), &json!(3)));
    for (slice, mig, used, active, job) in
        [(small, 1, 2, 0.9, "100"), (large, 5, 4, 0.1, "101,102")]
    {
        assert_eq!((&slice["mig"], &slice["gpu_uuid"]), (&json!(mig), &json!("GPU-h")));
        assert_eq!(slice["mem_used_bytes"], json!(used * GIB));
        assert_eq!(slice["mem_total_bytes"], json!(20 * GIB));
        assert_eq!(slice["sm_active_ratio"], json!(active));
        assert_eq!(slice["job_id"], json!(job));
        for column in ["power_w", "energy_j", "gpu_util_ratio", "temp_c", "nvlink_rx_bytes_per_s"] {
            assert_eq!(slice.get(column), None, "{column}");
        }
    }
    assert_eq!(all[3]["gpu_uuid"], json!("GPU-a"));
    // A slice is taken away, another one made: no failure, and the rest goes on.
    node.says(&board(&[slice(1, 2, 90.0)]));
    assert_eq!(rows(&node.well(60), Table::Samples), 3);
    node.says(&board(&[slice(1, 2, 90.0), slice(3, 9, 30.0)]));
    let mut found = 0;
    for at_s in [90, 120, 150] {
        found = rows(&node.well(at_s), Table::Samples);
    }
    assert_eq!(found, 4, "within a minute");
}
