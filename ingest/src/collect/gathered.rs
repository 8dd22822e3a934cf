//! What one round of a source gave.

use arrow::array::RecordBatch;

use crate::batch::{Notice, Output, Reject};
use crate::error::IngestError;
use crate::schema::Table;
use crate::wal::{Origin, Piece};

/// Lines kept aside that one round holds; further ones are only counted.
const REJECTS_HELD: usize = 1_000;

/// Rows and words of one round.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// Rows by table, in the order of their arrival.
    pub rows: Vec<(Table, RecordBatch)>,
    /// Where rows come from that another log holds: one for each of `rows`, or none at all.
    pub origins: Vec<Origin>,
    /// Events worth telling.
    pub notices: Vec<Notice>,
    /// Lines that were kept aside.
    pub rejects: Vec<Reject>,
    /// Further ones, of which there are too many to hold each.
    pub rejects_untold: u64,
    /// Measurements that were set to NULL.
    pub nulled: u64,
}

impl Gathered {
    /// Bytes that the rows take.
    pub(super) fn bytes(&self) -> usize {
        self.rows.iter().map(|(_, rows)| rows.get_array_memory_size()).sum()
    }

    /// The rows, and where they come from.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        (0..).zip(&self.rows).map(|(place, (table, rows)): (usize, _)| Piece {
            table: *table,
            rows: rows.clone(),
            origin: self.origins.get(place).cloned(),
        })
    }

    /// Number of rows.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.rows.iter().map(|(_, rows)| rows.num_rows() as u64).sum()
    }
}

impl Output for Gathered {
    fn rows(&mut self, table: Table, rows: RecordBatch) -> Result<(), IngestError> {
        if rows.num_rows() > 0 {
            self.rows.push((table, rows));
        }
        Ok(())
    }

    fn read(&mut self, _: u64) {}

    fn reject(&mut self, reject: Reject) {
        match self.rejects.len() < REJECTS_HELD {
            true => self.rejects.push(reject),
            false => self.rejects_untold += 1,
        }
    }

    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    fn nulled(&mut self, _: &'static str, values: u64) {
        self.nulled += values;
    }
}
