//! Is the store what its logs say, and what can be mended?
//!
//! [`examine`] reads everything: the log of each table, every file against its size, its checksum
//! and the table's columns, days for readings that are stored twice, the write-ahead logs. It
//! changes nothing. [`mend`] does what a finding says can be done. A damaged file is moved to
//! `quarantine/` and named, never deleted, and the rest of the table can be read again.

mod file;
mod overlap;
mod remedy;
#[cfg(test)]
mod tests;

use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use crate::compact::{SweepSettings, sweep};
use crate::error::IngestError;
use crate::schema::Table;
use crate::store::Store;
use crate::wal::{WAL_FOLDER, ailing};
use remedy::Remedy;
pub use remedy::mend;

/// Folder to which damaged files are moved.
pub const QUARANTINE: &str = "quarantine";

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Kind: `torn-commit`, `damaged-file`, `unknown-columns`, `stored-twice`, `unneeded-files`,
    /// `damaged-wal`.
    pub kind: &'static str,
    /// File or table below the store.
    pub place: String,
    /// What is wrong, with the measure.
    pub what: String,
    /// What mending does, or what to do by hand.
    pub way_out: String,
    /// Whether [`mend`] can mend it.
    pub mendable: bool,
    #[serde(skip)]
    remedy: Option<Remedy>,
}

impl Finding {
    fn by_hand(kind: &'static str, place: String, what: String, way_out: String) -> Self {
        Self { kind, place, what, way_out, mendable: false, remedy: None }
    }

    fn with(
        kind: &'static str,
        place: String,
        what: String,
        way_out: &str,
        remedy: Remedy,
    ) -> Self {
        let way_out = way_out.to_owned();
        Self { kind, place, what, way_out, mendable: true, remedy: Some(remedy) }
    }
}

/// What was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Examined {
    /// Tables.
    pub tables: u64,
    /// Data files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that tell their checksum; the others were read to their end.
    pub files_with_checksum: u64,
    /// What is not as it should be.
    pub findings: Vec<Finding>,
}

/// Looks at everything. `grace` is how long a file that no version needs may stay; `progress` hears
/// of every file read, with the number of all of its table.
///
/// # Errors
/// [`IngestError::Store`] when the store cannot be reached. Damage is no error: it is found.
pub async fn examine(
    store: &Store,
    grace: TimeDelta,
    now: DateTime<Utc>,
    mut progress: impl FnMut(Table, usize, usize),
) -> Result<Examined, IngestError> {
    let mut examined = Examined::default();
    let mut readable = true;
    for table in Table::ALL {
        let snapshot = match store.snapshot(table).await {
            Ok(None) => continue,
            Ok(Some(snapshot)) => snapshot,
            Err(IngestError::Damaged { file, reason, hint, .. }) => {
                readable = false;
                examined.findings.push(remedy::of_log(store, table, &file, &reason, hint).await?);
                continue;
            }
            Err(error) => return Err(error),
        };
        examined.tables += 1;
        for (done, entry) in snapshot.files.iter().enumerate() {
            progress(table, done, snapshot.files.len());
            examined.files += 1;
            examined.bytes += entry.size;
            let looked = file::look(store, &snapshot, entry).await?;
            examined.files_with_checksum += u64::from(looked.with_checksum);
            examined.findings.extend(looked.finding);
        }
        examined.findings.extend(overlap::find(store, &snapshot).await?);
    }
    if let Some(folder) = store.folder() {
        for (place, what) in ailing(&folder.join(WAL_FOLDER))? {
            let way_out = match place.ends_with(".damaged") {
                true => "what could be read is in the tables: delete it once it has been looked at",
                false => {
                    "the next collector or server on this log moves what can be read into the \
                     tables, and sets the segment aside as `.damaged`"
                }
            };
            let place = Path::new(WAL_FOLDER).join(place).to_string_lossy().into_owned();
            examined.findings.push(Finding::by_hand("damaged-wal", place, what, way_out.into()));
        }
    }
    if readable {
        let settings = SweepSettings { grace, dry_run: true };
        let unneeded = sweep(store, &settings, now).await?;
        if unneeded.files > 0 {
            examined.findings.push(Finding::with(
                "unneeded-files",
                store.url().to_string(),
                format!(
                    "{} files of {} bytes that no version needs",
                    unneeded.files, unneeded.bytes
                ),
                "mending deletes them",
                Remedy::Sweep { grace, now },
            ));
        }
    }
    Ok(examined)
}
