//! A node that sends to a server: absence, answers that are lost, a spool that is full.

use std::net::{Shutdown, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use arrow::array::{
    ArrayRef, AsArray, Int16Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use loadline_ingest::Table;
use loadline_ingest::collect::{Gathered, Sender, ShipHealth, WriterHealth, run_shipping};
use loadline_ingest::ship::{ShipSettings, Shipper};

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a server over the store in `folder` for as long as `test` does. What its writer says.
pub(super) fn serving(
    folder: &Path,
    settings: &FlightSettings,
    test: impl FnOnce(&str, &Health),
) -> WriterHealth {
    let flight = Flight::open(settings).unwrap();
    let store = Store::open(folder.to_str().unwrap()).unwrap();
    let wal = Wal::open(&folder.join("_wal"), "serve", WalSettings::default()).unwrap();
    let health = Arc::new(Health::new(Box::new(|_| ())));
    let (stop, (sender, inbox)) = (Stop::default(), inbox());
    let desk = FlightDesk::new(sender, Arc::clone(&health), flight.token());
    let url = flight.url();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    thread::scope(|scope| {
        let (of_run, settings) = (&stop, CollectSettings::default());
        let (store, of_health) = (&store, &health);
        let running = scope
            .spawn(move || run_with(Vec::new(), inbox, wal, store, &settings, of_health, of_run));
        let serving = scope.spawn(|| runtime.block_on(flight.serve(desk, &stop)));
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&url, &health)));
        stop.set();
        serving.join().unwrap().unwrap();
        running.join().unwrap().unwrap();
        if let Err(panic) = tried {
            std::panic::resume_unwind(panic);
        }
    });
    health.writer()
}

/// Runs a node that sends to a server for as long as `test` does. How that went.
pub(super) fn node(
    spool: &Path,
    ship: &ShipSettings,
    limits: WalSettings,
    test: impl FnOnce(&Sender, &Health),
) -> ShipHealth {
    let shipper = Shipper::new(ship, "n1", Some("c1")).unwrap();
    let wal = Wal::open(spool, "n1", limits).unwrap();
    let health = Arc::new(Health::new(Box::new(|_| ())));
    let (stop, (sender, inbox)) = (Stop::default(), inbox());
    thread::scope(|scope| {
        let (of_run, of_health, settings) = (&stop, &health, CollectSettings::default());
        let running = scope.spawn(move || {
            run_shipping(Vec::new(), inbox, wal, shipper, &settings, of_health, of_run)
        });
        let tried =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&sender, &health)));
        stop.set();
        running.join().unwrap().unwrap();
        if let Err(panic) = tried {
            std::panic::resume_unwind(panic);
        }
    });
    health.ship().unwrap()
}

pub(super) fn to(url: &str) -> ShipSettings {
    ShipSettings { to: url.into(), every_s: 0.1, ..ShipSettings::default() }
}

pub(super) fn local() -> FlightSettings {
    FlightSettings { listen: "127.0.0.1:0".into(), ..FlightSettings::default() }
}

/// One reading of the node.
pub(super) fn reading(second: i64) -> RecordBatch {
    let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
    let at = TimestampMillisecondArray::from(vec![1_767_225_600_000 + second * 1_000]);
    let rows = [
        ("sampled_at", Arc::new(at.with_timezone("UTC")) as ArrayRef),
        ("node", text("n1")),
        ("gpu", Arc::new(Int16Array::from(vec![0])) as ArrayRef),
    ];
    RecordBatch::try_from_iter(rows).unwrap()
}

/// Hands in readings and, with each, what state a job is in.
fn send(sender: &Sender, seconds: std::ops::Range<i64>) {
    for second in seconds {
        let state: ArrayRef = Arc::new(StringArray::from(vec![format!("S{second}")]));
        let id: ArrayRef = Arc::new(StringArray::from(vec!["7"]));
        let job = RecordBatch::try_from_iter([("job_id", id), ("state", state)]).unwrap();
        let rows = vec![(Table::Samples, reading(second)), (Table::Jobs, job)];
        sender.keep(Gathered { rows, ..Gathered::default() }, PATIENCE).unwrap();
    }
}

pub(super) fn until(what: &str, done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "{what} did not come to be");
        thread::park_timeout(Duration::from_millis(20));
    }
}

