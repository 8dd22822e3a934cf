//! Compaction changes no value, disturbs no reader and no writer, and a sweep deletes only what is
//! done with.

use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow::array::TimestampMillisecondArray;
use arrow::array::{ArrayRef, Float64Array, Int16Array, RecordBatch, StringArray};
use chrono::{TimeDelta, Utc};

use super::*;
use crate::store::{Committed, Content, Effect, Purpose, Rewrite};
use crate::wal::{Wal, WalSettings, flush};

const DAY_MS: i64 = 86_400_000;

fn readings(node: &str, minutes: std::ops::Range<i64>) -> RecordBatch {
    let rows = (minutes.end - minutes.start) as usize;
    let at: Vec<i64> = minutes.clone().map(|m| 1_767_225_600_000 + m * 60_000).collect();
    let at = TimestampMillisecondArray::from(at).with_timezone("UTC");
    let text = |text: String| Arc::new(StringArray::from(vec![text; rows])) as ArrayRef;
    let power: Vec<f64> = minutes.map(|m| 90.5 + m as f64 / 3.0).collect();
    RecordBatch::try_from_iter([
        ("sampled_at", Arc::new(at) as ArrayRef),
        ("node", text(node.to_owned())),
        ("gpu", Arc::new(Int16Array::from(vec![0; rows])) as ArrayRef),
        ("gpu_uuid", text(format!("GPU-{node}"))),
        ("power_w", Arc::new(Float64Array::from(power)) as ArrayRef),
    ])
    .unwrap()
}

/// A store with two days in many small files.
async fn scattered_store(folder: &Path) -> Store {
    let store = Store::open(folder.to_str().unwrap()).unwrap();
    let wal = Mutex::new(Wal::open(&folder.join("_wal"), "a", WalSettings::default()).unwrap());
    // 18 hours a time: the third and fourth are of the second day.
    for start in [0, 360, 720, 1_080, 1_440, 1_800] {
        for node in ["n1", "n2"] {
            let rows = readings(node, start..start + 360);
            wal.lock().unwrap().append(&[(Table::Samples, rows)]).unwrap();
        }
        flush(&wal, &store).await.unwrap();
    }
    store
}

async fn rows(store: &Store) -> RecordBatch {
    let snapshot = store.snapshot(Table::Samples).await.unwrap().unwrap();
    let rows = store.read(&snapshot, None).await.unwrap();
    crate::merge::merge(Table::Samples, &RecordBatch::new_empty(rows.schema()), &[rows])
        .unwrap()
        .rows
}

async fn files(store: &Store) -> usize {
    store.snapshot(Table::Samples).await.unwrap().unwrap().files.len()
}

/// A compaction of the first day, about to be committed.
async fn first_day_again<'a>(store: &'a Store, base: &'a TableSnapshot) -> Rewrite<'a> {
    let (date, part, series) = (base.files[0].date, (0, 1), None);
    let effect = Effect::Commit(Purpose::Compaction);
    let mut rewrite = Rewrite::new(store, Table::Samples, Some(base), effect);
    rewrite.clear(date);
    let rows = store.read(base, date).await.unwrap();
    rewrite.put(Content { date, part, rows, series, made_from: None }).await.unwrap();
    rewrite
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn days_become_one_sorted_file_and_no_value_changes() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let store = scattered_store(folder.path()).await;
        assert_eq!(files(&store).await, 6);
        let before = rows(&store).await;
        assert_eq!(before.num_rows(), 4_320);
        let settings = CompactSettings { files_max: 1, dry_run: true, thrifty: false };
        let told = compact(&store, &settings, |_| ()).await.unwrap();
        assert_eq!(told.iter().map(|day| day.files_before).collect::<Vec<_>>(), [4, 2]);
        assert_eq!(files(&store).await, 6, "a dry run changes nothing");
        let settings = CompactSettings { dry_run: false, ..settings };
        let done = compact(&store, &settings, |_| ()).await.unwrap();
        assert_eq!(done.iter().map(|day| day.files_after).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(rows(&store).await, before);
        let snapshot = store.snapshot(Table::Samples).await.unwrap().unwrap();
        for file in &snapshot.files {
            let key = Table::Samples.sorted_by();
            let read = store.read_file(&snapshot, file, Some(key)).await.unwrap();
            let read = arrow::compute::concat_batches(&read[0].schema(), &read).unwrap();
            let keys = crate::merge::comparable(&read, key).unwrap();
            assert!(keys.num_rows() >= 1_440);
            assert!((1..keys.num_rows()).all(|row| keys.row(row - 1) < keys.row(row)));
        }
        assert!(compact(&store, &settings, |_| ()).await.unwrap().is_empty(), "nothing is left");
    });
}

