//! A ledger that comes in parts makes the same jobs as one that comes whole.

use arrow::datatypes::Int32Type;

use super::*;
use crate::source::input::Input;
use crate::source::sacct::{self, SacctOptions};

async fn ledger(store: &Store, header: &str, rows: &[&str]) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
    let input = Input::one(&file.path().to_string_lossy());
    sacct::read(&[input], &SacctOptions::default(), &mut import).unwrap();
    import.finish(store).await.unwrap();
}

/// Job, attempt, start and state of every row.
async fn jobs(store: &Store) -> Vec<String> {
    let snapshot = store.snapshot(Table::Jobs).await.unwrap().unwrap();
    let rows = store.read(&snapshot, None).await.unwrap();
    let (ids, states) = (rows["job_id"].as_string::<i32>(), rows["state"].as_string::<i32>());
    let attempts = rows["attempt"].as_primitive::<Int32Type>();
    let starts = rows["started_at"].as_primitive::<TimestampMillisecondType>();
    let told = (0..rows.num_rows()).map(|row| {
        let start = starts.is_valid(row).then(|| starts.value(row));
        let start = start.and_then(DateTime::from_timestamp_millis);
        let start = start.map_or("-".into(), |at| at.format("%H:%M").to_string());
        format!("{} {} {start} {}", ids.value(row), attempts.value(row), states.value(row))
    });
    let mut told: Vec<String> = told.collect();
    told.sort();
    told
}

const HEADER: &str = "JobIDRaw|State|Submit|Start|End|AllocTRES";

#[tokio::test]
async fn parts_in_any_order_are_the_whole() {
    // Breaks when the second attempt, imported alone, becomes the first and is overwritten by it.
    let rows = [
        "6|PREEMPTED|2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-01T02:00:00|gres/gpu=1",
        "6|NODE_FAIL|2026-01-01T02:00:00|2026-01-01T03:00:00|2026-01-01T04:00:00|gres/gpu=1",
        "6|COMPLETED|2026-01-01T04:00:00|2026-01-01T05:00:00|2026-01-01T06:00:00|gres/gpu=1",
    ];
    let other = "7|COMPLETED|2026-01-01T00:00:00|2026-01-01T05:00:00|2026-01-01T06:00:00|";
    let (_folder, whole) = store();
    ledger(&whole, HEADER, &[rows[0], rows[1], rows[2], other]).await;
    let expected = jobs(&whole).await;
    assert_eq!(
        expected,
        [
            "6 0 01:00 PREEMPTED",
            "6 1 03:00 NODE_FAIL",
            "6 2 05:00 COMPLETED",
            "7 0 05:00 COMPLETED"
        ]
    );
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (_folder, parts) = store();
        for part in order {
            ledger(&parts, HEADER, &[rows[part], other]).await;
        }
        assert_eq!(jobs(&parts).await, expected, "{order:?}");
        let version = parts.snapshot(Table::Jobs).await.unwrap().unwrap().version;
        ledger(&parts, HEADER, &[rows[2], rows[1]]).await;
        assert_eq!(parts.snapshot(Table::Jobs).await.unwrap().unwrap().version, version);
    }
}

#[tokio::test]
async fn a_job_seen_before_its_start_is_the_same_attempt_and_an_older_sight_undoes_nothing() {
    // Breaks when a pending row stays beside the one that ran, or a job that ended waits again
    // because a listing of yesterday is imported late.
    let pending = "6|PENDING|2026-01-01T00:00:00|Unknown|Unknown|";
    let running = "6|RUNNING|2026-01-01T00:00:00|2026-01-01T01:00:00|Unknown|gres/gpu=1";
    let ended =
        "6|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-01T02:00:00|gres/gpu=1";
    for order in [[pending, running, ended], [ended, running, pending], [running, ended, pending]] {
        let (_folder, store) = store();
        for row in order {
            ledger(&store, HEADER, &[row]).await;
        }
        assert_eq!(jobs(&store).await, ["6 0 01:00 COMPLETED"], "{order:?}");
    }
}

#[tokio::test]
async fn the_ledgers_own_count_is_kept() {
    // Breaks when reading only the latest attempt again renumbers it, or rows without a count
    // beside it begin anew.
    let counted = "JobIDRaw|State|Submit|Start|End|AllocTRES|Restarts";
    let third =
        "6|COMPLETED|2026-01-01T04:00:00|2026-01-01T05:00:00|2026-01-01T06:00:00|gres/gpu=1";
    let (_folder, store) = store();
    ledger(&store, counted, &[&format!("{third}|2")]).await;
    assert_eq!(jobs(&store).await, ["6 2 05:00 COMPLETED"]);
    ledger(&store, HEADER, &[third]).await;
    assert_eq!(jobs(&store).await, ["6 2 05:00 COMPLETED"]);
    let first = "6|PREEMPTED|2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-01T02:00:00|";
    ledger(&store, HEADER, &[first]).await;
    assert_eq!(jobs(&store).await, ["6 0 01:00 PREEMPTED", "6 2 05:00 COMPLETED"]);
}

