//! From the log into the tables.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Wal;
use super::segment::{Place, Segment};
use crate::batch::Output;
use crate::error::IngestError;
use crate::import::{Import, ImportSettings, ImportSummary};
use crate::schema::Table;
use crate::store::{Mark, Store};

/// What a flush moved.
#[derive(Debug, Default)]
pub struct Flushed {
    /// What became of the rows; `None` where none waited. Where the log goes on under a new identity
    /// since some were appended, what became of the later ones.
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
    locked(wal).close();
    let places: Vec<Place> = locked(wal).waiting().collect();
    let mut flushed = Flushed::default();
    let mut moving: Option<Moving> = None;
    for place in places {
        let segment = locked(wal).read(place)?;
        let log = locked(wal).log_of(&segment);
        if let Some(earlier) = moving.take_if(|moving| moving.mark.application != log) {
            earlier.end(wal, store, &mut flushed).await?;
        }
        let moving = match &mut moving {
            Some(moving) => moving,
            none => none.insert(Moving::begin(store, log).await?),
        };
        moving.take(&segment, &mut flushed)?;
    }
    if let Some(moving) = moving {
        moving.end(wal, store, &mut flushed).await?;
    }
    Ok(flushed)
}

/// Segments of one identity of the log, on their way.
struct Moving {
    import: Import,
    /// The identity, and the last of the segments.
    mark: Mark,
    /// The last segment that each table has of it.
    known: BTreeMap<Table, u64>,
    waited: bool,
}

impl Moving {
    async fn begin(store: &Store, application: String) -> Result<Self, IngestError> {
        let mut known = BTreeMap::new();
        for table in Table::ALL {
            let segment = match store.snapshot(table).await? {
                Some(snapshot) => store.segment_of(&snapshot, &application).await?,
                None => 0,
            };
            known.insert(table, segment);
        }
        let import = ImportSettings { format: "collect".into(), ..ImportSettings::default() };
        let import = Import::new(import, Box::new(|_| ()));
        Ok(Self { import, mark: Mark { application, segment: 0 }, known, waited: false })
    }

    fn take(&mut self, segment: &Segment, flushed: &mut Flushed) -> Result<(), IngestError> {
        self.mark.segment = segment.number;
        if !segment.damaged_at.is_empty() {
            flushed.damaged.push(segment.number);
        }
        for (table, rows) in segment.rows()? {
            if self.known[&table] < segment.number {
                self.waited = true;
                self.import.read(rows.num_rows() as u64);
                self.import.rows(table, rows)?;
            }
        }
        Ok(())
    }

    async fn end(
        self,
        wal: &Mutex<Wal>,
        store: &Store,
        flushed: &mut Flushed,
    ) -> Result<(), IngestError> {
        let last = self.mark.segment;
        if self.waited {
            flushed.summary = Some(self.import.marked(self.mark).finish(store).await?);
        }
        locked(wal).forget(last, &flushed.damaged)
    }
}

fn locked(wal: &Mutex<Wal>) -> MutexGuard<'_, Wal> {
    wal.lock().unwrap_or_else(PoisonError::into_inner)
}