#[test]
fn the_latest_day_waits_until_it_has_many_files() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let store = scattered_store(folder.path()).await;
        let done = compact(&store, &CompactSettings::default(), |_| ()).await.unwrap();
        assert_eq!(done.iter().map(|day| day.files_before).collect::<Vec<_>>(), [4]);
    });
}

#[test]
fn rows_that_come_during_a_compaction_stay_and_so_does_its_work() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let store = scattered_store(folder.path()).await;
        let base = store.snapshot(Table::Samples).await.unwrap().unwrap();
        let rewrite = first_day_again(&store, &base).await;
        let wal = Wal::open(&folder.path().join("_wal"), "b", WalSettings::default());
        let wal = Mutex::new(wal.unwrap());
        wal.lock().unwrap().append(&[(Table::Samples, readings("n3", 100..110))]).unwrap();
        flush(&wal, &store).await.unwrap();
        assert!(matches!(rewrite.commit().await.unwrap(), Committed::Version(_)));
        assert_eq!(rows(&store).await.num_rows(), 4_330);
        assert_eq!(files(&store).await, 4);
    });
}

#[test]
fn late_rows_that_come_during_a_compaction_win() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let store = scattered_store(folder.path()).await;
        let base = store.snapshot(Table::Samples).await.unwrap().unwrap();
        let rewrite = first_day_again(&store, &base).await;
        let wal = Wal::open(&folder.path().join("_wal"), "b", WalSettings::default());
        let wal = Mutex::new(wal.unwrap());
        // Half a minute after a known reading of the same node.
        let late = readings("n1", 0..1);
        let at = TimestampMillisecondArray::from(vec![1_767_225_630_000]).with_timezone("UTC");
        let mut columns = late.columns().to_vec();
        columns[0] = Arc::new(at);
        let late = RecordBatch::try_new(late.schema(), columns).unwrap();
        wal.lock().unwrap().append(&[(Table::Samples, late)]).unwrap();
        flush(&wal, &store).await.unwrap();
        assert_eq!(rewrite.commit().await.unwrap(), Committed::Outrun);
        assert_eq!(rows(&store).await.num_rows(), 4_321);
    });
}

#[test]
fn a_sweep_deletes_what_no_version_needs_after_the_time_of_grace() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let store = scattered_store(folder.path()).await;
        let old = store.snapshot(Table::Samples).await.unwrap().unwrap();
        let settings = CompactSettings { files_max: 1, ..CompactSettings::default() };
        compact(&store, &settings, |_| ()).await.unwrap();
        let (now, settings) = (Utc::now(), SweepSettings::default());
        assert_eq!(sweep(&store, &settings, now).await.unwrap(), Swept::default());
        assert_eq!(store.read(&old, None).await.unwrap().num_rows(), 4_320, "a reader goes on");
        let later = now + TimeDelta::days(2);
        let dry = SweepSettings { dry_run: true, ..settings.clone() };
        let told = sweep(&store, &dry, later).await.unwrap();
        assert_eq!(told.files, 6);
        assert_eq!(sweep(&store, &settings, later).await.unwrap(), told);
        assert!(store.read(&old, None).await.is_err());
        assert_eq!(rows(&store).await.num_rows(), 4_320);
        assert_eq!(sweep(&store, &settings, later).await.unwrap(), Swept::default());
        let long = SweepSettings { grace: TimeDelta::milliseconds(8 * DAY_MS), dry_run: false };
        let error = sweep(&store, &long, later).await.unwrap_err().to_string();
        assert!(error.ends_with("from 0 to 7 days are possible"), "{error}");
    });
}