/// Rows of a table, in its files and in logs.
pub(super) fn stored(folder: &Path, table: Table) -> Vec<RecordBatch> {
    let store = Store::open(folder.to_str().unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tables = runtime.block_on(loadline_ingest::wal::overlay(&store)).unwrap();
    let mut found = Vec::new();
    for overlay in tables.into_iter().filter(|overlay| overlay.table == table) {
        found.extend(overlay.rows);
        for file in overlay.snapshot.iter().flat_map(|snapshot| &snapshot.files) {
            let path = folder.join(table.name()).join(&file.path);
            let file = std::fs::File::open(path).unwrap();
            let reader =
                parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file);
            found.extend(reader.unwrap().build().unwrap().map(Result::unwrap));
        }
    }
    found
}

pub(super) fn count(folder: &Path, table: Table) -> usize {
    stored(folder, table).iter().map(RecordBatch::num_rows).sum()
}

/// The last word on the job.
fn state(folder: &Path) -> String {
    let rows = stored(folder, Table::Jobs);
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    rows[0].column_by_name("state").unwrap().as_string::<i32>().value(0).to_owned()
}

/// A place where nobody listens, and where a server may later on: each test on an address of its
/// own, so that no other is given the port meanwhile.
fn free(address: &str) -> String {
    TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().to_string()
}

#[test]
fn a_node_catches_up_in_order_when_the_server_is_there_again() {
    let (folder, spool) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let listen = free("127.0.0.2");
    let url = format!("grpc://{listen}");
    let limits = WalSettings { segment_bytes: 8_000, ..WalSettings::default() };
    // Nobody is there: rows are kept all the same, over a restart too.
    let away = node(spool.path(), &to(&url), limits, |sender, health| {
        send(sender, 0..30);
        until("a failure", || health.ship().unwrap().last_failure.is_some());
    });
    assert_eq!((away.rows_shipped_total, away.rows_lost_total), (0, 0));
    assert!(away.spool_bytes > 3 * 8_000, "{away:?}");
    let told = away.last_failure.unwrap();
    assert!(told.starts_with(&format!("could not send rows to {url}: ")), "{told}");
    let settings = FlightSettings { listen, ..local() };
    let writer = serving(folder.path(), &settings, |_, _| {
        let there = node(spool.path(), &to(&url), limits, |sender, health| {
            send(sender, 30..40);
            until("an empty spool", || health.ship().unwrap().rows_shipped_total == 80);
        });
        assert_eq!((there.last_failure, there.spool_bytes), (None, 0));
    });
    assert_eq!((writer.rows_appended_total, writer.rows_repeated_total), (80, 0));
    assert_eq!(count(folder.path(), Table::Samples), 40);
    assert_eq!(state(folder.path()), "S39");
    // What was sent is not in the spool any more, but for the newest segment.
    let segments = std::fs::read_dir(spool.path().join("n1")).unwrap().count();
    assert!(segments <= 2, "the lock and one segment, not {segments}");
}

/// Hands a connection on to `server` without its answers, until `stop` is set.
fn swallow(listener: &TcpListener, server: &str, stop: &Stop) {
    let (client, _) = listener.accept().unwrap();
    let server = TcpStream::connect(server).unwrap();
    let both = || (client.try_clone().unwrap(), server.try_clone().unwrap());
    thread::scope(|scope| {
        let (mut from, mut to) = both();
        scope.spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(read) = from.read(&mut chunk)
                && read > 0
                && to.write_all(&chunk[..read]).is_ok()
            {}
        });
        let (mut to, mut from) = both();
        scope.spawn(move || {
            // Frames of HTTP/2: length, kind, flags and stream. 0 is data, 1 is headers.
            let mut head = [0; 9];
            while from.read_exact(&mut head).is_ok() {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
                let mut body = vec![0; length as usize];
                let whole = from.read_exact(&mut body).is_ok();
                if whole && head[3] > 1 {
                    let _ = to.write_all(&[&head[..], &body].concat());
                }
            }
        });
        stop.wait();
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
    });
}

#[test]
fn a_server_that_ends_before_it_answers_has_each_reading_once() {
    // Breaks when what a server kept and did not answer for is kept again.
    let (folder, spool) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let proxy = TcpListener::bind("127.0.0.5:0").unwrap();
    let listen = proxy.local_addr().unwrap().to_string();
    let url = format!("grpc://{listen}");
    let swallowed = Stop::default();
    thread::scope(|scope| {
        let sent = scope.spawn(|| {
            node(spool.path(), &to(&url), WalSettings::default(), |sender, health| {
                send(sender, 0..5);
                until("rows sent", || health.ship().unwrap().rows_shipped_total == 10);
            })
        });
        let first = serving(folder.path(), &local(), |server, _| {
            let server = server.strip_prefix("grpc://").unwrap();
            let (server, stop) = (server.to_owned(), swallowed.clone());
            let end = scope.spawn(move || swallow(&proxy, &server, &stop));
            until("rows kept", || count(folder.path(), Table::Samples) > 0);
            swallowed.set();
            end.join().unwrap();
        });
        assert!(first.rows_appended_total >= 1, "{first:?}");
        // The same store, by another process: the rows are in the tables by now.
        let settings = FlightSettings { listen, ..local() };
        let second = serving(folder.path(), &settings, |_, _| {
            let ship = sent.join().unwrap();
            assert!(ship.failures_total >= 1 && ship.spool_bytes == 0, "{ship:?}");
        });
        assert_eq!(second.rows_repeated_total, first.rows_appended_total, "{second:?}");
        assert_eq!(first.rows_appended_total + second.rows_appended_total, 10);
    });
    assert_eq!(count(folder.path(), Table::Samples), 5);
    assert_eq!(state(folder.path()), "S4");
}

