//! Collecting with sources from a script.

use std::sync::atomic::{AtomicU32, Ordering};

use arrow::array::{ArrayRef, Int16Array, RecordBatch, StringArray, TimestampMillisecondArray};

use super::*;
use crate::schema::Table;
use crate::wal::WalSettings;

/// A source that gives one reading a round, `rounds` times; some rounds fail after it.
struct Scripted {
    name: &'static str,
    rounds: u32,
    failing: fn(u32) -> bool,
    round: u32,
    /// Sources that are not done yet; the last one stops all.
    left: Arc<AtomicU32>,
    stop: Stop,
}

impl Collector for Scripted {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(2)
    }

    fn collect(&mut self, _: DateTime<Utc>, out: &mut dyn Output) -> Result<(), IngestError> {
        if self.round == self.rounds {
            return Ok(());
        }
        self.round += 1;
        let at = 1_767_225_600_000 + i64::from(self.round) * 30_000;
        let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
        let at = TimestampMillisecondArray::from(vec![at]).with_timezone("UTC");
        out.rows(
            Table::Samples,
            RecordBatch::try_from_iter([
                ("sampled_at", Arc::new(at) as ArrayRef),
                ("node", text(self.name)),
                ("gpu", Arc::new(Int16Array::from(vec![0])) as ArrayRef),
            ])?,
        )?;
        if self.round == self.rounds && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.stop.set();
        }
        match (self.failing)(self.round) {
            true => Err(IngestError::NoMatch { pattern: "gpu3".into() }),
            false => Ok(()),
        }
    }
}

/// Name of a source, its rounds, and which of them fail.
type Script = (&'static str, u32, fn(u32) -> bool);

fn scripted(sources: &[Script], stop: &Stop) -> Vec<Box<dyn Collector>> {
    let left = Arc::new(AtomicU32::new(u32::try_from(sources.len()).unwrap()));
    let source = |(name, rounds, failing): &Script| {
        let (left, stop) = (Arc::clone(&left), stop.clone());
        let (name, rounds, failing) = (*name, *rounds, *failing);
        Box::new(Scripted { name, rounds, failing, round: 0, left, stop }) as Box<dyn Collector>
    };
    sources.iter().map(source).collect()
}

fn quick() -> CollectSettings {
    CollectSettings {
        append_every: Duration::from_millis(5),
        flush_every: Duration::from_millis(30),
        ..CollectSettings::default()
    }
}

fn stored(store: &Store) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let snapshot = store.snapshot(Table::Samples).await.unwrap().unwrap();
        store.read(&snapshot, None).await.unwrap().num_rows()
    })
}

#[test]
fn everything_read_is_in_the_tables_at_the_end_and_a_failing_source_stops_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    let wal = Wal::open(&folder.path().join("_wal"), "a", WalSettings::default()).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let health =
        Arc::new(Health::new(Box::new(move |text| heard.lock().unwrap().push(text.to_owned()))));
    let stop = Stop::default();
    let sources = scripted(&[("n1", 40, |_| false), ("n2", 25, |round| round < 20)], &stop);
    run(sources, wal, &store, &quick(), &health, &stop).unwrap();
    assert_eq!(stored(&store), 65);
    let (collectors, writer) = (health.collectors(), health.writer());
    assert_eq!((collectors["n1"].rows_total, collectors["n1"].failures_total), (40, 0));
    assert_eq!((collectors["n2"].rows_total, collectors["n2"].failures_total), (25, 19));
    assert_eq!((writer.rows_appended_total, writer.rows_dropped_total), (65, 0));
    assert!(writer.flushes_total >= 1);
    let told = told.lock().unwrap();
    assert_eq!(*told, ["n2: no file matches `gpu3`", "n2: well again"], "told once, not each time");
}

/// One reading as a sender hands it in.
fn sent(second: i64) -> Gathered {
    let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
    let at = TimestampMillisecondArray::from(vec![1_767_225_600_000 + second * 1_000]);
    let rows = [
        ("sampled_at", Arc::new(at.with_timezone("UTC")) as ArrayRef),
        ("node", text("n9")),
        ("gpu", Arc::new(Int16Array::from(vec![0])) as ArrayRef),
    ];
    let rows = vec![(Table::Samples, RecordBatch::try_from_iter(rows).unwrap())];
    Gathered { rows, ..Gathered::default() }
}

