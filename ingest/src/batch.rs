//! What a source hands to an import: batches of rows, and the lines that could not be read.

use arrow::array::RecordBatch;

use crate::error::IngestError;
use crate::schema::Table;

/// A line or value that was kept aside, with the place it came from and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// File as named by the user; `-` for standard input.
    pub file: String,
    /// Line in the file, counted from 1 after decompression; `None` for columnar files.
    pub line: Option<u64>,
    /// Why it was kept aside: the thing, the measure, the limit.
    pub reason: String,
    /// The offending text, cut to 200 characters.
    pub text: String,
}

/// Something a source saw that is no row: a lost GPU, a clock that jumped, an ambiguous hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// File as named by the user.
    pub file: String,
    /// Line in the file, counted from 1.
    pub line: Option<u64>,
    /// What was seen, in words.
    pub text: String,
}

/// Receives what a source reads. The import behind it merges, counts and commits.
pub trait Output {
    /// Takes rows of `table`. The batch may hold any subset of the table's columns, in any order,
    /// with the table's types; the rest is NULL.
    ///
    /// # Errors
    /// Whatever the store answers; the source stops.
    fn rows(&mut self, table: Table, rows: RecordBatch) -> Result<(), IngestError>;

    /// Counts `rows` records of the input as read, whether or not they are kept.
    fn read(&mut self, rows: u64);

    /// Takes a line that was kept aside.
    fn reject(&mut self, reject: Reject);

    /// Takes an event worth telling.
    fn notice(&mut self, notice: Notice);

    /// Counts `values` measurements of `column` that were set to NULL: out of range or a blank
    /// sentinel, not merely unavailable.
    fn nulled(&mut self, column: &'static str, values: u64);

    /// Takes a file that could not be read, or not to its end, and says whether to go on with the
    /// next. What was read of it stays.
    ///
    /// # Errors
    /// The error itself, where one file that cannot be read ends it all.
    fn unread(&mut self, error: IngestError) -> Result<(), IngestError> {
        Err(error)
    }
}
