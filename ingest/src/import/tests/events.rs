//! What happened to GPUs is kept, once, in whatever files and imports it is told.

use super::*;
use crate::source::input::Input;
use crate::source::nvidia_smi;

/// Imports logs of node `n1`, one file each, their times in UTC.
async fn log(store: &Store, files: &[&str]) -> ImportSummary {
    let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
    let zone = Some(chrono_tz::Tz::UTC);
    let options =
        nvidia_smi::Options { node: Some("n1".into()), zone, ..nvidia_smi::Options::default() };
    for text in files {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let input = Input::one(&file.path().to_string_lossy());
        nvidia_smi::read(&[input], &options, &mut import).unwrap();
    }
    import.finish(store).await.unwrap()
}

const HEADER: &str =
    "timestamp, index, uuid, driver_version, utilization.gpu [%], power.draw [W]\n";

/// A log of one GPU: minutes of 2026-07-14, and the cells after its index.
fn text(rows: &[(&str, i16, &str)]) -> String {
    let mut text = HEADER.to_owned();
    for (time, index, rest) in rows {
        text.push_str(&format!("2026/07/14 {time}:00.000, {index}, {rest}\n"));
    }
    text
}

async fn states(store: &Store) -> Vec<Option<String>> {
    let snapshot = store.snapshot(Table::Gpus).await.unwrap().unwrap();
    let rows = store.read(&snapshot, None).await.unwrap();
    rows["state"].as_string::<i32>().iter().map(|state| state.map(str::to_owned)).collect()
}

#[tokio::test]
async fn trouble_that_ends_in_another_file_is_a_recovery() {
    // Breaks when a lost GPU leaves no history once it is read again, or stays lost for ever.
    let good = "GPU-a, 550.1, 9 %, 80.00 W";
    let bad = "GPU-a, 550.1, [GPU requires reset], [GPU requires reset]";
    let first = text(&[("09:00", 0, good), ("09:01", 0, bad), ("09:02", 0, bad)]);
    let second = text(&[("09:05", 0, good), ("09:06", 0, good)]);
    let expected = [
        "2026-07-14T09:01:00Z GPU-a requires-reset needs reset",
        "2026-07-14T09:05:00Z GPU-a recovered first good reading after it",
    ];
    let (one, two) = (first.as_str(), second.as_str());
    for files in [vec![vec![one], vec![two]], vec![vec![two], vec![one]], vec![vec![one, two]]] {
        let (_folder, store) = store();
        for files in &files {
            log(&store, files).await;
        }
        assert_eq!(events(&store).await, expected);
        assert_eq!(states(&store).await, [Some("ok".to_owned())]);
        // Again: the same rows, and no new version of the table.
        let again = log(&store, &[one, two]).await;
        assert_eq!(events(&store).await, expected);
        assert!(again.tables.get("events").is_none_or(|table| table.unchanged));
    }
    let (_folder, store) = store();
    log(&store, &[&first]).await;
    assert_eq!(states(&store).await, [Some("needs reset".to_owned())]);
}

#[tokio::test]
async fn a_message_without_a_place_is_kept_at_the_time_of_the_reading_before_it() {
    // Breaks when only the inventory hears of a lost GPU, or each turn of a loop makes an event.
    let lost = "Unable to determine the device handle for GPU0000:02:00.0: Unknown Error";
    let mut log_text = text(&[("09:00", 0, "GPU-a, 550.1, 9 %, 80.00 W")]);
    for time in ["09:01", "09:02"] {
        log_text.push_str(&format!(
            "{lost}\n2026/07/14 {time}:00.000, 0, GPU-a, 550.1, 9 %, 81.00 W\n"
        ));
    }
    let (_folder, store) = store();
    log(&store, &[&log_text]).await;
    assert_eq!(events(&store).await, [format!("2026-07-14T09:00:00Z - lost {lost}")]);
}

#[tokio::test]
async fn boards_that_move_and_are_replaced_are_told_once() {
    // Breaks when history does not say that GPU 1 is another board, or every import says it again.
    let a = "GPU-a, 550.1, 9 %, 80.10 W";
    let b = "GPU-b, 550.1, 9 %, 80.20 W";
    let c = "GPU-c, 560.2, 9 %, 80.30 W";
    let days = [
        text(&[("09:00", 0, a), ("09:00", 1, b), ("09:01", 0, a), ("09:01", 1, b)]),
        // After a reboot a and b have changed places; then c comes for b.
        text(&[("10:00", 1, a), ("10:00", 0, b), ("10:01", 1, a), ("10:01", 0, b)]),
        text(&[("11:00", 1, &a.replace("550.1", "560.2")), ("11:00", 0, c)]),
        text(&[("12:00", 1, &a.replace("550.1", "560.2")), ("12:00", 0, c)]),
    ];
    let expected = [
        "2026-07-14T10:00:00Z GPU-a index-moved was GPU 0 of n1 until 2026-07-14T09:01:00Z",
        "2026-07-14T10:00:00Z GPU-b index-moved was GPU 1 of n1 until 2026-07-14T09:01:00Z",
        "2026-07-14T11:00:00Z GPU-a driver-changed driver 550.1 became 560.2",
        "2026-07-14T11:00:00Z GPU-c uuid-changed GPU-b sat there until 2026-07-14T10:01:00Z",
    ];
    let (_one, parts) = store();
    for day in &days {
        log(&parts, &[day]).await;
    }
    assert_eq!(events(&parts).await, expected);
    let again = log(&parts, &[&days[3]]).await;
    assert!(again.tables.get("events").is_none_or(|table| table.unchanged));
    let (_two, whole) = store();
    log(&whole, &days.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(events(&whole).await, expected);
}

#[tokio::test]
async fn a_clock_that_jumps_back_is_an_event() {
    // Breaks when a reading out of order by seconds is one too.
    let rows = |time: &str, watts: &str| format!("GPU-a, 550.1, {time} %, {watts} W");
    let jump = text(&[
        ("09:00", 0, &rows("1", "80.10")),
        ("09:10", 0, &rows("2", "80.20")),
        ("09:05", 0, &rows("3", "80.30")),
    ]);
    let (_folder, store) = store();
    log(&store, &[&jump]).await;
    let expected = "2026-07-14T09:05:00Z GPU-a clock-jump the time of the readings went back from \
                    2026-07-14T09:10:00.000Z";
    assert_eq!(events(&store).await, [expected]);
}
