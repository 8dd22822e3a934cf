//! The store: one Delta table per [`Table`], in a folder or an object store.
//!
//! # Why
//! Delta *is* partitioned Parquet with a log that makes a commit atomic and that Spark, Trino,
//! `DuckDB`, Polars and pandas read as it stands. The Parquet files are written here, sorted and
//! with statistics; Delta's log decides which of them exist. A file that no commit names was never
//! written, as far as any reader can tell.

mod delta;
mod parquet_file;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use chrono::NaiveDate;
use deltalake::DeltaTable;
use deltalake::kernel::{Action, Add, Remove};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use url::Url;

use crate::error::IngestError;
use crate::schema::Table;

/// A store of tables. Cheap to clone; holds no open file.
#[derive(Debug, Clone)]
pub struct Store {
    url: Url,
}

/// One Parquet file of a table's version.
#[derive(Debug, Clone)]
pub struct FileEntry {
    /// Path below the table's root.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// UTC day of its rows, for a partitioned table.
    pub date: Option<NaiveDate>,
    /// Rows.
    pub rows: Option<u64>,
}

/// A table as of one version.
#[derive(Debug, Clone)]
pub struct TableSnapshot {
    /// Table.
    pub table: Table,
    /// Version of the Delta log.
    pub version: u64,
    /// Where the paths of the files begin.
    pub root: Url,
    /// Files of this version, by path.
    pub files: Vec<FileEntry>,
    /// Store in which the paths are found.
    pub objects: Arc<dyn ObjectStore>,
    /// Store in which the paths of whole URLs below `root` are found.
    pub bucket: Arc<dyn ObjectStore>,
    pub(crate) removes: Vec<Remove>,
}

/// New content of one partition (or of a whole unpartitioned table).
#[derive(Debug)]
pub(crate) struct Replacement {
    pub(crate) date: Option<NaiveDate>,
    pub(crate) rows: RecordBatch,
}

impl Store {
    /// A store at a folder or URL. Nothing is created before the first commit.
    ///
    /// # Errors
    /// [`IngestError::Setting`] for a text that is neither a path nor a URL.
    pub fn open(place: &str) -> Result<Self, IngestError> {
        let bad = |reason: String| IngestError::Setting {
            what: "--store".into(),
            value: place.to_owned(),
            reason,
        };
        if place.contains("://") {
            let text = format!("{}/", place.trim_end_matches('/'));
            return Url::parse(&text).map(|url| Self { url }).map_err(|e| bad(e.to_string()));
        }
        let path = std::path::absolute(place).map_err(|e| bad(e.to_string()))?;
        let url = Url::from_directory_path(&path)
            .map_err(|()| bad("not a path that a URL can hold".into()))?;
        Ok(Self { url })
    }

    /// Where the store is.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The folder of a local store.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        self.url.to_file_path().ok()
    }

    /// The newest version of `table`; `None` before its first commit.
    ///
    /// # Errors
    /// [`IngestError::Store`] when the log cannot be read.
    pub async fn snapshot(&self, table: Table) -> Result<Option<TableSnapshot>, IngestError> {
        match self.load(table).await? {
            Some(delta) => {
                delta::snapshot(table, &delta).map(Some).map_err(|e| self.failed("read", table, e))
            }
            None => Ok(None),
        }
    }

    /// Reads every row of a partition, or of the whole table without `date`, in file order.
    pub(crate) async fn read(
        &self,
        snapshot: &TableSnapshot,
        date: Option<NaiveDate>,
    ) -> Result<RecordBatch, IngestError> {
        let table = snapshot.table;
        let mut batches = Vec::new();
        for file in snapshot.files.iter().filter(|file| date.is_none() || file.date == date) {
            let path =
                Path::from_url_path(&file.path).map_err(|e| self.failed("read", table, e))?;
            let bytes = async { snapshot.objects.get(&path).await?.bytes().await };
            let bytes = bytes.await.map_err(|e| self.failed("read", table, e))?;
            let read: Vec<RecordBatch> = ParquetRecordBatchReaderBuilder::try_new(bytes)
                .and_then(|builder| builder.with_batch_size(65_536).build())
                .map_err(|e| self.failed("read", table, e))?
                .collect::<Result<_, _>>()?;
            for batch in read {
                batches.push(crate::merge::conform(table, &batch)?);
            }
        }
        Ok(concat_batches(&table.schema(), &batches)?)
    }

    /// Replaces whole partitions in one commit: all of them or none. Returns the new version.
    pub(crate) async fn replace(
        &self,
        table: Table,
        base: Option<&TableSnapshot>,
        replacements: Vec<Replacement>,
    ) -> Result<u64, IngestError> {
        let delta = match self.load(table).await? {
            Some(delta) => delta,
            None => delta::create(table, &self.table_url(table)?)
                .await
                .map_err(|e| self.failed("create", table, e))?,
        };
        let objects = delta.log_store().object_store(None);
        let mut actions = Vec::new();
        let outcome = async {
            for replacement in replacements {
                let date = replacement.date;
                if let Some(base) = base {
                    let gone = base.files.iter().zip(&base.removes);
                    let gone = gone.filter(|(file, _)| file.date == date);
                    actions.extend(gone.map(|(_, remove)| Action::Remove(remove.clone())));
                }
                let add: Add = parquet_file::write(table, &objects, replacement).await?;
                actions.push(Action::Add(add));
            }
            delta::commit(&delta, actions, base.map(|base| base.version)).await
        }
        .await;
        // What was written stays, whatever the commit says: a file is named by its content, so
        // another writer's version may name the very same one, and a commit whose answer was lost
        // may have succeeded. A file that no version names is invisible, only in the way.
        outcome.map_err(|source| IngestError::Store {
            action: "commit to",
            table: table.name().into(),
            store: self.url.to_string(),
            source,
        })
    }

    async fn load(&self, table: Table) -> Result<Option<DeltaTable>, IngestError> {
        if let Some(folder) = self.folder()
            && !folder.join(table.name()).join("_delta_log").is_dir()
        {
            return Ok(None);
        }
        delta::load(&self.table_url(table)?).await.map_err(|e| self.failed("open", table, e))
    }

    fn table_url(&self, table: Table) -> Result<Url, IngestError> {
        self.url
            .join(&format!("{}/", table.name()))
            .map_err(|error| self.failed("find", table, error))
    }

    fn failed(
        &self,
        action: &'static str,
        table: Table,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> IngestError {
        IngestError::Store {
            action,
            table: table.name().into(),
            store: self.url.to_string(),
            source: source.into(),
        }
    }
}
