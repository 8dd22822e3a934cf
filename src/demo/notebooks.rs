//! The small data set that notebooks read: a Parquet file per table.

mod columns;

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};
use loadline_ingest::Table;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::{DemoError, Options, Scene};

/// Columns of one table, by name.
type Columns = Vec<(&'static str, ArrayRef)>;

/// Options of the small fleet: sixteen GPUs, two weeks, a reading every ten minutes.
pub(super) fn options() -> Options {
    Options { gpus: 16, weeks: 2, interval_s: 600, ..Options::default() }
}

/// Writes the small fleet into `dir`, which is made where it is missing: `gpus.parquet`,
/// `jobs.parquet`, `allocations.parquet`, `samples.parquet` and `node_samples.parquet`, with the
/// store's column names and types; columns that this fleet never fills are left out.
///
/// # Errors
/// A file that could not be written.
pub fn write_notebooks_data(dir: &Path) -> Result<(), DemoError> {
    fs::create_dir_all(dir).map_err(|source| DemoError::write(dir, source))?;
    let scene = Scene::new(&options())?;
    let (samples, node_samples) = columns::readings(&scene);
    write(dir, Table::Gpus, columns::gpus(&scene))?;
    write(dir, Table::Jobs, columns::jobs(&scene))?;
    write(dir, Table::Allocations, columns::allocations(&scene))?;
    write(dir, Table::Samples, samples)?;
    write(dir, Table::NodeSamples, node_samples)
}

fn write(dir: &Path, table: Table, columns: Columns) -> Result<(), DemoError> {
    let path = dir.join(format!("{table}.parquet"));
    let file = File::create(&path).map_err(|source| DemoError::write(&path, source))?;
    encode(file, table, columns).map_err(|source| DemoError::Parquet { path, source })
}

fn encode(file: File, table: Table, columns: Columns) -> Result<(), ParquetError> {
    let known = table.schema();
    let (fields, arrays): (Vec<_>, Vec<_>) = columns
        .into_iter()
        .map(|(name, array)| {
            let field = known.field_with_name(name).expect("a column of the table");
            // As in the store's own files, instants are microseconds.
            (Field::new(field.name(), array.data_type().clone(), true), array)
        })
        .unzip();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
    let zstd = Compression::ZSTD(ZstdLevel::try_new(9)?);
    let properties = WriterProperties::builder()
        .set_compression(zstd)
        .set_created_by("loadline".to_owned())
        .build();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties))?;
    writer.write(&rows)?;
    writer.close().map(|_| ())
}
