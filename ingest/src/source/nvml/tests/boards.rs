//! Boards and drivers that fail, hang, and come back.

use super::*;

fn fleet(errors: &Value) -> Value {
    driver(&[plain("GPU-a"), over(plain("GPU-b"), errors), plain("GPU-c")])
}

#[test]
fn a_lost_gpu_stops_no_other_and_its_recovery_is_told() {
    // Breaks when one lost GPU costs the readings of the rest, or is told at every round.
    for (code, kind, state, words) in [
        (15, "lost", "lost", "the driver lost the GPU"),
        (16, "requires-reset", "needs reset", "the GPU requires a reset"),
        (999, "lost", "lost", "an internal driver error occurred"),
    ] {
        let mut node = Node::new(&fleet(&json!({})));
        assert_eq!(rows(&node.well(0), Table::Samples), 3);
        node.says(&fleet(&json!({ "fails": code })));
        let (out, failure) = node.round(30);
        let expected =
            format!("could not read GPU 1 `GPU-b` on node `n1`: {words}; 2 others were read");
        assert_eq!(failure.as_deref(), Some(expected.as_str()));
        assert_eq!(rows(&out, Table::Samples), 2);
        assert_eq!(events(&out), [format!("GPU-b {kind}: {words}")]);
        let states = texts(&out.table(Table::Gpus), "state");
        assert_eq!(states, [Some(state.to_owned())], "of the GPU in trouble alone");
        let (out, failure) = node.round(60);
        assert_eq!((events(&out), rows(&out, Table::Gpus)), (vec![], 0), "told once");
        assert!(failure.is_some(), "the round goes on to fail");
        node.says(&fleet(&json!({})));
        let out = node.well(90);
        assert_eq!(rows(&out, Table::Samples), 3);
        assert_eq!(events(&out), ["GPU-b recovered: first good reading after it"]);
    }
}

#[test]
fn a_gpu_that_is_lost_before_it_told_its_name_is_told_by_its_place() {
    // Breaks when the node of a GPU that is lost from the start is not read, or it stays lost.
    let mut node = Node::new(&fleet(&json!({ "fails": 15 })));
    let (out, failure) = node.round(0);
    let words = "could not read GPU 1 on node `n1`: the driver lost the GPU; 2 others were read";
    assert_eq!(failure.as_deref(), Some(words));
    assert_eq!(events(&out), ["- lost: the driver lost the GPU"]);
    node.says(&fleet(&json!({})));
    assert_eq!(events(&node.well(30)), ["- recovered: first good reading after it"]);
}

#[test]
fn a_call_that_fails_alone_is_null_and_no_trouble() {
    // Breaks when one broken sensor makes a GPU lost.
    let mut node = Node::new(&fleet(&json!({})));
    node.well(0);
    node.says(&fleet(&json!({ "errors": { "nvmlDeviceGetPowerUsage": 999 } })));
    let out = node.well(30);
    assert_eq!(row(&out, 1).get("power_w"), None);
    assert_eq!(row(&out, 1)["gpu_util_ratio"], json!(0.8));
}

#[test]
fn a_gpu_in_need_of_a_reset_keeps_what_it_still_tells_but_is_not_well() {
    // Breaks when a temperature that still answers ends the trouble at each round.
    let mut node = Node::new(&fleet(&json!({})));
    node.well(0);
    node.says(&fleet(&json!({ "errors": { "nvmlDeviceGetUtilizationRates": 16 } })));
    for at_s in [30, 60] {
        let (out, failure) = node.round(at_s);
        assert!(failure.is_some());
        let found = row(&out, 1);
        assert_eq!(found["mem_used_bytes"], json!(8 * GIB));
        assert_eq!((found.get("temp_c"), found.get("power_w")), (None, None));
        assert_eq!(events(&out).len(), usize::from(at_s == 30));
    }
}

#[test]
fn a_gpu_that_falls_off_the_bus_by_its_xid_is_lost() {
    // Breaks when the driver's word of the loss comes before its calls fail.
    let with = |xids: &Value| fleet(&json!({ "xids": xids }));
    let mut node = Node::new(&with(&json!([])));
    node.well(0);
    node.says(&with(&json!([79])));
    let out = node.well(30);
    assert_eq!(row(&out, 1)["xid"], json!(79));
    assert_eq!(events(&out), ["GPU-b lost: Xid 79"]);
    assert_eq!(events(&node.well(60)), ["GPU-b recovered: first good reading after it"]);
}

