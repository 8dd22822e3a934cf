//! The write-ahead log: rows are safe, and can be asked, before they are in a table.
//!
//! # Why
//! A commit to a Delta table takes a tenth of a second and makes a file; a collector has a few rows
//! every second. Rows go to the log first, one `fsync` a call, and from there into the tables every
//! few minutes ([`flush()`]). [`overlay()`] shows a reader what waits, merged just as a flush would.
//!
//! # What holds
//! - [`Wal::append`] returns only after its rows are on the disk. After a crash at any instant they
//!   are there, once. Rows of a call that never returned may be there, whole, or not.
//! - A flush names the log and its last segment in the same Delta commit as the rows, so that a
//!   segment that was committed is never seen again, however the flush was cut off.
//! - Rows that another log holds too, and that are sent once more, are kept once ([`origin`]).
//! - The log has a limit. Past it `append` refuses, rather than fill the disk.
//!
//! A log is one folder, written by one process: `<store>/_wal/<name>` beside the tables of a local
//! store. Files: `lock`, and segments `0000000000000001.wal` and on ([`segment`] has their form).

mod ailing;
mod disk;
#[cfg(test)]
mod disk_faults;
mod flush;
mod heal;
mod known;
mod name;
mod note;
mod origin;
mod overlay;
mod record;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::error::IngestError;
use crate::schema::Table;
pub(crate) use ailing::ailing;
pub use disk::{Disk, Held, LocalDisk, LogFile};
pub use flush::{Flushed, flush};
pub(crate) use heal::Gone;
use known::Known;
pub use name::check_name;
use name::{application, draw};
use origin::Reached;
pub use origin::{Origin, Piece, Position};
pub use overlay::{Overlay, overlay, waits};
pub use record::check;
use segment::{LogId, Places, Previous, Writer};
pub(crate) use segment::{Place, Segment};

/// Folder of the logs in a local store.
pub const WAL_FOLDER: &str = "_wal";

/// Limits of a log.
#[derive(Debug, Clone, Copy)]
pub struct WalSettings {
    /// Bytes after which a segment is closed and the next one begun.
    pub segment_bytes: u64,
    /// Bytes of all segments together past which rows are refused.
    pub bytes_max: u64,
}

impl Default for WalSettings {
    fn default() -> Self {
        Self { segment_bytes: 16 << 20, bytes_max: 1 << 30 }
    }
}

/// A log that is open for writing. Dropping it releases its lock; what it holds stays.
#[derive(Debug)]
pub struct Wal {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    name: String,
    id: LogId,
    settings: WalSettings,
    /// Held for as long as the log is open.
    lock: Box<dyn Held>,
    open: Option<Writer>,
    /// Closed segments: number and bytes, in order.
    closed: Vec<(u64, u64)>,
    /// The last segment whose rows are in the tables, as far as this process knows.
    moved: u64,
    /// Segments of which some rows could not be read.
    damaged: BTreeSet<u64>,
    /// The segment before the next one, as far as its rows were acknowledged.
    previous: Option<Previous>,
    next: u64,
    /// How far the rows of other logs are known.
    known: Known,
    /// What somebody else removed, until it is asked for.
    gone: Option<Gone>,
}

impl Wal {
    /// Opens the log `name` in `folder` (a folder of logs), and locks it.
    ///
    /// # Errors
    /// [`IngestError::Wal`] when another process holds it or the folder cannot be used;
    /// [`IngestError::Setting`] for a name that is no plain file name.
    pub fn open(folder: &Path, name: &str, settings: WalSettings) -> Result<Self, IngestError> {
        Self::open_on(Arc::new(LocalDisk), folder, name, settings)
    }

