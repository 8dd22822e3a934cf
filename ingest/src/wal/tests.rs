//! Every call that a log makes fails in turn, then the power goes: what was acknowledged is there.

use std::path::Path;
use std::sync::Arc;

use arrow::array::TimestampMillisecondArray;
use arrow::array::{ArrayRef, AsArray, Float64Array, Int16Array, RecordBatch, StringArray};
use arrow::datatypes::{Float64Type, TimestampMillisecondType};

use super::disk_faults::{Fault, MemoryDisk, PowerCut};
use super::segment::{Places, Segment};
use super::*;

mod moves;
mod removed;
mod repeats;

const LOGS: &str = "/store/_wal";

/// Seconds after the start of 2026.
fn reading(node: &str, second: i64, power_w: f64) -> RecordBatch {
    let at = 1_767_225_600_000 + second * 1_000;
    let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
    let at = TimestampMillisecondArray::from(vec![at]).with_timezone("UTC");
    let batch = RecordBatch::try_from_iter([
        ("sampled_at", Arc::new(at) as ArrayRef),
        ("node", text(node)),
        ("gpu", Arc::new(Int16Array::from(vec![0])) as ArrayRef),
        ("gpu_uuid", text(&format!("GPU-{node}"))),
        ("power_w", Arc::new(Float64Array::from(vec![power_w])) as ArrayRef),
    ]);
    batch.unwrap()
}

fn seconds(rows: &RecordBatch) -> Vec<i64> {
    let at = rows.column_by_name("sampled_at").unwrap();
    let at = at.as_primitive::<TimestampMillisecondType>();
    at.values().iter().map(|at| (at - 1_767_225_600_000) / 1_000).collect()
}

/// The seconds of all readings in the log.
fn found(disk: &MemoryDisk) -> Vec<i64> {
    let folder = Path::new(LOGS).join("a");
    let places = Places::find(disk, &folder).unwrap();
    let segments = places.places.into_iter().map(|place| Segment::read(disk, &folder, place));
    let rows = segments.flat_map(|segment| segment.unwrap().rows().unwrap());
    rows.flat_map(|(_, rows)| seconds(&rows)).collect()
}

fn small() -> WalSettings {
    WalSettings { segment_bytes: 4_000, ..WalSettings::default() }
}

fn open(disk: &MemoryDisk) -> Result<Wal, IngestError> {
    Wal::open_on(Arc::new(disk.clone()), Path::new(LOGS), "a", small())
}

/// Appends readings `from..until`; the seconds of those that were acknowledged.
fn append(wal: &mut Wal, from: i64, until: i64) -> Vec<i64> {
    let mut kept = Vec::new();
    for second in from..until {
        let row = reading("n1", second, 100.5);
        if wal.append(&[(Table::Samples, row)]).is_ok() {
            kept.push(second);
        }
    }
    kept
}

fn holds(found: &[i64], acknowledged: &[i64], case: &str) {
    let missing: Vec<_> = acknowledged.iter().filter(|second| !found.contains(second)).collect();
    assert!(missing.is_empty(), "{case}: lost {missing:?} of {acknowledged:?}");
    assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{case}: {found:?}");
}

#[test]
fn what_was_acknowledged_is_there_whatever_call_fails() {
    let calls = {
        let disk = MemoryDisk::default();
        let mut wal = open(&disk).unwrap();
        assert_eq!(append(&mut wal, 0, 12).len(), 12);
        assert!(disk.paths().len() >= 3, "several segments: {:?}", disk.paths());
        assert_eq!(found(&disk), (0..12).collect::<Vec<_>>());
        disk.calls()
    };
    let mut cases = 0;
    for call in 1..=calls {
        for fault in [Fault::Fails, Fault::Half, Fault::AnswerLost] {
            for cut in PowerCut::all() {
                let case = format!("call {call} {fault:?} {cut:?}");
                let disk = MemoryDisk::default();
                disk.fail_at(call, fault);
                let Ok(mut wal) = open(&disk) else { continue };
                let mut acknowledged = append(&mut wal, 0, 12);
                assert!(acknowledged.len() >= 11, "{case}: one failure costs one call");
                drop(wal);
                let disk = disk.after(cut);
                holds(&found(&disk), &acknowledged, &case);
                // And it goes on from there.
                let mut wal = open(&disk).unwrap();
                acknowledged.extend(append(&mut wal, 20, 24));
                drop(wal);
                holds(&found(&disk.after(cut)), &acknowledged, &case);
                cases += 1;
            }
        }
    }
    assert!(cases > 500, "{cases}");
}

