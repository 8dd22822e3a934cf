//! Real outputs of the driver, by what reading them shows.

use super::*;

#[test]
fn captures_of_h100_give_two_samples_with_their_figures() {
    // Breaks when a section of a capture is missed or text of another is taken for rows.
    let Some(taken) =
        capture("nvidia-smi/linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01.txt", &utc())
    else {
        return;
    };
    assert_eq!((taken.count(), taken.read, taken.rejects.len()), (2, 2, 0));
    assert_eq!(
        taken.column("sampled_at"),
        ["2026-07-14T08:12:38.696Z", "2026-07-14T08:12:53.353Z"]
    );
    assert_eq!(taken.column("gpu_util_ratio"), ["0", "1"]);
    assert_eq!(taken.column("mem_copy_util_ratio"), ["0", "0.11"]);
    assert_eq!(taken.column("power_w"), ["69.85", "631.95"]);
    assert_eq!(taken.column("mem_used_bytes"), ["0", "20780679168"]);
    assert_eq!(taken.column("mem_total_bytes"), ["85520809984", "85520809984"]);
    assert_eq!(taken.column("temp_c"), ["41", "59"]);
    assert_eq!(taken.column("mem_temp_c"), ["48", "54"]);
    assert_eq!(taken.column("fan_ratio"), ["-", "-"]);
    assert_eq!(taken.column("sm_clock_mhz"), ["345", "1980"]);
    assert_eq!(taken.column("throttle_reasons"), ["1", "0"]);
    assert_eq!(taken.column("ecc_corrected_total"), ["0", "0"]);
    assert_eq!(taken.column("processes"), ["0", "3"]);
    assert_eq!(taken.gpu_column("gpu_model"), ["NVIDIA H100 80GB HBM3"]);
    assert_eq!(taken.gpu_column("driver_version"), ["590.48.01"]);
    assert_eq!(taken.gpu_column("vbios_version"), ["96.00.A5.00.01"]);
    assert_eq!(taken.gpu_column("state"), ["-"]);
}

#[test]
fn a_busy_mig_board_has_power_and_no_utilisation() {
    // Breaks when `[N/A]` becomes 0 (case 5).
    let Some(taken) = capture("nvidia-smi/linux-x86_64__nvidia-h100-mig__590.48.01.txt", &utc())
    else {
        return;
    };
    assert_eq!((taken.count(), taken.rejects.len()), (2, 0));
    assert_eq!(taken.column("gpu_util_ratio"), ["-", "-"]);
    assert_eq!(taken.column("mem_copy_util_ratio"), ["-", "-"]);
    assert_eq!(taken.column("power_w"), ["71.15", "433.78"]);
    assert_eq!(taken.column("mem_used_bytes"), ["61865984", "11665408000"]);
    assert_eq!(taken.column("temp_c"), ["42", "53"]);
    assert_eq!(taken.column("processes"), ["0", "3"]);
}

#[test]
fn an_idle_l40s_that_says_100_percent_keeps_what_tells_it_from_a_busy_one() {
    // Breaks when memory, power or processes of case 15 are lost on the way.
    let Some(taken) = capture("nvidia-smi/linux-x86_64__nvidia-l40s__595.80.txt", &utc()) else {
        return;
    };
    assert_eq!((taken.count(), taken.rejects.len()), (2, 0));
    assert_eq!(taken.column("gpu_util_ratio"), ["1", "0.09"]);
    assert_eq!(taken.column("mem_used_bytes"), ["0", "1294991360"]);
    assert_eq!(taken.column("power_w"), ["144.97", "110.23"]);
    assert_eq!(taken.column("mem_temp_c"), ["-", "-"]);
    assert_eq!(taken.column("processes"), ["0", "2"]);
}

#[test]
fn captures_of_a_desktop_card_take_their_zone_from_the_collection_time() {
    // Breaks when a capture in UTC+2 is stored two hours late.
    for (path, first, processes) in [
        (
            "linux-x86_64__nvidia-geforce-rtx-2080-super__610.57.04.txt",
            "2026-08-12T19:53:45.370Z",
            "2",
        ),
        (
            "windows-x86_64__nvidia-geforce-rtx-2080-super__610.62.txt",
            "2026-06-24T08:17:41.589Z",
            "",
        ),
    ] {
        let Some(taken) = capture(&format!("nvidia-smi/{path}"), &Options::default()) else {
            return;
        };
        assert_eq!((taken.count(), taken.rejects.len()), (2, 0), "{path}");
        assert_eq!(taken.column("sampled_at")[0], first);
        assert_eq!(taken.column("fan_ratio"), ["0.38", "0.38"]);
        assert_eq!(taken.column("ecc_corrected_total"), ["-", "-"]);
        assert_eq!(taken.column("mem_total_bytes"), ["8589934592", "8589934592"]);
        if !processes.is_empty() {
            assert_eq!(taken.column("processes"), ["0", processes]);
            assert_eq!(taken.column("gpu_util_ratio"), ["0", "0.08"]);
            assert_eq!(taken.column("power_w"), ["39.17", "98.14"]);
        } else {
            assert_eq!(taken.column("gpu_util_ratio"), ["0", "0.07"]);
            assert_eq!(taken.column("power_w"), ["39.25", "97.99"]);
            assert!(taken.column("processes").iter().all(|n| n.parse::<u32>().unwrap() > 5));
        }
    }
}

