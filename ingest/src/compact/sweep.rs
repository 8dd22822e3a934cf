//! Deletes files that no version needs any more.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use serde::Serialize;

use crate::error::IngestError;
use crate::schema::Table;
use crate::store::Store;

/// Longest time for which a table remembers which files were replaced and when.
const GRACE_DAYS_MAX: i64 = 7;

/// Settings of a sweep.
#[derive(Debug, Clone)]
pub struct SweepSettings {
    /// How long a replaced file stays for those who are reading it: at most seven days.
    pub grace: TimeDelta,
    /// Tell what would be deleted and delete nothing.
    pub dry_run: bool,
}

impl Default for SweepSettings {
    fn default() -> Self {
        Self { grace: TimeDelta::days(1), dry_run: false }
    }
}

/// What a sweep deleted, or would.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Files.
    pub files: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Deletes files of all tables that no version has named for the time of grace before `now`: those
/// that a compaction or a late row replaced, and those that an interrupted write left.
///
/// # Errors
/// [`IngestError::Setting`] for a time of grace out of bounds; [`IngestError::Store`].
pub async fn sweep(
    store: &Store,
    settings: &SweepSettings,
    now: DateTime<Utc>,
) -> Result<Swept, IngestError> {
    if settings.grace < TimeDelta::zero() || settings.grace > TimeDelta::days(GRACE_DAYS_MAX) {
        return Err(IngestError::Setting {
            what: "the time of grace".into(),
            value: settings.grace.to_string(),
            reason: format!("from 0 to {GRACE_DAYS_MAX} days are possible"),
        });
    }
    let before = now - settings.grace;
    let mut swept = Swept::default();
    for table in Table::ALL {
        let Some(snapshot) = store.snapshot(table).await? else { continue };
        let failed = |cause| store.failed("sweep", table, cause);
        let named: HashSet<&str> = snapshot.files.iter().map(|file| file.path.as_str()).collect();
        let replaced: HashMap<String, DateTime<Utc>> = store.replaced(&snapshot).await?;
        let objects = &snapshot.objects;
        let found: Vec<_> =
            objects.list(None).try_collect().await.map_err(|error| failed(error.into()))?;
        for object in found {
            let path = object.location.as_ref();
            let data = path.ends_with(".parquet") && !path.starts_with("_delta_log");
            let since = replaced.get(path).copied().unwrap_or(object.last_modified);
            if !data || named.contains(path) || since.max(object.last_modified) > before {
                continue;
            }
            if !settings.dry_run {
                let gone = objects.delete(&Path::from(path)).await;
                gone.map_err(|error| failed(error.into()))?;
            }
            swept.files += 1;
            swept.bytes += object.size;
        }
    }
    Ok(swept)
}