#[test]
fn a_full_spool_loses_the_oldest_and_says_so() {
    let (folder, spool) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let listen = free("127.0.0.3");
    let url = format!("grpc://{listen}");
    let limits = WalSettings { segment_bytes: 8_000, bytes_max: 64_000 };
    let mut lost = 0;
    let settings = FlightSettings { listen, ..local() };
    node(spool.path(), &to(&url), limits, |sender, health| {
        for second in (0..).step_by(5) {
            send(sender, second..second + 5);
            lost = health.ship().unwrap_or_default().rows_lost_total;
            if lost > 0 {
                break;
            }
            assert!(second < 1_000, "nothing was lost");
            // One look of the shipper.
            thread::park_timeout(Duration::from_millis(120));
        }
        serving(folder.path(), &settings, |_, _| {
            until("rows sent", || {
                let ship = health.ship().unwrap();
                ship.last_failure.is_none() && ship.spool_bytes == 0
            });
        });
        lost = health.ship().unwrap().rows_lost_total;
    });
    let events = stored(folder.path(), Table::Events);
    let told: Vec<String> = events
        .iter()
        .flat_map(|rows| {
            let kinds = rows.column_by_name("kind").unwrap().as_string::<i32>();
            let words = rows.column_by_name("detail").unwrap().as_string::<i32>();
            kinds.iter().zip(words).map(|(kind, words)| {
                assert_eq!(kind, Some("rows-lost"));
                words.unwrap().to_owned()
            })
        })
        .collect();
    let counted: u64 =
        told.iter().map(|t| t.split(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(counted, lost, "{told:?}");
    let first = |told: &String| told.contains(" rows from 2026-01-01T00:00:00Z to ");
    assert!(told.iter().any(first), "{told:?}");
    // The oldest are gone, the newest are there.
    let samples = stored(folder.path(), Table::Samples);
    let instants = |rows: &RecordBatch| {
        let column = rows.column_by_name("sampled_at").unwrap();
        let of_table = Table::Samples.schema();
        let kind = of_table.field_with_name("sampled_at").unwrap().data_type();
        let column = arrow::compute::cast(column, kind).unwrap();
        column.as_primitive::<arrow::datatypes::TimestampMillisecondType>().values().to_vec()
    };
    let mut seconds: Vec<i64> = samples.iter().flat_map(instants).collect();
    seconds.sort_unstable();
    assert!(seconds[0] > 1_767_225_600_000, "the first reading is lost");
    assert!(seconds.windows(2).all(|pair| pair[1] == pair[0] + 1_000), "no hole: {seconds:?}");
}

#[test]
fn a_damaged_record_of_the_spool_costs_no_other() {
    let (folder, spool) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let listen = free("127.0.0.4");
    let url = format!("grpc://{listen}");
    node(spool.path(), &to(&url), WalSettings::default(), |sender, _| send(sender, 0..3));
    let segment = spool.path().join("n1/0000000000000001.wal");
    let mut bytes = std::fs::read(&segment).unwrap();
    let third = bytes.len() / 3;
    bytes[third + 200] ^= 1;
    // And a record that was torn when the power went.
    bytes.extend_from_slice(&[9, 0, 0, 0, 1, 2]);
    std::fs::write(&segment, bytes).unwrap();
    let settings = FlightSettings { listen, ..local() };
    serving(folder.path(), &settings, |_, _| {
        let ship = node(spool.path(), &to(&url), WalSettings::default(), |sender, health| {
            send(sender, 3..4);
            until("rows sent", || health.ship().unwrap().rows_shipped_total == 6);
        });
        assert_eq!(ship.segments_damaged_total, 1);
    });
    assert_eq!(count(folder.path(), Table::Samples), 3);
    assert!(spool.path().join("n1/0000000000000001.wal.damaged").exists());
}
