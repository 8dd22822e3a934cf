//! A log that somebody removes, puts back or spoils while it is in use.

use std::fs;
use std::sync::Mutex;

use super::*;
use crate::store::Store;

/// A log on the disk of this machine.
fn local(folder: &Path) -> Wal {
    Wal::open(folder, "a", small()).unwrap()
}

/// The seconds of all readings that wait.
fn waiting(wal: &mut Wal) -> Vec<i64> {
    wal.close();
    let places: Vec<_> = wal.waiting().collect();
    let rows = places.into_iter().flat_map(|place| wal.read(place).unwrap().rows().unwrap());
    rows.flat_map(|(_, rows)| seconds(&rows)).collect()
}

#[test]
fn a_folder_that_is_removed_is_noticed_at_the_next_append_and_made_anew() {
    // Breaks when rows go to a file that has no name any more, and are acknowledged.
    for whole_store in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("store/_wal");
        let mut wal = local(&logs);
        append(&mut wal, 0, 5);
        let lost = wal.bytes();
        fs::remove_dir_all(if whole_store { folder.path().join("store") } else { logs.join("a") })
            .unwrap();
        assert_eq!(append(&mut wal, 5, 8), [5, 6, 7]);
        let gone = wal.gone().unwrap();
        assert!(gone.healed && gone.segments >= 1, "{gone:?}");
        assert_eq!(gone.bytes, lost);
        assert_eq!(wal.gone(), None, "it is told once");
        assert_eq!(waiting(&mut wal), [5, 6, 7]);
        // It is locked again, and what is in it is found by the next one.
        assert!(Wal::open(&logs, "a", small()).is_err());
        drop(wal);
        assert_eq!(waiting(&mut local(&logs)), [5, 6, 7]);
    }
}

#[test]
fn a_segment_that_is_removed_alone_is_told_and_costs_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut wal = local(folder.path());
    append(&mut wal, 0, 12);
    wal.close();
    let numbers: Vec<u64> = wal.waiting().map(|place| place.number).collect();
    assert!(numbers.len() >= 3, "{numbers:?}");
    let rows = |wal: &mut Wal, number: u64| {
        let place = wal.waiting().find(|place| place.number == number).unwrap();
        let rows = wal.read(place).unwrap().rows().unwrap();
        rows.iter().flat_map(|(_, rows)| seconds(rows)).collect::<Vec<_>>()
    };
    let first = rows(&mut wal, numbers[0]);
    // Closed, and no one's file: it is missed when it is read.
    fs::remove_file(segment::path(&folder.path().join("a"), numbers[0])).unwrap();
    let left: Vec<i64> = (0..12).filter(|second| !first.contains(second)).collect();
    assert_eq!(waiting(&mut wal), left);
    let gone = wal.gone().unwrap();
    assert_eq!((gone.segments, gone.healed), (1, false));
    // The newest one is missed at once.
    let last = *numbers.last().unwrap();
    let of_last = rows(&mut wal, last);
    fs::remove_file(segment::path(&folder.path().join("a"), last)).unwrap();
    assert_eq!(append(&mut wal, 20, 21), [20]);
    let gone = wal.gone().unwrap();
    assert!(gone.healed && gone.segments >= 1, "{gone:?}");
    let left: Vec<i64> =
        left.into_iter().filter(|second| !of_last.contains(second)).chain([20]).collect();
    assert_eq!(waiting(&mut wal), left);
}

#[test]
fn a_log_whose_place_another_process_took_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = local(folder.path());
    append(&mut first, 0, 2);
    fs::remove_dir_all(folder.path().join("a")).unwrap();
    let mut second = local(folder.path());
    append(&mut second, 10, 12);
    assert!(append(&mut first, 2, 3).is_empty(), "two would write the same segments");
    assert_eq!(waiting(&mut second), [10, 11]);
}

#[test]
fn the_newest_segment_is_set_aside_when_it_is_damaged_and_not_later() {
    // Breaks when a damaged segment stays under its name until another is begun, which may be never.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (disk, store) = (MemoryDisk::default(), Store::open("memory://s").unwrap());
        let settings = WalSettings::default();
        let wal = Wal::open_on(Arc::new(disk.clone()), Path::new(LOGS), "a", settings).unwrap();
        let wal = Mutex::new(wal);
        append(&mut wal.lock().unwrap(), 0, 3);
        let path = segment::path(&Path::new(LOGS).join("a"), 1);
        disk.spoil(&path, |bytes| {
            let third = bytes.len() / 3;
            bytes[third + 100] ^= 1;
        });
        assert_eq!(flush(&wal, &store).await.unwrap().damaged, [1]);
        let aside = path.with_extension("wal.damaged");
        assert!(disk.paths().contains(&aside) && !disk.paths().contains(&path), "{disk:?}");
        // It goes on, also after a start, and the damaged one is not moved again.
        drop(wal);
        let wal = Wal::open_on(Arc::new(disk.clone()), Path::new(LOGS), "a", settings).unwrap();
        let wal = Mutex::new(wal);
        append(&mut wal.lock().unwrap(), 10, 12);
        assert!(flush(&wal, &store).await.unwrap().damaged.is_empty());
        let snapshot = store.snapshot(Table::Samples).await.unwrap().unwrap();
        let rows = store.read(&snapshot, None).await.unwrap();
        assert_eq!(rows.num_rows(), 4, "two of the damaged segment, two after it");
    });
}

#[test]
fn a_note_is_kept_whole_or_stays_as_it_was() {
    let calls = {
        let disk = MemoryDisk::default();
        let wal = open(&disk).unwrap();
        let before = disk.calls();
        wal.keep_note("state", b"old").unwrap();
        disk.calls() - before
    };
    assert!(calls >= 4, "{calls}");
    for call in 1..=calls {
        for cut in PowerCut::all() {
            let disk = MemoryDisk::default();
            let wal = open(&disk).unwrap();
            assert_eq!(wal.note("state").unwrap(), None);
            wal.keep_note("state", b"old").unwrap();
            disk.fail_at(call, Fault::Half);
            let kept = wal.keep_note("state", b"newer").is_ok();
            let found = open(&disk.after(cut)).unwrap().note("state").unwrap().unwrap();
            match kept {
                true => assert_eq!(found, b"newer", "call {call} {cut:?}"),
                false => assert!(found == b"old" || found == b"newer", "call {call} {cut:?}"),
            }
            // The next time it is kept.
            wal.keep_note("state", b"newest").unwrap();
            assert_eq!(wal.note("state").unwrap().unwrap(), b"newest");
        }
    }
}