#[test]
fn a_plain_query_is_timed_by_the_option() {
    // Breaks when a snapshot without time cannot be imported.
    let time = DateTime::parse_from_rfc3339("2026-03-02T09:00:00Z").unwrap().to_utc();
    let options = Options { time: Some(time), node: Some("n1".into()), ..Options::default() };
    let Some(taken) = capture("nvidia-smi/query.txt", &options) else { return };
    assert_eq!((taken.count(), taken.rejects.len()), (2, 0));
    assert_eq!(taken.column("fan_ratio"), ["0.5", "0.38"]);
    assert_eq!(taken.column("mem_used_bytes"), ["1293942784", "602931200"]);
    assert_eq!(taken.column("gpu"), ["1", "0"]);
    assert_eq!(taken.column("node"), ["n1", "n1"]);
    assert_eq!(taken.gpu_column("driver_version"), ["123.45", "466.63"]);
}

#[test]
fn xml_of_every_schema_gives_one_sample_a_board() {
    // Breaks when a schema moves a figure: v10 to v13 keep power, clocks and counts elsewhere.
    let time = DateTime::parse_from_rfc3339("2026-03-02T09:00:00Z").unwrap().to_utc();
    let options = Options { time: Some(time), ..utc() };
    let expected = [
        // file, at, util, memory used, power, temperature, fan, processes, driver
        (
            "a10g",
            "2023-04-24T16:11:51.000Z",
            "0",
            "23068672",
            "25.58",
            "17",
            "0",
            "1",
            "515.105.01",
        ),
        ("gtx-1070-ti", "2026-03-02T09:00:00.000Z", "0", "44040192", "-", "39", "1", "-", "-"),
        ("quadro-p400", "2019-03-11T17:03:27.000Z", "0", "0", "-", "33", "0.34", "0", "418.43"),
        (
            "rtx-3080-v13",
            "2026-04-10T10:23:01.000Z",
            "0.65",
            "9630121984",
            "139.62",
            "27",
            "0",
            "0",
            "595.58.03",
        ),
        (
            "tesla-t4",
            "2023-04-24T16:22:39.000Z",
            "0",
            "1082130432",
            "26.78",
            "40",
            "-",
            "2",
            "515.105.01",
        ),
    ];
    for (file, at, util, memory, power, temp, fan, processes, driver) in expected {
        let Some(taken) = capture(&format!("nvidia-smi-xml/{file}.xml"), &options) else { return };
        assert_eq!((taken.count(), taken.read, taken.rejects.len()), (1, 1, 0), "{file}");
        assert_eq!(taken.column("sampled_at"), [at]);
        assert_eq!(taken.column("gpu_util_ratio"), [util], "{file}");
        assert_eq!(taken.column("mem_used_bytes"), [memory], "{file}");
        assert_eq!(taken.column("power_w"), [power], "{file}");
        assert_eq!(taken.column("temp_c"), [temp], "{file}");
        assert_eq!(taken.column("fan_ratio"), [fan], "{file}");
        assert_eq!(taken.column("processes"), [processes], "{file}");
        assert_eq!(taken.gpu_column("driver_version"), [driver], "{file}");
        assert_eq!(taken.column("mig"), ["-"]);
    }
    let Some(taken) = capture("nvidia-smi-xml/rtx-3080-v13.xml", &options) else { return };
    assert_eq!(taken.column("pcie_rx_bytes_per_s"), ["14742333000"]);
    assert_eq!(taken.column("throttle_reasons"), ["0"]);
    assert_eq!(taken.gpu_column("cuda_version"), ["13.2"]);
    let error = capture_error("nvidia-smi-xml/a10g.xml", &Options::default());
    assert!(error.is_none_or(|e| e.to_string().contains("`--zone`")));
}

