//! What can be done about a finding.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};

use super::{Finding, QUARANTINE};
use crate::compact::{SweepSettings, sweep};
use crate::error::IngestError;
use crate::import::{Compaction, PART_ROWS};
use crate::schema::Table;
use crate::store::{Committed, Effect, Purpose, Rewrite, Store};

/// How a finding is mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The newest commit of a log, which is no commit, leaves it.
    Uncommit { table: Table, path: String },
    /// A data file leaves its table.
    SetAside { table: Table, path: String },
    /// A day is merged, each key once.
    Merge { table: Table, date: NaiveDate },
    /// Files that no version needs are deleted.
    Sweep { grace: TimeDelta, now: DateTime<Utc> },
}

/// The finding of a damaged commit: the newest can be taken back, an older one cannot.
pub(super) async fn of_log(
    store: &Store,
    table: Table,
    file: &str,
    reason: &str,
    hint: String,
) -> Result<Finding, IngestError> {
    let (objects, failed) = (store.objects(table), |error: object_store::Error| {
        store.failed("list", table, error.into())
    });
    let logs = Path::from("_delta_log");
    let found: Vec<_> = objects.list(Some(&logs)).try_collect().await.map_err(failed)?;
    let names = found.iter().map(|object| object.location.as_ref());
    let newest = names.filter(|name| name.ends_with(".json")).max();
    let place = format!("{}/{file}", table.name());
    if newest != Some(file) {
        return Ok(Finding::by_hand("torn-commit", place, reason.to_owned(), hint));
    }
    Ok(Finding::with(
        "torn-commit",
        place,
        reason.to_owned(),
        "mending moves it to `quarantine/`: the table is what it was before; import again what that \
         commit brought",
        Remedy::Uncommit { table, path: file.to_owned() },
    ))
}

/// Mends one finding. Whether there was anything to do; `false` too where the store has changed
/// since and it is to be examined again.
///
/// # Errors
/// [`IngestError::Store`]; what was not mended is as it was.
pub async fn mend(store: &Store, finding: &Finding) -> Result<bool, IngestError> {
    match &finding.remedy {
        None => Ok(false),
        Some(Remedy::Uncommit { table, path }) => {
            quarantine(store, *table, path).await?;
            Ok(true)
        }
        Some(Remedy::SetAside { table, path }) => set_aside(store, *table, path).await,
        Some(Remedy::Merge { table, date }) => {
            let (table, date) = (*table, *date);
            Ok(Compaction { store, table, date, part_rows: PART_ROWS }.run().await?.is_some())
        }
        Some(Remedy::Sweep { grace, now }) => {
            let settings = SweepSettings { grace: *grace, dry_run: false };
            Ok(sweep(store, &settings, *now).await?.files > 0)
        }
    }
}

/// Takes a file out of its table, and moves it where it can be looked at.
async fn set_aside(store: &Store, table: Table, path: &str) -> Result<bool, IngestError> {
    let Some(base) = store.snapshot(table).await? else { return Ok(false) };
    if !base.files.iter().any(|file| file.path == path) {
        return Ok(false);
    }
    let mut rewrite = Rewrite::new(store, table, Some(&base), Effect::Commit(Purpose::Rows(None)));
    rewrite.drop_file(path);
    let done = matches!(rewrite.commit().await?, Committed::Version(_));
    if done {
        quarantine(store, table, path).await?;
    }
    Ok(done)
}

/// Moves a file of a table to the quarantine; one that is gone has nothing to move.
async fn quarantine(store: &Store, table: Table, path: &str) -> Result<(), IngestError> {
    let failed =
        |error: object_store::Error| store.failed("set aside a file of", table, error.into());
    let from = Path::from(path);
    let bytes = async { store.objects(table).get(&from).await?.bytes().await };
    let bytes = match bytes.await {
        Err(object_store::Error::NotFound { .. }) => return Ok(()),
        bytes => bytes.map_err(failed)?,
    };
    store.put(&format!("{QUARANTINE}/{}/{path}", table.name()), bytes.to_vec()).await?;
    store.objects(table).delete(&from).await.map_err(failed)
}
