//! What goes is older than its limit and told by the rollups; what was open stays readable.

use super::*;
use crate::compact::{SweepSettings, sweep};
use crate::import::tests::{import, readings, store};
use crate::rollup::{RollupSettings, roll_up};

/// Five days from 2026-01-01, a reading every ten minutes; the first stands for those before it.
async fn five_days(store: &Store) {
    let seconds: Vec<i64> = (1..720).map(|n| n * 600).collect();
    import(store, vec![readings("GPU-a", &seconds)]).await;
}

async fn roll(store: &Store, settings: RollupSettings) -> usize {
    roll_up(store, &settings, |_| (), |_| ()).await.unwrap().len()
}

fn at(day: u32, hour: u32) -> DateTime<Utc> {
    date(day).and_hms_opt(hour, 0, 0).unwrap().and_utc()
}

fn date(day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, day).unwrap()
}

/// Settings that keep readings for two days and five minutes for three.
fn settings(apply: bool) -> RetainSettings {
    let ages = [(Table::Samples, 2), (Table::Gpu5m, 3)];
    let ages = ages.map(|(table, days)| (table, TimeDelta::days(days))).into();
    RetainSettings { ages, apply }
}

async fn days(store: &Store, table: Table) -> Vec<NaiveDate> {
    let snapshot = store.snapshot(table).await.unwrap().unwrap();
    let days: BTreeSet<_> = snapshot.files.iter().filter_map(|file| file.date).collect();
    days.into_iter().collect()
}

#[tokio::test]
async fn a_day_goes_when_all_of_it_is_too_old_and_not_before() {
    // Breaks when part of a day goes, or a day goes an hour early.
    let (_folder, store) = store();
    five_days(&store).await;
    roll(&store, RollupSettings::default()).await;
    let told = retain(&store, &settings(false), at(4, 23)).await.unwrap();
    assert_eq!(told[0].dropped, Some((date(1), date(1))));
    assert_eq!((told[0].days, told[0].rows, told[1].days), (1, 143, 0));
    let told = retain(&store, &settings(false), at(5, 0)).await.unwrap();
    assert_eq!(told[0].dropped, Some((date(1), date(2))));
    assert_eq!(days(&store, Table::Samples).await.len(), 5, "nothing goes unless it is asked for");
    assert_eq!(
        store.dropped(&store.snapshot(Table::Samples).await.unwrap().unwrap()).await.unwrap(),
        None
    );
    let done = retain(&store, &settings(true), at(5, 0)).await.unwrap();
    assert_eq!(done[0], told[0]);
    assert_eq!(days(&store, Table::Samples).await, [date(3), date(4), date(5)]);
    let snapshot = store.snapshot(Table::Samples).await.unwrap().unwrap();
    let dropped = store.dropped(&snapshot).await.unwrap().unwrap();
    assert_eq!((dropped.before, dropped.at), (date(3), at(5, 0)));
    // Five minutes are kept a day longer, the hours for ever.
    assert_eq!(days(&store, Table::Gpu5m).await[0], date(2));
    assert_eq!(days(&store, Table::Gpu1h).await[0], date(1));
    let again = retain(&store, &settings(true), at(5, 0)).await.unwrap();
    assert!(again.iter().all(|told| told.days == 0 && told.kept.is_empty()));
}

#[tokio::test]
async fn what_no_rollup_tells_of_stays_and_so_does_what_comes_after_it() {
    // Breaks when readings are lost that nothing else tells of.
    let (_folder, store) = store();
    five_days(&store).await;
    let kept = |told: &[Retained]| (told[0].days, told[0].kept[0].date, told[0].kept[0].days);
    let told = retain(&store, &settings(true), at(9, 0)).await.unwrap();
    assert_eq!(kept(&told), (0, date(1), 5));
    assert!(told[0].kept[0].reason.contains("loadline rollup"), "{}", told[0].kept[0].reason);
    roll(&store, RollupSettings::default()).await;
    // A late reading of the third day: its first file reaches into the second.
    import(&store, vec![readings("GPU-a", &[2 * 86_400 + 301])]).await;
    let told = retain(&store, &settings(true), at(9, 0)).await.unwrap();
    assert_eq!(kept(&told), (1, date(2), 4));
    roll(&store, RollupSettings::default()).await;
    let told = retain(&store, &settings(true), at(9, 0)).await.unwrap();
    assert_eq!((told[0].days, told[0].kept.len()), (4, 0));
}

