//! A day's rollup is there whole or not at all, and readings go with their mark or stay, whatever
//! call fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::{RollupSettings, TABLES, roll_up};
use crate::import::tests::{import, readings};
use crate::retain::{RetainSettings, retain};
use crate::schema::Table;
use crate::store::Store;
use crate::store::faulty::{Fault, Faulty};

/// A store in memory with 26 hours of readings, and one at the end of the last.
async fn begun() -> Store {
    let store = Store::open("memory:///fleet").unwrap();
    let seconds: Vec<i64> = (1..14).map(|n| n * 7_200).collect();
    import(&store, vec![readings("GPU-a", &seconds)]).await;
    store
}

async fn rows(store: &Store, table: Table) -> Option<RecordBatch> {
    let snapshot = store.snapshot(table).await.unwrap()?;
    Some(store.read(&snapshot, None).await.unwrap())
}

async fn roll(store: &Store) -> bool {
    roll_up(store, &RollupSettings::default(), |_| (), |_| ()).await.is_ok()
}

/// Fails the k-th call for k = 1, 2, ... of `work` until it gets through untouched, and has
/// `look` look at what each failure left.
async fn every_call<W: AsyncFn(&Store) -> bool, L: AsyncFn(&Store, bool)>(
    fault: fn(usize) -> Fault,
    begun: impl AsyncFn() -> Store,
    work: W,
    look: L,
) {
    let mut failures = 0;
    for k in 1.. {
        let store = begun().await;
        let calls = Arc::new(AtomicUsize::new(0));
        let faulty = store.wrapped(|inner| Faulty::over(inner, fault(k), Arc::clone(&calls)));
        let done = work(&faulty).await;
        let through = calls.load(Ordering::SeqCst) < k;
        look(&store, done).await;
        failures += usize::from(!done);
        if through {
            assert!(done, "no call failed");
            break;
        }
    }
    assert!(failures > 5, "only {failures} faults met");
}

const FAULTS: [fn(usize) -> Fault; 3] = [Fault::Once, Fault::From, Fault::AnswerLost];

#[tokio::test]
async fn a_failed_call_leaves_whole_days_and_the_next_run_completes_them() {
    // Breaks when a reader can see half a rollup, or a failure is taken for done.
    let whole = begun().await;
    assert!(roll(&whole).await);
    for fault in FAULTS {
        every_call(fault, begun, roll, async |store: &Store, done| {
            for table in TABLES {
                let found = rows(store, table).await;
                let expected = rows(&whole, table).await.unwrap();
                assert!(expected.num_rows() >= 27);
                assert!(found.is_some() || !done, "{table}: told to be done");
                assert!(found.is_none_or(|found| found == expected), "{table}");
            }
            assert!(roll(store).await);
            for table in TABLES {
                assert_eq!(rows(store, table).await, rows(&whole, table).await);
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_failed_call_leaves_all_days_or_drops_them_and_says_so() {
    // Breaks when days are gone and nothing says so, or are said to be gone and are there.
    let now: DateTime<Utc> =
        NaiveDate::from_ymd_opt(2026, 1, 3).unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc();
    let ages = [(Table::Samples, TimeDelta::days(1))].into();
    let settings = RetainSettings { ages, apply: true };
    let rolled_up = async || {
        let store = begun().await;
        assert!(roll(&store).await);
        store
    };
    let drop = async |store: &Store| match retain(store, &settings, now).await {
        Ok(told) => {
            assert_eq!(told[0].days, 1, "what went is told");
            true
        }
        Err(_) => false,
    };
    for fault in FAULTS {
        every_call(fault, rolled_up, drop, async |store: &Store, done| {
            let snapshot = store.snapshot(Table::Samples).await.unwrap().unwrap();
            let dropped = store.dropped(&snapshot).await.unwrap();
            let left = store.read(&snapshot, None).await.unwrap().num_rows();
            match dropped {
                None => assert!(left == 13 && !done, "{left} rows"),
                Some(_) => assert_eq!(left, 2),
            }
            assert_eq!(rows(store, Table::Gpu1h).await.unwrap().num_rows(), 27);
        })
        .await;
    }
}