const COUNTED: &str = "JobIDRaw|State|Submit|Start|End|AllocTRES|Restarts";

#[tokio::test]
async fn an_id_that_is_used_again_is_another_attempt_whatever_is_counted() {
    // Breaks when the job of June, with 0 restarts as that of January has, takes the place of it;
    // or when a row that is imported again, or later told of its start and end, is one more.
    let january = "77|COMPLETED|2026-01-05T00:00:00|2026-01-05T01:00:00|2026-01-05T10:00:00|x|0";
    let again = "77|NODE_FAIL|2026-01-06T00:00:00|2026-01-06T02:00:00|2026-01-06T03:00:00|x|1";
    let pending = "77|PENDING|2026-06-05T00:00:00|Unknown|Unknown|x|0";
    let running = "77|RUNNING|2026-06-05T00:00:00|2026-06-05T03:00:00|Unknown|x|0";
    let june = "77|COMPLETED|2026-06-05T00:00:00|2026-06-05T03:00:00|2026-06-05T10:00:00|x|0";
    let all = ["77 0 01:00 COMPLETED", "77 1 02:00 NODE_FAIL", "77 2 03:00 COMPLETED"];
    let orders: [&[&[&str]]; 6] = [
        &[&[january, again, june]],
        &[&[january], &[again], &[june]],
        &[&[june], &[again], &[january]],
        &[&[january], &[pending], &[again], &[running], &[june]],
        &[&[pending], &[january, again, running], &[june]],
        &[&[june, pending], &[january], &[running, again]],
    ];
    for parts in orders {
        let (_folder, store) = store();
        for part in parts {
            ledger(&store, COUNTED, part).await;
        }
        assert_eq!(jobs(&store).await, all, "{parts:?}");
        let version = store.snapshot(Table::Jobs).await.unwrap().unwrap().version;
        for row in [january, running, again, pending, june] {
            ledger(&store, COUNTED, &[row]).await;
        }
        ledger(&store, COUNTED, &[june, running, january, again]).await;
        assert_eq!(store.snapshot(Table::Jobs).await.unwrap().unwrap().version, version);
    }
}

#[tokio::test]
async fn attempts_that_all_count_no_restart_are_told_apart_by_their_starts() {
    // Breaks when a requeued job loses its first attempt because both say 0, with the submission of
    // the first or with one of its own.
    let first = "5|REQUEUED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|x|0";
    for submit in ["2026-01-01T00:00:00", "2026-01-01T01:00:00"] {
        let second = format!("5|COMPLETED|{submit}|2026-01-01T02:00:00|2026-01-01T03:00:00|x|0");
        for order in [[first, &second], [&second, first]] {
            let (_folder, store) = store();
            for row in order {
                ledger(&store, COUNTED, &[row]).await;
            }
            assert_eq!(jobs(&store).await, ["5 0 00:00 REQUEUED", "5 1 02:00 COMPLETED"]);
        }
    }
}

#[tokio::test]
async fn a_start_that_moves_while_the_job_goes_on_is_no_other_attempt() {
    // Breaks when a job that was told of while its nodes came up holds its GPUs twice, the first
    // time for ever; or when the older sight of it undoes the newer.
    let early = "6|RUNNING|2026-01-01T00:00:00|2026-01-01T01:00:00|Unknown|x|0";
    let late = "6|RUNNING|2026-01-01T00:00:00|2026-01-01T01:05:00|Unknown|x|0";
    let ended = "6|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:05:00|2026-01-01T02:00:00|x|0";
    for (order, told) in [
        ([early, late, early], "6 0 01:05 RUNNING"),
        ([early, ended, late], "6 0 01:05 COMPLETED"),
        ([ended, early, late], "6 0 01:05 COMPLETED"),
    ] {
        let (_folder, store) = store();
        for row in order {
            ledger(&store, COUNTED, &[row]).await;
        }
        assert_eq!(jobs(&store).await, [told], "{order:?}");
    }
}

#[tokio::test]
async fn a_requeued_job_that_waits_again_is_another_attempt_though_it_keeps_its_submission() {
    // Breaks when a queue's row with one restart more is taken for the attempt that ended.
    let first = "6|NODE_FAIL|2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-01T02:00:00|x|0";
    let waits = "6|PENDING|2026-01-01T00:00:00|Unknown|Unknown|x|1";
    let second = "6|COMPLETED|2026-01-01T00:00:00|2026-01-01T03:00:00|2026-01-01T04:00:00|x|1";
    let (_folder, store) = store();
    ledger(&store, COUNTED, &[first]).await;
    ledger(&store, COUNTED, &[waits]).await;
    assert_eq!(jobs(&store).await, ["6 0 01:00 NODE_FAIL", "6 1 - PENDING"]);
    ledger(&store, COUNTED, &[second]).await;
    assert_eq!(jobs(&store).await, ["6 0 01:00 NODE_FAIL", "6 1 03:00 COMPLETED"]);
}
