//! The night in which clocks go back, and what the driver says of GPUs in trouble.

use arrow::array::AsArray;

use super::*;

impl Taken {
    /// Milliseconds, index, board and kind of each event, in the order in which they came.
    pub(crate) fn events_told(&self) -> Vec<String> {
        let mut told = Vec::new();
        for rows in &self.events {
            let at = rows["event_at"].as_primitive::<TimestampMillisecondType>();
            for row in 0..rows.num_rows() {
                let cells = ["gpu", "gpu_uuid", "kind"].map(|name| super::text(rows, name, row));
                told.push(format!("{} {}", at.value(row), cells.join(" ")));
            }
        }
        told
    }
}

fn night(times: &[&str], gpus: &[&str]) -> Taken {
    let mut text = "timestamp, uuid, utilization.gpu [%]\n".to_owned();
    for time in times {
        for (at, gpu) in gpus.iter().enumerate() {
            text.push_str(&format!("2026/11/01 {time}.01{at}, {gpu}, 50 %\n"));
        }
    }
    let zone = Options { zone: Some(Tz::America__Los_Angeles), ..Options::default() };
    read_text(&text, &zone).unwrap()
}

#[test]
fn an_hourly_log_loses_no_reading_in_the_doubled_hour() {
    // Breaks when the second 01:30 of a GPU has the instant of the first (case 4).
    let times = ["00:30:00", "01:30:00", "01:30:00", "02:30:00"];
    let taken = night(&times, &["GPU-a", "GPU-b"]);
    assert_eq!((taken.count(), taken.rejects.len()), (8, 0));
    let hours: Vec<_> = taken.column("sampled_at").iter().map(|t| t[11..16].to_owned()).collect();
    let expected = ["07:30", "08:30", "09:30", "10:30"].map(|hour| [hour; 2]).concat();
    assert_eq!(hours, expected);
    assert_eq!(taken.notices.len(), 1);
    let told = &taken.notices[0].text;
    assert!(told.contains("told apart by their order, offset -07:00 first, then -08:00"), "{told}");
}

#[test]
fn a_log_of_half_minutes_keeps_both_passes_of_the_hour() {
    // Breaks when the hour is put twice into one pass, or a pass is lost.
    let pass = |hour: u32| {
        (0..120).map(move |step| format!("{hour:02}:{:02}:{:02}", step / 2, step % 2 * 30))
    };
    let times: Vec<String> = pass(0).chain(pass(1)).chain(pass(1)).chain(pass(2)).collect();
    let times: Vec<&str> = times.iter().map(String::as_str).collect();
    let taken = night(&times, &["GPU-a", "GPU-b"]);
    assert_eq!((taken.count(), taken.rejects.len()), (960, 0));
    let mut instants = taken.column("sampled_at");
    assert_eq!(instants.first().unwrap(), "2026-11-01T07:00:00.010Z");
    assert_eq!(instants.last().unwrap(), "2026-11-01T10:59:30.011Z");
    instants.dedup();
    assert_eq!(instants.len(), 960, "each GPU has its own millisecond");
}

#[test]
fn what_happens_to_a_gpu_is_an_event_and_not_only_a_state() {
    // Breaks when a good reading wipes out that the GPU was lost (case 2).
    let text = "timestamp, pci.bus_id, index, uuid, driver_version, utilization.gpu [%]\n\
                2026/07/14 09:00:00.000, 00000000:01:00.0, 0, GPU-a, 550.1, 10 %\n\
                2026/07/14 09:00:00.000, 00000000:02:00.0, 1, GPU-b, 550.1, 10 %\n\
                2026/07/14 09:00:30.000, 00000000:01:00.0, 0, GPU-a, 550.1, [GPU requires reset]\n\
                Unable to determine the device handle for GPU0000:02:00.0: Unknown Error\n\
                2026/07/14 09:01:00.000, 00000000:01:00.0, 0, GPU-a, 550.1, [GPU requires reset]\n\
                Unable to determine the device handle for GPU0000:02:00.0: Unknown Error\n\
                2026/07/14 09:01:30.000, 00000000:01:00.0, 0, GPU-a, 560.2, 12 %\n\
                2026/07/14 09:01:30.000, 00000000:02:00.0, 1, GPU-b, 560.2, 12 %\n\
                NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n";
    let taken = read_text(text, &Options { node: Some("n1".into()), ..utc() }).unwrap();
    let seconds = |told: &String| {
        let (ms, rest) = told.split_once(' ').unwrap();
        format!("{} {rest}", ms.parse::<i64>().unwrap() / 1000 % 3600)
    };
    assert_eq!(
        taken.events_told().iter().map(seconds).collect::<Vec<_>>(),
        [
            "30 0 GPU-a requires-reset",
            "30 1 GPU-b lost",
            "90 0 GPU-a driver-changed",
            "90 0 GPU-a recovered",
            "90 1 GPU-b driver-changed",
            "90 1 GPU-b recovered",
            "90 - - driver-failed",
        ]
    );
    assert_eq!(super::text(&taken.events[0], "node", 0), "n1");
    assert_eq!(taken.gpu_column("state"), ["-", "-"]);
    assert_eq!(taken.count(), 6);
}

#[test]
fn a_log_that_begins_with_a_message_gives_it_the_time_of_its_first_reading() {
    // Breaks when the event is lost, or lies in 1970.
    let lost = "Unable to determine the device handle for GPU0000:02:00.0: Unknown Error";
    let taken = read_text(&format!("{lost}\n{TWO}"), &utc()).unwrap();
    let at = taken.events[0]["event_at"].as_primitive::<TimestampMillisecondType>();
    let at = DateTime::from_timestamp_millis(at.value(0)).unwrap();
    assert_eq!(at.format("%Y-%m-%d %H:%M").to_string(), "2026-07-14 09:00");
}
