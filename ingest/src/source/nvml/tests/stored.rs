//! Collected rows on their way into the tables: what the import finds in them.

use std::sync::Mutex;

use super::*;
use crate::collect::Gathered;
use crate::store::Store;
use crate::wal::{Wal, WalSettings, flush};

/// A log and a store of their own.
struct Kept {
    _folder: tempfile::TempDir,
    wal: Mutex<Wal>,
    store: Store,
}

impl Kept {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let wal = Wal::open(&folder.path().join("_wal"), "n1", WalSettings::default()).unwrap();
        let store = Store::open(folder.path().join("store").to_str().unwrap()).unwrap();
        Self { _folder: folder, wal: Mutex::new(wal), store }
    }

    /// Rounds at these seconds, kept in the log; failures are part of the test.
    fn rounds(&self, node: &mut Node, seconds: &[i64]) {
        for at_s in seconds {
            let mut gathered = Gathered::default();
            drop(node.round_into(*at_s, &mut gathered));
            self.wal.lock().unwrap().append(&gathered.rows).unwrap();
        }
    }

    async fn flush(&self) {
        flush(&self.wal, &self.store).await.unwrap();
    }

    async fn texts(&self, table: Table, columns: &[&str]) -> Vec<String> {
        let Some(snapshot) = self.store.snapshot(table).await.unwrap() else { return Vec::new() };
        let rows = self.store.read(&snapshot, None).await.unwrap();
        let columns: Vec<_> = columns.iter().map(|column| texts(&rows, column)).collect();
        let mut lines: Vec<String> = (0..rows.num_rows())
            .map(|row| {
                let cells = columns.iter().map(|column| column[row].as_deref().unwrap_or("-"));
                cells.collect::<Vec<_>>().join(" ")
            })
            .collect();
        lines.sort();
        lines
    }

    async fn events(&self) -> Vec<String> {
        self.texts(Table::Events, &["gpu_uuid", "kind", "detail"]).await
    }
}

#[tokio::test]
async fn boards_that_move_and_are_replaced_and_new_drivers_are_events_once() {
    // Breaks when history does not follow the board, or one change makes two events.
    for flushes in [1, 2] {
        let kept = Kept::new();
        let mut node = Node::new(&driver(&[plain("GPU-a"), plain("GPU-b"), plain("GPU-c")]));
        kept.rounds(&mut node, &[0, 30, 60]);
        if flushes == 2 {
            kept.flush().await;
        }
        // The node was down: two boards changed places, one was replaced, the driver is new.
        node.restart();
        let moved = driver(&[plain("GPU-b"), plain("GPU-a"), plain("GPU-d")]);
        node.says(&over(moved, &json!({ "driver": "590.10" })));
        kept.rounds(&mut node, &[600, 630, 660]);
        kept.flush().await;
        kept.rounds(&mut node, &[690]);
        kept.flush().await;
        // Of an earlier flush, the inventory knows when a board was last seen.
        let until = if flushes == 1 { "2026-07-14T09:01:00Z" } else { "2026-07-14T09:00:00Z" };
        let expected = [
            "GPU-a driver-changed driver 580.95.05 became 590.10".to_owned(),
            format!("GPU-a index-moved was GPU 0 of n1 until {until}"),
            "GPU-b driver-changed driver 580.95.05 became 590.10".to_owned(),
            format!("GPU-b index-moved was GPU 1 of n1 until {until}"),
            format!("GPU-d uuid-changed GPU-c sat there until {until}"),
        ];
        assert_eq!(kept.events().await, expected, "{flushes} flushes");
        let drivers = kept.texts(Table::Gpus, &["gpu_uuid", "driver_version"]).await;
        assert_eq!(drivers, ["GPU-a 590.10", "GPU-b 590.10", "GPU-c 580.95.05", "GPU-d 590.10"]);
    }
}

#[tokio::test]
async fn a_driver_that_is_renewed_under_the_collector_is_an_event_once() {
    // Breaks when only a restart of the collector sees a new driver.
    let kept = Kept::new();
    let mut node = Node::new(&driver(&[plain("GPU-a")]));
    kept.rounds(&mut node, &[0, 30]);
    node.says(&driver(&[over(plain("GPU-a"), &json!({ "fails": 18 }))]));
    kept.rounds(&mut node, &[60]);
    node.says(&over(driver(&[plain("GPU-a")]), &json!({ "driver": "590.10" })));
    kept.rounds(&mut node, &[120, 150]);
    kept.flush().await;
    let mismatch = "the driver's library and its kernel module have different versions";
    let failed = format!("- driver-failed {mismatch}");
    let changed = "GPU-a driver-changed driver 580.95.05 became 590.10".to_owned();
    assert_eq!(kept.events().await, [failed, changed]);
}

#[tokio::test]
async fn a_loss_and_its_recovery_are_one_event_each_however_they_are_flushed() {
    // Breaks when collector and import both tell the recovery, or the inventory stays lost.
    let lost = json!({ "fails": 15 });
    for each_round in [false, true] {
        let kept = Kept::new();
        let mut node = Node::new(&driver(&[plain("GPU-a"), plain("GPU-b")]));
        for at_s in [0, 30, 60, 90, 120, 150] {
            let with = if (60..120).contains(&at_s) { &lost } else { &json!({}) };
            node.says(&driver(&[over(plain("GPU-a"), with), plain("GPU-b")]));
            kept.rounds(&mut node, &[at_s]);
            if each_round {
                kept.flush().await;
            }
        }
        kept.flush().await;
        let expected =
            ["GPU-a lost the driver lost the GPU", "GPU-a recovered first good reading after it"];
        assert_eq!(kept.events().await, expected);
        let states = kept.texts(Table::Gpus, &["gpu_uuid", "state"]).await;
        assert_eq!(states, ["GPU-a ok", "GPU-b -"]);
        assert_eq!(kept.texts(Table::Samples, &["gpu_uuid"]).await.len(), 10);
    }
}
