//! A Parquet file of which columns are decoded one by one, as they are needed.

use arrow::array::RecordBatch;
use bytes::Bytes;
use object_store::{ObjectStoreExt, path::Path};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};

use super::{Cause, FileEntry, Store, TableSnapshot, damage};
use crate::error::IngestError;

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 65_536;

/// The bytes of one file of a table, as they are stored.
#[derive(Debug)]
pub(crate) struct OpenFile<'a> {
    store: &'a Store,
    snapshot: &'a TableSnapshot,
    /// The file.
    pub(crate) entry: &'a FileEntry,
    bytes: Bytes,
    metadata: ArrowReaderMetadata,
}

impl Store {
    /// Fetches one file.
    pub(crate) async fn open_file<'a>(
        &'a self,
        snapshot: &'a TableSnapshot,
        entry: &'a FileEntry,
    ) -> Result<OpenFile<'a>, IngestError> {
        let opened = async {
            let path = Path::from(entry.path.as_str());
            let bytes = snapshot.objects.get(&path).await?.bytes().await?;
            let metadata = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::new())?;
            Ok::<_, Cause>((bytes, metadata))
        };
        match opened.await {
            Ok((bytes, metadata)) => Ok(OpenFile { store: self, snapshot, entry, bytes, metadata }),
            Err(cause) => Err(unread(self, snapshot, entry, cause).await),
        }
    }
}

impl OpenFile<'_> {
    /// Decodes `columns` (all without) of the selected rows (all without).
    pub(crate) async fn read(
        &self,
        columns: Option<&[&str]>,
        rows: Option<&RowSelection>,
    ) -> Result<Vec<RecordBatch>, IngestError> {
        match self.decode(columns, rows) {
            Ok(batches) => Ok(batches),
            Err(cause) => Err(unread(self.store, self.snapshot, self.entry, cause).await),
        }
    }

    fn decode(
        &self,
        columns: Option<&[&str]>,
        rows: Option<&RowSelection>,
    ) -> Result<Vec<RecordBatch>, Cause> {
        let (bytes, metadata) = (self.bytes.clone(), self.metadata.clone());
        let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, metadata)
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
        Ok(reader.build()?.collect::<Result<_, _>>()?)
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
