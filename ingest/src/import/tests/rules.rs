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

/// The same readings `step_ms` apart.
fn apart(rows: &RecordBatch, step_ms: i64) -> RecordBatch {
    let at = (0..rows.num_rows() as i64).map(|n| 1_767_225_600_000 + n * step_ms);
    let at = TimestampMillisecondArray::from(at.collect::<Vec<_>>()).with_timezone("UTC");
    let mut columns = rows.columns().to_vec();
    columns[rows.schema().index_of("sampled_at").unwrap()] = Arc::new(at);
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

/// The same readings with a column more, the same in all.
fn also(rows: &RecordBatch, name: &str, value: f64) -> RecordBatch {
    let schema = rows.schema();
    let names = schema.fields().iter().map(|field| field.name().as_str()).chain([name]);
    let column: ArrayRef = Arc::new(Float64Array::from(vec![value; rows.num_rows()]));
    let columns = rows.columns().iter().cloned().chain([column]);
    let columns = names.zip(columns).map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
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
    // Breaks when an idle GPU at whole watts, or a full one at its limit, is taken for a hung one.
    let idle = powers(&[60.0; 40], |_| None);
    let counting = powers(&[61.27; 20], |n| Some(5.0e6 + n as f64));
    let short = powers(&[61.27; 9], |_| None);
    let no_counter = powers(&[60.0; 40], |_| Some(0.0));
    let full = also(&powers(&[700.0; 40], |_| None), "gpu_util_ratio", 1.0);
    let nearly_idle = also(&powers(&[20.0; 40], |_| None), "gpu_util_ratio", 0.02);
    let asleep = also(&powers(&[60.0; 40], |_| None), "sm_active_ratio", 0.0);
    // Asked every second of a collector that reads every 30 s.
    let cached = apart(&powers(&[61.27; 30], |_| Some(5.0e6)), 1_000);
    for rows in [idle, counting, short, no_counter, full, nearly_idle, asleep, cached] {
        let (_folder, store) = store();
        let count = rows.num_rows() as u64;
        let summary = import(&store, vec![rows]).await;
        assert_eq!((summary.rows_kept, summary.rows_stale), (count, 0));
        assert!(events(&store).await.is_empty());
    }
}

#[tokio::test]
async fn a_standing_counter_fine_shares_and_a_frozen_load_are_stale() {
    // Breaks when only power with decimals tells a hung driver.
    let counter = powers(&[60.0; 12], |_| Some(5.0e6));
    let fine = also(&powers(&[300.0; 12], |_| None), "sm_active_ratio", 0.412_345);
    let load = also(&powers(&[300.0; 24], |_| None), "gpu_util_ratio", 0.37);
    for (rows, words) in [(counter, "counter stands"), (fine, "last digit"), (load, "same load")] {
        let (_folder, store) = store();
        let stale = rows.num_rows() as u64 - 1;
        let summary = import(&store, vec![rows.clone()]).await;
        assert_eq!((summary.rows_kept, summary.rows_stale), (1, stale), "{words}");
        let told = events(&store).await;
        assert_eq!(told.len(), 1, "{told:?}");
        let expected = "2026-01-01T00:00:30Z GPU-a stale from here on each reading repeats";
        assert!(told[0].starts_with(expected) && told[0].contains(words), "{}", told[0]);
        import(&store, vec![rows]).await;
        assert_eq!(events(&store).await, told);
    }
}

#[tokio::test]
async fn silence_between_what_is_stored_and_what_comes_is_told() {
    // Breaks when a GPU that was away for days is told as if it had never been gone, whichever of
    // the two sides of the silence is stored. 30 s apart; day 1 ends at 00:01, day 4 begins at its
    // midnight: 3 d less 60 s, and the 30 s that the first reading stands for.
    let early = readings("GPU-a", &[0, 30, 60]);
    let late = readings("GPU-a", &[259_200, 259_230, 259_260]);
    let missing_h = (259_200.0 - 60.0 - 30.0) / 3_600.0;
    for (first, second) in [(&early, &late), (&late, &early)] {
        let (_folder, store) = store();
        assert_eq!(import(&store, vec![first.clone()]).await.gaps, 0);
        let summary = import(&store, vec![second.clone()]).await;
        assert_eq!(summary.gaps, 1);
        assert!((summary.gap_gpu_hours - missing_h).abs() < 1e-9, "{}", summary.gap_gpu_hours);
        let longest = summary.longest_gap.unwrap();
        assert_eq!(longest.until.to_rfc3339(), "2026-01-04T00:00:00+00:00");
        assert_eq!(longest.gpu_uuid.as_deref(), Some("GPU-a"));
    }
    // In one import, and with the day after stored: 00:01 to 24:00 less the 90 s that it holds.
    let (_one, whole) = store();
    assert_eq!(import(&whole, vec![early.clone(), late]).await.gaps, 1);
    let (_two, after) = store();
    import(&after, vec![readings("GPU-a", &[86_400, 86_430, 86_460])]).await;
    let summary = import(&after, vec![early]).await;
    assert_eq!(summary.gaps, 1);
    assert!((summary.gap_gpu_hours - (86_400.0 - 60.0 - 90.0) / 3_600.0).abs() < 1e-9);
}

#[tokio::test]
async fn a_gpu_that_was_away_while_others_reported_is_told_by_the_inventory() {
    // Breaks when only the day before is asked for the last reading of a GPU.
    use crate::source::input::Input;
    let zone = Some(chrono_tz::Tz::UTC);
    let options = crate::source::nvidia_smi::Options { zone, ..Default::default() };
    let (_folder, store) = store();
    let mut gaps = Vec::new();
    for (day, gpus) in [(14, &["GPU-a", "GPU-b"][..]), (15, &["GPU-a"]), (16, &["GPU-a", "GPU-b"])]
    {
        let mut text = "timestamp, uuid, power.draw [W]\n".to_owned();
        for minute in 0..24 * 60 {
            for gpu in gpus {
                let time = format!("2026/07/{day} {:02}:{:02}:00.000", minute / 60, minute % 60);
                text.push_str(&format!("{time}, {gpu}, {}.5 W\n", minute % 7));
            }
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
        let input = Input::one(&file.path().to_string_lossy());
        crate::source::nvidia_smi::read(&[input], &options, &mut import).unwrap();
        let summary = import.finish(&store).await.unwrap();
        gaps.push((summary.gpus, summary.gaps, summary.longest_gap.map(|gap| gap.hours)));
    }
    // From 23:59 of the 14th to 00:00 of the 16th, less one minute: 24 h.
    assert_eq!(gaps, [(2, 0, None), (1, 0, None), (2, 1, Some(24.0))]);
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
