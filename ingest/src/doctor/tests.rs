//! Every kind of damage is found, named and mended, and a sound store is told to be sound.

use super::*;
use crate::compact::CompactSettings;
use crate::import::tests::{import, readings, store};
use crate::store::{Content, Effect, Purpose, Rewrite};

async fn look(store: &Store) -> Examined {
    examine(store, TimeDelta::days(1), Utc::now(), |_, _, _| ()).await.unwrap()
}

async fn rows(store: &Store) -> usize {
    let snapshot = store.snapshot(Table::Samples).await.unwrap().unwrap();
    store.read(&snapshot, None).await.unwrap().num_rows()
}

async fn two_days() -> (tempfile::TempDir, Store) {
    let (folder, store) = store();
    import(&store, vec![readings("GPU-a", &[0, 30])]).await;
    import(&store, vec![readings("GPU-a", &[86_400, 86_430])]).await;
    (folder, store)
}

#[tokio::test]
async fn a_sound_store_is_sound() {
    let (_folder, store) = two_days().await;
    let examined = look(&store).await;
    assert_eq!(examined.findings, []);
    assert!(examined.files >= 2 && examined.files == examined.files_with_checksum);
}

#[tokio::test]
async fn a_file_with_one_changed_bit_is_found_by_its_checksum_and_set_aside() {
    let (folder, store) = two_days().await;
    let snapshot = store.snapshot(Table::Samples).await.unwrap().unwrap();
    let path = folder.path().join("samples").join(&snapshot.files[0].path);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[40] ^= 4;
    std::fs::write(&path, &bytes).unwrap();
    let findings = look(&store).await.findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((findings[0].kind, findings[0].mendable), ("damaged-file", true));
    assert!(findings[0].what.ends_with("2 rows are lost with it"), "{findings:?}");
    assert!(mend(&store, &findings[0]).await.unwrap());
    assert_eq!(rows(&store).await, 2);
    let kept = folder.path().join(QUARANTINE).join("samples").join(&snapshot.files[0].path);
    assert_eq!(std::fs::read(kept).unwrap(), bytes);
    assert_eq!(look(&store).await.findings, []);
    assert!(!mend(&store, &findings[0]).await.unwrap(), "it was mended before");
    // And the day can be imported again.
    import(&store, vec![readings("GPU-a", &[0, 30])]).await;
    assert_eq!(rows(&store).await, 4);
}

#[tokio::test]
async fn a_torn_newest_commit_is_taken_back_and_an_older_one_is_not() {
    for (version, mendable) in [(1, true), (0, false)] {
        let (folder, store) = two_days().await;
        let log = format!("samples/_delta_log/{version:020}.json");
        std::fs::write(folder.path().join(&log), "{\"add\":{").unwrap();
        let findings = look(&store).await.findings;
        let torn: Vec<_> = findings.iter().filter(|f| f.kind == "torn-commit").collect();
        assert_eq!((torn.len(), torn[0].mendable), (1, mendable), "{findings:?}");
        assert_eq!(torn[0].place, log);
        assert_eq!(mend(&store, torn[0]).await.unwrap(), mendable);
        if mendable {
            assert_eq!(rows(&store).await, 2);
            assert!(folder.path().join(QUARANTINE).join(&log).exists());
        }
    }
}

#[tokio::test]
async fn readings_that_are_stored_twice_are_found_and_merged() {
    let (_folder, store) = two_days().await;
    let base = store.snapshot(Table::Samples).await.unwrap().unwrap();
    let date = base.files[0].date;
    let effect = Effect::Commit(Purpose::Rows(None));
    let mut rewrite = Rewrite::new(&store, Table::Samples, Some(&base), effect);
    rewrite.extend();
    let rows_of_day = store.read(&base, date).await.unwrap();
    let content = Content { date, part: (0, 1), rows: rows_of_day, series: None, made_from: None };
    rewrite.put(content).await.unwrap();
    rewrite.commit().await.unwrap();
    assert_eq!(rows(&store).await, 6);
    let findings = look(&store).await.findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((findings[0].kind, &findings[0].what[..6]), ("stored-twice", "2 rows"));
    assert!(mend(&store, &findings[0]).await.unwrap());
    assert_eq!(rows(&store).await, 4);
    assert_eq!(look(&store).await.findings, []);
}

#[tokio::test]
async fn files_that_no_version_needs_are_found_after_the_time_of_grace() {
    let (_folder, store) = two_days().await;
    import(&store, vec![readings("GPU-b", &[0, 30])]).await;
    import(&store, vec![readings("GPU-a", &[15])]).await;
    crate::compact::compact(&store, &CompactSettings::default(), |_| ()).await.unwrap();
    assert_eq!(look(&store).await.findings, []);
    let later = Utc::now() + TimeDelta::days(2);
    let examined = examine(&store, TimeDelta::days(1), later, |_, _, _| ()).await.unwrap();
    assert_eq!(examined.findings.len(), 1);
    assert_eq!(examined.findings[0].kind, "unneeded-files");
    assert!(mend(&store, &examined.findings[0]).await.unwrap());
    assert_eq!(rows(&store).await, 7);
}

#[tokio::test]
async fn a_damaged_segment_is_told_under_the_name_that_it_has() {
    // Breaks when the doctor tells of a file that was set aside while none was.
    let (folder, store) = store();
    let logs = folder.path().join(WAL_FOLDER);
    let mut wal = crate::wal::Wal::open(&logs, "a", crate::wal::WalSettings::default()).unwrap();
    for second in [0, 30, 60] {
        wal.append(&[(Table::Samples, readings("GPU-a", &[second]))]).unwrap();
    }
    let segment = logs.join("a/0000000000000001.wal");
    let mut bytes = std::fs::read(&segment).unwrap();
    let third = bytes.len() / 3;
    bytes[third + 100] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let found = async || {
        let examined = look(&store).await;
        let damaged = examined.findings.into_iter().filter(|found| found.kind == "damaged-wal");
        let [found] = <[Finding; 1]>::try_from(damaged.collect::<Vec<_>>()).unwrap();
        (found.place, found.way_out)
    };
    let (place, way_out) = found().await;
    assert_eq!(place, "_wal/a/0000000000000001.wal");
    assert!(way_out.contains("and sets the segment aside as `.damaged`"), "{way_out}");
    crate::wal::flush(&std::sync::Mutex::new(wal), &store).await.unwrap();
    let (place, way_out) = found().await;
    assert_eq!(place, "_wal/a/0000000000000001.wal.damaged");
    assert!(way_out.contains("delete it once it has been looked at"), "{way_out}");
}
