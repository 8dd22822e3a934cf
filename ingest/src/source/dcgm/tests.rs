use proptest::prelude::*;

use super::*;
use crate::source::nvidia_smi::tests::Taken;

mod captures;
mod pages;

fn read_text(text: &str, options: &Options) -> Result<Taken, IngestError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let mut taken = Taken::default();
    read(&[Input::one(&file.path().to_string_lossy())], options, &mut taken)?;
    Ok(taken)
}

fn at(text: &str) -> Options {
    let time = DateTime::parse_from_rfc3339(text).unwrap().to_utc();
    Options { time: Some(time), ..Options::default() }
}

fn nine() -> Options {
    at("2026-03-02T09:00:00Z")
}

const SLICED: &str = "\
DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\",GPU_I_PROFILE=\"2g.10gb\",GPU_I_ID=\"3\"} 434\n\
DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\",GPU_I_PROFILE=\"3g.20gb\",GPU_I_ID=\"1\"} 434\n\
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\",UUID=\"GPU-a\",GPU_I_PROFILE=\"2g.10gb\",GPU_I_ID=\"3\"} 5000\n\
DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",GPU_I_PROFILE=\"2g.10gb\",GPU_I_ID=\"3\"} 0\n\
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"0\",UUID=\"GPU-a\",GPU_I_PROFILE=\"2g.10gb\",GPU_I_ID=\"3\"} 0.285\n\
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"0\",UUID=\"GPU-a\",GPU_I_PROFILE=\"3g.20gb\",GPU_I_ID=\"1\"} 0\n\
DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-a\",GPU_I_PROFILE=\"2g.10gb\",GPU_I_ID=\"3\"} 100\n";

#[test]
fn power_repeated_on_slices_counts_once_and_a_full_slice_is_full() {
    // Breaks when the energy of a board is counted once a slice, or null becomes 0 (cases 5, 6).
    let taken = read_text(SLICED, &nine()).unwrap();
    assert_eq!((taken.count(), taken.read), (3, 3));
    assert_eq!(taken.column("mig"), ["-", "1", "3"]);
    assert_eq!(taken.column("power_w"), ["434", "-", "-"]);
    assert_eq!(taken.column("energy_j"), ["5", "-", "-"]);
    assert_eq!(taken.column("gpu_util_ratio"), ["-", "0", "0.9975"]);
    assert_eq!(taken.column("mem_used_bytes"), ["-", "-", "104857600"]);
    let with_board = format!("{SLICED}DCGM_FI_DEV_SM_CLOCK{{gpu=\"0\",UUID=\"GPU-a\"}} 1980\n");
    let taken = read_text(&with_board, &nine()).unwrap();
    assert_eq!(taken.count(), 3);
    assert_eq!(taken.column("power_w"), ["434", "-", "-"]);
    assert_eq!(taken.column("sm_clock_mhz"), ["1980", "-", "-"]);
}

#[test]
fn pods_and_jobs_that_share_a_gpu_are_one_row_with_all_their_names() {
    // Breaks when a mirrored series is counted once a pod (case 9).
    let pods = "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",pod=\"b\",namespace=\"n\",container=\"x\"} 80\n\
                DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",pod=\"a\",namespace=\"n\",container=\"x\"} 80\n\
                DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",pod=\"a\",namespace=\"n\",container=\"y\"} 80\n";
    let taken = read_text(pods, &nine()).unwrap();
    assert_eq!((taken.count(), taken.rejects.len()), (1, 0));
    assert_eq!(taken.column("job_id"), ["n/a,n/b"]);
    assert_eq!(taken.column("gpu_util_ratio"), ["0.8"]);
    let jobs = "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",hpc_job=\"12\"} 80\n\
                DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",hpc_job=\"7\"} 80\n";
    assert_eq!(read_text(jobs, &nine()).unwrap().column("job_id"), ["12,7"]);
}

#[test]
fn values_out_of_range_are_null_and_counted() {
    // Breaks when 1.7 or a sentinel is averaged in (case 7).
    let page = "DCGM_FI_PROF_SM_ACTIVE{gpu=\"0\",UUID=\"GPU-a\"} 1.7\n\
                DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\"} 4294967295\n\
                DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\",UUID=\"GPU-a\"} 1.4e+17\n\
                DCGM_FI_PROF_DRAM_ACTIVE{gpu=\"0\",UUID=\"GPU-a\"} NaN\n\
                DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\"} 140737488355328\n\
                DCGM_FI_DEV_GPU_TEMP_CELSIUS{gpu=\"0\",UUID=\"GPU-a\"} 41\n";
    let taken = read_text(page, &nine()).unwrap();
    assert_eq!((taken.count(), taken.rejects.len()), (1, 0));
    assert_eq!(taken.column("temp_c"), ["41"]);
    let columns: Vec<_> = taken.nulled.iter().map(|(column, _)| *column).collect();
    assert_eq!(
        columns,
        ["sm_active_ratio", "gpu_util_ratio", "energy_j", "dram_active_ratio", "power_w"]
    );
    for column in columns {
        assert_eq!(taken.column(column), ["-"], "{column}");
    }
}

