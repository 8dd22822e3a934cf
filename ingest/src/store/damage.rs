//! What is wrong with a table that cannot be read: which of its files, and how to go on.
//!
//! Asked only when reading has failed, and of the newest commit when it has not: a commit that the
//! loss of power has emptied reads as one that changes nothing.

use std::sync::Arc;

use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use serde_json::Value;

use super::{Cause, FileEntry};

/// Folder of the log below the table's.
const LOG: &str = "_delta_log";

/// A file that is not what it should be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damage {
    /// Path below the table's folder.
    pub(super) file: String,
    /// What is wrong with it.
    pub(super) reason: String,
    /// How to go on.
    pub(super) hint: String,
}

/// Whether the newest commit of the log is empty.
pub(super) async fn empty_commit(objects: &Arc<dyn ObjectStore>, version: u64) -> Option<Damage> {
    let name = commit_name(version);
    let path = Path::from(LOG).join(name.as_str());
    let size = objects.head(&path).await.ok()?.size;
    (size == 0).then(|| torn(&name, true, "is empty"))
}

/// What is wrong with the log: a commit that is empty, torn or no JSON, or one that is missing
/// between others. The newest is looked at first.
pub(super) async fn of_log(objects: &Arc<dyn ObjectStore>) -> Option<Damage> {
    let found: Vec<_> = objects.list(Some(&Path::from(LOG))).try_collect().await.ok()?;
    let names = found.iter().filter_map(|found| found.location.filename());
    let mut versions: Vec<u64> = names.filter_map(version_of).collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    for (place, version) in versions.iter().enumerate() {
        let name = commit_name(*version);
        let bytes =
            async { objects.get(&Path::from(LOG).join(name.as_str())).await?.bytes().await };
        if let Some(reason) = fault(&bytes.await.ok()?) {
            return Some(torn(&name, place == 0, &reason));
        }
    }
    let gap = versions.windows(2).find(|pair| pair[0] > pair[1] + 1)?;
    Some(lost(&commit_name(gap[1] + 1), "is missing between other commits"))
}

/// What is wrong with a data file that `version` of the table names and that could not be read
/// because of `cause`, where it is the file.
pub(super) async fn of_file(
    objects: &Arc<dyn ObjectStore>,
    file: &FileEntry,
    version: u64,
    cause: &Cause,
) -> Option<Damage> {
    use object_store::Error;
    match cause.downcast_ref::<Error>() {
        Some(Error::NotFound { .. }) | None => {}
        // The store could not be reached, for one: the file may be well.
        Some(_) => return None,
    }
    let hint = match file.date {
        Some(date) => format!(
            "put the file back from a copy of the store; without one, import the logs of {date} into \
             a new store (`--store`), other days are not touched"
        ),
        None => "put the file back from a copy of the store; without one, import the same files \
                 into a new store (`--store`)"
            .to_owned(),
    };
    let found = objects.head(&Path::from(file.path.as_str())).await;
    let reason = match found {
        Err(Error::NotFound { .. }) => {
            format!("is missing, and version {version} of the table names it")
        }
        Err(_) => return None,
        Ok(found) if found.size != file.size => {
            format!("holds {} bytes where the log says {}", found.size, file.size)
        }
        Ok(_) => "is no Parquet file any more".to_owned(),
    };
    Some(Damage { file: file.path.clone(), reason, hint })
}

/// Why the bytes are no whole commit: each line is one JSON object.
fn fault(bytes: &[u8]) -> Option<String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Some("is no text".into()) };
    if text.trim().is_empty() {
        return Some("is empty".into());
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let object = |line: &str| serde_json::from_str::<serde_json::Map<String, Value>>(line).is_ok();
    let torn = lines.enumerate().find(|(_, line)| !object(line));
    torn.map(|(at, _)| format!("breaks off, or is no JSON, in line {}", at + 1))
}

