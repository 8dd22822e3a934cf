mod attempts;
mod events;
mod faults;
mod hung;
mod parts;
mod rules;

use arrow::array::{ArrayRef, Float64Array, StringArray, TimestampMillisecondArray};
use arrow::datatypes::Float64Type;

use chrono::DateTime;

use super::*;
use crate::merge::merge;
use crate::store::{Committed, Content, Effect, Purpose, Rewrite};

/// Readings of one GPU at these seconds after 2026-01-01T00:00:00Z.
pub(crate) fn readings(gpu: &str, seconds: &[i64]) -> RecordBatch {
    let at = seconds.iter().map(|s| (1_767_225_600 + s) * 1_000).collect::<Vec<i64>>();
    let at = TimestampMillisecondArray::from(at).with_timezone("UTC");
    let power = Float64Array::from_iter_values(seconds.iter().map(|s| *s as f64));
    let uuid: StringArray = seconds.iter().map(|_| Some(gpu)).collect();
    RecordBatch::try_from_iter([
        ("sampled_at", Arc::new(at) as ArrayRef),
        ("gpu_uuid", Arc::new(uuid) as ArrayRef),
        ("power_w", Arc::new(power) as ArrayRef),
    ])
    .unwrap()
}

pub(crate) async fn import(store: &Store, batches: Vec<RecordBatch>) -> ImportSummary {
    let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
    for batch in batches {
        import.read(batch.num_rows() as u64);
        import.rows(Table::Samples, batch).unwrap();
    }
    import.finish(store).await.unwrap()
}

async fn content(store: &Store) -> RecordBatch {
    let snapshot = store.snapshot(Table::Samples).await.unwrap().unwrap();
    let rows = store.read(&snapshot, None).await.unwrap();
    merge(Table::Samples, &RecordBatch::new_empty(Table::Samples.schema()), &[rows]).unwrap().rows
}

/// Events of the store: instant, board, kind and words.
async fn events(store: &Store) -> Vec<String> {
    let Some(snapshot) = store.snapshot(Table::Events).await.unwrap() else { return Vec::new() };
    let rows = store.read(&snapshot, None).await.unwrap();
    let at = rows["event_at"].as_primitive::<TimestampMillisecondType>();
    let text = |name: &str, row: usize| {
        let column = rows[name].as_string::<i32>();
        if column.is_valid(row) { column.value(row).to_owned() } else { "-".into() }
    };
    let told = (0..rows.num_rows()).map(|row| {
        let at = DateTime::from_timestamp_millis(at.value(row)).unwrap();
        let at = at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let (uuid, kind) = (text("gpu_uuid", row), text("kind", row));
        format!("{at} {uuid} {kind} {}", text("detail", row))
    });
    let mut told: Vec<String> = told.collect();
    told.sort();
    told
}

pub(crate) fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    (folder, store)
}

#[tokio::test]
async fn importing_twice_changes_nothing() {
    let (_folder, store) = store();
    let first = import(&store, vec![readings("GPU-a", &[0, 30, 60, 86_400, 86_430])]).await;
    assert_eq!((first.rows_read, first.rows_kept, first.rows_duplicate), (5, 5, 0));
    let version = store.snapshot(Table::Samples).await.unwrap().unwrap().version;
    let again = import(&store, vec![readings("GPU-a", &[0, 30, 60, 86_400, 86_430])]).await;
    assert_eq!((again.rows_kept, again.rows_duplicate), (0, 5));
    assert!(again.tables["samples"].unchanged);
    assert_eq!(store.snapshot(Table::Samples).await.unwrap().unwrap().version, version);
}

#[tokio::test]
async fn any_order_and_any_split_give_the_same_table() {
    let seconds: Vec<i64> =
        (0..40).map(|n| n * 30 + 86_400 - 600).filter(|s| s % 210 != 0).collect();
    let (_a, whole) = store();
    import(&whole, vec![readings("GPU-a", &seconds), readings("GPU-b", &seconds)]).await;
    let (_b, parts) = store();
    let (late, early): (Vec<i64>, Vec<i64>) = seconds.iter().partition(|s| *s % 60 == 0);
    let reversed: Vec<i64> = late.iter().rev().copied().collect();
    import(&parts, vec![readings("GPU-b", &seconds)]).await;
    import(&parts, vec![readings("GPU-a", &reversed), readings("GPU-a", &reversed)]).await;
    import(&parts, vec![readings("GPU-a", &early)]).await;
    let (whole, parts) = (content(&whole).await, content(&parts).await);
    assert!(whole.num_rows() > 60);
    assert_eq!(whole, parts);
}