    /// The same on another disk: for tests that make calls fail.
    ///
    /// # Errors
    /// As [`Wal::open`].
    pub fn open_on(
        disk: Arc<dyn Disk>,
        folder: &Path,
        name: &str,
        settings: WalSettings,
    ) -> Result<Self, IngestError> {
        check_name(name)?;
        let folder = folder.join(name);
        let failed = |action, source| wal_error(action, &folder, source);
        disk.make_folder(&folder).map_err(|error| failed("create", error))?;
        let lock = disk.lock(&folder.join("lock")).map_err(|error| failed("lock", error))?;
        let found = heal::scan(disk.as_ref(), &folder)?;
        let next = found.closed.last().map_or(1, |(number, _)| number + 1);
        // Numbers begin anew only under a new identity: a table remembers which it has.
        let id = found.id.unwrap_or_else(draw);
        Ok(Self {
            disk,
            folder,
            name: name.to_owned(),
            id,
            settings,
            lock,
            open: None,
            previous: heal::previous(&found.closed),
            closed: found.closed,
            moved: 0,
            damaged: BTreeSet::new(),
            next,
            known: found.known,
            gone: None,
        })
    }

    /// Goes on under a new identity: what is appended from now on is another log to whoever hears
    /// of it, and what was appended before stays what it is.
    pub(crate) fn renew(&mut self) {
        self.close();
        self.id = draw();
    }

    /// The name of the log as it was when `segment` was begun.
    pub(crate) fn log_of(&self, segment: &Segment) -> String {
        application(&self.name, segment.id.unwrap_or(self.id))
    }

    /// The name under which a table remembers which segments of this log it has.
    pub(crate) fn application(&self) -> String {
        application(&self.name, self.id)
    }

