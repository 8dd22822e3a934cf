//! A Parquet file of which columns are decoded one by one, as they are needed.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::Bytes;
use object_store::{GetResultPayload, ObjectStoreExt, path::Path};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};

use super::{Cause, FileEntry, Store, TableSnapshot, damage};
use crate::error::IngestError;

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 16_384;

/// Where the bytes of a file are: on this machine's disk, from which pages are read as they are
/// needed, or fetched.
#[derive(Debug, Clone)]
enum Content {
    Disk(Arc<File>),
    Fetched(Bytes),
}

impl Length for Content {
    fn len(&self) -> u64 {
        match self {
            Self::Disk(file) => file.len(),
            Self::Fetched(bytes) => bytes.len() as u64,
        }
    }
}

impl ChunkReader for Content {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(match self {
            Self::Disk(file) => Box::new(file.get_read(start)?),
            Self::Fetched(bytes) => Box::new(bytes.get_read(start)?),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        match self {
            Self::Disk(file) => file.get_bytes(start, length),
            Self::Fetched(bytes) => bytes.get_bytes(start, length),
        }
    }
}

/// One file of a table, as it is stored.
#[derive(Debug)]
pub(crate) struct OpenFile<'a> {
    store: &'a Store,
    snapshot: &'a TableSnapshot,
    /// The file.
    pub(crate) entry: &'a FileEntry,
    content: Content,
    metadata: ArrowReaderMetadata,
}

impl Store {
    /// Opens one file; from an object store it is fetched whole.
    pub(crate) async fn open_file<'a>(
        &'a self,
        snapshot: &'a TableSnapshot,
        entry: &'a FileEntry,
    ) -> Result<OpenFile<'a>, IngestError> {
        let opened = async {
            let path = Path::from(entry.path.as_str());
            let found = snapshot.objects.get(&path).await?;
            let content = match found.payload {
                GetResultPayload::File(file, _) => Content::Disk(Arc::new(file)),
                GetResultPayload::Stream(_) => Content::Fetched(found.bytes().await?),
            };
            let metadata = ArrowReaderMetadata::load(&content, ArrowReaderOptions::new())?;
            Ok::<_, Cause>((content, metadata))
        };
        match opened.await {
            Ok((content, metadata)) => {
                Ok(OpenFile { store: self, snapshot, entry, content, metadata })
            }
            Err(cause) => Err(unread(self, snapshot, entry, cause).await),
        }
    }
}

impl OpenFile<'_> {
    /// Decodes `columns` (all without) of the selected rows (all without), whole.
    pub(crate) async fn read(
        &self,
        columns: Option<&[&str]>,
        rows: Option<&RowSelection>,
    ) -> Result<Vec<RecordBatch>, IngestError> {
        let mut batches = Vec::new();
        self.each(columns, rows, |batch| {
            batches.push(batch);
            Ok(())
        })
        .await?;
        Ok(batches)
    }

    /// The same, handed out batch by batch as it is decoded.
    pub(crate) async fn each(
        &self,
        columns: Option<&[&str]>,
        rows: Option<&RowSelection>,
        mut take: impl FnMut(RecordBatch) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let failed = match self.reader(columns, rows) {
            Ok(reader) => {
                let mut failed = None;
                for batch in reader {
                    match batch {
                        Ok(batch) => take(batch)?,
                        Err(cause) => {
                            failed = Some(Cause::from(cause));
                            break;
                        }
                    }
                }
                failed
            }
            Err(cause) => Some(cause),
        };
        match failed {
            Some(cause) => Err(unread(self.store, self.snapshot, self.entry, cause).await),
            None => Ok(()),
        }
    }

    fn reader(
        &self,
        columns: Option<&[&str]>,
        rows: Option<&RowSelection>,
    ) -> Result<ParquetRecordBatchReader, Cause> {
        let (content, metadata) = (self.content.clone(), self.metadata.clone());
        let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(content, metadata)
            .with_batch_size(BATCH_ROWS);
        if let Some(columns) = columns {
            let wanted = reader.schema().fields().iter().enumerate();
            let wanted = wanted.filter(|(_, field)| columns.contains(&field.name().as_str()));
            let wanted: Vec<usize> = wanted.map(|(position, _)| position).collect();
            let mask = ProjectionMask::roots(reader.parquet_schema(), wanted);
            reader = reader.with_projection(mask);
        }
        if let Some(rows) = rows {
            reader = reader.with_row_selection(rows.clone());
        }
        Ok(reader.build()?)
    }
}

/// Why a file could not be read: it is damaged, or the store cannot be reached.
async fn unread(
    store: &Store,
    snapshot: &TableSnapshot,
    entry: &FileEntry,
    cause: Cause,
) -> IngestError {
    let damage = damage::of_file(&snapshot.objects, entry, snapshot.version, &cause).await;
    match damage {
        Some(damage) => store.damaged(snapshot.table, damage),
        None => store.failed("read", snapshot.table, cause),
    }
}