#[tokio::test]
async fn a_late_reading_shortens_the_first_of_the_next_day() {
    let (_folder, store) = store();
    import(&store, vec![readings("GPU-a", &[86_340, 86_430, 86_460, 86_490])]).await;
    import(&store, vec![readings("GPU-a", &[86_399])]).await;
    let rows = content(&store).await;
    let periods = rows.column_by_name("period_s").unwrap().as_primitive::<Float64Type>().clone();
    // 86399 follows 86340 by 59 s; 86430 now follows it by 31 s, no longer 90 s.
    assert_eq!(periods.values()[1..], [59.0, 31.0, 30.0, 30.0]);
}

#[tokio::test]
async fn a_dry_run_tells_and_writes_nothing() {
    let (folder, store) = store();
    let settings = ImportSettings { dry_run: true, ..ImportSettings::default() };
    let mut import = Import::new(settings, Box::new(|_| ()));
    import.rows(Table::Samples, readings("GPU-a", &[0, 30, 900])).unwrap();
    import.reject(Reject { file: "f".into(), line: Some(2), reason: "r".into(), text: "t".into() });
    let summary = import.finish(&store).await.unwrap();
    assert_eq!((summary.rows_kept, summary.rows_kept_aside), (3, 1));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn rows_that_waited_on_disk_are_the_same_rows() {
    let (_a, direct) = store();
    import(&direct, vec![readings("GPU-a", &[0, 30]), readings("GPU-a", &[60, 86_460])]).await;
    let (_b, spilled) = store();
    let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
    import.rows(Table::Samples, readings("GPU-a", &[0, 30])).unwrap();
    import.waiting.get_mut(&Table::Samples).unwrap().buffer.spill().unwrap();
    import.rows(Table::Samples, readings("GPU-a", &[60, 86_460])).unwrap();
    import.finish(&spilled).await.unwrap();
    let direct = content(&direct).await;
    assert_eq!(direct.num_rows(), 4);
    assert_eq!(direct, content(&spilled).await);
}

#[tokio::test]
async fn names_that_change_from_batch_to_batch_wait_on_disk() {
    // Breaks when a spilled file can hold only one dictionary of jobs: no large import gets through.
    let held = |job: &str, seconds: &[i64]| {
        let rows = readings("GPU-a", seconds);
        let jobs: StringArray = seconds.iter().map(|_| Some(job)).collect();
        let names = rows.schema();
        let names = names.fields().iter().map(|field| field.name().as_str()).chain(["job_id"]);
        let jobs: ArrayRef = Arc::new(jobs);
        RecordBatch::try_from_iter(names.zip(rows.columns().iter().cloned().chain([jobs]))).unwrap()
    };
    let (_folder, store) = store();
    let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
    import.rows(Table::Samples, held("7", &[0, 30])).unwrap();
    import.rows(Table::Samples, held("8", &[60, 90])).unwrap();
    import.waiting.get_mut(&Table::Samples).unwrap().buffer.spill().unwrap();
    import.rows(Table::Samples, held("9", &[120])).unwrap();
    import.finish(&store).await.unwrap();
    let rows = content(&store).await;
    let jobs = rows.column_by_name("job_id").unwrap().as_string::<i32>();
    assert_eq!(jobs.iter().flatten().collect::<Vec<_>>(), ["7", "7", "8", "8", "9"]);
}

#[tokio::test]
async fn the_loser_of_two_equal_imports_leaves_the_winners_file() {
    let (_folder, store) = store();
    import(&store, vec![readings("GPU-a", &[0, 30])]).await;
    let stale = store.snapshot(Table::Samples).await.unwrap();
    import(&store, vec![readings("GPU-a", &[86_400, 86_430])]).await;
    let won = store.snapshot(Table::Samples).await.unwrap().unwrap();
    let date = won.files.iter().filter_map(|file| file.date).max();
    let rows = store.read(&won, date).await.unwrap();
    let mut lost =
        Rewrite::new(&store, Table::Samples, stale.as_ref(), Effect::Commit(Purpose::Rows(None)));
    lost.put(Content { date, part: (0, 1), rows, series: None, made_from: None }).await.unwrap();
    assert_eq!(lost.commit().await.unwrap(), Committed::Outrun);
    assert_eq!(content(&store).await.num_rows(), 4);
}
