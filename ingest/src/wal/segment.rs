//! One file of a log: a head, then records, each synced before the next is written.
//!
//! Head: `LOADWAL1`, identity of the log (u128), number of the segment, number and acknowledged
//! bytes of the segment before it (each u64), CRC-32 of all that (u32). What lies past the
//! acknowledged bytes of a segment was left by a call that failed, and is not read. A segment whose
//! head is not whole holds nothing.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

use super::disk::{Disk, LogFile};
use super::origin::{Position, Source};
use super::record;
use crate::error::IngestError;
use crate::schema::Table;

const MAGIC: &[u8; 8] = b"LOADWAL1";
const HEAD_BYTES: usize = 52;

/// Drawn when a log is begun.
pub(super) type LogId = u128;

/// The segment before another, and how many of its bytes were acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Previous {
    pub(super) number: u64,
    pub(super) bytes: u64,
}

/// The path of a segment.
pub(super) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:016}.wal"))
}

/// The number of the segment with this file name.
pub(super) fn number(name: &str) -> Option<u64> {
    name.strip_suffix(".wal")?.parse().ok()
}

/// A segment that is being written.
#[derive(Debug)]
pub(super) struct Writer {
    file: Box<dyn LogFile>,
    number: u64,
    bytes: u64,
}

impl Writer {
    /// Begins a segment with a record, which may be empty. When it fails, the number is spent.
    pub(super) fn create(
        disk: &dyn Disk,
        folder: &Path,
        id: LogId,
        number: u64,
        previous: Option<Previous>,
        first: &[u8],
    ) -> io::Result<Self> {
        let mut file = disk.create(&path(folder, number))?;
        file.append(&[&head(id, number, previous), first].concat())?;
        file.sync()?;
        disk.sync_folder(folder)?;
        Ok(Self { file, number, bytes: (HEAD_BYTES + first.len()) as u64 })
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether what is appended will be found.
    pub(super) fn named(&self) -> io::Result<bool> {
        self.file.named()
    }

    /// Acknowledged bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a record and syncs it. After a failure nothing more may be appended.
    pub(super) fn append(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.append(record)?;
        self.file.sync()?;
        self.bytes += record.len() as u64;
        Ok(())
    }
}

fn head(id: LogId, number: u64, previous: Option<Previous>) -> Vec<u8> {
    let previous = previous.unwrap_or(Previous { number: 0, bytes: 0 });
    let mut head = MAGIC.to_vec();
    head.extend_from_slice(&id.to_le_bytes());
    for value in [number, previous.number, previous.bytes] {
        head.extend_from_slice(&value.to_le_bytes());
    }
    let sum = crc32fast::hash(&head);
    head.extend_from_slice(&sum.to_le_bytes());
    head
}

/// The log that a head names, and what it tells of the segment before; `None` where the head is
/// not whole.
fn told(bytes: &[u8], number: u64) -> Option<(LogId, Previous)> {
    let head = bytes.get(..HEAD_BYTES)?;
    let (told, sum) = head.split_at(HEAD_BYTES - 4);
    let value = |at: usize| Some(u64::from_le_bytes(told.get(at..at + 8)?.try_into().ok()?));
    let sound = told.starts_with(MAGIC)
        && crc32fast::hash(told).to_le_bytes() == sum
        && value(24)? == number;
    let id = u128::from_le_bytes(told.get(8..24)?.try_into().ok()?);
    sound.then_some((id, Previous { number: value(32)?, bytes: value(40)? }))
}

/// Where a segment is, and how far it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number.
    pub(crate) number: u64,
    /// Acknowledged bytes; `None` for the last one, which counts as far as it is whole.
    pub(crate) bytes: Option<u64>,
}

/// The segments of a log, in order.
#[derive(Debug)]
pub(crate) struct Places {
    /// Identity of the log; `None` where no segment has a whole head.
    pub(crate) id: Option<LogId>,
    /// Where they are.
    pub(crate) places: Vec<Place>,
}

