//! A rollup tells what the readings tell, to the second, and is made anew exactly when they change.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Float64Array, Int16Array, RecordBatch, StringArray,
    TimestampMillisecondArray, UInt32Array,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float64Type, Int64Type};

use super::*;
use crate::batch::Output;
use crate::compact::{CompactSettings, compact};
use crate::import::tests::store;
use crate::import::{Import, ImportSettings};
use crate::merge::comparable;

/// 2026-01-01T00:00:00Z in seconds.
const BEGUN_S: i64 = 1_767_225_600;
const DAY_S: i64 = 86_400;

/// A reading: seconds after [`BEGUN_S`], utilisation, power in W, counter in J.
type Reading = (i64, Option<f64>, Option<f64>, Option<f64>);

fn batch(uuid: &str, mig: Option<i16>, job: Option<&str>, rows: &[Reading]) -> RecordBatch {
    let at = rows.iter().map(|row| (BEGUN_S + row.0) * 1_000).collect::<Vec<i64>>();
    let at = TimestampMillisecondArray::from(at).with_timezone("UTC");
    let text = |text: Option<&str>| Arc::new(StringArray::from(vec![text; rows.len()])) as ArrayRef;
    let number = |told: fn(&Reading) -> Option<f64>| {
        Arc::new(rows.iter().map(told).collect::<Float64Array>()) as ArrayRef
    };
    let columns: [(&str, ArrayRef); 9] = [
        ("sampled_at", Arc::new(at)),
        ("node", text(Some("n1"))),
        ("gpu", Arc::new(Int16Array::from(vec![0; rows.len()]))),
        ("gpu_uuid", text(Some(uuid))),
        ("mig", Arc::new(Int16Array::from(vec![mig; rows.len()]))),
        ("job_id", text(job)),
        ("gpu_util_ratio", number(|row| row.1)),
        ("power_w", number(|row| row.2)),
        ("energy_j", number(|row| row.3)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .unwrap()
}

async fn import(store: &Store, batches: Vec<RecordBatch>) {
    let settings = ImportSettings { interval_s: Some(30.0), ..ImportSettings::default() };
    let mut import = Import::new(settings, Box::new(|_| ()));
    for batch in batches {
        import.rows(Table::Samples, batch).unwrap();
    }
    import.finish(store).await.unwrap();
}

async fn roll(store: &Store, settings: &RollupSettings) -> Vec<(String, &'static str)> {
    let done = roll_up(store, settings, |_| (), |_| ()).await.unwrap();
    done.iter().map(|day| (day.date.format("%d").to_string(), day.reason)).collect()
}

/// All rows of a table, sorted by key.
async fn rows(store: &Store, table: Table) -> RecordBatch {
    let Some(snapshot) = store.snapshot(table).await.unwrap() else {
        return RecordBatch::new_empty(table.schema());
    };
    let rows = store.read(&snapshot, None).await.unwrap();
    let keys = comparable(&rows, table.key()).unwrap();
    let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
    order.sort_by(|a, b| keys.row(*a as usize).cmp(&keys.row(*b as usize)));
    assert!(order.windows(2).all(|w| keys.row(w[0] as usize) != keys.row(w[1] as usize)));
    arrow::compute::take_record_batch(&rows, &UInt32Array::from(order)).unwrap()
}

fn reals(rows: &RecordBatch, column: &str) -> Vec<Option<f64>> {
    rows[column].as_primitive::<Float64Type>().iter().collect()
}

fn wholes(rows: &RecordBatch, column: &str) -> Vec<Option<i64>> {
    rows[column].as_primitive::<Int64Type>().iter().collect()
}

/// Readings every 30 s from `from_s` until `until_s`, with values that no two share.
fn steady(uuid: &str, from_s: i64, until_s: i64) -> RecordBatch {
    let readings: Vec<Reading> = (from_s..until_s)
        .step_by(30)
        .map(|s| {
            let value = (s * 7_919 % 1_000) as f64 / 1e3;
            (s, Some(value), Some(100.0 + value), Some(s as f64 * 250.0))
        })
        .collect();
    batch(uuid, None, Some("7"), &readings)
}

#[tokio::test]
async fn a_burst_within_a_reading_is_the_most_of_its_bin() {
    // Breaks when what the driver saw between two readings is lost in a rollup.
    let (_folder, store) = store();
    let readings = [(30, Some(0.2), Some(100.0), None), (60, Some(0.4), Some(300.0), None)];
    let told = batch("GPU-a", None, None, &readings);
    let number = |told: [Option<f64>; 2]| Arc::new(Float64Array::from_iter(told)) as ArrayRef;
    let within = [
        ("gpu_util_min_ratio", number([Some(0.0), None])),
        ("gpu_util_max_ratio", number([Some(0.9), None])),
        ("power_min_w", number([Some(80.0), None])),
        ("power_max_w", number([Some(650.0), None])),
    ];
    let schema = told.schema();
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let columns = names.zip(told.columns().iter().cloned()).chain(within);
    let columns: Vec<_> = columns.map(|(name, column)| (name, column, true)).collect();
    import(&store, vec![RecordBatch::try_from_iter_with_nullable(columns).unwrap()]).await;
    roll(&store, &RollupSettings::default()).await;
    for table in TABLES {
        let rows = rows(&store, table).await;
        assert_eq!(reals(&rows, "gpu_util_ratio_min"), [Some(0.0)], "{table}");
        assert_eq!(reals(&rows, "gpu_util_ratio_max"), [Some(0.9)], "{table}");
        assert_eq!(reals(&rows, "power_w_min"), [Some(80.0)], "{table}");
        assert_eq!(reals(&rows, "power_w_max"), [Some(650.0)], "{table}");
        // The mean is that of the readings.
        assert_eq!(reals(&rows, "power_w_sum"), [Some(30.0 * 100.0 + 30.0 * 300.0)], "{table}");
    }
}

#[tokio::test]
async fn sums_are_those_worked_out_by_hand() {
    // Breaks when a reading is weighted by anything but its time in the bin, when the counter is
    // not followed, or when what is unknown becomes 0.
    let (_folder, store) = store();
    let readings = [
        // Stands for [240, 270): 30 s at 0.5 and, without a reading before it, 100 W.
        (270, Some(0.5), Some(100.0), Some(1_000.0)),
        // [270, 300): 30 s at 1.0; 4500 J spent in 30 s are 150 W. Counted after the boundary.
        (300, Some(1.0), Some(200.0), Some(5_500.0)),
        // [300, 330): 30 s at 0; the counter is unknown, so 300 W.
        (330, Some(0.0), Some(300.0), None),
        // A gap: it stands for 90 s of 570, [810, 900). Nothing but power is known.
        (900, None, Some(50.0), Some(9_000.0)),
    ];
    import(&store, vec![batch("GPU-a", None, None, &readings)]).await;
    assert_eq!(roll(&store, &RollupSettings::default()).await, [("01".to_owned(), "new")]);
    let five = rows(&store, Table::Gpu5m).await;
    // Bins from 0:00, 0:05, 0:10, and 0:15, in which only the last instant lies.
    assert_eq!(wholes(&five, "readings"), [Some(1), Some(2), Some(0), Some(1)]);
    assert_eq!(reals(&five, "covered_s"), [Some(60.0), Some(30.0), Some(90.0), Some(0.0)]);
    let utilisation = |end: &str| reals(&five, &format!("gpu_util_ratio{end}"));
    assert_eq!(utilisation("_sum"), [Some(45.0), Some(0.0), None, None]);
    assert_eq!(utilisation("_sum_sq"), [Some(37.5), Some(0.0), None, None]);
    assert_eq!(utilisation("_min"), [Some(0.5), Some(0.0), None, None]);
    assert_eq!(utilisation("_max"), [Some(1.0), Some(0.0), None, None]);
    assert_eq!(utilisation("_known_s"), [Some(60.0), Some(30.0), None, None]);
    // 30 x 100 + 30 x 150; 30 x 300; 90 x 50.
    assert_eq!(reals(&five, "energy_j"), [Some(7_500.0), Some(9_000.0), Some(4_500.0), None]);
    let hour = rows(&store, Table::Gpu1h).await;
    assert_eq!(wholes(&hour, "readings"), [Some(4)]);
    assert_eq!(reals(&hour, "covered_s"), [Some(180.0)]);
    assert_eq!(reals(&hour, "gpu_util_ratio_sum"), [Some(45.0)]);
    assert_eq!(reals(&hour, "gpu_util_ratio_known_s"), [Some(90.0)]);
    assert_eq!(reals(&hour, "gpu_util_ratio_min"), [Some(0.0)]);
    assert_eq!(reals(&hour, "energy_j"), [Some(21_000.0)]);
    assert_eq!(reals(&hour, "temp_c_sum"), [None]);
}

#[tokio::test]
async fn a_reading_across_midnight_is_split_and_its_counter_followed() {
    // Breaks when a day knows nothing of its neighbours: 10 s are lost or told twice.
    let (_folder, store) = store();
    let readings =
        [(DAY_S - 10, Some(0.2), None, Some(0.0)), (DAY_S + 20, Some(0.8), None, Some(6_000.0))];
    import(&store, vec![batch("GPU-a", None, None, &readings)]).await;
    roll(&store, &RollupSettings::default()).await;
    let five = rows(&store, Table::Gpu5m).await;
    // Day 1: 30 s at 0.2 and 10 s at 0.8. Day 2: 20 s at 0.8. 6000 J in 30 s are 200 W.
    assert_eq!(reals(&five, "covered_s"), [Some(40.0), Some(20.0)]);
    assert_eq!(reals(&five, "gpu_util_ratio_sum"), [Some(14.0), Some(16.0)]);
    assert_eq!(wholes(&five, "readings"), [Some(1), Some(1)]);
    assert_eq!(reals(&five, "energy_j"), [Some(2_000.0), Some(4_000.0)]);
    let dates: Vec<_> = store.snapshot(Table::Gpu5m).await.unwrap().unwrap().files;
    assert_eq!(dates.len(), 2);
}

#[tokio::test]
async fn a_slice_and_a_job_have_rows_of_their_own() {
    let (_folder, store) = store();
    let told = |at| [(at, Some(0.5), None, None)];
    let (a, b) = (Some("a"), Some("b"));
    let batches = vec![
        batch("GPU-a", None, a, &told(60)),
        batch("GPU-a", None, b, &told(90)),
        batch("GPU-a", None, a, &told(120)),
        batch("GPU-a", Some(1), a, &told(60)),
    ];
    import(&store, batches).await;
    roll(&store, &RollupSettings::default()).await;
    for table in TABLES {
        let rows = rows(&store, table).await;
        let jobs: Vec<_> = rows["job_id"].as_string::<i32>().iter().flatten().collect();
        assert_eq!(jobs, ["a", "b", "a"]);
        assert_eq!(reals(&rows, "covered_s"), [Some(60.0), Some(30.0), Some(30.0)]);
    }
}

#[tokio::test]
async fn days_are_made_anew_when_their_readings_change_and_not_otherwise() {
    // Breaks when a late row leaves its day, or the day before into which the next reading reaches,
    // as it was; when nothing new is work all the same; or when an increment and a rebuild differ.
    let (_folder, store) = store();
    let usual = RollupSettings::default();
    let days = |days: &[(&str, &'static str)]| -> Vec<(String, &'static str)> {
        days.iter().map(|(day, reason)| ((*day).to_owned(), *reason)).collect()
    };
    let same_as_rebuilt = async || {
        let mut found = Vec::new();
        for table in TABLES {
            found.push(rows(&store, table).await);
        }
        let rebuild = RollupSettings { rebuild: true, ..RollupSettings::default() };
        assert!(roll(&store, &rebuild).await.iter().all(|(_, reason)| *reason == "rebuilt"));
        for (table, found) in TABLES.into_iter().zip(found) {
            assert!(found.num_rows() > 12, "{table}");
            assert_eq!(rows(&store, table).await, found, "{table}");
        }
    };
    let history = vec![steady("GPU-a", 30, 3 * DAY_S), steady("GPU-b", 30, DAY_S / 2)];
    import(&store, history.clone()).await;
    assert_eq!(roll(&store, &usual).await, days(&[("01", "new"), ("02", "new"), ("03", "new")]));
    same_as_rebuilt().await;
    // The same again is known.
    import(&store, history).await;
    assert_eq!(roll(&store, &usual).await, []);
    // Late in the middle of a day. Its first reading, in the same file, reaches into the day before.
    let late = [(DAY_S + 43_210, Some(0.9), Some(90.0), None)];
    import(&store, vec![batch("GPU-a", None, Some("7"), &late)]).await;
    assert_eq!(roll(&store, &RollupSettings { dry_run: true, ..usual.clone() }).await.len(), 2);
    assert_eq!(roll(&store, &usual).await, days(&[("01", "changed"), ("02", "changed")]));
    same_as_rebuilt().await;
    // Late before midnight: the first reading of the third day, at midnight, stands for less.
    let late = [(2 * DAY_S - 15, Some(0.9), Some(90.0), None)];
    import(&store, vec![batch("GPU-a", None, Some("7"), &late)]).await;
    assert_eq!(roll(&store, &usual).await.len(), 3);
    same_as_rebuilt().await;
    // Another GPU is first seen after midnight: its reading reaches into the day before.
    let late = [(2 * DAY_S + 10, Some(0.9), Some(90.0), None)];
    import(&store, vec![batch("GPU-c", None, None, &late)]).await;
    assert_eq!(roll(&store, &usual).await, days(&[("02", "changed"), ("03", "changed")]));
    same_as_rebuilt().await;
    // A compaction changes no value; what it rewrote is made once more and is the same.
    for part in [0, 600] {
        let rows = steady("GPU-a", 3 * DAY_S + part, 3 * DAY_S + part + 600);
        import(&store, vec![rows]).await;
    }
    roll(&store, &usual).await;
    let before = rows(&store, Table::Gpu5m).await;
    let settings = CompactSettings { files_max: 1, ..CompactSettings::default() };
    assert!(!compact(&store, &settings, |_| ()).await.unwrap().is_empty());
    assert!(!roll(&store, &usual).await.is_empty());
    assert_eq!(rows(&store, Table::Gpu5m).await, before);
    assert_eq!(roll(&store, &usual).await, []);
}

#[tokio::test]
async fn a_table_that_was_lost_is_made_and_the_other_left() {
    // Breaks when a run that ended between the two commits is never completed.
    let (folder, store) = store();
    import(&store, vec![steady("GPU-a", 30, 3_600)]).await;
    roll(&store, &RollupSettings::default()).await;
    let hours = rows(&store, Table::Gpu1h).await;
    let version = store.snapshot(Table::Gpu5m).await.unwrap().unwrap().version;
    std::fs::remove_dir_all(folder.path().join("gpu_1h")).unwrap();
    assert_eq!(roll(&store, &RollupSettings::default()).await.len(), 1);
    assert_eq!(rows(&store, Table::Gpu1h).await, hours);
    assert_eq!(store.snapshot(Table::Gpu5m).await.unwrap().unwrap().version, version);
}

#[tokio::test]
async fn a_day_in_parts_is_the_day() {
    // Breaks when a large day loses the series of a part, or a part reads the values of another.
    let (_folder, store) = store();
    let fleet = (0..9).map(|n| steady(&format!("GPU-{n}"), 40 * n - 60, 7_200 + n)).collect();
    import(&store, fleet).await;
    let samples = store.snapshot(Table::Samples).await.unwrap().unwrap();
    let sources = Sources::of(&store, &samples).unwrap();
    let day = sources.days().last().unwrap();
    let whole = day::roll(&store, &samples, &sources, day, (0, 1)).await.unwrap();
    let mut parts = Vec::new();
    for part in 0..4 {
        let rolled = day::roll(&store, &samples, &sources, day, (part, 4)).await.unwrap();
        parts.push(rolled.five_minutes);
    }
    assert!(parts.iter().filter(|part| part.num_rows() > 0).count() > 1);
    let parts = concat_batches(&Table::Gpu5m.schema(), &parts).unwrap();
    let sorted = |rows: &RecordBatch| {
        let keys = comparable(rows, Table::Gpu5m.key()).unwrap();
        let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
        order.sort_by(|a, b| keys.row(*a as usize).cmp(&keys.row(*b as usize)));
        arrow::compute::take_record_batch(rows, &UInt32Array::from(order)).unwrap()
    };
    assert!(whole.five_minutes.num_rows() > 200);
    assert_eq!(sorted(&parts), sorted(&whole.five_minutes));
}

#[tokio::test]
async fn a_day_that_goes_on_can_be_left_for_later() {
    let (_folder, store) = store();
    import(&store, vec![steady("GPU-a", 30, DAY_S + 3_600)]).await;
    let before = NaiveDate::from_ymd_opt(2026, 1, 2);
    let settings = RollupSettings { before, ..RollupSettings::default() };
    assert_eq!(roll(&store, &settings).await, [("01".to_owned(), "new")]);
}