fn capture_error(path: &str, options: &Options) -> Option<IngestError> {
    let path = shared(path)?;
    read(&[Input::one(&path.to_string_lossy())], options, &mut Taken::default()).err()
}

#[test]
fn a_mig_board_and_its_slices_share_a_uuid_and_only_the_board_has_power() {
    // Breaks when energy is counted once a slice (case 5).
    let Some(taken) = capture("nvidia-smi-xml/a100-sxm4-v12.xml", &utc()) else { return };
    assert_eq!((taken.count(), taken.read, taken.rejects.len()), (5, 5, 0));
    assert_eq!(taken.column("mig"), ["-", "3", "4", "5", "6"]);
    assert_eq!(taken.column("power_w"), ["67.03", "-", "-", "-", "-"]);
    assert_eq!(taken.column("gpu_util_ratio"), ["-"; 5]);
    assert_eq!(
        taken.column("mem_used_bytes"),
        ["52428800", "12582912", "12582912", "12582912", "12582912"]
    );
    assert_eq!(taken.column("mem_total_bytes")[1], "20937965568");
    assert_eq!(taken.column("ecc_uncorrected_total"), ["0"; 5]);
    assert_eq!(taken.column("pcie_tx_bytes_per_s")[0], "4000000");
    // The document lists one of four attached GPUs, so its place is not its index.
    assert_eq!(taken.column("gpu"), ["-"; 5]);
    assert_eq!(taken.gpu_column("gpu_uuid"), ["GPU-513536b6-7d19-9063-b049-1e69664bb298"]);
    assert_eq!(taken.gpu_column("mem_total_bytes"), ["85899345920"]);
}

#[test]
fn documents_in_a_row_are_read_and_a_torn_one_keeps_its_whole_gpus() {
    // Breaks when the log of an XML loop ends at its first document.
    let gpu = |uuid: &str, util: &str| {
        format!(
            "<gpu id=\"1\"><uuid>{uuid}</uuid><utilization><gpu_util>{util}</gpu_util>\
             </utilization></gpu>\n"
        )
    };
    let document = |second: u32, body: &str| {
        format!(
            "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n\
             <nvidia_smi_log>\n<timestamp>Fri Aug  4 11:44:{second} 2023</timestamp>\n{body}"
        )
    };
    let both = gpu("GPU-a", "10 %") + &gpu("GPU-b", "20 %");
    let torn = format!("{}<gpu id=\"2\"><uuid>GPU-b</uu", gpu("GPU-a", "30 %"));
    let text = format!(
        "{}</nvidia_smi_log>\n{}</nvidia_smi_log>{}",
        document(10, &both),
        document(20, &both),
        document(30, &torn)
    );
    let taken = read_text(&text, &utc()).unwrap();
    assert_eq!(taken.count(), 5);
    assert_eq!(taken.column("gpu_util_ratio"), ["0.1", "0.2", "0.1", "0.2", "0.3"]);
    assert_eq!(taken.column("gpu"), ["0", "1", "0", "1", "0"]);
    assert_eq!(taken.rejects.len(), 1);
    assert!(taken.rejects[0].reason.contains("XML document"), "{}", taken.rejects[0].reason);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_input_panics(
        junk in prop::collection::vec("\\PC{0,60}", 0..12),
        lines in prop::collection::vec(prop::sample::select(vec![
            "timestamp, index, uuid, utilization.gpu [%], power.draw [W]",
            "2026/07/14 09:00:27.792, 0, GPU-a, 100 %, 631.95 W",
            "index, temperature.gpu", "0, 40", "Mon Nov 30 04:10:56 UTC 2026",
            "gpu_uuid, pid, used_gpu_memory [MiB]", "GPU-a, 1, [N/A]",
            "########################", "# $ nvidia-smi --query-gpu=uuid", "<?xml version=\"1.0\"?>",
            "<nvidia_smi_log><gpu><uuid>GPU-a</uuid>", "</gpu></nvidia_smi_log>", "<a/>", "&x;",
        ]), 0..20),
    ) {
        // Breaks when any mix of lines panics, or a row is neither kept nor accounted for.
        let mut text: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
        for (at, line) in junk.into_iter().enumerate() {
            text.insert((at * 7) % (text.len() + 1), line);
        }
        let time = DateTime::from_timestamp(1_700_000_000, 0);
        let options = Options { time, ..utc() };
        if let Ok(taken) = read_text(&text.join("\n"), &options) {
            prop_assert_eq!(taken.read as usize, taken.count() + taken.rejects.len());
        }
    }
}
