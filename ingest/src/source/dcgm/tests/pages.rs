//! Pages as they reach a file: several in one, zipped, in OpenMetrics, torn, or of something else.

use std::io::Write;

use super::*;

/// One page of two GPUs with the comments that the exporter writes.
fn page(util: u32, power: &str) -> String {
    let mut text = String::new();
    for (metric, values) in [
        ("DCGM_FI_DEV_GPU_UTIL", [util.to_string(), "0".into()]),
        ("DCGM_FI_DEV_POWER_USAGE", [power.into(), "66.997000".into()]),
    ] {
        text += &format!("# HELP {metric} words.\n# TYPE {metric} gauge\n");
        for (gpu, value) in values.iter().enumerate() {
            let uuid = ["GPU-a", "GPU-b"][gpu];
            text += &format!("{metric}{{gpu=\"{gpu}\",UUID=\"{uuid}\"}} {value}\n");
        }
    }
    text
}

fn read_bytes(bytes: &[u8], options: &Options) -> Result<Taken, IngestError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let mut taken = Taken::default();
    read(&[Input::one(&file.path().to_string_lossy())], options, &mut taken)?;
    Ok(taken)
}

#[test]
fn scrapes_in_one_file_are_one_sample_each() {
    // Breaks when the second scrape is lost, or mixed into the first.
    let [first, second] = [page(10, "100.500000"), page(20, "200.500000")];
    let dated = format!("2026-03-02T09:00:00Z\n{first}2026-03-02T09:00:30Z\n{second}");
    let taken = read_text(&dated, &Options::default()).unwrap();
    assert_eq!((taken.count(), taken.rejects.len(), taken.notices.len()), (4, 0, 0));
    assert_eq!(taken.column("gpu_util_ratio"), ["0.1", "0", "0.2", "0"]);
    assert_eq!(taken.column("power_w"), ["100.5", "66.997", "200.5", "66.997"]);
    // Without times, the first counts and the others are kept aside, whole.
    for between in ["", "# EOF\n"] {
        let joined = format!("{first}{between}{second}");
        let taken = read_text(&joined, &nine()).unwrap();
        assert_eq!((taken.count(), taken.read, taken.rejects.len()), (2, 4, 2));
        assert_eq!(taken.column("power_w"), ["100.5", "66.997"]);
        assert!(taken.rejects[0].reason.contains("second page of the same GPU"));
        let bare: String =
            joined.lines().filter(|l| !l.starts_with('#')).collect::<Vec<_>>().join("\n") + "\n";
        let taken = read_text(&bare, &nine()).unwrap();
        assert_eq!((taken.count(), taken.read, taken.rejects.len()), (2, 4, 2));
        assert_eq!(taken.column("power_w"), ["100.5", "66.997"]);
    }
    // Pages of two nodes in one file share their time.
    let nodes = format!("{first}{}", second.replace("GPU-", "GPU-2"));
    assert_eq!(read_text(&nodes, &nine()).unwrap().count(), 4);
}

#[test]
fn series_grouped_by_gpu_are_one_page() {
    // Breaks when a metric that comes back for another GPU ends the page.
    let text = "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\"} 10\n\
                DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\"} 100.5\n\
                DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-b\"} 20\n\
                DCGM_FI_DEV_POWER_USAGE{gpu=\"1\",UUID=\"GPU-b\"} 200.5\n\
                DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 30\n";
    let taken = read_text(text, &nine()).unwrap();
    assert_eq!((taken.count(), taken.rejects.len()), (2, 0));
    assert_eq!(taken.column("temp_c"), ["30", "-"]);
    assert_eq!(taken.column("power_w"), ["100.5", "200.5"]);
}

#[test]
fn a_series_that_stands_there_twice_counts_once() {
    // Breaks when a repeated series ends its page, and what follows it is lost.
    let series = "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"}";
    let power = "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\"} 100.5\n";
    for time in ["", " 1773114089184"] {
        let same = format!("{series} 30{time}\n{series} 30{time}\n{power}");
        let taken = read_text(&same, &nine()).unwrap();
        assert_eq!(taken.rejects.len(), 0);
        assert!(taken.column("temp_c").contains(&"30".to_owned()));
        assert!(taken.column("power_w").contains(&"100.5".to_owned()));
        assert_eq!(taken.notices[0].text, "1 series stood there twice and count once");
        let other = format!("{series} 30{time}\n{series} 31{time}\n{power}");
        let taken = read_text(&other, &nine()).unwrap();
        assert!(taken.column("temp_c").contains(&"30".to_owned()));
        assert!(taken.column("power_w").contains(&"100.5".to_owned()));
        assert_eq!(taken.read as usize, taken.count() + 1);
        let reject = &taken.rejects[0];
        assert_eq!(reject.line, Some(2));
        assert_eq!(
            reject.reason,
            "the series of line 1 again, at the same time with another value"
        );
        assert_eq!(reject.text, format!("{series} 31{time}"));
    }
}

