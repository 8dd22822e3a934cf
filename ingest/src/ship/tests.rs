//! A spool that is full, over and over: what is lost is told, whatever is dropped of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray, Int16Array, RecordBatch, TimestampMillisecondArray,
};

use super::spool::Spool;
use super::state::State;
use crate::collect::Health;
use crate::schema::Table;
use crate::wal::{Wal, WalSettings};

const LIMITS: WalSettings = WalSettings { segment_bytes: 2_000, bytes_max: 16_000 };

fn open(folder: &Path) -> Wal {
    Wal::open(folder, "n1", LIMITS).unwrap()
}

/// The readings of second `second` of 2026, `rows` of them.
fn readings(second: i64, rows: i16) -> RecordBatch {
    let at = vec![1_767_225_600_000 + second * 1_000; rows as usize];
    let at = TimestampMillisecondArray::from(at).with_timezone("UTC");
    let gpus: ArrayRef = Arc::new((0..rows).collect::<Int16Array>());
    RecordBatch::try_from_iter([("sampled_at", Arc::new(at) as ArrayRef), ("gpu", gpus)]).unwrap()
}

/// A node reads from second `from` on until `rounds` readings of three GPUs were kept.
fn read(spool: &mut Spool, wal: &mut Wal, health: &Health, from: i64, rounds: i64) {
    for second in from..from + rounds {
        spool.fit(wal, &BTreeMap::new(), health);
        wal.append(&[(Table::Samples, readings(second, 3))]).unwrap();
    }
}

fn words(event: &RecordBatch) -> String {
    let words = event.column_by_name("detail").unwrap().as_string::<i32>();
    assert_eq!(words.len(), 1);
    words.value(0).to_owned()
}

fn left(wal: &mut Wal) -> u64 {
    wal.close();
    let places: Vec<_> = wal.waiting().collect();
    let rows = places.into_iter().flat_map(|place| wal.read(place).unwrap().rows().unwrap());
    rows.map(|(_, rows)| rows.num_rows() as u64).sum()
}

#[test]
fn all_that_was_lost_is_told_however_often_the_spool_runs_over() {
    // Breaks when the word of what was lost lies in the spool and is lost with it.
    let folder = tempfile::tempdir().unwrap();
    let health = Health::new(Box::new(|_| ()));
    let new = || Spool::new("grpc://a:1".into(), "n1", Some("c1"));
    {
        let (mut wal, mut spool) = (open(folder.path()), new());
        spool.begin(&wal, &health);
        assert_eq!(spool.next_word(&wal).unwrap(), None, "nothing was lost");
        read(&mut spool, &mut wal, &health, 0, 200);
    }
    // The program is started anew, and its spool runs over again.
    let (mut wal, mut spool) = (open(folder.path()), new());
    spool.begin(&wal, &health);
    read(&mut spool, &mut wal, &health, 200, 200);
    let lost = 400 * 3 - left(&mut wal);
    assert!(lost > 900, "{lost}");
    assert_eq!(health.ship().unwrap().rows_lost_total, lost);
    let told = words(&spool.next_word(&wal).unwrap().unwrap());
    let last = 1_767_225_600_000 + (i64::try_from(lost).unwrap() / 3 - 1) * 1_000;
    let last = chrono::DateTime::from_timestamp_millis(last).unwrap();
    let last = last.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let wanted = format!("{lost} rows from 2026-01-01T00:00:00Z to {last}: the spool was full");
    assert_eq!(told, wanted);
    // The server does not answer, and more is lost: the same words come again, and the rest later.
    read(&mut spool, &mut wal, &health, 400, 200);
    assert_eq!(words(&spool.next_word(&wal).unwrap().unwrap()), wanted);
    let mut spool = new();
    spool.begin(&wal, &health);
    assert_eq!(words(&spool.next_word(&wal).unwrap().unwrap()), wanted, "over a start too");
    spool.has_told(&wal);
    let rest = words(&spool.next_word(&wal).unwrap().unwrap());
    let counted: u64 = rest.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(lost + counted, 600 * 3 - left(&mut wal), "{rest}");
    spool.has_told(&wal);
    assert_eq!(spool.next_word(&wal).unwrap(), None);
}

#[test]
fn what_is_counted_and_not_yet_dropped_is_counted_once() {
    // Breaks when a crash between counting and dropping counts twice, or not at all.
    let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let health = Health::new(Box::new(|_| ()));
    let mut spool = Spool::new("grpc://a:1".into(), "n1", None);
    let mut wal = open(folder.path());
    read(&mut spool, &mut wal, &health, 0, 200);
    let before = State::read(&wal).unwrap();
    // The segments as they are before the next one is dropped, the note as it is after it.
    let names = |folder: &Path| -> Vec<_> {
        let files = std::fs::read_dir(folder.join("n1")).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    };
    std::fs::create_dir(copy.path().join("n1")).unwrap();
    for name in names(folder.path()) {
        let place = |folder: &Path| folder.join("n1").join(&name);
        std::fs::copy(place(folder.path()), place(copy.path())).unwrap();
    }
    let mut second = 200;
    while State::read(&wal).unwrap() == before {
        read(&mut spool, &mut wal, &health, second, 1);
        second += 1;
    }
    let after = State::read(&wal).unwrap();
    let note = |folder: &Path| folder.join("n1/spool.json");
    std::fs::copy(note(folder.path()), note(copy.path())).unwrap();
    let (mut wal, mut spool) = (open(copy.path()), Spool::new("grpc://a:1".into(), "n1", None));
    spool.begin(&wal, &health);
    assert_eq!(spool.state, after);
    read(&mut spool, &mut wal, &health, 200, 200);
    let told = words(&spool.next_word(&wal).unwrap().unwrap());
    let counted: u64 = told.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(counted, 400 * 3 - left(&mut wal));
}

#[test]
fn a_log_that_was_renamed_is_sent_under_its_last_name() {
    let name = |renamed: &[(&str, &str)], log: &str| {
        let renamed = renamed.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        State { renamed, ..State::default() }.name_of(log)
    };
    assert_eq!(name(&[], "a"), "a");
    assert_eq!(name(&[("a", "b"), ("b", "c")], "a"), "c");
    // A note that somebody wrote by hand hangs nothing.
    assert!(["a", "b"].contains(&&*name(&[("a", "b"), ("b", "a")], "a")));
}
