//! A table holds all of an import or nothing of it, whatever call fails and whoever else writes.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::store::faulty::{Fault, Faulty};

fn job(id: &str, ended: i64) -> RecordBatch {
    let at = TimestampMillisecondArray::from(vec![ended]).with_timezone("UTC");
    RecordBatch::try_from_iter([
        ("job_id", Arc::new(StringArray::from(vec![id])) as ArrayRef),
        ("ended_at", Arc::new(at) as ArrayRef),
    ])
    .unwrap()
}

fn second() -> Import {
    let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
    import.rows(Table::Jobs, job("1", 9)).unwrap();
    import.rows(Table::Jobs, job("2", 9)).unwrap();
    let late = readings("GPU-a", &[60, 90, 86_430, 172_800]);
    import.rows(Table::Samples, late).unwrap();
    import
}

/// A store in memory that holds a first import.
async fn begun() -> Store {
    let store = Store::open("memory:///fleet").unwrap();
    let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
    import.rows(Table::Jobs, job("1", 5)).unwrap();
    import.rows(Table::Samples, readings("GPU-a", &[0, 30, 86_400])).unwrap();
    import.finish(&store).await.unwrap();
    store
}

async fn rows(store: &Store, table: Table) -> usize {
    let snapshot = store.snapshot(table).await.unwrap().unwrap();
    store.read(&snapshot, None).await.unwrap().num_rows()
}

async fn files(store: &Store) -> usize {
    use futures::TryStreamExt;
    let bucket = store.snapshot(Table::Samples).await.unwrap().unwrap().bucket;
    let found: Vec<_> = bucket.list(None).try_collect().await.unwrap();
    found.iter().filter(|found| found.location.as_ref().ends_with(".parquet")).count()
}

/// Fails the k-th call for k = 1, 2, ... until an import gets through untouched.
async fn every_call(fault: fn(usize) -> Fault) {
    let mut failures = 0;
    for k in 1.. {
        let store = begun().await;
        let before = files(&store).await;
        let calls = Arc::new(AtomicUsize::new(0));
        let faulty = store.wrapped(|inner| Faulty::over(inner, fault(k), Arc::clone(&calls)));
        let outcome = second().finish(&faulty).await;
        let through = calls.load(Ordering::SeqCst) < k;
        let (jobs, samples) = (rows(&store, Table::Jobs).await, rows(&store, Table::Samples).await);
        assert!(jobs == 1 || jobs == 2, "call {k}: {jobs} jobs");
        assert!(samples == 3 || samples == 7, "call {k}: {samples} samples");
        if outcome.is_ok() {
            assert_eq!((jobs, samples), (2, 7), "call {k}: told to be done");
        } else if samples == 3 && jobs == 1 && matches!(fault(k), Fault::Once(_)) {
            assert_eq!(files(&store).await, before, "call {k}: left files behind");
            failures += 1;
        } else {
            failures += 1;
        }
        second().finish(&store).await.unwrap();
        assert_eq!((rows(&store, Table::Jobs).await, rows(&store, Table::Samples).await), (2, 7));
        if through {
            assert!(outcome.is_ok(), "no call failed, yet: {outcome:?}");
            break;
        }
    }
    assert!(failures > 5, "only {failures} faults met");
}

#[tokio::test]
async fn a_failed_call_leaves_all_or_none() {
    every_call(Fault::Once).await;
}

#[tokio::test]
async fn a_dead_process_leaves_all_or_none() {
    every_call(Fault::From).await;
}

#[tokio::test]
async fn a_lost_answer_leaves_all_or_none() {
    every_call(Fault::AnswerLost).await;
}