#[test]
fn a_gpu_that_hangs_holds_up_no_other() {
    // Breaks when the driver's silence on one GPU stops the readings of all.
    let mut node = Node::new(&fleet(&json!({})));
    node.settings.answer_within = Duration::from_millis(700);
    node.well(0);
    node.says(&fleet(&json!({ "hangs": true })));
    let (out, failure) = node.round(30);
    let words =
        "could not read GPU 1 `GPU-b` on node `n1`: no answer within 700 ms; 2 others were read";
    assert_eq!(failure.as_deref(), Some(words));
    assert_eq!(rows(&out, Table::Samples), 2);
    assert_eq!(events(&out), ["GPU-b lost: no answer within 700 ms"]);
    // It is not asked again before it has answered; the round does not wait for it.
    let (out, failure) = node.round(60);
    assert_eq!((rows(&out, Table::Samples), failure.is_some()), (2, true));
    node.says(&fleet(&json!({})));
    let mut recovered = Vec::new();
    for at_s in 61..1_000 {
        let (out, failure) = node.round(at_s);
        recovered.extend(events(&out));
        if failure.is_none() {
            break;
        }
    }
    assert_eq!(recovered, ["GPU-b recovered: first good reading after it"]);
}

#[test]
fn a_driver_that_is_gone_is_told_for_the_node_and_opened_again() {
    // Breaks when a reloaded driver is never found again, or each GPU makes an event of it.
    let mut node = Node::new(&fleet(&json!({})));
    node.well(0);
    let gone = json!({ "fails": 9 });
    let all = ["GPU-a", "GPU-b", "GPU-c"].map(|uuid| over(plain(uuid), &gone));
    node.says(&driver(&all));
    let (out, failure) = node.round(30);
    assert!(failure.unwrap().contains("the NVIDIA driver is not loaded; 0 others"));
    assert_eq!(events(&out), ["- driver-failed: the NVIDIA driver is not loaded"]);
    // After a minute it is opened anew, and refuses.
    node.says(&over(driver(&all), &json!({ "init": 9 })));
    let (out, failure) = node.round(90);
    let library = node.settings.library.clone().unwrap();
    let words = format!(
        "cannot read GPUs through `{}`: the NVIDIA driver is not loaded",
        library.display()
    );
    assert_eq!((failure, rows(&out, Table::Samples)), (Some(words), 0));
    // It is back, another version of it.
    node.says(&over(fleet(&json!({})), &json!({ "driver": "590.10" })));
    let out = node.well(120);
    assert_eq!(rows(&out, Table::Samples), 3);
    let versions = texts(&out.table(Table::Gpus), "driver_version");
    assert_eq!(versions, vec![Some("590.10".to_owned()); 3]);
}

#[test]
fn the_inventory_is_told_at_the_start_and_when_it_changes() {
    // Breaks when each round rewrites the inventory, or a change is never told.
    let mut node = Node::new(&fleet(&json!({})));
    let out = node.well(0);
    let gpus = out.table(Table::Gpus);
    for (column, value) in [
        ("gpu_uuid", "GPU-a"),
        ("cluster", "c1"),
        ("node", "n1"),
        ("gpu_model", "NVIDIA A10"),
        ("driver_version", "580.95.05"),
        ("cuda_version", "13.0"),
        ("vbios_version", "94.02"),
    ] {
        assert_eq!(texts(&gpus, column)[0].as_deref(), Some(value), "{column}");
    }
    assert_eq!(gpus["mem_total_bytes"].as_primitive::<Int64Type>().value(0), 24 << 30);
    for at_s in [30, 60, 90] {
        assert_eq!(rows(&node.well(at_s), Table::Gpus), 0);
    }
    node.says(&fleet(&json!({ "vbios": "95.00" })));
    let told: usize = [120, 150, 180].map(|at_s| rows(&node.well(at_s), Table::Gpus)).iter().sum();
    assert_eq!(told, 1, "of the GPU that changed, once, within a minute");
    assert_eq!(rows(&node.well(900), Table::Gpus), 3, "when each was last seen");
}

#[test]
fn a_missing_driver_and_a_hasty_interval_are_said_with_the_way_out() {
    // Breaks when a node without a driver ends in the words of the loader.
    let mut settings = NvmlSettings::new("n1");
    settings.library = Some(Path::new("/nowhere/libnvidia-ml.so.1").into());
    let error = NvmlCollector::open(settings.clone()).unwrap_err();
    let words = "cannot read GPUs through `/nowhere/libnvidia-ml.so.1`: it cannot be loaded";
    assert_eq!(error.to_string(), words);
    assert!(std::error::Error::source(&error).is_some());
    assert!(error.hint().unwrap().starts_with("install the NVIDIA driver on this node"));
    settings.interval = Duration::from_millis(50);
    let error = NvmlCollector::open(settings).unwrap_err();
    let words = "cannot use interval `50ms`: the driver renews its figures no faster than 100ms";
    assert_eq!(error.to_string(), words);
    let node = Node::new(&driver(&[]));
    let error = NvmlCollector::open(node.settings.clone()).unwrap_err();
    assert!(error.to_string().ends_with("it knows no GPU on this node"), "{error}");
}
