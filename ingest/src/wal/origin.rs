//! Where rows come from that another log holds too: what a sender repeats is kept once.
//!
//! # Why
//! A sender that heard no answer sends again. The log remembers, for each log that it takes rows
//! from and each table, how far it has them. That is written in the same record as the rows, and
//! the beginning of every segment repeats all of it, so that it is known for as long as the log is.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

use crate::schema::Table;

/// A place in a log, between two rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Segment.
    pub segment: u64,
    /// Byte of the segment at which the record begins.
    pub byte: u64,
    /// Batch of the record.
    pub part: u32,
    /// Rows of the batch before the place.
    pub row: u64,
}

impl Position {
    /// Whether both are in the same batch.
    fn beside(&self, other: &Self) -> bool {
        Self { row: 0, ..*self } == Self { row: 0, ..*other }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}.{}", self.segment, self.byte, self.part, self.row)
    }
}

impl FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no place in a log: four numbers, such as `3.52.0.30`");
        let numbers: Option<Vec<u64>> = text.split('.').map(|part| part.parse().ok()).collect();
        match numbers.as_deref() {
            Some([segment, byte, part, row]) => {
                let part = u32::try_from(*part).map_err(|_| wrong())?;
                Ok(Self { segment: *segment, byte: *byte, part, row: *row })
            }
            _ => Err(wrong()),
        }
    }
}

/// Where a batch ends in the log that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Name and identity of that log.
    pub log: Arc<str>,
    /// The end of the batch.
    pub until: Position,
}

/// A batch for a log.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Table.
    pub table: Table,
    /// Rows.
    pub rows: RecordBatch,
    /// Where another log has them; none for rows that come from no log.
    pub origin: Option<Origin>,
}

/// A log, and a table of which it holds rows.
pub(super) type Source = (Arc<str>, Table);

/// How far the rows of other logs are known.
pub(super) type Reached = BTreeMap<Source, Position>;

/// What of `pieces` is not known yet, how far that reaches, and how many rows of each were known.
pub(super) fn unknown(
    pieces: &[Piece],
    reached: &Reached,
) -> (Vec<(Table, RecordBatch)>, Reached, Vec<u64>) {
    let (mut rows, mut news, mut known) = (Vec::new(), Reached::new(), Vec::new());
    for Piece { table, rows: batch, origin } in pieces {
        let Some(Origin { log, until }) = origin else {
            rows.push((*table, batch.clone()));
            known.push(0);
            continue;
        };
        let key = (Arc::clone(log), *table);
        let last = news.get(&key).or_else(|| reached.get(&key)).copied().unwrap_or_default();
        let count = batch.num_rows() as u64;
        let skipped = match *until <= last {
            true => count,
            false if last.beside(until) => count.saturating_sub(until.row - last.row),
            false => 0,
        };
        known.push(skipped);
        if *until > last {
            let skipped = usize::try_from(skipped).unwrap_or(batch.num_rows());
            rows.push((*table, batch.slice(skipped, batch.num_rows() - skipped)));
            news.insert(key, *until);
        }
    }
    (rows, news, known)
}

/// One line of [`Reached`] as it stands in a record: the place, length and text of the table's
/// name, the log's.
pub(super) fn bytes_of(log: &str, table: Table, until: Position) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [until.segment, until.byte, u64::from(until.part), until.row] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.push(table.name().len() as u8);
    bytes.extend_from_slice(table.name().as_bytes());
    bytes.extend_from_slice(log.as_bytes());
    bytes
}

/// The same back from its bytes.
pub(super) fn of_bytes(bytes: &[u8]) -> Result<(Source, Position), ArrowError> {
    let wrong = || ArrowError::ParseError("a record does not tell where its rows are from".into());
    let number = |at: usize| -> Option<u64> {
        Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
    };
    let read = || -> Option<(Source, Position)> {
        let part = u32::try_from(number(16)?).ok()?;
        let until = Position { segment: number(0)?, byte: number(8)?, part, row: number(24)? };
        let (length, names) = bytes.get(32..)?.split_first()?;
        let (table, log) = names.split_at_checked(usize::from(*length))?;
        let table = std::str::from_utf8(table).ok()?.parse().ok()?;
        Some(((Arc::from(std::str::from_utf8(log).ok()?), table), until))
    };
    read().ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int16Array};
    use arrow::datatypes::Int16Type;

    use super::*;

    fn piece(from: i16, until: Position, rows: i16) -> Piece {
        let numbers: ArrayRef = Arc::new((from..from + rows).collect::<Int16Array>());
        let rows = RecordBatch::try_from_iter([("gpu", numbers)]).unwrap();
        let origin = Some(Origin { log: Arc::from("a"), until });
        Piece { table: Table::Samples, rows, origin }
    }

    fn numbers(rows: &[(Table, RecordBatch)]) -> Vec<i16> {
        let all = rows
            .iter()
            .flat_map(|(_, rows)| rows.column(0).as_primitive::<Int16Type>().values().to_vec());
        all.collect()
    }

    #[test]
    fn each_row_passes_once_however_a_sender_cuts_what_it_repeats() {
        // Breaks when a sender that cuts its rows otherwise than before loses or doubles some.
        let at = |row| Position { segment: 2, byte: 52, part: 1, row };
        let first = [piece(0, at(10), 10)];
        let (rows, reached, known) = unknown(&first, &Reached::new());
        assert_eq!((numbers(&rows), known), ((0..10).collect(), vec![0]));
        for (cut, wanted, skipped) in [
            (vec![piece(0, at(10), 10)], vec![], 10),
            (vec![piece(0, at(4), 4), piece(4, at(14), 10)], vec![10, 11, 12, 13], 10),
            (vec![piece(10, at(12), 2), piece(12, at(14), 2)], vec![10, 11, 12, 13], 0),
            (vec![piece(0, at(14), 14), piece(0, at(14), 14)], vec![10, 11, 12, 13], 24),
        ] {
            let (rows, _, known) = unknown(&cut, &reached);
            assert_eq!((numbers(&rows), known.iter().sum()), (wanted, skipped));
        }
        // Another batch, record or segment begins anew.
        let next = Position { part: 2, row: 3, ..at(0) };
        assert_eq!(numbers(&unknown(&[piece(0, next, 3)], &reached).0), [0, 1, 2]);
        let older = Position { segment: 1, ..at(99) };
        assert!(unknown(&[piece(0, older, 3)], &reached).0.is_empty());
    }

    #[test]
    fn a_place_reads_as_it_is_written() {
        let place = Position { segment: 7, byte: 1 << 40, part: 3, row: 12 };
        assert_eq!(place.to_string().parse(), Ok(place));
        let line = bytes_of("loadline-wal/n1/00ff", Table::NodeSamples, place);
        let read = of_bytes(&line).unwrap();
        assert_eq!(read, ((Arc::from("loadline-wal/n1/00ff"), Table::NodeSamples), place));
        assert!(of_bytes(&line[..30]).is_err() && "1.2.3".parse::<Position>().is_err());
        assert!("1.2.4294967296.3".parse::<Position>().is_err());
    }
}