fn torn(name: &str, newest: bool, reason: &str) -> Damage {
    if !newest {
        return lost(name, reason);
    }
    Damage {
        file: format!("{LOG}/{name}"),
        reason: reason.to_owned(),
        hint:
            "it is the newest commit, and the import that wrote it did not end well: remove that \
               file and run the import again; all that was committed before is unchanged"
                .to_owned(),
    }
}

fn lost(name: &str, reason: &str) -> Damage {
    Damage {
        file: format!("{LOG}/{name}"),
        reason: reason.to_owned(),
        hint:
            "later commits rest on it: put it back from a copy of the store; without one, import \
               the same files into a new store (`--store`)"
                .to_owned(),
    }
}

fn commit_name(version: u64) -> String {
    format!("{version:020}.json")
}

fn version_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".json").filter(|digits| digits.len() == 20)?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::error::IngestError;
    use crate::import::tests::{import, readings, store};
    use crate::schema::Table;
    use crate::store::Store;

    /// Two days in two commits.
    async fn two_commits() -> (tempfile::TempDir, Store) {
        let (folder, store) = store();
        import(&store, vec![readings("GPU-a", &[0, 30])]).await;
        import(&store, vec![readings("GPU-a", &[86_400, 86_430])]).await;
        (folder, store)
    }

    async fn told(store: &Store) -> String {
        let error = match store.snapshot(Table::Samples).await {
            Ok(snapshot) => store.read(&snapshot.unwrap(), None).await.unwrap_err(),
            Err(error) => error,
        };
        assert!(matches!(error, IngestError::Damaged { .. }), "{error:?}");
        format!("{error} | {}", error.hint().unwrap())
    }

    #[tokio::test]
    async fn a_torn_or_empty_newest_commit_is_named_with_the_way_out() {
        // Breaks when the answer is a backtrace, or an emptied commit loses rows without a word.
        for (text, words) in [("", "is empty"), ("{\"add\":{\"path\":\"da", "breaks off")] {
            let (folder, store) = two_commits().await;
            let log = folder.path().join("samples/_delta_log/00000000000000000001.json");
            std::fs::write(&log, text).unwrap();
            let told = told(&store).await;
            assert!(told.starts_with("table `samples` in `file:"), "{told}");
            assert!(told.contains("`_delta_log/00000000000000000001.json`"), "{told}");
            assert!(told.contains(words) && told.contains("remove that file"), "{told}");
            // The way out leads out.
            std::fs::remove_file(&log).unwrap();
            let again = import(&store, vec![readings("GPU-a", &[86_400, 86_430])]).await;
            assert_eq!(again.rows_kept, 2);
        }
    }

    #[tokio::test]
    async fn an_older_commit_cannot_be_left_out() {
        // Breaks when the hint is to remove what later commits rest on.
        let (folder, store) = two_commits().await;
        std::fs::write(folder.path().join("samples/_delta_log/00000000000000000000.json"), "{")
            .unwrap();
        let told = told(&store).await;
        assert!(told.contains("00000000000000000000.json") && told.contains("a copy"), "{told}");
        assert!(!told.contains("remove"), "{told}");
    }

    #[tokio::test]
    async fn a_missing_or_cut_data_file_is_named() {
        // Breaks when all that is said is that a footer is corrupt.
        for cut in [true, false] {
            let (folder, store) = two_commits().await;
            let snapshot = store.snapshot(Table::Samples).await.unwrap().unwrap();
            let file = &snapshot.files[1];
            let path = folder.path().join("samples").join(&file.path);
            match cut {
                true => {
                    let bytes = std::fs::read(&path).unwrap();
                    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
                }
                false => std::fs::remove_file(&path).unwrap(),
            }
            let told = told(&store).await;
            assert!(told.contains(&file.path) && told.contains("2026-01-02"), "{told}");
            let words = if cut { "bytes where the log says" } else { "is missing" };
            assert!(told.contains(words), "{told}");
        }
    }
}
