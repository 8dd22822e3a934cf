//! The real pages, where they are present. What is expected was counted in them by hand.

use std::collections::BTreeMap;

use super::*;
use crate::source::nvidia_smi::tests::shared;

fn capture(path: &str, options: &Options) -> Option<Taken> {
    let path = shared(path)?;
    let mut taken = Taken::default();
    read(&[Input::one(&path.to_string_lossy())], options, &mut taken).unwrap();
    Some(taken)
}

#[test]
fn a_page_of_eight_h100_is_eight_samples() {
    // Breaks when series of one GPU are not brought together, or the exporter gets the work.
    let Some(taken) = capture("dcgm/aicr-h100x8-k8s-1.prom", &nine()) else { return };
    assert_eq!((taken.count(), taken.read, taken.rejects.len()), (8, 8, 0));
    assert_eq!(taken.gpu_column("gpu_uuid").len(), 8);
    let by_uuid: BTreeMap<_, _> =
        taken.column("gpu_uuid").into_iter().zip(taken.column("power_w")).collect();
    assert_eq!(by_uuid["GPU-c4529c8d-69c4-b61d-e0bc-7b2460096005"], "113.611");
    assert_eq!(by_uuid["GPU-04d228d3-3b5a-3534-f5cf-969706647d56"], "66.997");
    let jobs: Vec<_> = taken.column("job_id").into_iter().filter(|job| job != "-").collect();
    assert_eq!(jobs, ["dynamo-workload/vllm-agg-0-vllmdecodeworker-s65j5"]);
    assert_eq!(taken.column("gpu_util_ratio"), ["0"; 8]);
    // The page has no such series for GPUs 6 and 7: NULL, not 0.
    let copies = taken.column("mem_copy_util_ratio");
    assert_eq!(copies.iter().filter(|copy| *copy == "0").count(), 6);
    assert_eq!(copies.iter().filter(|copy| *copy == "-").count(), 2);
    assert_eq!(taken.column("mem_used_bytes"), ["-"; 8]);
    let mut temps = taken.column("temp_c");
    temps.sort();
    assert_eq!(temps, ["26", "26", "26", "28", "28", "29", "29", "30"]);
    assert_eq!(taken.column("node"), ["gpu-node-1"; 8]);
    assert_eq!(taken.gpu_column("driver_version"), ["580.105.08"; 8]);
    assert_eq!(taken.column("sampled_at"), ["2026-03-02T09:00:00.000Z"; 8]);
}

#[test]
fn excerpts_of_the_documentation_give_their_boards_and_slice() {
    // Breaks when a sentinel is a temperature, or a slice takes its board's place.
    let Some(taken) = capture("dcgm/nvidia-docs-excerpts.prom", &nine()) else { return };
    assert_eq!((taken.count(), taken.rejects.len()), (3, 0));
    let uuids = taken.column("gpu_uuid");
    assert!(uuids[0].starts_with("GPU-34319582") && uuids[1] == uuids[0]);
    assert!(uuids[2].starts_with("GPU-604ac76c"));
    assert_eq!(taken.column("mig"), ["-", "13", "-"]);
    assert_eq!(taken.column("sm_clock_mhz"), ["1215", "-", "139"]);
    assert_eq!(taken.column("mem_temp_c"), ["69", "-", "-"]);
    assert_eq!(taken.nulled, [("mem_temp_c", 1)]);
    assert_eq!(taken.column("power_w"), ["409.692", "-", "-"]);
    assert_eq!(taken.column("energy_j"), ["319159.391", "-", "-"]);
    assert_eq!(taken.column("gpu_util_ratio"), ["0.99563", "0.995687", "-"]);
    assert_eq!(taken.column("tensor_active_ratio"), ["0.92926", "0.930433", "-"]);
    assert_eq!(taken.column("dram_active_ratio"), ["0.690789", "0.800339", "-"]);
    assert_eq!(taken.column("mem_used_bytes")[0], (4845_u64 << 20).to_string());
    assert_eq!(taken.column("mem_total_bytes")[0], ((4845_u64 + 35690) << 20).to_string());
    assert_eq!(taken.column("pcie_tx_bytes_per_s")[0], "33011804");
    assert_eq!(taken.column("xid"), ["0", "0", "-"]);
}

#[test]
fn an_answer_of_the_api_is_sixteen_samples_and_one_has_work() {
    // Breaks when the pod of the exporter is taken for the workload (case 10).
    let Some(taken) = capture("dcgm/aicr-prometheus-api-1.json", &Options::default()) else {
        return;
    };
    assert_eq!((taken.count(), taken.read, taken.rejects.len()), (16, 16, 0));
    assert_eq!(taken.column("sampled_at"), ["2026-03-10T03:41:29.184Z"; 16]);
    assert_eq!(taken.column("gpu_util_ratio"), ["0"; 16]);
    let jobs: Vec<_> = taken.column("job_id").into_iter().filter(|job| job != "-").collect();
    assert_eq!(jobs.len(), 1);
    assert!(jobs[0].ends_with("vllm-agg-0-vllmdecodeworker-s65j5"));
    let nodes = taken.column("node");
    assert_eq!(nodes.iter().filter(|node| *node == "gpu-node-1").count(), 8);
    assert_eq!(nodes.iter().filter(|node| *node == "gpu-node-2").count(), 8);
}

#[test]
fn definitions_of_counters_are_no_page() {
    // Breaks when a list of metrics without a reading ends as an empty import.
    for file in ["default-counters.csv", "dcp-metrics-included.csv"] {
        let Some(path) = shared(&format!("dcgm/{file}")) else { return };
        let mut taken = Taken::default();
        let input = Input::one(&path.to_string_lossy());
        let error = read(&[input], &nine(), &mut taken).unwrap_err().to_string();
        let named = "line 6 is `DCGM_FI_DEV_SM_CLOCK,  gauge, SM clock frequency (in MHz).`";
        assert!(error.contains(named), "{error}");
        assert_eq!(taken.count(), 0);
    }
}
