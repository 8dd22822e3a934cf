//! Spools that are put back, copied or removed: no reading is taken for another.

use std::path::Path;
use std::time::Duration;

use arrow_flight::utils::batches_to_flight_data;
use loadline_ingest::Table;
use loadline_ingest::collect::{Gathered, Sender};
use loadline_ingest::ship::descriptor;

use super::flight::{put, run};
use super::ship::{count, local, node, reading, serving, stored, to, until};
use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

fn send(sender: &Sender, seconds: std::ops::Range<i64>) {
    for second in seconds {
        let rows = vec![(Table::Samples, reading(second))];
        sender.keep(Gathered { rows, ..Gathered::default() }, PATIENCE).unwrap();
    }
}

/// A node that sends readings until its server has them.
fn collect(spool: &Path, url: &str, seconds: std::ops::Range<i64>) {
    node(spool, &to(url), WalSettings::default(), |sender, health| {
        let rows = seconds.end - seconds.start;
        send(sender, seconds);
        until("rows sent", || {
            let ship = health.ship().unwrap_or_default();
            i64::try_from(ship.rows_shipped_total).unwrap() >= rows && ship.spool_bytes == 0
        });
    });
}

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to.join("n1")).unwrap();
    for file in std::fs::read_dir(from.join("n1")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join("n1").join(file.file_name())).unwrap();
    }
}

#[test]
fn a_spool_that_is_put_back_or_copied_loses_nothing() {
    // Breaks when the server takes the places of a log that come again for rows that come again.
    let (folder, spools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (spool, older) = (spools.path().join("spool"), spools.path().join("older"));
    serving(folder.path(), &local(), |url, _| {
        collect(&spool, url, 0..5);
        copy(&spool, &older);
        collect(&spool, url, 5..10);
        // Restored from a backup.
        copy(&older, &spool);
        collect(&spool, url, 10..15);
        assert_eq!(count(folder.path(), Table::Samples), 15);
        // Copied to another machine, and both go on.
        copy(&spool, &older);
        thread::scope(|scope| {
            scope.spawn(|| collect(&spool, url, 20..25));
            scope.spawn(|| collect(&older, url, 30..35));
        });
    });
    assert_eq!(count(folder.path(), Table::Samples), 25);
}

/// The name of the log that the newest segment of a spool is of.
fn log(spool: &Path) -> String {
    let segments = std::fs::read_dir(spool.join("n1")).unwrap();
    let segments = segments.map(|file| file.unwrap().path());
    let newest = segments.filter(|path| path.extension().is_some_and(|end| end == "wal")).max();
    let head = std::fs::read(newest.unwrap()).unwrap();
    let id = u128::from_le_bytes(head[8..24].try_into().unwrap());
    format!("loadline-wal/n1/{id:032x}")
}

#[test]
fn two_that_run_under_one_name_do_not_shadow_each_other() {
    // Breaks when a machine that is copied while it collects, or put back to a snapshot, sends rows
    // that the server takes for those of the other.
    let (folder, spool) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    serving(folder.path(), &local(), |url, _| {
        node(spool.path(), &to(url), WalSettings::default(), |sender, health| {
            let sent = |rows: u64| {
                until("rows sent", || {
                    let ship = health.ship().unwrap_or_default();
                    ship.rows_shipped_total >= rows && ship.spool_bytes == 0
                });
            };
            send(sender, 0..3);
            sent(3);
            // The other one is far ahead in what was the same log.
            let name = log(spool.path());
            let mut messages =
                batches_to_flight_data(&reading(50).schema(), vec![reading(50)]).unwrap();
            messages[0].flight_descriptor = Some(descriptor(Table::Samples, Some(&name)));
            messages[1].app_metadata = "99.52.0.1".into();
            run(async { put(url, messages).await.unwrap() });
            send(sender, 3..8);
            // And one event.
            sent(9);
            assert_ne!(log(spool.path()), name);
        });
        // Over a start too.
        collect(spool.path(), url, 8..10);
    });
    assert_eq!(count(folder.path(), Table::Samples), 11);
    let events = stored(folder.path(), Table::Events);
    assert_eq!(events.iter().map(|rows| rows.num_rows()).sum::<usize>(), 1);
    let kind = events[0].column_by_name("kind").unwrap();
    let kind = arrow::compute::cast(kind, &arrow::datatypes::DataType::Utf8).unwrap();
    assert_eq!(arrow::array::AsArray::as_string::<i32>(&kind).value(0), "spool-copied");
}

#[test]
fn a_log_that_is_removed_under_a_server_is_told_and_made_anew() {
    // Breaks when a server says that it has rows which lie in a file without a name.
    let folder = tempfile::tempdir().unwrap();
    let call = |second: i64| {
        let rows = reading(second);
        let mut messages = batches_to_flight_data(&rows.schema(), vec![rows]).unwrap();
        messages[0].flight_descriptor = Some(descriptor(Table::Samples, None));
        messages
    };
    let writer = serving(folder.path(), &local(), |url, _| {
        run(async { put(url, call(0)).await.unwrap() });
        std::fs::remove_dir_all(folder.path().join("_wal")).unwrap();
        run(async { put(url, call(1)).await.unwrap() });
        assert_eq!(count(folder.path(), Table::Samples), 1);
    });
    assert!(writer.wal_bytes_lost_total > 0, "{writer:?}");
    assert_eq!(count(folder.path(), Table::Samples), 1);
}
