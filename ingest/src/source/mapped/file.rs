//! Files as batches of their own columns: CSV as text with line numbers, Parquet as it is.

mod stray;

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufRead;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::mapping::{FileFormat, Mapping};
use crate::batch::{Notice, Output, Reject};
use crate::error::IngestError;
use crate::source::input::Input;

/// Rows of a batch.
const BATCH_ROWS: usize = 65_536;

/// Rows of a file, with the line that each stands on (empty for Parquet).
pub(crate) struct Rows {
    pub(crate) batch: RecordBatch,
    pub(crate) lines: Vec<u64>,
}

/// An opened file whose columns are known.
pub(crate) enum Opened {
    Csv { reader: Box<csv::Reader<Box<dyn BufRead + Send>>>, columns: Vec<String>, delimiter: u8 },
    Parquet { builder: Box<ParquetRecordBatchReaderBuilder<File>>, columns: Vec<String> },
}

impl Opened {
    pub(crate) fn open(input: &Input, mapping: &Mapping) -> Result<Self, IngestError> {
        let parquet = match mapping.format {
            Some(format) => format == FileFormat::Parquet,
            None => starts_as_parquet(input)?,
        };
        if parquet { open_parquet(input) } else { open_csv(input, mapping) }
    }

    pub(crate) fn columns(&self) -> &[String] {
        match self {
            Self::Csv { columns, .. } | Self::Parquet { columns, .. } => columns,
        }
    }

    /// The rows with only the columns at `used`, in that order.
    pub(crate) fn rows(self, input: &Input, used: &[usize]) -> Result<Reading, IngestError> {
        match self {
            Self::Csv { reader, columns, delimiter } => Ok(Reading::Csv(CsvRows {
                reader,
                fields: used.iter().map(|at| columns[*at].clone()).collect(),
                used: used.to_vec(),
                width: columns.len(),
                header: columns,
                record: csv::ByteRecord::new(),
                delimiter,
                mended: VecDeque::new(),
                mended_line: None,
                notices: Vec::new(),
            })),
            Self::Parquet { builder, columns } => {
                let mask = ProjectionMask::roots(builder.parquet_schema(), used.iter().copied());
                let reader = builder
                    .with_projection(mask)
                    .with_batch_size(BATCH_ROWS)
                    .build()
                    .map_err(|error| not_parquet(input, &error.to_string()))?;
                let names = used.iter().map(|at| columns[*at].clone()).collect();
                Ok(Reading::Parquet(reader, names))
            }
        }
    }
}

/// Rows still to come.
pub(crate) enum Reading {
    Csv(CsvRows),
    Parquet(ParquetRecordBatchReader, Vec<String>),
}

/// Rows of a CSV still to come.
pub(crate) struct CsvRows {
    reader: Box<csv::Reader<Box<dyn BufRead + Send>>>,
    fields: Vec<String>,
    used: Vec<usize>,
    width: usize,
    header: Vec<String>,
    record: csv::ByteRecord,
    delimiter: u8,
    /// Rows that a stray quote had swallowed, with their lines.
    mended: VecDeque<(u64, csv::ByteRecord)>,
    mended_line: Option<u64>,
    notices: Vec<Notice>,
}

impl Reading {
    /// The next rows, or `None` at the end; lines that are no row are kept aside.
    pub(crate) fn next_rows(
        &mut self,
        input: &Input,
        out: &mut dyn Output,
    ) -> Result<Option<Rows>, IngestError> {
        match self {
            Self::Csv(rows) => rows.next_rows(input, out),
            Self::Parquet(reader, names) => {
                let Some(batch) = reader.next().transpose()? else { return Ok(None) };
                out.read(batch.num_rows() as u64);
                // A projection keeps the file's order; ours is by name.
                let order: Vec<usize> = names
                    .iter()
                    .map(|name| batch.schema().index_of(name))
                    .collect::<Result<_, _>>()?;
                Ok(Some(Rows { batch: batch.project(&order)?, lines: Vec::new() }))
            }
        }
    }
}

