//! A log whose folder, or a segment in it, was removed under it: noticed, told, and made anew.

use std::path::Path;
use std::sync::Arc;

use super::known::Known;
use super::segment::{self, LogId, Place, Places, Previous, Segment, Writer};
use super::{Disk, Wal, wal_error};
use crate::error::IngestError;

/// What was acknowledged and was removed by somebody else before it was moved on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Gone {
    /// Segments that waited.
    pub(crate) segments: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Whether the folder was made anew.
    pub(crate) healed: bool,
}

/// The closed segments that there are, and what they tell.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) id: Option<LogId>,
    pub(super) closed: Vec<(u64, u64)>,
    pub(super) known: Known,
}

/// Reads all segments in the folder of a log.
pub(super) fn scan(disk: &dyn Disk, folder: &Path) -> Result<Scan, IngestError> {
    let failed = |action, source| wal_error(action, folder, source);
    let found = Places::find(disk, folder).map_err(|error| failed("list", error))?;
    let (mut closed, mut known) = (Vec::new(), Known::default());
    for place in found.places {
        let segment = Segment::read(disk, folder, place);
        let segment = segment.map_err(|error| failed("read", error))?;
        known.take(segment.reached()?);
        closed.push((segment.number, segment.bytes));
    }
    Ok(Scan { id: found.id, closed, known })
}

/// The segment before the next one. Those that hold nothing were begun in vain, and are no one's
/// predecessor.
pub(super) fn previous(closed: &[(u64, u64)]) -> Option<Previous> {
    let previous = closed.iter().rfind(|(_, bytes)| *bytes > 0);
    previous.map(|(number, bytes)| Previous { number: *number, bytes: *bytes })
}

impl Wal {
    /// Looks whether the log is still where it was, and makes it anew where it is not. What was
    /// lost by that is told by [`Wal::gone`].
    ///
    /// # Errors
    /// [`IngestError::Wal`] when it cannot be seen or made.
    pub(crate) fn look(&mut self) -> Result<(), IngestError> {
        let failed = |source| wal_error("find", &self.folder, source);
        let there = match (&self.open, self.closed.last()) {
            (Some(open), _) => open.named().map_err(failed)?,
            (None, Some((number, _))) => {
                self.disk.there(&segment::path(&self.folder, *number)).map_err(failed)?
            }
            (None, None) => true,
        };
        match there && self.lock.named().map_err(failed)? {
            true => Ok(()),
            false => self.heal(),
        }
    }

    /// What was lost since the last question.
    pub(crate) fn gone(&mut self) -> Option<Gone> {
        self.gone.take()
    }

    /// Takes note where a segment that waits was removed.
    pub(super) fn miss(&mut self, place: Place) -> Result<(), IngestError> {
        let path = segment::path(&self.folder, place.number);
        let bytes = place.bytes.unwrap_or(0);
        let there = self.disk.there(&path);
        if bytes > 0 && !there.map_err(|error| wal_error("find", &self.folder, error))? {
            let gone = self.gone.get_or_insert_default();
            gone.segments += 1;
            gone.bytes += bytes;
        }
        Ok(())
    }

    fn heal(&mut self) -> Result<(), IngestError> {
        let (disk, folder) = (Arc::clone(&self.disk), self.folder.clone());
        let failed = |action, source| wal_error(action, &folder, source);
        disk.make_folder(&folder).map_err(|error| failed("create", error))?;
        // Another process may have begun in the same place by now: then this one may not write.
        if !self.lock.named().map_err(|error| failed("find", error))? {
            let lock = disk.lock(&folder.join("lock")).map_err(|error| failed("lock", error))?;
            self.lock = lock;
        }
        // Nothing is forgotten of what was here before it is known what is there.
        let found = scan(disk.as_ref(), &folder)?;
        let mut gone = self.gone.take().unwrap_or_default();
        let open = self.open.take().map(|open: Writer| (open.number(), open.bytes()));
        let waited = self.closed.iter().chain(&open).filter(|(number, bytes)| {
            *number > self.moved && *bytes > 0 && !found.closed.iter().any(|(n, _)| n == number)
        });
        for (_, bytes) in waited {
            gone.segments += 1;
            gone.bytes += bytes;
        }
        gone.healed = true;
        self.gone = Some(gone);
        self.next = self.next.max(found.closed.last().map_or(0, |(number, _)| number + 1));
        self.previous = previous(&found.closed);
        self.closed = found.closed;
        Ok(())
    }
}
