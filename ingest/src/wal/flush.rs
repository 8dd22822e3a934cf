//! From the log into the tables.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Wal;
use super::segment::Place;
use crate::batch::Output;
use crate::error::IngestError;
use crate::import::{Import, ImportSettings, ImportSummary};
use crate::schema::Table;
use crate::store::{Mark, Store};

/// What a flush moved.
#[derive(Debug, Default)]
pub struct Flushed {
    /// What became of the rows; `None` where none waited.
    pub summary: Option<ImportSummary>,
    /// Segments of which some rows could not be read; they stay in the folder of the log, named
    /// `<number>.wal.damaged`.
    pub damaged: Vec<u64>,
}

/// Moves all rows of `wal` into the tables of `store`, and deletes the segments that held them.
/// The log is locked only for moments: rows can be appended meanwhile.
///
/// # Errors
/// [`IngestError::Store`] or [`IngestError::Wal`]. The log then keeps everything; tables that were
/// committed before the failure are not given their rows again.
pub async fn flush(wal: &Mutex<Wal>, store: &Store) -> Result<Flushed, IngestError> {
    let locked = || wal.lock().unwrap_or_else(PoisonError::into_inner);
    let last = locked().close();
    let places: Vec<Place> = locked().waiting().collect();
    let Some(last) = last.filter(|_| !places.is_empty()) else { return Ok(Flushed::default()) };
    let application = locked().application();
    let mut known = BTreeMap::new();
    for table in Table::ALL {
        let segment = match store.snapshot(table).await? {
            Some(snapshot) => store.segment_of(&snapshot, &application).await?,
            None => 0,
        };
        known.insert(table, segment);
    }
    let import = ImportSettings { format: "collect".into(), ..ImportSettings::default() };
    let mark = Mark { application, segment: last };
    let mut import = Import::new(import, Box::new(|_| ())).marked(mark);
    let mut flushed = Flushed::default();
    let mut waited = false;
    for place in places {
        let segment = locked().read(place)?;
        if !segment.damaged_at.is_empty() {
            flushed.damaged.push(segment.number);
        }
        for (table, rows) in segment.rows()? {
            if known[&table] < segment.number {
                waited = true;
                import.read(rows.num_rows() as u64);
                import.rows(table, rows)?;
            }
        }
    }
    if waited {
        flushed.summary = Some(import.finish(store).await?);
    }
    locked().forget(last, &flushed.damaged)?;
    Ok(flushed)
}
