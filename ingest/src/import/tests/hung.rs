//! A hung driver is told the same however its readings are cut into imports.

use super::*;

/// Readings of two GPUs, 30 s apart: one that lives, and one that hangs for so many readings.
fn day(hung: std::ops::Range<i64>, readings: i64, power_w: f64, util: f64) -> Vec<RecordBatch> {
    let at = |n: i64| (1_767_225_600 + n * 30) * 1_000;
    let reading = |n: i64| {
        let hangs = hung.contains(&n).then_some(0.0);
        let moves = hangs.unwrap_or(n as f64);
        let instants = TimestampMillisecondArray::from(vec![at(n); 2]).with_timezone("UTC");
        let pair =
            |live: f64, hung: f64| Arc::new(Float64Array::from(vec![live, hung])) as ArrayRef;
        RecordBatch::try_from_iter([
            ("sampled_at", Arc::new(instants) as ArrayRef),
            ("node", Arc::new(StringArray::from(vec!["n1"; 2])) as ArrayRef),
            ("gpu_uuid", Arc::new(StringArray::from(vec!["GPU-live", "GPU-hung"])) as ArrayRef),
            ("gpu_util_ratio", pair(0.9, util)),
            ("power_w", pair(300.25 + n as f64, power_w + moves)),
            ("temp_c", pair(60.0, 61.0)),
        ])
        .unwrap()
    };
    (0..readings).map(reading).collect()
}

/// What the store holds and tells in the end, and how many readings were kept aside.
async fn told(rows: &[RecordBatch], cut: usize) -> (RecordBatch, Vec<String>, u64) {
    let (_folder, store) = store();
    let mut stale = 0;
    for rows in rows.chunks(cut) {
        stale += import(&store, rows.to_vec()).await.rows_stale;
    }
    let told = (content(&store).await, events(&store).await, stale);
    let version = store.snapshot(Table::Samples).await.unwrap().unwrap().version;
    for rows in rows.chunks(cut) {
        import(&store, rows.to_vec()).await;
    }
    let again = store.snapshot(Table::Samples).await.unwrap().unwrap().version;
    assert_eq!((again, &events(&store).await), (version, &told.1), "imported again in {cut}s");
    told
}

#[tokio::test]
async fn a_hung_driver_is_told_alike_however_its_readings_are_cut() {
    // Breaks when a GPU that is frozen for an hour counts as busy because a collector brings a few
    // readings at a time, or is told of with each of them.
    for (rows, stale) in [
        (day(7..31, 40, 300.5, 0.97), 23),
        (day(7..31, 40, 300.0, 0.97), 23),
        (day(30..40, 40, 300.5, 0.97), 9),
    ] {
        let whole = told(&rows, usize::MAX).await;
        assert_eq!((whole.0.num_rows(), whole.1.len(), whole.2), (80 - stale, 1, stale as u64));
        for cut in [1, 4, 9] {
            assert_eq!(told(&rows, cut).await, whole, "cut in {cut}s");
        }
    }
}

#[tokio::test]
async fn what_is_too_short_to_tell_stays_however_it_is_cut() {
    // Breaks when a run of nine is taken for a hang, or an idle GPU at whole watts, because each
    // import begins with a reading that repeats the last.
    for rows in [day(7..16, 24, 300.5, 0.97), day(2..24, 24, 60.0, 0.0)] {
        let whole = told(&rows, usize::MAX).await;
        assert_eq!((whole.0.num_rows(), whole.1.len(), whole.2), (48, 0, 0));
        for cut in [1, 4, 9] {
            assert_eq!(told(&rows, cut).await, whole, "cut in {cut}s");
        }
    }
}