    /// Bytes of the segments that wait to be moved into the tables.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let closed: u64 = self.waiting().filter_map(|place| place.bytes).sum();
        closed + self.open.as_ref().map_or(0, Writer::bytes)
    }

    /// Bytes of segments that still have room.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.settings.bytes_max.saturating_sub(self.bytes())
    }

    /// Limits.
    pub(crate) fn settings(&self) -> WalSettings {
        self.settings
    }

    /// Keeps rows: all of them when it returns, all or none when it does not.
    ///
    /// # Errors
    /// [`IngestError::Wal`] when the disk fails or the log is full; the log can be used on.
    pub fn append(&mut self, rows: &[(Table, RecordBatch)]) -> Result<(), IngestError> {
        self.write(rows, Reached::new())
    }

    /// Keeps those rows that are not known yet from the log that they come from, as
    /// [`Wal::append`] does. How many of each piece were known.
    ///
    /// # Errors
    /// As [`Wal::append`].
    pub fn append_pieces(&mut self, pieces: &[Piece]) -> Result<Vec<u64>, IngestError> {
        let (rows, news, known) = origin::unknown(pieces, self.known.reached());
        if !rows.is_empty() {
            self.write(&rows, news)?;
        }
        Ok(known)
    }

    fn write(&mut self, rows: &[(Table, RecordBatch)], news: Reached) -> Result<(), IngestError> {
        let record = record::encode(rows, &news)?;
        self.look()?;
        let limit = self.settings.bytes_max;
        if self.bytes() + record.len() as u64 > limit {
            let waits = self.bytes();
            let full = format!("{waits} of {limit} bytes wait to be moved into the tables");
            let full = std::io::Error::new(std::io::ErrorKind::QuotaExceeded, full);
            return Err(wal_error("append to", &self.folder, full));
        }
        if self.open.as_ref().is_some_and(|open| open.bytes() >= self.settings.segment_bytes) {
            self.close();
        }
        let written = self.begun()?.append(&record);
        // What a failed call left behind is cut off by the head of the next segment.
        match written {
            Ok(()) => self.known.take(news),
            Err(_) => drop(self.close()),
        }
        written.map_err(|error| wal_error("append to", &self.folder, error))
    }

    /// The open segment, begun if need be.
    fn begun(&mut self) -> Result<&mut Writer, IngestError> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                // The segments before it may go: it tells all that they told of other logs.
                let first = match self.known.is_empty() {
                    true => Vec::new(),
                    false => record::encode(&[], self.known.in_order())?,
                };
                let number = self.next;
                self.next += 1;
                let (disk, folder) = (self.disk.as_ref(), &self.folder);
                Writer::create(disk, folder, self.id, number, self.previous, &first).map_err(
                    |error| {
                        // A full disk must not fill with segments that were begun in vain.
                        let _ = disk.remove(&segment::path(folder, number));
                        wal_error("begin a segment of", folder, error)
                    },
                )?
            }
        };
        Ok(self.open.insert(open))
    }

    /// Closes the open segment. Number of the last closed one, if there is any.
    pub fn close(&mut self) -> Option<u64> {
        if let Some(open) = self.open.take() {
            self.previous = Some(Previous { number: open.number(), bytes: open.bytes() });
            self.closed.push((open.number(), open.bytes()));
        }
        self.closed.last().map(|(number, _)| *number)
    }

    /// Takes note that the rows of the segments up to `last` are in the tables, and deletes these,
    /// except the newest that there is: it tells how the next one is numbered. One in `damaged`, of
    /// which some rows could not be read, is set aside as `<number>.wal.damaged`.
    ///
    /// # Errors
    /// [`IngestError::Wal`]; segments that stay are known to the tables and not seen again.
    pub(crate) fn forget(&mut self, last: u64, damaged: &[u64]) -> Result<(), IngestError> {
        self.moved = self.moved.max(last);
        self.damaged.extend(damaged);
        // A damaged one is set aside at once: the next one is begun to tell the numbers. Where it
        // cannot be, the next move sets it aside.
        let newest = self.closed.last().map(|(number, _)| *number);
        if self.open.is_none()
            && newest.is_some_and(|n| n <= self.moved && self.damaged.contains(&n))
        {
            let _ = self.begun();
        }
        let open = self.open.as_ref().map(Writer::number);
        let newest = open.or_else(|| Some(self.closed.last()?.0)).unwrap_or(0);
        while let Some((number, _)) = self.closed.first().copied()
            && number <= self.moved
            && number < newest
        {
            let path = segment::path(&self.folder, number);
            let gone = match self.damaged.contains(&number) {
                true => self.disk.rename(&path, &path.with_extension("wal.damaged")),
                false => self.disk.remove(&path),
            };
            if let Err(error) = gone
                && error.kind() != std::io::ErrorKind::NotFound
            {
                return Err(wal_error("delete a segment of", &self.folder, error));
            }
            self.closed.remove(0);
            self.damaged.remove(&number);
        }
        Ok(())
    }

    /// The closed segments whose rows are not known to be in the tables.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Place> + '_ {
        let waiting = self.closed.iter().filter(|(number, _)| *number > self.moved);
        waiting.map(|(number, bytes)| Place { number: *number, bytes: Some(*bytes) })
    }

    /// Reads a closed segment. One that somebody removed is empty, which [`Wal::gone`] tells.
    pub(crate) fn read(&mut self, place: Place) -> Result<Segment, IngestError> {
        self.miss(place)?;
        Segment::read(self.disk.as_ref(), &self.folder, place)
            .map_err(|error| wal_error("read a segment of", &self.folder, error))
    }
}

/// A log in a folder of logs, and where its segments are.
#[derive(Debug)]
struct Log {
    name: String,
    folder: PathBuf,
    places: Places,
}

/// The logs in a folder of logs, which need not be there.
fn logs(disk: &dyn Disk, folder: &Path) -> Result<Vec<Log>, IngestError> {
    let failed = |source| wal_error("read", folder, source);
    let mut names = match disk.list(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names.map_err(failed)?,
    };
    names.sort();
    let mut found = Vec::new();
    for name in names {
        let folder = folder.join(&name);
        match Places::find(disk, &folder) {
            Ok(places) => found.push(Log { name, folder, places }),
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(found)
}

fn wal_error(action: &'static str, place: &Path, source: std::io::Error) -> IngestError {
    IngestError::Wal { action, place: place.to_string_lossy().into_owned(), source }
}