#[test]
fn openmetrics_reads_as_the_older_format_does() {
    // Breaks when a unit, an exemplar, a counter's suffix or the end mark costs a reading.
    let text = "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n\
                # UNIT DCGM_FI_DEV_GPU_TEMP celsius\n\
                # HELP DCGM_FI_DEV_GPU_TEMP GPU temperature.\n\
                DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 41.0 1773114089.184\n\
                # TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n\
                DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total{gpu=\"0\",UUID=\"GPU-a\"} 319159391.0 \
                1773114089.184 # {trace_id=\"7} # \\\"\"} 1.0 1773114089.1\n\
                DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_created{gpu=\"0\",UUID=\"GPU-a\"} 1773000000.0\n\
                DCGM_FI_PROF_SM_ACTIVE{gpu=\"0\",UUID=\"GPU-a\"} NaN 1773114089.184\n\
                DCGM_FI_PROF_DRAM_ACTIVE{gpu=\"0\",UUID=\"GPU-a\"} +Inf 1773114089.184\n\
                # EOF\n";
    let taken = read_text(text, &Options::default()).unwrap();
    assert_eq!((taken.count(), taken.rejects.len()), (1, 0));
    assert_eq!(taken.column("sampled_at"), ["2026-03-10T03:41:29.184Z"]);
    assert_eq!(taken.column("temp_c"), ["41"]);
    assert_eq!(taken.column("energy_j"), ["319159.391"]);
    assert_eq!(taken.column("sm_active_ratio"), ["-"]);
    assert_eq!(taken.nulled, [("sm_active_ratio", 1), ("dram_active_ratio", 1)]);
}

#[test]
fn a_ratio_that_is_percent_in_some_releases_is_told_by_its_decimals() {
    // Breaks when one percent becomes a full GPU, or a full GPU one percent (case 8).
    let read = |value: &str| {
        let text = format!("DCGM_FI_DEV_GPU_UTIL_RATIO{{gpu=\"0\",UUID=\"GPU-a\"}} {value}\n");
        read_text(&text, &nine()).unwrap().column("gpu_util_ratio").remove(0)
    };
    for (printed, ratio) in
        [("1", "0.01"), ("100", "1"), ("0", "0"), ("1.000000", "1"), ("0.870000", "0.87")]
    {
        assert_eq!(read(printed), ratio, "{printed}");
    }
    // An answer of the API prints a full GPU as `1`: other readings say that it is a ratio.
    let answer = r#"{"data":{"result":[{"metric":{"__name__":"DCGM_FI_DEV_GPU_UTIL_RATIO",
        "UUID":"GPU-a","cluster":"north","node":"gpu-1"},
        "values":[[1773114089,"0.5"],[1773114119,"1"]]}]}}"#;
    let taken = read_text(answer, &Options::default()).unwrap();
    assert_eq!(taken.column("gpu_util_ratio"), ["0.5", "1"]);
    assert_eq!(taken.column("cluster"), ["north", "north"]);
    assert_eq!(taken.column("node"), ["gpu-1", "gpu-1"]);
}

#[test]
fn zipped_marked_and_crlf_pages_read_alike() {
    // Breaks when a byte-order mark or the end of a line becomes part of a name or value.
    let plain = page(10, "100.500000");
    let crlf = plain.replace('\n', "\r\n");
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zip.write_all(plain.as_bytes()).unwrap();
    let marked = [b"\xef\xbb\xbf", plain.as_bytes()].concat();
    let indented = [b"\n  \n", plain.as_bytes()].concat();
    for bytes in [plain.as_bytes(), crlf.as_bytes(), &zip.finish().unwrap(), &marked, &indented] {
        let taken = read_bytes(bytes, &nine()).unwrap();
        assert_eq!((taken.count(), taken.rejects.len()), (2, 0));
        assert_eq!(taken.column("power_w"), ["100.5", "66.997"]);
    }
}

/// Reads with room for few rows.
fn read_narrow(text: String, rows_held_max: usize) -> Taken {
    let (input, options) = (Input::one("-"), nine());
    let (mut samples, mut taken) = (Samples::default(), Taken::default());
    let mut pages = Pages::new(&input, &options, &mut samples);
    pages.page.rows_held_max = rows_held_max;
    pages.text(Box::new(std::io::Cursor::new(text)), &mut taken).unwrap();
    pages.finish(&mut taken).unwrap();
    samples.finish(&mut taken).unwrap();
    taken
}