#[test]
fn the_time_of_a_page_is_the_lines_then_the_date_then_the_option_then_the_file() {
    // Breaks when pages of a loop fall on one instant and all but one are lost.
    let series = |util: u32| format!("DCGM_FI_DEV_GPU_UTIL{{gpu=\"0\",UUID=\"GPU-a\"}} {util}");
    let own = format!("{} 1773114089184\n{} 1773114099184\n", series(1), series(2));
    let taken = read_text(&own, &Options::default()).unwrap();
    assert_eq!(
        taken.column("sampled_at"),
        ["2026-03-10T03:41:29.184Z", "2026-03-10T03:41:39.184Z"]
    );
    let dated = format!(
        "Mon Nov 30 04:10:56 UTC 2026\n{}\n# 2026-11-30T04:11:26Z\n{}\n",
        series(1),
        series(2)
    );
    let taken = read_text(&dated, &nine()).unwrap();
    assert_eq!(
        taken.column("sampled_at"),
        ["2026-11-30T04:10:56.000Z", "2026-11-30T04:11:26.000Z"]
    );
    assert_eq!(taken.column("gpu_util_ratio"), ["0.01", "0.02"]);
    let written = read_text(&format!("{}\n", series(1)), &Options::default()).unwrap();
    assert_eq!(written.count(), 1);
    assert!(written.notices[0].text.contains("when the file was written"));
    let taken = read_text(&own, &nine()).unwrap();
    assert_eq!(taken.column("sampled_at")[0], "2026-03-10T03:41:29.184Z");
    assert_eq!(taken.notices[0].text, "`--time` was not used: the page has its own");
}

#[test]
fn text_that_is_no_series_is_kept_aside() {
    // Breaks when an error of curl ends the import or is lost.
    let page = "curl: (7) Failed to connect to gpu-node-1 port 9400\n\
                DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\"} 50\n\
                DCGM_FI_DEV_PCIE_REPLAY_COUNTER{gpu=\"0\",UUID=\"GPU-a\"} 0\n\
                DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\"} 43";
    let taken = read_text(page, &nine()).unwrap();
    assert_eq!((taken.count(), taken.read), (1, 3));
    let lines: Vec<_> = taken.rejects.iter().map(|reject| reject.line).collect();
    assert_eq!(lines, [Some(1), Some(4)]);
    assert_eq!(taken.column("power_w"), ["-"]);
    assert!(taken.notices[0].text.contains("1 series of 1 other metrics"));
}

#[test]
fn a_gpu_off_the_bus_is_told_once() {
    // Breaks when a lost GPU looks like a quiet one (case 2).
    let page = "DCGM_FI_DEV_XID_ERRORS{gpu=\"0\",UUID=\"GPU-a\"} 79 1773114089184\n\
                DCGM_FI_DEV_XID_ERRORS{gpu=\"0\",UUID=\"GPU-a\"} 79 1773114099184\n";
    let taken = read_text(page, &Options::default()).unwrap();
    assert_eq!((taken.count(), taken.notices.len()), (2, 1));
    assert_eq!(taken.gpu_column("state"), ["lost"]);
    assert_eq!(taken.column("xid"), ["79", "79"]);
    assert_eq!(taken.events_told(), ["1773114089184 0 GPU-a lost"]);
}

#[test]
fn a_gpu_that_comes_back_under_another_driver_leaves_its_history() {
    // Breaks when a good page wipes out that the GPU was lost, or a driver changes unseen.
    let page = |at: i64, xid: u8, driver: &str| {
        let labels = format!("{{gpu=\"0\",UUID=\"GPU-a\",DCGM_FI_DRIVER_VERSION=\"{driver}\"}}");
        format!(
            "DCGM_FI_DEV_XID_ERRORS{labels} {xid} {at}\nDCGM_FI_DEV_POWER_USAGE{labels} 80.5 {at}\n"
        )
    };
    let at = 1_773_114_089_000;
    let pages = [(0, 0, "550"), (10, 79, "550"), (20, 79, "550"), (30, 0, "560"), (40, 0, "560")];
    let text: String = pages.iter().map(|(s, xid, d)| page(at + s * 1000, *xid, d)).collect();
    let taken = read_text(&text, &Options::default()).unwrap();
    assert_eq!(
        taken.events_told(),
        [
            "1773114099000 0 GPU-a lost",
            "1773114119000 0 GPU-a recovered",
            "1773114119000 0 GPU-a driver-changed",
        ]
    );
    assert_eq!(taken.gpu_column("state"), ["-"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_page_panics(
        junk in prop::collection::vec("\\PC{0,60}", 0..8),
        lines in prop::collection::vec(prop::sample::select(vec![
            "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\"} 50",
            "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",GPU_I_ID=\"1\",GPU_I_PROFILE=\"2g\"} 50",
            "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",GPU_I_ID=\"1\"} 5e300 1773114089184",
            "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\"", "# TYPE x gauge", "# EOF",
            "Mon Nov 30 04:10:56 UTC 2026", "Mon Nov 30 04:10:56 2026", "{\"data\": {", "}",
        ]), 0..20),
    ) {
        // Breaks when any mix of lines panics, or a row is neither kept nor accounted for.
        let mut text: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
        for (at, line) in junk.into_iter().enumerate() {
            text.insert((at * 5) % (text.len() + 1), line);
        }
        if let Ok(taken) = read_text(&text.join("\n"), &nine()) {
            prop_assert_eq!(taken.read as usize, taken.count() + taken.rejects.len());
        }
    }
}
