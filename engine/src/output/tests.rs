use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringArray};

use super::*;

fn answer() -> Answer {
    let team: ArrayRef =
        Arc::new(StringArray::from(vec![Some("a/b"), None, Some("web"), Some("a/b")]));
    let hours: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, 4.0]));
    let rows = RecordBatch::try_from_iter([("team", team), ("hours", hours)]).unwrap();
    Answer { schema: rows.schema(), batches: vec![rows] }
}

fn by_team(replace: bool) -> ExportSettings {
    ExportSettings { form: ExportForm::Csv, partition_by: vec!["team".into()], replace }
}

#[test]
fn each_value_has_its_folder_and_all_rows_are_there() {
    // Breaks if a NULL or a slash in a value loses rows or escapes the folder.
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("out");
    let made = export(&answer(), &to, &by_team(false)).unwrap();
    assert_eq!(made, Exported { rows: 4, files: 3 });
    let read = |folder: &str| fs::read_to_string(to.join(folder).join("part-0.csv")).unwrap();
    assert_eq!(read("team=a%2Fb"), "hours\n1.0\n4.0\n");
    assert_eq!(read("team=web"), "hours\n3.0\n");
    assert_eq!(read("team=__HIVE_DEFAULT_PARTITION__"), "hours\n2.0\n");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn what_is_there_stays_unless_it_is_to_be_replaced() {
    // Breaks if an export mixes with an older one or eats it when it fails.
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("out");
    fs::create_dir(&to).unwrap();
    fs::write(to.join("part-kept"), "").unwrap();
    let refused = export(&answer(), &to, &by_team(false)).unwrap_err();
    assert!(matches!(refused, ExportError::Exists { .. }));
    let bad = ExportSettings { partition_by: vec!["user".into()], ..by_team(true) };
    let refused = export(&answer(), &to, &bad).unwrap_err();
    assert_eq!(refused.hint().unwrap(), "there are: team, hours");
    assert!(to.join("part-kept").exists());
    export(&answer(), &to, &by_team(true)).unwrap();
    assert!(!to.join("part-kept").exists() && to.join("team=web").exists());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    // What no export wrote is never replaced.
    fs::write(to.join("letters.txt"), "dear").unwrap();
    let refused = export(&answer(), &to, &by_team(true)).unwrap_err();
    assert!(matches!(refused, ExportError::NotOurs { .. }));
    assert!(to.join("letters.txt").exists() && to.join("team=web").exists());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn parquet_reads_back_as_it_was() {
    use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("out");
    export(&answer(), &to, &ExportSettings::default()).unwrap();
    let file = File::open(to.join("part-0.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let read: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert_eq!(read, answer().batches);
}