impl CsvRows {
    fn next_rows(
        &mut self,
        input: &Input,
        out: &mut dyn Output,
    ) -> Result<Option<Rows>, IngestError> {
        let mut builders: Vec<StringBuilder> =
            self.used.iter().map(|_| StringBuilder::with_capacity(BATCH_ROWS, 1 << 20)).collect();
        let mut lines = Vec::with_capacity(BATCH_ROWS);
        let mut read = 0;
        let mut more = true;
        while lines.len() < BATCH_ROWS {
            more = self.next_record(input)?;
            self.notices.drain(..).for_each(|notice| out.notice(notice));
            if !more {
                break;
            }
            if self.is_noise() {
                continue;
            }
            read += 1;
            if self.record.len() == self.width {
                lines.push(self.line());
                for (builder, at) in builders.iter_mut().zip(&self.used) {
                    append(builder, &self.record[*at]);
                }
            } else {
                out.reject(self.wrong_width(input));
            }
        }
        out.read(read);
        if lines.is_empty() && !more {
            return Ok(None);
        }
        let arrays: Vec<ArrayRef> =
            builders.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef).collect();
        let fields: Vec<Field> =
            self.fields.iter().map(|name| Field::new(name, DataType::Utf8, true)).collect();
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(lines.len()));
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options)?;
        Ok(Some(Rows { batch, lines }))
    }

    fn next_record(&mut self, input: &Input) -> Result<bool, IngestError> {
        if let Some((line, record)) = self.mended.pop_front() {
            (self.record, self.mended_line) = (record, Some(line));
            return Ok(true);
        }
        self.mended_line = None;
        let more = self.reader.read_byte_record(&mut self.record);
        let more = more.map_err(|error| unreadable(input, error))?;
        if more && let Some(lines) = stray::swallowed(&self.record, self.width) {
            let line = self.line();
            self.notices.push(Notice {
                file: input.name().to_owned(),
                line: Some(line),
                text: format!("a quote that is never closed: it and the {lines} lines after it were read without it"),
            });
            self.mended = stray::rows(&self.record, line, self.delimiter).into();
            return self.next_record(input);
        }
        Ok(more)
    }

    fn line(&self) -> u64 {
        let own = self.record.position().map_or(0, csv::Position::line);
        self.mended_line.unwrap_or(own)
    }

    /// A blank line, or the header once more where files were put together.
    fn is_noise(&self) -> bool {
        let blank = self.record.len() == 1 && self.record[0].trim_ascii().is_empty();
        let same = |(field, name): (&[u8], &String)| field.trim_ascii() == name.as_bytes();
        blank && self.width > 1
            || self.record.len() == self.width && self.record.iter().zip(&self.header).all(same)
    }

    fn wrong_width(&self, input: &Input) -> Reject {
        let text = self.record.iter().map(String::from_utf8_lossy).collect::<Vec<_>>().join(",");
        Reject {
            file: input.name().to_owned(),
            line: Some(self.line()),
            reason: format!("{} fields where the header has {}", self.record.len(), self.width),
            text: text.chars().take(200).collect(),
        }
    }
}

/// Appends a cell, NULL where it says that nothing was measured.
fn append(builder: &mut StringBuilder, cell: &[u8]) {
    let cell = cell.trim_ascii();
    let missing = matches!(
        cell,
        b"" | b"N/A"
            | b"[N/A]"
            | b"NA"
            | b"NULL"
            | b"null"
            | b"None"
            | b"NaN"
            | b"nan"
            | b"-"
            | b"\\N"
            | b"[Not Supported]"
    );
    match std::str::from_utf8(cell) {
        _ if missing => builder.append_null(),
        Ok(text) => builder.append_value(text),
        Err(_) => builder.append_value(String::from_utf8_lossy(cell)),
    }
}

fn starts_as_parquet(input: &Input) -> Result<bool, IngestError> {
    let Some(path) = input.path() else { return Ok(false) };
    let mut start = Vec::with_capacity(4);
    let file = File::open(path).map_err(|error| input.unreadable(error))?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, 4), &mut start)
        .map_err(|error| input.unreadable(error))?;
    Ok(start == b"PAR1")
}

fn open_parquet(input: &Input) -> Result<Opened, IngestError> {
    let Some(path) = input.path() else {
        return Err(not_parquet(input, "Parquet cannot be read from standard input"));
    };
    let file = File::open(path).map_err(|error| input.unreadable(error))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)
        .map_err(|error| not_parquet(input, &error.to_string()))?;
    let columns = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    Ok(Opened::Parquet { builder: Box::new(builder), columns })
}

fn open_csv(input: &Input, mapping: &Mapping) -> Result<Opened, IngestError> {
    let mut raw = input.open()?;
    let start = raw.fill_buf().map_err(|error| input.unreadable(error))?;
    let first = start.split(|byte| *byte == b'\n').next().unwrap_or(start);
    let delimiter = match mapping.delimiter {
        Some(given) => u8::try_from(given).map_err(|_| {
            super::mapping::setting("delimiter", &given.to_string(), "must be one ASCII character")
        })?,
        None => likely_delimiter(first),
    };
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        // A CR is trimmed with the cell: with CRLF the reader counts lines one short.
        .terminator(csv::Terminator::Any(b'\n'))
        .from_reader(raw);
    let columns = if mapping.header.is_empty() {
        let mut header = csv::ByteRecord::new();
        reader.read_byte_record(&mut header).map_err(|error| unreadable(input, error))?;
        header.iter().map(header_name).collect()
    } else {
        mapping.header.clone()
    };
    Ok(Opened::Csv { reader: Box::new(reader), columns, delimiter })
}

fn header_name(cell: &[u8]) -> String {
    let text = String::from_utf8_lossy(cell);
    text.trim_start_matches('\u{feff}').trim().to_owned()
}

fn likely_delimiter(header: &[u8]) -> u8 {
    let count = |delimiter: u8| header.iter().filter(|byte| **byte == delimiter).count();
    // The first of equals wins, so a single column is CSV.
    let mut best = b',';
    for delimiter in [b'\t', b';', b'|'] {
        if count(delimiter) > count(best) {
            best = delimiter;
        }
    }
    best
}

fn unreadable(input: &Input, error: csv::Error) -> IngestError {
    input.unreadable(std::io::Error::from(error))
}

fn not_parquet(input: &Input, reason: &str) -> IngestError {
    IngestError::Format {
        path: input.name().to_owned(),
        format: "parquet",
        reason: reason.to_owned(),
        hint: None,
    }
}
