//! What is kept, kept aside, told and brought up to date.

use proptest::prelude::*;

use super::*;

/// Readings 30 s apart with these powers, temperature and clock the same in all.
fn powers(powers: &[f64], energy: impl Fn(usize) -> Option<f64>) -> RecordBatch {
    let rows = powers.len();
    let at = (0..rows as i64).map(|n| (1_767_225_600 + n * 30) * 1_000).collect::<Vec<i64>>();
    let column = |value: f64| Arc::new(Float64Array::from(vec![value; rows])) as ArrayRef;
    RecordBatch::try_from_iter([
        (
            "sampled_at",
            Arc::new(TimestampMillisecondArray::from(at).with_timezone("UTC")) as ArrayRef,
        ),
        ("gpu_uuid", Arc::new(StringArray::from(vec!["GPU-a"; rows])) as ArrayRef),
        ("power_w", Arc::new(Float64Array::from(powers.to_vec())) as ArrayRef),
        ("temp_c", column(41.0)),
        ("sm_clock_mhz", column(1_980.0)),
        ("energy_j", Arc::new((0..rows).map(energy).collect::<Float64Array>()) as ArrayRef),
    ])
    .unwrap()
}

#[tokio::test]
async fn a_hung_driver_is_kept_aside_and_the_gap_shows() {
    let (_folder, store) = store();
    let mut values = vec![61.27; 12];
    values.extend([62.01, 61.88]);
    let rows = powers(&values, |_| Some(5.0e6));
    let summary = import(&store, vec![rows.clone()]).await;
    // The first of twelve stays; eleven go; two live readings follow 360 s after it.
    assert_eq!((summary.rows_kept, summary.rows_stale, summary.rows_kept_aside), (3, 11, 11));
    assert_eq!(summary.gaps, 1);
    let path = summary.rejects_file.unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 12);
    let again = import(&store, vec![rows]).await;
    assert!(again.tables["samples"].unchanged);
}

#[tokio::test]
async fn what_only_looks_stale_is_kept() {
    let idle = powers(&[60.0; 20], |_| None);
    let counting = powers(&[61.27; 20], |n| Some(5.0e6 + n as f64));
    let short = powers(&[61.27; 9], |_| None);
    for (rows, kept) in [(idle, 20), (counting, 20), (short, 9)] {
        let (_folder, store) = store();
        let summary = import(&store, vec![rows]).await;
        assert_eq!((summary.rows_kept, summary.rows_stale), (kept, 0));
    }
}

#[tokio::test]
async fn time_that_goes_back_is_told_and_costs_no_reading() {
    let (_folder, store) = store();
    let summary = import(&store, vec![readings("GPU-a", &[0, 30, 60, 20, 50, 80])]).await;
    assert_eq!((summary.rows_kept, summary.notices), (6, 1));
    assert!(
        summary.notice_texts[0].starts_with(
            "samples GPU-a: time goes back from 2026-01-01T00:01:00.000Z to \
             2026-01-01T00:00:20.000Z"
        ),
        "{:?}",
        summary.notice_texts
    );
}

#[tokio::test]
async fn slices_and_boards_are_series_of_their_own() {
    let (_folder, store) = store();
    let one = readings("GPU-a", &[0, 30, 60]);
    let with_mig = |mig: Option<i16>| {
        let column: ArrayRef = Arc::new(arrow::array::Int16Array::from(vec![mig; 3]));
        let schema = one.schema();
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let columns = names.zip(one.columns().to_vec()).chain([("mig", column)]);
        RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap()
    };
    let summary = import(&store, vec![with_mig(None), with_mig(Some(1)), with_mig(Some(2))]).await;
    assert_eq!((summary.rows_kept, summary.rows_duplicate), (9, 0));
    let rows = content(&store).await;
    let periods = rows.column_by_name("period_s").unwrap().as_primitive::<Float64Type>().clone();
    assert_eq!(periods.values()[..], [30.0; 9]);
}

#[tokio::test]
async fn a_day_in_parts_is_the_same_day() {
    let seconds: Vec<i64> = (0..20).map(|n| n * 30).collect();
    let batches = || (0..10).map(|gpu| readings(&format!("GPU-{gpu}"), &seconds));
    let (_a, whole) = store();
    import(&whole, batches().collect()).await;
    let (_b, parts) = store();
    for (turn, rows) in [(0, 200), (1, 0)] {
        let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
        import.part_rows = 40;
        for batch in batches() {
            import.rows(Table::Samples, batch).unwrap();
        }
        let summary = import.finish(&parts).await.unwrap();
        assert_eq!((summary.rows_kept, summary.rows_duplicate), (rows, 200 - rows));
        assert_eq!(summary.tables["samples"].unchanged, turn == 1);
    }
    let files = parts.snapshot(Table::Samples).await.unwrap().unwrap().files.len();
    assert!(files > 2, "{files} files");
    assert_eq!(content(&whole).await, content(&parts).await);
}

#[tokio::test]
async fn the_cluster_is_filled_only_where_it_is_not_told() {
    let (_folder, store) = store();
    let settings = ImportSettings { cluster: Some("east".into()), ..ImportSettings::default() };
    let mut import = Import::new(settings, Box::new(|_| ()));
    let nodes = RecordBatch::try_from_iter_with_nullable([
        ("node", Arc::new(StringArray::from(vec!["n1", "n2"])) as ArrayRef, true),
        ("cluster", Arc::new(StringArray::from(vec![None, Some("west")])) as ArrayRef, true),
    ]);
    import.rows(Table::Nodes, nodes.unwrap()).unwrap();
    import.finish(&store).await.unwrap();
    let snapshot = store.snapshot(Table::Nodes).await.unwrap().unwrap();
    let rows = store.read(&snapshot, None).await.unwrap();
    let clusters = rows.column_by_name("cluster").unwrap().as_string::<i32>().clone();
    assert_eq!(clusters, StringArray::from(vec!["east", "west"]));
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// The same readings in any order, over any number of imports, some of them twice, make the
    /// same table.
    #[test]
    fn order_and_split_do_not_matter(
        taken in prop::collection::vec((0_u8..3, 0_i64..200, 0_usize..3, any::<bool>()), 1..80)
            .prop_shuffle(),
    ) {
        block(async {
            let batch = |(gpu, step): (u8, i64)| {
                readings(&format!("GPU-{gpu}"), &[step * 30 + 86_400 - 3_000])
            };
            let (_a, whole) = store();
            let mut sorted: Vec<_> = taken.iter().map(|row| (row.0, row.1)).collect();
            sorted.sort_unstable();
            sorted.dedup();
            import(&whole, sorted.iter().copied().map(batch).collect()).await;
            let (_b, parts) = store();
            for turn in 0..3 {
                let mine = taken.iter().filter(|row| row.2 == turn || row.3);
                let mine: Vec<_> = mine.map(|row| batch((row.0, row.1))).collect();
                import(&parts, mine).await;
            }
            let whole = content(&whole).await;
            prop_assert_eq!(whole.num_rows(), sorted.len());
            prop_assert_eq!(whole, content(&parts).await);
            Ok(())
        })?;
    }
}