impl Places {
    /// Finds the segments in the folder of a log; of each only the head is read.
    pub(crate) fn find(disk: &dyn Disk, folder: &Path) -> io::Result<Self> {
        let names = disk.list(folder)?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| number(name)).collect();
        numbers.sort_unstable();
        let mut latest: Option<(LogId, Previous)> = None;
        let mut places = Vec::new();
        for number in numbers.into_iter().rev() {
            let bytes = match latest {
                Some((_, told)) if number == told.number => Some(told.bytes),
                // Begun in vain: the one after it names an older one as its predecessor.
                Some((_, told)) if number > told.number => Some(0),
                _ => None,
            };
            places.push(Place { number, bytes });
            if bytes != Some(0) {
                let head = match disk.read(&path(folder, number), HEAD_BYTES) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                    head => head?,
                };
                latest = told(&head, number).or(latest);
            }
        }
        places.reverse();
        Ok(Self { id: latest.map(|(id, _)| id), places })
    }
}

/// A segment as it was read.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Number.
    pub(crate) number: u64,
    /// Identity of the log when it was begun; `None` where its head is not whole.
    pub(super) id: Option<LogId>,
    /// Bytes of the head and of what was acknowledged after it.
    pub(crate) bytes: u64,
    /// Where what was acknowledged cannot be read any more.
    pub(crate) damaged_at: Vec<u64>,
    content: Vec<u8>,
    records: Vec<Range<usize>>,
}

impl Segment {
    /// Reads one segment. One that is gone is empty: its rows are in the tables.
    pub(crate) fn read(disk: &dyn Disk, folder: &Path, place: Place) -> io::Result<Self> {
        let number = place.number;
        let within = place.bytes.map_or(usize::MAX, |b| usize::try_from(b).unwrap_or(usize::MAX));
        let content = match disk.read(&path(folder, number), within) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::scan(number, Vec::new(), Some(0)));
            }
            content => content?,
        };
        Ok(Self::scan(number, content, place.bytes))
    }

    fn scan(number: u64, content: Vec<u8>, told_bytes: Option<u64>) -> Self {
        let id = told(&content, number).map(|(id, _)| id);
        let (damaged_at, records) = (Vec::new(), Vec::new());
        let mut segment = Self { number, id, bytes: 0, damaged_at, content, records };
        let content = &segment.content;
        let mut end = if id.is_some() { HEAD_BYTES } else { 0 };
        while end >= HEAD_BYTES && end < content.len() {
            if let Some(record) = record::whole(&content[end..]) {
                segment.records.push(end..end + record);
                end += record;
                continue;
            }
            // The last record may be torn. One with another after it was acknowledged.
            match next(&content[end..]) {
                Some(skipped) => {
                    segment.damaged_at.push(end as u64);
                    end += skipped;
                }
                None => break,
            }
        }
        segment.bytes = end as u64;
        if told_bytes.is_some_and(|bytes| bytes > segment.bytes) {
            segment.damaged_at.push(segment.bytes);
        }
        segment
    }

    /// The rows of all records, in the order of their arrival.
    pub(crate) fn rows(&self) -> Result<Vec<(Table, RecordBatch)>, IngestError> {
        let mut rows = Vec::new();
        for record in &self.records {
            rows.extend(record::decode(&self.content[record.clone()])?);
        }
        Ok(rows)
    }

    /// The same, each record by itself, with the byte at which it begins. A record that another
    /// version wrote and this one does not know is an error of its own.
    pub(crate) fn records(
        &self,
    ) -> impl Iterator<Item = (u64, Result<Vec<(Table, RecordBatch)>, ArrowError>)> + '_ {
        let records = self.records.iter();
        records.map(|at| (at.start as u64, record::decode(&self.content[at.clone()])))
    }

    /// How far other logs are known with it, in the order in which that was written.
    pub(super) fn reached(&self) -> Result<Vec<(Source, Position)>, IngestError> {
        let mut reached = Vec::new();
        for record in &self.records {
            reached.extend(record::reached(&self.content[record.clone()])?);
        }
        Ok(reached)
    }
}

/// Bytes from a damaged record to a whole one after it.
fn next(bytes: &[u8]) -> Option<usize> {
    let end = record::claimed(bytes)? + record::HEAD_BYTES;
    record::whole(bytes.get(end..)?).map(|_| end)
}