#[tokio::test]
async fn rollups_of_dropped_readings_outlive_late_rows_and_rebuilds() {
    // Breaks when a rollup is made again from what is left of its readings.
    let (_folder, store) = store();
    five_days(&store).await;
    roll(&store, RollupSettings::default()).await;
    let whole = |table| {
        let store = &store;
        async move {
            let snapshot = store.snapshot(table).await.unwrap().unwrap();
            store.read(&snapshot, None).await.unwrap()
        }
    };
    let hours = whole(Table::Gpu1h).await;
    let five = whole(Table::Gpu5m).await;
    assert!(hours.num_rows() >= 120);
    let only_raw =
        RetainSettings { ages: [(Table::Samples, TimeDelta::days(2))].into(), apply: true };
    retain(&store, &only_raw, at(5, 0)).await.unwrap();
    assert_eq!(roll(&store, RollupSettings::default()).await, 0, "dropping makes nothing stale");
    import(&store, vec![readings("GPU-a", &[86_400 + 301])]).await;
    let rebuild = RollupSettings { rebuild: true, ..RollupSettings::default() };
    assert_eq!(roll(&store, rebuild).await, 3);
    let sorted = |rows| crate::merge::merge(Table::Gpu1h, &hours.slice(0, 0), &[rows]);
    assert_eq!(whole(Table::Gpu1h).await.num_rows(), hours.num_rows());
    assert_eq!(
        sorted(whole(Table::Gpu1h).await).unwrap().rows,
        sorted(hours.clone()).unwrap().rows
    );
    assert_eq!(whole(Table::Gpu5m).await.num_rows(), five.num_rows());
    // The late row is told as such and taken out again; the rollups stay as they are.
    let looked = RetainSettings { apply: false, ..only_raw.clone() };
    let late = |told: &[Retained]| (told[0].dropped, told[0].rows, told[0].rows_late);
    for settings in [&looked, &looked, &only_raw] {
        let told = retain(&store, settings, at(5, 0)).await.unwrap();
        assert_eq!(late(&told), (Some((date(2), date(2))), 1, 1));
        assert!(told[0].kept.is_empty());
    }
    assert_eq!(days(&store, Table::Samples).await[0], date(3));
    let samples = store.snapshot(Table::Samples).await.unwrap().unwrap();
    assert_eq!(store.dropped(&samples).await.unwrap().unwrap().before, date(3));
    assert_eq!(whole(Table::Gpu1h).await.num_rows(), hours.num_rows());
    let told = retain(&store, &only_raw, at(5, 0)).await.unwrap();
    assert_eq!(late(&told), (None, 0, 0));
}

#[tokio::test]
async fn a_reader_goes_on_until_the_time_of_grace_is_over() {
    // Breaks when files of a dropped day go while somebody reads them.
    let (_folder, store) = store();
    five_days(&store).await;
    roll(&store, RollupSettings::default()).await;
    let old = store.snapshot(Table::Samples).await.unwrap().unwrap();
    retain(&store, &settings(true), at(5, 0)).await.unwrap();
    let (now, usual) = (Utc::now(), SweepSettings::default());
    sweep(&store, &usual, now).await.unwrap();
    assert_eq!(store.read(&old, None).await.unwrap().num_rows(), 719);
    let swept = sweep(&store, &usual, now + TimeDelta::days(2)).await.unwrap();
    assert!(swept.files >= 2);
    assert!(store.read(&old, None).await.is_err());
}
