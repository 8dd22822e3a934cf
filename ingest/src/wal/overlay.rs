//! What a reader sees: the tables, and what the logs beside them hold, merged as a flush would.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::RecordBatch;

use super::disk::{Disk, LocalDisk};
use super::segment::Segment;
use super::{WAL_FOLDER, application, logs, wal_error};
use crate::batch::Output;
use crate::error::IngestError;
use crate::import::{Import, ImportSettings};
use crate::schema::Table;
use crate::store::{Store, TableSnapshot};

/// One table as a reader sees it.
#[derive(Debug)]
pub struct Overlay {
    /// Table.
    pub table: Table,
    /// Its newest version, less the files whose rows are in `rows`; `None` before the first commit.
    pub snapshot: Option<TableSnapshot>,
    /// Rows that wait in logs, with every column of the table, and those of the files left out.
    pub rows: Vec<RecordBatch>,
}

/// Rows of one segment, and the log that it is of.
#[derive(Debug)]
struct Waiting {
    application: String,
    segment: u64,
    rows: Vec<(Table, RecordBatch)>,
}

/// Every table of `store`, with what waits in the logs of a local one.
///
/// # Errors
/// [`IngestError::Store`] or [`IngestError::Wal`] when something cannot be read.
pub async fn overlay(store: &Store) -> Result<Vec<Overlay>, IngestError> {
    match store.folder() {
        Some(folder) => overlay_on(&LocalDisk, &folder.join(WAL_FOLDER), store).await,
        None => merged(Vec::new(), store).await,
    }
}

/// Every table of `store`, with what waits in the logs in `folder` of a disk.
pub(super) async fn overlay_on(
    disk: &dyn Disk,
    folder: &Path,
    store: &Store,
) -> Result<Vec<Overlay>, IngestError> {
    // Logs first: what is moved into a table meanwhile is in the version that is read after it.
    merged(waiting(disk, folder)?, store).await
}

async fn merged(waiting: Vec<Waiting>, store: &Store) -> Result<Vec<Overlay>, IngestError> {
    let mut bases = BTreeMap::new();
    for table in Table::ALL {
        if let Some(snapshot) = store.snapshot(table).await? {
            bases.insert(table, snapshot);
        }
    }
    let mut import = Import::new(ImportSettings::default(), Box::new(|_| ()));
    let mut known: BTreeMap<(Table, String), u64> = BTreeMap::new();
    for Waiting { application, segment, rows } in waiting {
        for (table, rows) in rows {
            let key = (table, application.clone());
            let last = match (known.get(&key), bases.get(&table)) {
                (Some(last), _) => *last,
                (None, Some(base)) => store.segment_of(base, &application).await?,
                (None, None) => 0,
            };
            known.insert(key, last);
            if segment > last {
                import.rows(table, rows)?;
            }
        }
    }
    let mut kept = import.keep(store, &bases).await?;
    let mut tables = Vec::new();
    for table in Table::ALL {
        let mut overlay = Overlay { table, snapshot: bases.remove(&table), rows: Vec::new() };
        if let Some(kept) = kept.remove(&table) {
            if let Some(snapshot) = &mut overlay.snapshot {
                snapshot.files.retain(|file| !kept.cleared.contains(&file.date));
            }
            for content in kept.contents {
                overlay.rows.push(content.conformed(table)?);
            }
        }
        tables.push(overlay);
    }
    Ok(tables)
}

/// Whether any log beside the tables of a local store has a segment.
///
/// # Errors
/// [`IngestError::Wal`] when a folder cannot be read.
pub fn waits(store: &Store) -> Result<bool, IngestError> {
    let Some(folder) = store.folder() else { return Ok(false) };
    let logs = logs(&LocalDisk, &folder.join(WAL_FOLDER))?;
    Ok(logs.iter().any(|log| !log.places.places.is_empty()))
}

/// Rows of all logs in a folder of logs.
fn waiting(disk: &dyn Disk, folder: &Path) -> Result<Vec<Waiting>, IngestError> {
    let mut waiting = Vec::new();
    for log in logs(disk, folder)? {
        let Some(id) = log.places.id else { continue };
        for place in log.places.places {
            let segment = Segment::read(disk, &log.folder, place);
            let segment = segment.map_err(|source| wal_error("read", &log.folder, source))?;
            let rows = segment.rows()?;
            let application = application(&log.name, segment.id.unwrap_or(id));
            waiting.push(Waiting { application, segment: segment.number, rows });
        }
    }
    Ok(waiting)
}
