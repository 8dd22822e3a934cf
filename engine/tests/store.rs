//! Questions asked of a store on disk: only the days that can answer are read, and an absent table
//! is an empty one.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow::array::TimestampMillisecondArray;
use arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use loadline_engine::{EngineConfig, EngineError, ErrorKind, Session};
use loadline_ingest::batch::Output;
use loadline_ingest::import::{Import, ImportSettings};
use loadline_ingest::{Store, Table};

const MARCH: i64 = 1_772_323_200_000; // 2026-03-01T00:00:00Z
const DAY: i64 = 86_400_000;

/// Three days of one GPU, a reading every hour: 72 rows in three files.
async fn store(folder: &tempfile::TempDir) -> Store {
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    let at = TimestampMillisecondArray::from_iter_values((0..72).map(|h| MARCH + h * 3_600_000));
    let uuid: StringArray = (0..72).map(|_| Some("GPU-a")).collect();
    let rows = RecordBatch::try_from_iter([
        ("sampled_at", Arc::new(at.with_timezone("UTC")) as ArrayRef),
        ("gpu_uuid", Arc::new(uuid) as ArrayRef),
        ("gpu_util_ratio", Arc::new(Float64Array::from(vec![0.5; 72])) as ArrayRef),
    ]);
    let settings = ImportSettings { interval_s: Some(3600.0), ..ImportSettings::default() };
    let mut import = Import::new(settings, Box::new(|_| ()));
    import.rows(Table::Samples, rows.unwrap()).unwrap();
    import.finish(&store).await.unwrap();
    store
}

/// Runs to its end what plans views, which takes a deep stack.
fn on_threads(asked: impl Future<Output = ()> + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(64 << 20)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::spawn(asked).await.unwrap() });
}

async fn number(session: &Session, text: &str) -> i64 {
    let answer = session.sql(text).await.unwrap();
    let batch = &answer.batches[0];
    batch.column(0).as_primitive::<Int64Type>().value(0)
}

#[test]
fn a_question_about_a_day_reads_that_day_alone() {
    on_threads(ask());
}

async fn ask() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let session = Session::open(&store, &EngineConfig::default(), None).await.unwrap();

    // The first reading stands for the hour before it; now is the last one.
    let (first, last) = session.span();
    assert_eq!(first.timestamp_millis(), MARCH - 3_600_000);
    assert_eq!(last.timestamp_millis(), MARCH + 71 * 3_600_000);

    assert_eq!(number(&session, "SELECT count(*) FROM samples").await, 72);
    let on_the_second = "FROM samples WHERE sampled_at >= '2026-03-02T00:00:00Z' \
        AND sampled_at < '2026-03-03T00:00:00Z'";
    assert_eq!(number(&session, &format!("SELECT count(*) {on_the_second}")).await, 24);
    let plan = session.sql(&format!("EXPLAIN SELECT gpu_uuid {on_the_second}")).await.unwrap();
    let plan = arrow::util::pretty::pretty_format_batches(&plan.batches).unwrap().to_string();
    assert!(plan.contains("date=2026-03-02"), "{plan}");
    assert!(!plan.contains("date=2026-03-01") && !plan.contains("date=2026-03-03"), "{plan}");

    // Tables that were never written are empty, not missing; views on them answer.
    assert_eq!(number(&session, "SELECT count(*) FROM node_samples").await, 0);
    assert_eq!(number(&session, "SELECT count(*) FROM holdings").await, 0);
    assert_eq!(number(&session, "SELECT count(*) FROM job_samples WHERE job_id IS NULL").await, 72);

    // What counts as now can be given, and what is asked wrongly is told apart.
    let now = chrono::DateTime::from_timestamp_millis(MARCH + DAY).unwrap();
    let session = Session::open(&store, &EngineConfig::default(), Some(now)).await.unwrap();
    let text = "SELECT CAST(CAST(as_of() AS BIGINT) AS BIGINT)";
    assert_eq!(number(&session, text).await, MARCH + DAY);
    let error = session.sql("SELECT nothing FROM samples").await.unwrap_err();
    assert_eq!((error.kind(), error.retryable()), (ErrorKind::BadRequest, false));
    assert!(matches!(error, EngineError::Sql { .. }));

    // Nothing is written or dropped, and nobody is told that it was.
    let out = folder.path().join("out.csv");
    for text in [
        "DROP TABLE samples".to_owned(),
        "CREATE TABLE mine AS SELECT 1".to_owned(),
        "INSERT INTO samples (gpu_uuid) VALUES ('GPU-b')".to_owned(),
        format!("COPY (SELECT 1) TO '{}'", out.display()),
        "SET datafusion.execution.batch_size = 1".to_owned(),
    ] {
        let error = session.sql(&text).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadRequest, "{text}: {error}");
    }
    assert!(!out.exists());
    assert_eq!(number(&session, "SELECT count(*) FROM samples").await, 72);
    for text in ["EXPLAIN SELECT 1", "SHOW TABLES", "DESCRIBE samples"] {
        session.sql(text).await.unwrap();
    }
}