#[test]
fn what_is_acknowledged_is_kept_and_what_comes_after_the_end_is_not() {
    // Breaks when a sender is told that rows are safe which are then lost, or waits for ever.
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    let wal = Wal::open(&folder.path().join("_wal"), "a", WalSettings::default()).unwrap();
    let health = Arc::new(Health::new(Box::new(|_| ())));
    let stop = Stop::default();
    let (sender, inbox) = inbox();
    let within = Duration::from_secs(60);
    // A long wait between appends must not hold up who waits for an answer.
    let settings = CollectSettings { append_every: within * 10, ..quick() };
    thread::scope(|scope| {
        let running =
            scope.spawn(|| run_with(Vec::new(), inbox, wal, &store, &settings, &health, &stop));
        let senders: Vec<_> = (0..4)
            .map(|part| {
                let sender = sender.clone();
                scope.spawn(move || {
                    (0..10).try_for_each(|at| sender.keep(sent(part * 100 + at), within).map(drop))
                })
            })
            .collect();
        for sender in senders {
            assert_eq!(sender.join().unwrap(), Ok(()));
        }
        stop.set();
        running.join().unwrap().unwrap();
    });
    assert_eq!(stored(&store), 40);
    assert_eq!(sender.keep(sent(1), within), Err(NotKept::Ended));
    assert_eq!(sender.keep(Gathered::default(), within), Ok(0), "nothing is kept in any case");
}

#[test]
fn rows_that_a_full_log_refuses_stay_with_their_sender() {
    // Breaks when a sender is told that its rows are safe, or they fill the memory here as well.
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    let full = WalSettings { segment_bytes: 1_000, bytes_max: 1 };
    let wal = Wal::open(&folder.path().join("_wal"), "a", full).unwrap();
    let health = Arc::new(Health::new(Box::new(|_| ())));
    let stop = Stop::default();
    let (sender, inbox) = inbox();
    thread::scope(|scope| {
        let running =
            scope.spawn(|| run_with(Vec::new(), inbox, wal, &store, &quick(), &health, &stop));
        let refused = sender.keep(sent(1), Duration::from_secs(60)).unwrap_err();
        assert!(matches!(&refused, NotKept::Refused(why) if why.contains("wait to be moved")));
        stop.set();
        running.join().unwrap().unwrap();
    });
    let writer = health.writer();
    assert_eq!(
        (writer.rows_waiting, writer.rows_dropped_total, writer.append_failures_total),
        (0, 0, 1)
    );
}

#[test]
fn rows_wait_in_memory_while_the_log_is_full_and_the_oldest_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    let settings = WalSettings { segment_bytes: 1_000, bytes_max: 1 };
    let wal = Wal::open(&folder.path().join("_wal"), "a", settings).unwrap();
    let health = Arc::new(Health::new(Box::new(|_| ())));
    let stop = Stop::default();
    let sources = scripted(&[("n1", 30, |_| false)], &stop);
    let settings = CollectSettings { waiting_bytes_max: 2_000, ..quick() };
    let error = run(sources, wal, &store, &settings, &health, &stop).unwrap_err();
    assert!(error.to_string().starts_with("could not append to the write-ahead log"), "{error}");
    let writer = health.writer();
    assert_eq!((writer.rows_appended_total, writer.rows_dropped_total), (0, 30));
    assert!(writer.append_failures_total >= 1);
}

#[test]
fn lines_that_are_kept_aside_are_told_once_for_a_file_and_reason() {
    // Breaks when a folder's files or a sender's times are dropped without a word, or flood the log.
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let health = Health::new(Box::new(move |text| heard.lock().unwrap().push(text.to_owned())));
    let round = |file: &str, reason: &str, lines: usize| {
        let reject = |line| crate::batch::Reject {
            file: file.to_owned(),
            line: Some(line as u64 + 2),
            reason: reason.to_owned(),
            text: String::new(),
        };
        let gathered =
            Gathered { rejects: (0..lines).map(reject).collect(), ..Gathered::default() };
        health.round("folder", &gathered, None, Duration::ZERO);
    };
    round("a.csv", "its time is 71 ms\x1b since 1970", 2);
    round("a.csv", "its time is 72 ms since 1970", 1);
    round("b.csv", "9 fields instead of 8", 1);
    round("b.csv", "", 0);
    assert_eq!(
        *told.lock().unwrap(),
        [
            "folder: 2 lines were kept aside, the first a.csv:2: its time is 71 ms since 1970",
            "folder: a line was kept aside, b.csv:2: 9 fields instead of 8",
        ]
    );
    assert_eq!(health.collectors()["folder"].rejects_total, 4);
}
