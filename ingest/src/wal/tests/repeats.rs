//! Rows that a sender repeats because it heard no answer, with faults and power cuts on the way.

use super::*;

/// The readings of seconds `from..until`, as the batch number `part` of another log.
fn piece(part: u32, seconds: std::ops::Range<i64>) -> Piece {
    let rows: Vec<_> = seconds.clone().map(|second| reading("n1", second, 1.5)).collect();
    let rows = arrow::compute::concat_batches(&rows[0].schema(), &rows).unwrap();
    let until = Position { segment: 1, byte: 52, part, row: rows.num_rows() as u64 };
    Piece { table: Table::Samples, rows, origin: Some(Origin { log: Arc::from("b"), until }) }
}

/// Sends all batches of three readings in order, each until it is acknowledged.
fn send(wal: &mut Wal) -> u64 {
    (0..5_u32)
        .map(|part| {
            let first = i64::from(part) * 3;
            loop {
                if let Ok(known) = wal.append_pieces(&[piece(part, first..first + 3)]) {
                    return known.iter().sum::<u64>();
                }
            }
        })
        .sum()
}

#[test]
fn what_was_acknowledged_or_not_is_there_once_when_it_is_sent_again() {
    // Breaks when a server that fails between writing and answering keeps rows twice or not at all.
    let calls = {
        let disk = MemoryDisk::default();
        assert_eq!(send(&mut open(&disk).unwrap()), 0);
        assert!(disk.paths().len() >= 2, "several segments: {:?}", disk.paths());
        disk.calls()
    };
    let all: Vec<i64> = (0..15).collect();
    let mut repeated = 0;
    for call in 1..=calls {
        for fault in [Fault::Fails, Fault::Half, Fault::AnswerLost] {
            for cut in PowerCut::all() {
                let case = format!("call {call} {fault:?} {cut:?}");
                let disk = MemoryDisk::default();
                disk.fail_at(call, fault);
                let Ok(mut wal) = open(&disk) else { continue };
                send(&mut wal);
                assert_eq!(found(&disk), all, "{case}");
                drop(wal);
                // The sender has forgotten all that it heard.
                let disk = disk.after(cut);
                repeated += send(&mut open(&disk).unwrap());
                assert_eq!(found(&disk), all, "{case} again");
            }
        }
    }
    assert!(repeated > 1_000, "{repeated}");
}

#[test]
fn a_log_cut_off_at_any_byte_has_each_row_once_when_it_is_sent_again() {
    let settings = WalSettings::default();
    let log = |disk: &MemoryDisk| {
        Wal::open_on(Arc::new(disk.clone()), Path::new(LOGS), "a", settings).unwrap()
    };
    let whole = MemoryDisk::default();
    send(&mut log(&whole));
    let path = segment::path(&Path::new(LOGS).join("a"), 1);
    let mut bytes = 0;
    whole.spoil(&path, |content| bytes = content.len());
    for left in (0..bytes).step_by(97) {
        let disk = whole
            .after(PowerCut { bytes: super::super::disk_faults::Unsynced::There, names: true });
        disk.spoil(&path, |content| content.truncate(left));
        send(&mut log(&disk));
        assert_eq!(found(&disk), (0..15).collect::<Vec<_>>(), "{left} of {bytes} bytes");
    }
}

#[test]
fn it_is_known_for_as_long_as_the_log_is_how_far_another_is() {
    // Breaks when the memory goes with the segments that were moved into the tables.
    let disk = MemoryDisk::default();
    let mut wal = open(&disk).unwrap();
    send(&mut wal);
    for _ in 0..3 {
        // As a flush does, with other rows between.
        let last = wal.close().unwrap();
        wal.forget(last, &[]).unwrap();
        append(&mut wal, 100, 101);
        drop(wal);
        wal = open(&disk).unwrap();
        assert_eq!(send(&mut wal), 15);
    }
    // A segment that could not be begun takes nothing with it.
    let last = wal.close().unwrap();
    disk.fail_at(1, Fault::Fails);
    assert!(append(&mut wal, 101, 102).is_empty());
    wal.forget(last, &[]).unwrap();
    drop(wal);
    assert_eq!(send(&mut open(&disk).unwrap()), 15);
}

#[test]
fn rows_of_different_logs_and_tables_are_told_apart() {
    let disk = MemoryDisk::default();
    let mut wal = open(&disk).unwrap();
    let one = piece(0, 0..3);
    let mut other = piece(0, 3..6);
    other.origin.as_mut().unwrap().log = Arc::from("c");
    let own = Piece { origin: None, ..piece(0, 6..9) };
    assert_eq!(wal.append_pieces(&[one.clone(), other, own]).unwrap(), [0, 0, 0]);
    let job: ArrayRef = Arc::new(StringArray::from(vec!["7"]));
    let job = RecordBatch::try_from_iter([("job_id", job)]).unwrap();
    let job = Piece { table: Table::Jobs, rows: job, origin: one.origin.clone() };
    assert_eq!(wal.append_pieces(&[job.clone(), one]).unwrap(), [0, 3]);
    assert_eq!(wal.append_pieces(&[job]).unwrap(), [1]);
    assert_eq!(wal.bytes(), open(&disk.after(PowerCut::all().next().unwrap())).unwrap().bytes());
}
