//! Answers as folders of files that another program reads: partitioned Parquet or CSV.
//!
//! A folder appears whole or not at all: files are written beside it and renamed into place.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::error::ArrowError;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

use crate::answer::Answer;

mod folder;
mod nested;

pub use nested::flat;

/// Folders that one export may make; more is a slip in the choice of columns.
pub const PARTITIONS_MAX: usize = 10_000;

/// Form of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExportForm {
    /// Parquet, compressed with zstd.
    #[default]
    Parquet,
    /// Comma-separated values with a header.
    Csv,
}

/// How an answer is laid out in files.
#[derive(Debug, Clone, Default)]
pub struct ExportSettings {
    /// Form of the files.
    pub form: ExportForm,
    /// Columns whose values become folders `column=value`, outermost first. A column of instants
    /// that all begin a local day names its folders by the date.
    pub partition_by: Vec<String>,
    /// Write each instant as the wall clock of its zone, without the zone.
    pub local_times: bool,
    /// Replace a folder that is there; without it, that is refused.
    pub replace: bool,
}

/// What an export made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Rows written.
    pub rows: usize,
    /// Files written.
    pub files: usize,
}

/// Why an export was not made; what stood at the place is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Something stands at the place already.
    #[error("`{0}` exists and was left as it is", .path.display())]
    Exists {
        /// Place.
        path: PathBuf,
    },
    /// What stands at the place was not made by an export.
    #[error("`{0}` was left as it is: it holds more than an export", .path.display())]
    NotOurs {
        /// Place.
        path: PathBuf,
    },
    /// A partition column that the answer does not have.
    #[error("cannot partition by `{column}`: the answer has no such column")]
    Column {
        /// Column as given.
        column: String,
        /// Columns there are.
        known: Vec<String>,
    },
    /// Nothing is left for the files.
    #[error("cannot partition by every column: nothing is left for the files")]
    NothingLeft,
    /// Too many folders.
    #[error("cannot partition into {folders} folders: at most {PARTITIONS_MAX} are made")]
    TooMany {
        /// Folders there would be.
        folders: usize,
    },
    /// A file could not be written.
    #[error("could not write `{0}`", .path.display())]
    Write {
        /// Place.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The rows could not be put in the form asked for.
    #[error("could not convert the rows")]
    Convert(#[from] ArrowError),
    /// The rows could not be written as Parquet.
    #[error("could not write Parquet")]
    Parquet(#[from] ParquetError),
}

impl ExportError {
    /// A command or setting to try, where one can help.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Exists { .. } => Some("add `--replace` to replace it".into()),
            Self::NotOurs { .. } => Some("name another folder, or empty it yourself".into()),
            Self::Column { known, .. } => Some(format!("there are: {}", known.join(", "))),
            Self::TooMany { .. } => Some("partition by a day or a month, not an instant".into()),
            _ => None,
        }
    }
}

/// Writes `answer` to the folder `to`.
///
/// # Errors
/// [`ExportError`]; `to` is then as it was.
pub fn export(
    answer: &Answer,
    to: &Path,
    settings: &ExportSettings,
) -> Result<Exported, ExportError> {
    if to.exists() && !settings.replace {
        return Err(ExportError::Exists { path: to.to_owned() });
    }
    let zoned = concat_batches(&answer.schema, &answer.batches)?;
    let rows = match settings.local_times {
        true => {
            let wall = answer.on_wall_clock()?;
            concat_batches(&wall.schema, &wall.batches)?
        }
        false => zoned.clone(),
    };
    let parts = partitions(&rows, &zoned, &settings.partition_by)?;
    let partial = beside(to, "partial");
    let written = write_all(&parts, &partial, settings.form).and_then(|()| place(&partial, to));
    if let Err(error) = written {
        // The first error is the one to tell.
        let _ = fs::remove_dir_all(&partial);
        return Err(error);
    }
    Ok(Exported { rows: rows.num_rows(), files: parts.len() })
}

/// Rows by the folder they go to, without the columns that the folder's name tells.
fn partitions(
    rows: &RecordBatch,
    zoned: &RecordBatch,
    by: &[String],
) -> Result<BTreeMap<PathBuf, RecordBatch>, ExportError> {
    let schema = rows.schema();
    let columns = by.iter().map(|column| {
        schema.index_of(column).map_err(|_| ExportError::Column {
            column: column.clone(),
            known: schema.fields().iter().map(|field| field.name().clone()).collect(),
        })
    });
    let columns: Vec<usize> = columns.collect::<Result<_, _>>()?;
    let kept: Vec<usize> =
        (0..schema.fields().len()).filter(|column| !columns.contains(column)).collect();
    if kept.is_empty() {
        return Err(ExportError::NothingLeft);
    }
    let folders = folder::folders(rows, zoned, &columns)?;
    if folders.len() > PARTITIONS_MAX {
        return Err(ExportError::TooMany { folders: folders.len() });
    }
    let without = rows.project(&kept)?;
    let part = |(folder, rows): (PathBuf, Vec<u32>)| {
        Ok((folder, take_record_batch(&without, &UInt32Array::from(rows))?))
    };
    folders.into_iter().map(part).collect()
}

fn write_all(
    parts: &BTreeMap<PathBuf, RecordBatch>,
    folder: &Path,
    form: ExportForm,
) -> Result<(), ExportError> {
    for (part, rows) in parts {
        let folder = folder.join(part);
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        let path = folder.join(match form {
            ExportForm::Parquet => "part-0.parquet",
            ExportForm::Csv => "part-0.csv",
        });
        let file = File::create(&path).map_err(|error| failed(&path, error))?;
        write_file(rows, &file, form)?;
        file.sync_all().map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

fn write_file(rows: &RecordBatch, file: &File, form: ExportForm) -> Result<(), ExportError> {
    match form {
        ExportForm::Parquet => {
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .build();
            let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties))?;
            writer.write(rows)?;
            writer.close()?;
        }
        ExportForm::Csv => arrow::csv::Writer::new(file).write(&flat(rows)?)?,
    }
    Ok(())
}

/// Renames the finished folder into place; what stood there goes once the new one is in its place.
fn place(partial: &Path, to: &Path) -> Result<(), ExportError> {
    if !to.exists() {
        return fs::rename(partial, to).map_err(|error| failed(to, error));
    }
    if !exported(to) {
        return Err(ExportError::NotOurs { path: to.to_owned() });
    }
    let old = beside(to, "old");
    fs::rename(to, &old).map_err(|error| failed(to, error))?;
    if let Err(error) = fs::rename(partial, to) {
        // Back to what was there.
        let _ = fs::rename(&old, to);
        return Err(failed(to, error));
    }
    let removed = if old.is_dir() { fs::remove_dir_all(&old) } else { fs::remove_file(&old) };
    removed.map_err(|error| failed(&old, error))
}

/// Whether a folder holds nothing but what an export writes, so that replacing it loses no more.
fn exported(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().all(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => name.contains('=') && exported(&entry.path()),
            Ok(kind) => kind.is_file() && name.starts_with("part-"),
            Err(_) => false,
        }
    })
}

/// A hidden name in the same folder, so that a rename stays on one disk.
fn beside(to: &Path, what: &str) -> PathBuf {
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    to.with_file_name(format!(".{name}.{what}-{}", std::process::id()))
}

fn failed(path: &Path, source: io::Error) -> ExportError {
    ExportError::Write { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
