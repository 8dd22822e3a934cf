//! Words that are said once, though a source that is asked again and again finds them each time.

use std::collections::HashSet;

use arrow::array::RecordBatch;

use crate::batch::{Notice, Output, Reject};
use crate::error::IngestError;
use crate::schema::Table;

/// Words that are remembered; past them all are said again.
const WORDS_MAX: usize = 10_000;

/// What was said.
#[derive(Debug, Default)]
pub(crate) struct Once(HashSet<String>);

/// Hands on everything but words that were said before.
pub(crate) struct Over<'o> {
    said: &'o mut Once,
    out: &'o mut dyn Output,
}

impl Once {
    pub(crate) fn over<'o>(&'o mut self, out: &'o mut dyn Output) -> Over<'o> {
        Over { said: self, out }
    }
}

impl Output for Over<'_> {
    fn rows(&mut self, table: Table, rows: RecordBatch) -> Result<(), IngestError> {
        self.out.rows(table, rows)
    }

    fn read(&mut self, rows: u64) {
        self.out.read(rows);
    }

    fn reject(&mut self, reject: Reject) {
        self.out.reject(reject);
    }

    fn notice(&mut self, notice: Notice) {
        let said = &mut self.said.0;
        if said.len() >= WORDS_MAX {
            said.clear();
        }
        if said.insert(format!("{} {}", notice.file, notice.text)) {
            self.out.notice(notice);
        }
    }

    fn nulled(&mut self, column: &'static str, values: u64) {
        self.out.nulled(column, values);
    }
}
