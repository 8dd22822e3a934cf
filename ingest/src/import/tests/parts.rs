//! Readings that come in parts, as a remote-write sender cuts them.

use arrow::datatypes::Float64Type;

use super::*;

/// The readings of a GPU at some seconds, with one column of figures.
fn part(seconds: &[i64], column: &str, values: &[Option<f64>]) -> RecordBatch {
    let rows = readings("GPU-a", seconds);
    let schema = rows.schema();
    let key = ["cluster", "node", "gpu", "gpu_uuid", "mig", "sampled_at"];
    let columns = schema.fields().iter().map(|field| field.name().as_str()).zip(rows.columns());
    let columns = columns.filter(|(name, _)| key.contains(name));
    let mut columns: Vec<(&str, ArrayRef)> =
        columns.map(|(name, array)| (name, Arc::clone(array))).collect();
    columns.push((column, Arc::new(values.iter().copied().collect::<Float64Array>())));
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

async fn figures(store: &Store, column: &str) -> Vec<Option<f64>> {
    content(store).await[column].as_primitive::<Float64Type>().iter().collect()
}

#[tokio::test]
async fn parts_of_one_reading_become_one_row_in_one_import_or_in_two() {
    // Breaks when the first part of a reading keeps the others out, or a later one overwrites it.
    let power = part(&[0, 30, 60], "power_w", &[Some(80.5), None, Some(81.5)]);
    let temp = part(&[0, 30, 60], "temp_c", &[Some(41.0), Some(42.0), None]);
    let other = part(&[0, 30], "power_w", &[Some(99.0), Some(99.5)]);
    let (_first, at_once) = store();
    let summary = import(&at_once, vec![power.clone(), temp.clone(), other.clone()]).await;
    assert_eq!((summary.rows_kept, summary.rows_duplicate), (3, 5));
    let (_second, one_by_one) = store();
    for batch in [&power, &temp, &other] {
        import(&one_by_one, vec![batch.clone()]).await;
    }
    for store in [&at_once, &one_by_one] {
        assert_eq!(figures(store, "power_w").await, [Some(80.5), Some(99.5), Some(81.5)]);
        assert_eq!(figures(store, "temp_c").await, [Some(41.0), Some(42.0), None]);
        assert_eq!(figures(store, "period_s").await, [Some(30.0); 3]);
    }
    let again = import(&one_by_one, vec![power, temp, other]).await;
    assert!(again.tables["samples"].unchanged);
}