#[test]
fn a_call_that_failed_leaves_nothing_behind() {
    let disk = MemoryDisk::default();
    let mut wal = open(&disk).unwrap();
    append(&mut wal, 0, 2);
    // The next call writes the record, the one after syncs it.
    disk.fail_at(2, Fault::AnswerLost);
    assert!(append(&mut wal, 2, 3).is_empty());
    append(&mut wal, 3, 4);
    assert_eq!(found(&disk), [0, 1, 3]);
}

#[test]
fn a_damaged_record_is_told_and_costs_no_other() {
    let disk = MemoryDisk::default();
    let mut wal =
        Wal::open_on(Arc::new(disk.clone()), Path::new(LOGS), "a", WalSettings::default()).unwrap();
    append(&mut wal, 0, 3);
    let path = segment::path(&Path::new(LOGS).join("a"), 1);
    let third = {
        let folder = Path::new(LOGS).join("a");
        let place = Places::find(&disk, &folder).unwrap().places[0];
        Segment::read(&disk, &folder, place).unwrap().bytes / 3
    };
    disk.spoil(&path, |bytes| bytes[third as usize + 100] ^= 1);
    let folder = Path::new(LOGS).join("a");
    let place = Places::find(&disk, &folder).unwrap().places[0];
    let segment = Segment::read(&disk, &folder, place).unwrap();
    assert_eq!(segment.damaged_at.len(), 1);
    assert_eq!(found(&disk).len(), 2);
}

#[test]
fn a_full_log_refuses_rows_and_says_how_full_it_is() {
    let disk = MemoryDisk::default();
    let settings = WalSettings { segment_bytes: 4_000, bytes_max: 5_000 };
    let mut wal = Wal::open_on(Arc::new(disk), Path::new(LOGS), "a", settings).unwrap();
    let kept = append(&mut wal, 0, 20);
    assert!((2..20).contains(&kept.len()), "{kept:?}");
    let error = wal.append(&[(Table::Samples, reading("n1", 99, 1.0))]).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.ends_with(" of 5000 bytes wait to be moved into the tables"), "{cause}");
}

#[test]
fn rows_that_could_never_be_moved_are_refused() {
    let mut wal = open(&MemoryDisk::default()).unwrap();
    let timeless = reading("n1", 0, 1.0).project(&[1, 2, 3, 4]).unwrap();
    let error = wal.append(&[(Table::Samples, timeless)]).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("rows of `samples` without `sampled_at`"), "{cause}");
    let error = wal.append(&[(Table::Jobs, reading("n1", 0, 1.0))]).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("`jobs` has no column `sampled_at`"), "{cause}");
    let beyond = wal.append(&[(Table::Samples, reading("n1", 1 << 50, 1.0))]).unwrap_err();
    let cause = std::error::Error::source(&beyond).unwrap().to_string();
    assert!(cause.contains("years 1 to 9999 are taken"), "{cause}");
    // So many rows of nothing that no memory holds them, once each has its columns.
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(1 << 50));
    let schema = Arc::new(arrow::datatypes::Schema::empty());
    let nothing = RecordBatch::try_new_with_options(schema, vec![], &options).unwrap();
    let error = wal.append(&[(Table::Jobs, nothing)]).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("rows of `jobs` without columns"), "{cause}");
    assert_eq!(wal.bytes(), 0);
}

#[test]
fn one_process_writes_a_log_and_its_name_is_plain() {
    let folder = tempfile::tempdir().unwrap();
    let first = Wal::open(folder.path(), "node-1", small()).unwrap();
    let error = Wal::open(folder.path(), "node-1", small()).unwrap_err();
    assert_eq!(
        error.hint().as_deref(),
        Some("stop the other collector, or give this one another name")
    );
    drop(first);
    Wal::open(folder.path(), "node-1", small()).unwrap();
    assert!(check_name("node-1.rack_7").is_ok());
    for name in ["", "../x", "a/b", ".hidden", "a b", "n\u{e9}"] {
        assert!(check_name(name).is_err(), "{name:?}");
        assert!(Wal::open(folder.path(), name, small()).is_err(), "{name:?}");
    }
}