#[test]
fn a_day_of_counts_is_that_day_and_nothing_of_its_neighbours() {
    // Breaks if the last minute of a trace is cut off, or its first is put into the day before.
    on_threads(ask_counts());
}

async fn ask_counts() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    // One row a minute from 00:00 to 23:59, 2 GPUs held; 23:58 was lost, so the last row follows a
    // gap and its period of two minutes would reach into the next day.
    let minutes: Vec<i64> = (0..1440).filter(|minute| *minute != 1438).collect();
    let at = TimestampMillisecondArray::from_iter_values(
        minutes.iter().map(|minute| MARCH + minute * 60_000),
    );
    let rows = RecordBatch::try_from_iter([
        ("counted_at", Arc::new(at.with_timezone("UTC")) as ArrayRef),
        ("gpus_held", Arc::new(Float64Array::from(vec![2.0; minutes.len()])) as ArrayRef),
    ]);
    let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
    import.rows(Table::GpuCounts, rows.unwrap()).unwrap();
    import.finish(&store).await.unwrap();

    let session = Session::open(&store, &EngineConfig::default(), None).await.unwrap();
    let (first, last) = session.span();
    assert_eq!((first.timestamp_millis(), last.timestamp_millis()), (MARCH, MARCH + DAY));
    assert_eq!(number(&session, "SELECT count(*) FROM usage_daily").await, 1);
    assert_eq!(number(&session, "SELECT count(*) FROM demand_hourly").await, 24);
    assert_eq!(number(&session, "SELECT count(*) FROM held_time").await, 24);
    let held = "SELECT CAST(round(sum(gpu_hours_held)) AS BIGINT) FROM usage_daily";
    assert_eq!(number(&session, held).await, 48);
}

async fn imported(store: &Store, table: Table, columns: Vec<(&str, ArrayRef)>) {
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
    import.rows(table, rows).unwrap();
    import.finish(store).await.unwrap();
}

fn instant(at: i64) -> ArrayRef {
    Arc::new(TimestampMillisecondArray::from_iter_values([at]).with_timezone("UTC"))
}

fn text(value: Option<&str>) -> ArrayRef {
    Arc::new(StringArray::from(vec![value]))
}

async fn job(store: &Store, cluster: Option<&str>) {
    let columns = vec![
        ("job_id", text(Some("1"))),
        ("cluster", text(cluster)),
        ("started_at", instant(MARCH)),
        ("ended_at", instant(MARCH + DAY)),
        ("gpus_allocated", Arc::new(Float64Array::from(vec![1.0])) as ArrayRef),
    ];
    imported(store, Table::Jobs, columns).await;
}

#[test]
fn rows_without_a_cluster_are_of_the_only_one_that_is_named() {
    // Breaks when readings that name no cluster and a ledger that does count one fleet twice, or
    // when a second cluster is made the first.
    on_threads(ask_clusters());
}

async fn ask_clusters() {
    let named = "SELECT count(*) FROM samples WHERE cluster = 'hpc'";
    let unnamed = "SELECT count(*) FROM samples WHERE cluster IS NULL";
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let session = Session::open(&store, &EngineConfig::default(), None).await.unwrap();
    assert_eq!([number(&session, named).await, number(&session, unnamed).await], [0, 72]);

    job(&store, Some("hpc")).await;
    let session = Session::open(&store, &EngineConfig::default(), None).await.unwrap();
    assert_eq!([number(&session, named).await, number(&session, unnamed).await], [72, 0]);
    let day = format!("{named} AND sampled_at < '2026-03-02T00:00:00Z'");
    assert_eq!(number(&session, &day).await, 24);
    let plan = session.sql(&format!("EXPLAIN {day}")).await.unwrap();
    let plan = arrow::util::pretty::pretty_format_batches(&plan.batches).unwrap().to_string();
    assert!(plan.contains("date=2026-03-01") && !plan.contains("date=2026-03-02"), "{plan}");

    job(&store, Some("lab")).await;
    let session = Session::open(&store, &EngineConfig::default(), None).await.unwrap();
    assert_eq!([number(&session, named).await, number(&session, unnamed).await], [0, 72]);
}

#[test]
fn a_table_whose_days_were_all_dropped_is_an_empty_one() {
    // Breaks when a question that groups an emptied table fails while it is planned.
    on_threads(ask_emptied());
}

async fn ask_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let session = Session::open(&store, &EngineConfig::default(), None).await.unwrap();
    let grouped = "SELECT count(*) FROM (SELECT s.gpu_model, min(s.power_w) FROM samples s \
        WHERE s.sampled_at > '2027-01-01T00:00:00Z' GROUP BY s.gpu_model)";
    assert_eq!(number(&session, grouped).await, 0);
    let joined = "SELECT count(*) FROM job_readings r WHERE r.sampled_at > '2027-01-01T00:00:00Z'";
    assert_eq!(number(&session, joined).await, 0);
}
