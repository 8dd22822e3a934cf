//! From the log into the tables and to readers, with faults on the way.

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use super::super::overlay::overlay_on;
use super::*;
use crate::store::Store;
use crate::store::faulty::{self, Faulty};

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Instants and periods of the readings in the table, in file order, sorted.
async fn stored(store: &Store) -> Vec<(i64, f64)> {
    let Some(snapshot) = store.snapshot(Table::Samples).await.unwrap() else { return Vec::new() };
    readings(&[store.read(&snapshot, None).await.unwrap()])
}

fn readings(batches: &[RecordBatch]) -> Vec<(i64, f64)> {
    let mut all = Vec::new();
    for rows in batches {
        let periods = rows.column_by_name("period_s").unwrap().as_primitive::<Float64Type>();
        all.extend(seconds(rows).into_iter().zip(periods.values().iter().copied()));
    }
    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
    all
}

/// What a reader sees of the readings: the table's files and what waits.
async fn seen(disk: &MemoryDisk, store: &Store) -> Vec<(i64, f64)> {
    let tables = overlay_on(disk, Path::new(LOGS), store).await.unwrap();
    let samples = tables.into_iter().find(|overlay| overlay.table == Table::Samples).unwrap();
    let mut batches = samples.rows;
    if let Some(snapshot) = &samples.snapshot {
        batches.push(store.read(snapshot, None).await.unwrap());
    }
    readings(&batches)
}

#[test]
fn readers_see_the_same_before_and_after_a_flush() {
    run(async {
        let (disk, store) = (MemoryDisk::default(), Store::open("memory://s").unwrap());
        let wal = Mutex::new(open(&disk).unwrap());
        let mut all = Vec::new();
        // In order, after a gap, late, twice: whatever comes.
        for part in [&[0, 30, 60][..], &[90, 120], &[1_500, 1_530], &[75, 1_560], &[1_530, 1_590]] {
            for second in part {
                let row = reading("n1", *second, 100.0 + *second as f64 / 7.0);
                wal.lock().unwrap().append(&[(Table::Samples, row)]).unwrap();
            }
            all.extend(part.iter().copied());
            all.sort_unstable();
            all.dedup();
            let before = seen(&disk, &store).await;
            assert_eq!(before.iter().map(|(at, _)| *at).collect::<Vec<_>>(), all);
            flush(&wal, &store).await.unwrap();
            assert_eq!(stored(&store).await, before);
            assert_eq!(seen(&disk, &store).await, before);
        }
        let covered: f64 = stored(&store).await.iter().map(|(_, period)| period).sum();
        // 0-120 and 1500-1590 every 30 s, the first reading one interval, the gap three.
        assert!((covered - (30.0 + 120.0 + 90.0 + 90.0)).abs() < 1e-9, "{covered}");
    });
}

#[test]
fn readings_that_come_in_order_rewrite_no_file() {
    run(async {
        let (disk, store) = (MemoryDisk::default(), Store::open("memory://s").unwrap());
        let wal = Mutex::new(open(&disk).unwrap());
        for (flushes, start) in (1..=5).zip((0_i64..).step_by(60)) {
            for node in ["n1", "n2"] {
                for second in [start, start + 30] {
                    let row = reading(node, second, 1.5 + second as f64 / 3.0);
                    wal.lock().unwrap().append(&[(Table::Samples, row)]).unwrap();
                }
            }
            flush(&wal, &store).await.unwrap();
            let snapshot = store.snapshot(Table::Samples).await.unwrap().unwrap();
            assert_eq!(snapshot.files.len(), flushes);
        }
        let all = stored(&store).await;
        assert!(all.iter().all(|(_, period)| (*period - 30.0).abs() < 1e-9), "{all:?}");
        assert_eq!(all.len(), 20);
        // A late one meets what is there, and the day is one file again.
        wal.lock().unwrap().append(&[(Table::Samples, reading("n2", 45, 9.5))]).unwrap();
        flush(&wal, &store).await.unwrap();
        assert_eq!(store.snapshot(Table::Samples).await.unwrap().unwrap().files.len(), 1);
        assert_eq!(stored(&store).await.len(), 21);
    });
}

#[test]
fn a_log_that_begins_anew_is_not_taken_for_the_old_one() {
    run(async {
        let store = Store::open("memory://s").unwrap();
        for second in [0, 30] {
            let disk = MemoryDisk::default();
            let wal = Mutex::new(open(&disk).unwrap());
            append(&mut wal.lock().unwrap(), second, second + 1);
            flush(&wal, &store).await.unwrap();
        }
        assert_eq!(stored(&store).await.len(), 2);
    });
}

#[test]
fn a_log_that_was_put_back_to_an_older_copy_loses_nothing_new() {
    // Breaks when rows that are appended under numbers which a table has seen are taken for those
    // that it has, or those of the copy are not moved because the log has another identity now.
    run(async {
        let (disk, store) = (MemoryDisk::default(), Store::open("memory://s").unwrap());
        let wal = Mutex::new(open(&disk).unwrap());
        append(&mut wal.lock().unwrap(), 0, 2);
        let put_back = PowerCut { names: true, bytes: super::super::disk_faults::Unsynced::Gone };
        let copy = disk.after(put_back);
        for second in [30, 60, 90] {
            append(&mut wal.lock().unwrap(), second, second + 1);
            flush(&wal, &store).await.unwrap();
        }
        drop(wal);
        // A store that lost what the copy holds, and one that has it, get it once.
        for (store, all) in [(&store, 7), (&Store::open("memory://t").unwrap(), 4)] {
            let disk = copy.after(put_back);
            let wal = Mutex::new(open(&disk).unwrap());
            wal.lock().unwrap().renew();
            append(&mut wal.lock().unwrap(), 200, 202);
            assert_eq!(seen(&disk, store).await.len(), all, "asked");
            flush(&wal, store).await.unwrap();
            assert_eq!(stored(store).await.len(), all, "moved");
            assert_eq!(seen(&disk, store).await.len(), all);
            flush(&wal, store).await.unwrap();
            assert_eq!(stored(store).await.len(), all);
        }
    });
}