#[tokio::test]
async fn an_import_that_was_outrun_merges_again() {
    let store = begun().await;
    let base = store.snapshot(Table::Samples).await.unwrap().unwrap();
    import(&store, vec![readings("GPU-b", &[0, 30])]).await;
    let mut rewrite =
        Rewrite::new(&store, Table::Samples, Some(&base), Effect::Commit(Purpose::Rows(None)));
    rewrite.clear(base.files[0].date);
    let content = store.read(&base, base.files[0].date).await.unwrap();
    let content = Content {
        date: base.files[0].date,
        part: (0, 1),
        rows: content,
        series: None,
        made_from: None,
    };
    rewrite.put(content).await.unwrap();
    assert_eq!(rewrite.commit().await.unwrap(), Committed::Outrun);
    assert_eq!(rows(&store, Table::Samples).await, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn imports_at_once_lose_nothing() {
    let (_folder, store) = store();
    let imports = (0..4).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            import(&store, vec![readings(&format!("GPU-{n}"), &[0, 30, 60])]).await
        })
    });
    for import in imports.collect::<Vec<_>>() {
        assert_eq!(import.await.unwrap().rows_kept, 3);
    }
    assert_eq!(content(&store).await.num_rows(), 12);
}

async fn live(store: &Store) -> usize {
    store.snapshot(Table::Samples).await.unwrap().unwrap().files.len()
}

fn reading(minute: i64) -> Import {
    let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
    let rows = readings("GPU-a", &[minute * 60]);
    let node: ArrayRef = Arc::new(StringArray::from(vec!["n1"]));
    let columns = rows.columns().iter().cloned().chain([node]);
    let names = ["sampled_at", "gpu_uuid", "power_w", "node"];
    let rows = RecordBatch::try_from_iter(names.into_iter().zip(columns)).unwrap();
    import.rows(Table::Samples, rows).unwrap();
    import
}

#[tokio::test]
async fn many_small_imports_leave_few_files_and_every_row() {
    // Breaks when each import adds a file for ever, or folding them loses a row or a reader of
    // an older version.
    let store = Store::open("memory:///fleet").unwrap();
    let mut older = None;
    for minute in 0..60 {
        let summary = reading(minute).finish(&store).await.unwrap();
        assert_eq!((summary.rows_kept, summary.notices), (1, 0));
        assert!(live(&store).await <= FILES_MAX, "{minute}");
        if minute == 15 {
            older = store.snapshot(Table::Samples).await.unwrap();
            assert_eq!(live(&store).await, FILES_MAX, "nothing is folded before it must be");
        }
    }
    let content = content(&store).await;
    let instants = content["sampled_at"].as_primitive::<TimestampMillisecondType>().values();
    assert_eq!(instants.len(), 60);
    assert!(instants.windows(2).all(|pair| pair[1] - pair[0] == 60_000));
    assert_eq!(store.read(&older.unwrap(), None).await.unwrap().num_rows(), 16);
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[tokio::test]
async fn a_failed_call_while_files_are_folded_leaves_either_state() {
    // Breaks when a process that dies between the import and the folding leaves rows twice or not
    // at all.
    let (begun, store) = store();
    for minute in 0..16 {
        reading(minute).finish(&store).await.unwrap();
    }
    for fault in [Fault::From as fn(usize) -> Fault, Fault::AnswerLost] {
        for k in 1.. {
            let folder = tempfile::tempdir().unwrap();
            copy(begun.path(), folder.path());
            let store = Store::open(folder.path().to_str().unwrap()).unwrap();
            let calls = Arc::new(AtomicUsize::new(0));
            let faulty = store.wrapped(|inner| Faulty::over(inner, fault(k), Arc::clone(&calls)));
            let outcome = reading(16).finish(&faulty).await;
            let found = (rows(&store, Table::Samples).await, live(&store).await);
            assert!([(16, 16), (17, 17), (17, 1)].contains(&found), "call {k}: {found:?}");
            assert!(outcome.is_err() || found.0 == 17, "call {k}: told to be done");
            if calls.load(Ordering::SeqCst) < k {
                assert_eq!(found, (17, 1));
                break;
            }
        }
    }
}
