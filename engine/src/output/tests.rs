use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringArray, TimestampMillisecondArray};
use chrono_tz::Tz;

use super::*;

fn answer() -> Answer {
    let team: ArrayRef =
        Arc::new(StringArray::from(vec![Some("a/b"), None, Some("web"), Some("a/b")]));
    let hours: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, 4.0]));
    let rows = RecordBatch::try_from_iter([("team", team), ("hours", hours)]).unwrap();
    Answer { schema: rows.schema(), batches: vec![rows] }
}

fn by_team(replace: bool) -> ExportSettings {
    let partition_by = vec!["team".into()];
    ExportSettings { form: ExportForm::Csv, partition_by, replace, ..ExportSettings::default() }
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

/// Instants with a number each, in the zone of Shanghai.
fn instants(texts: &[Option<&str>], zone: Tz) -> Answer {
    let at = |text: &str| text.parse::<chrono::DateTime<chrono::Utc>>().unwrap();
    let column = texts.iter().map(|text| text.map(|text| at(text).timestamp_millis()));
    let column: TimestampMillisecondArray = column.collect();
    let hours: Float64Array = (0..texts.len()).map(|row| Some(row as f64)).collect();
    let rows = RecordBatch::try_from_iter([
        ("started_at", Arc::new(column.with_timezone("UTC")) as ArrayRef),
        ("hours", Arc::new(hours)),
    ]);
    let rows = rows.unwrap();
    Answer { schema: rows.schema(), batches: vec![rows] }.in_zone(zone).unwrap()
}

fn folders_of(answer: &Answer, local_times: bool) -> Vec<String> {
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("out");
    let partition_by = vec!["started_at".into()];
    let settings = ExportSettings { partition_by, local_times, ..ExportSettings::default() };
    export(answer, &to, &settings).unwrap();
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(&to).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn folders_of_local_days_are_named_by_the_date() {
    // Breaks if the local day of 14 July is found under the afternoon of 13 July, UTC.
    let days = [Some("2026-07-13T16:00:00Z"), Some("2026-07-14T16:00:00Z")];
    let shanghai = instants(&days, Tz::Asia__Shanghai);
    let dates = ["started_at=2026-07-14", "started_at=2026-07-15"];
    assert_eq!(folders_of(&shanghai, false), dates);
    assert_eq!(folders_of(&shanghai, true), dates);
    // An instant that begins no day, in any row, and all are named by local time with offset.
    let mixed = [days[0], Some("2026-07-14T01:00:00Z"), None];
    let mixed = instants(&mixed, Tz::Asia__Shanghai);
    let null = "started_at=__HIVE_DEFAULT_PARTITION__";
    assert_eq!(
        folders_of(&mixed, false),
        [
            "started_at=2026-07-14T00%3A00%3A00%2B08%3A00",
            "started_at=2026-07-14T09%3A00%3A00%2B08%3A00",
            null
        ]
    );
    assert_eq!(
        folders_of(&mixed, true),
        ["started_at=2026-07-14T00%3A00%3A00", "started_at=2026-07-14T09%3A00%3A00", null]
    );
    // On 8 September 2024 the clock of Santiago jumps from midnight to one o'clock: the day begins
    // there.
    let skipped = [Some("2024-09-07T04:00:00Z"), Some("2024-09-08T04:00:00Z")];
    let skipped = instants(&skipped, Tz::America__Santiago);
    assert_eq!(folders_of(&skipped, true), ["started_at=2024-09-07", "started_at=2024-09-08"]);
    let utc = instants(&[Some("2026-07-14T00:00:00Z"), None], Tz::UTC);
    assert_eq!(folders_of(&utc, false), ["started_at=2026-07-14", null]);
}

#[test]
fn local_times_are_written_without_zone() {
    // Breaks if a program that ignores zones is given UTC, and shows the day before.
    let place = tempfile::tempdir().unwrap();
    let days = instants(&[Some("2026-07-13T16:00:00Z"), None], Tz::Asia__Shanghai);
    let written = |name: &str, local_times: bool| {
        let to = place.path().join(name);
        let settings =
            ExportSettings { form: ExportForm::Csv, local_times, ..ExportSettings::default() };
        export(&days, &to, &settings).unwrap();
        fs::read_to_string(to.join("part-0.csv")).unwrap()
    };
    assert_eq!(written("wall", true), "started_at,hours\n2026-07-14T00:00:00,0.0\n,1.0\n");
    assert_eq!(written("zoned", false), "started_at,hours\n2026-07-14T00:00:00+08:00,0.0\n,1.0\n");
}