#[test]
fn more_rows_than_are_held_lose_nothing_unsaid() {
    // Breaks when a row is handed over before all of its series are read.
    let series = |metric: &str, node: u32, time: &str| {
        format!("{metric}{{gpu=\"0\",UUID=\"GPU-{node:03}\",Hostname=\"n{node}\"}} 7{time}\n")
    };
    let metrics = ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE"];
    let bare = (0..100).flat_map(|node| metrics.map(|metric| series(metric, node, "")));
    let taken = read_narrow(bare.collect(), 10);
    assert_eq!((taken.count(), taken.rejects.len()), (100, 0));
    assert_eq!(taken.column("power_w"), ["7"; 100]);
    let minute = |at: i64| format!(" {}", 1_773_114_060_000 + at * 60_000);
    let by_time = (0..100).flat_map(|at| metrics.map(|metric| series(metric, 0, &minute(at))));
    let taken = read_narrow(by_time.collect(), 30);
    assert_eq!((taken.count(), taken.rejects.len()), (100, 0));
    assert_eq!(taken.column("power_w"), ["7"; 100]);
    let by_series = metrics.iter().flat_map(|m| (0..100).map(|at| series(m, 0, &minute(at))));
    let taken = read_narrow(by_series.collect(), 30);
    assert_eq!(taken.read as usize, taken.count() + taken.rejects.len());
    let without = taken.column("power_w").iter().filter(|power| *power == "-").count();
    assert_eq!((taken.count(), without), (100, taken.rejects.len()));
    assert!(without > 0 && taken.rejects[0].reason.contains("sort the file by time"));
}

#[test]
fn quotes_in_labels_stay_in_the_name() {
    // Breaks when an escaped quote ends a label (case 10).
    let text =
        r#"DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",pod="a\"b\\",namespace="n",note="},{"} 80"#;
    let taken = read_text(&format!("{text}\n"), &nine()).unwrap();
    assert_eq!(taken.column("job_id"), ["n/a\"b\\"]);
    assert_eq!(taken.column("gpu_util_ratio"), ["0.8"]);
}

#[test]
fn a_page_of_something_else_is_named_and_an_empty_one_passed_over() {
    // Breaks when a wrong port of a node ends as an import of nothing.
    let error = |text: &str| read_text(text, &nine()).unwrap_err().to_string();
    let node = "# TYPE node_load1 gauge\nnode_load1 0.5\nnode_time_seconds 1.7e9\n";
    assert!(error(node).contains("but of node_exporter: `node_load1`, `node_time_seconds`"));
    assert!(error("<html>404</html>\n").contains("line 1 is `<html>404</html>`"));
    assert!(error("DCGM_FI_DEV_GPU_UTIL 50\n").contains("name no GPU"));
    assert!(error("{\"data\": 1}").contains("no answer of the Prometheus API"));
    assert!(error("{\"status\":\"error\",\"error\":\"bad_data\"}").contains("`bad_data`"));
    for empty in ["", "\n \n", "# EOF\n"] {
        let taken = read_text(empty, &nine()).unwrap();
        assert_eq!((taken.count(), taken.read), (0, 0));
        assert_eq!(taken.notices[0].text, "no series in it: nothing was read");
    }
}

#[test]
fn standard_input_without_a_time_asks_for_one() {
    // Breaks when readings of last week land on today.
    let options = Options::default();
    let input = Input::one("-");
    let mut samples = Samples::default();
    let mut taken = Taken::default();
    let mut pages = Pages::new(&input, &options, &mut samples);
    pages.text(Box::new(std::io::Cursor::new(page(10, "100.5"))), &mut taken).unwrap();
    let error = pages.finish(&mut taken).unwrap_err();
    assert!(error.to_string().contains("`--time` was not given"), "{error}");
    assert!(error.hint().unwrap().contains("--time"));
}

#[test]
fn hostile_lines_cost_themselves_and_no_memory() {
    // Breaks when a file of anything panics, or a monstrous name is held.
    let long = "x".repeat(1 << 20);
    let good = page(10, "100.500000");
    let lines = [
        long.clone(),
        format!("DCGM_FI_DEV_GPU_TEMP{{gpu=\"0\",UUID=\"GPU-a\",pod=\"{long}\"}} 1"),
        format!("DCGM_FI_DEV_GPU_TEMP{{gpu=\"0\",UUID=\"GPU-a\"}} {long}"),
        format!("{long} 1"),
        "{".repeat(10_000),
    ];
    let hostile = format!("{good}{}\n", lines.join("\n"));
    let taken = read_text(&hostile, &nine()).unwrap();
    assert_eq!((taken.count(), taken.rejects.len()), (2, lines.len()));
    assert!(taken.rejects.iter().all(|reject| reject.text.len() <= 200));
    assert_eq!(taken.column("job_id"), ["-", "-"]);
    let mut binary: Vec<u8> =
        (0..200_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert!(read_bytes(&binary, &nine()).unwrap_err().to_string().contains("no series"));
    binary.splice(0..0, good.bytes());
    assert_eq!(read_bytes(&binary, &nine()).unwrap().count(), 2);
    assert!(read_text(&"{\"data\":".repeat(100_000), &nine()).is_err());
    // A zip that was cut is no whole page.
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zip.write_all(good.as_bytes()).unwrap();
    let zipped = zip.finish().unwrap();
    let cut = read_bytes(&zipped[..zipped.len() / 2], &nine());
    assert!(matches!(cut, Err(IngestError::Read { .. })));
}