#[test]
fn a_full_log_has_room_again_once_its_rows_are_in_the_tables() {
    run(async {
        let (disk, store) = (MemoryDisk::default(), Store::open("memory://s").unwrap());
        let settings = WalSettings { segment_bytes: 1 << 20, bytes_max: 8_000 };
        let wal = Wal::open_on(Arc::new(disk), Path::new(LOGS), "a", settings).unwrap();
        let wal = Mutex::new(wal);
        let mut kept = 0;
        for start in [0, 100, 200] {
            let appended = append(&mut wal.lock().unwrap(), start, start + 20).len();
            assert!((2..20).contains(&appended), "{appended} from {start}");
            kept += appended;
            flush(&wal, &store).await.unwrap();
            assert_eq!((stored(&store).await.len(), wal.lock().unwrap().bytes()), (kept, 0));
        }
        // Nothing waits: nothing is asked of the store.
        let calls = Arc::new(AtomicUsize::new(0));
        let fault = faulty::Fault::Once(usize::MAX);
        let counted = store.wrapped(|inner| Faulty::over(inner, fault, Arc::clone(&calls)));
        assert!(flush(&wal, &counted).await.unwrap().summary.is_none());
        assert_eq!(calls.load(std::sync::atomic::Ordering::SeqCst), 0);
    });
}

#[test]
fn a_damaged_segment_is_told_once_and_set_aside_when_another_is_newer() {
    run(async {
        let (disk, store) = (MemoryDisk::default(), Store::open("memory://s").unwrap());
        let wal = Mutex::new(open(&disk).unwrap());
        append(&mut wal.lock().unwrap(), 0, 2);
        let path = segment::path(&Path::new(LOGS).join("a"), 1);
        disk.spoil(&path, |bytes| bytes[200] ^= 1);
        assert_eq!(flush(&wal, &store).await.unwrap().damaged, [1]);
        append(&mut wal.lock().unwrap(), 2, 3);
        assert!(flush(&wal, &store).await.unwrap().damaged.is_empty(), "told once");
        let aside = path.with_extension("wal.damaged");
        assert!(disk.paths().contains(&aside) && !disk.paths().contains(&path));
        assert_eq!(stored(&store).await.len(), 2);
    });
}

#[test]
fn a_log_that_was_flushed_and_opened_again_goes_on() {
    run(async {
        let (disk, store) = (MemoryDisk::default(), Store::open("memory://s").unwrap());
        for second in [0, 30, 60] {
            let wal = Mutex::new(open(&disk).unwrap());
            append(&mut wal.lock().unwrap(), second, second + 1);
            assert_eq!(seen(&disk, &store).await.len() as i64, second / 30 + 1);
            flush(&wal, &store).await.unwrap();
        }
        assert_eq!(stored(&store).await.len(), 3);
    });
}

/// Two flushes of a log with some of their calls of the store failing, then all is well again.
async fn with_store_fault(fault: faulty::Fault) -> (Vec<(i64, f64)>, usize) {
    let (disk, sound) = (MemoryDisk::default(), Store::open("memory://s").unwrap());
    let calls = Arc::new(AtomicUsize::new(0));
    let store = sound.wrapped(|inner| Faulty::over(inner, fault, Arc::clone(&calls)));
    let wal = Mutex::new(open(&disk).unwrap());
    for start in [0, 60] {
        append(&mut wal.lock().unwrap(), start, start + 2);
        let job: ArrayRef = Arc::new(StringArray::from(vec!["7"]));
        let job = RecordBatch::try_from_iter([("job_id", job)]).unwrap();
        wal.lock().unwrap().append(&[(Table::Jobs, job)]).unwrap();
        let _ = flush(&wal, &store).await;
        assert_eq!(seen(&disk, &sound).await.len(), if start == 0 { 2 } else { 4 }, "{fault:?}");
    }
    drop(wal);
    let disk =
        disk.after(PowerCut { bytes: super::super::disk_faults::Unsynced::Gone, names: false });
    let wal = Mutex::new(open(&disk).unwrap());
    flush(&wal, &sound).await.unwrap();
    let jobs = sound.snapshot(Table::Jobs).await.unwrap().unwrap();
    assert_eq!(sound.read(&jobs, None).await.unwrap().num_rows(), 1, "{fault:?}");
    (stored(&sound).await, calls.load(std::sync::atomic::Ordering::SeqCst))
}

#[test]
fn each_reading_is_stored_once_whatever_call_of_the_store_fails() {
    run(async {
        let (all, calls) = with_store_fault(faulty::Fault::Once(usize::MAX)).await;
        assert_eq!(all.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 1, 60, 61]);
        for call in 1..=calls {
            use faulty::Fault::{AnswerLost, From, Once};
            for fault in [Once(call), From(call), AnswerLost(call)] {
                assert_eq!(with_store_fault(fault).await.0, all, "{fault:?}");
            }
        }
    });
}
