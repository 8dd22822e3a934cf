//! The store: one Delta table per [`Table`], in a folder or an object store.
//!
//! # Why
//! Delta *is* partitioned Parquet with a log that makes a commit atomic and that Spark, Trino,
//! `DuckDB`, Polars and pandas read as it stands. The Parquet files are written here, sorted and
//! with statistics; Delta's log decides which of them exist. A file that no commit names was never
//! written, as far as any reader can tell.

mod damage;
mod delta;
mod durable;
#[cfg(test)]
pub(crate) mod faulty;
mod open_file;
mod parquet_file;
mod place;
mod rewrite;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use chrono::{DateTime, NaiveDate, Utc};
use deltalake::DeltaTable;
use deltalake::kernel::Remove;
use deltalake::logstore::{LogStoreRef, StorageConfig, default_logstore};
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use url::Url;

use crate::error::IngestError;
use crate::schema::Table;

pub use delta::Clusters;

use damage::Damage;
pub(crate) use delta::{Bounds, Mark, Purpose};
pub(crate) use open_file::OpenFile;
pub(crate) use parquet_file::{Content, made_from, part_of, sum_of};
pub(crate) use rewrite::{Committed, Effect, Kept, Rewrite};

/// A store of tables. Cheap to clone; holds no open file.
#[derive(Debug, Clone)]
pub struct Store {
    url: Url,
    bucket: Arc<dyn ObjectStore>,
    path: Path,
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

/// Old days that were taken out of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// First UTC day that is left: all before it were dropped.
    pub before: NaiveDate,
    /// When they were, the last time.
    pub at: DateTime<Utc>,
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
    pub(crate) delta: DeltaTable,
}

impl TableSnapshot {
    /// The same version with some of its files only.
    pub(crate) fn keep_files(&mut self, paths: &HashSet<String>) {
        let files = std::mem::take(&mut self.files).into_iter();
        let kept = files.zip(std::mem::take(&mut self.removes));
        (self.files, self.removes) = kept.filter(|(file, _)| paths.contains(&file.path)).unzip();
    }
}

impl Store {
    /// A store at a folder or URL: a path, `file://`, `memory://` (gone with its last clone), or an
    /// object store such as `s3://bucket/folder`. Nothing is created before the first commit.
    ///
    /// # Errors
    /// [`IngestError::Setting`] for a text that is neither a path nor a URL of a known kind.
    pub fn open(place: &str) -> Result<Self, IngestError> {
        let url = place::url(place)?;
        let (bucket, path) = place::bucket(&url)?;
        Ok(Self { url, bucket, path })
    }

    /// The same store, reached through `wrap`: for tests that make calls fail.
    #[cfg(test)]
    pub(crate) fn wrapped(
        &self,
        wrap: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>,
    ) -> Self {
        Self { bucket: wrap(Arc::clone(&self.bucket)), ..self.clone() }
    }

    /// Where the store is.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The folder of a local store.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let local = self.url.scheme() == "file";
        local.then(|| self.url.to_file_path().ok())?
    }

    /// The folder of a table of a local store.
    pub(crate) fn table_folder(&self, table: Table) -> Option<PathBuf> {
        Some(self.folder()?.join(table.name()))
    }

    /// Tables that have been written, in the order of [`Table::ALL`].
    ///
    /// # Errors
    /// [`IngestError::Store`] when a log cannot be read.
    pub async fn tables(&self) -> Result<Vec<Table>, IngestError> {
        let mut found = Vec::new();
        for table in Table::ALL {
            if self.snapshot(table).await?.is_some() {
                found.push(table);
            }
        }
        Ok(found)
    }

    /// The newest version of `table`; `None` before its first commit.
    ///
    /// # Errors
    /// [`IngestError::Damaged`] when a commit of the log is torn, empty or missing, and
    /// [`IngestError::Store`] when the log cannot be read.
    pub async fn snapshot(&self, table: Table) -> Result<Option<TableSnapshot>, IngestError> {
        let log = self.log(table)?;
        let objects = log.object_store(None);
        let found = match delta::load(log).await {
            Ok(None) => return Ok(None),
            Ok(Some(delta)) => delta::snapshot(table, delta),
            Err(error) => Err(error),
        };
        let damage = match &found {
            Ok(found) => damage::empty_commit(&objects, found.version).await,
            Err(_) => damage::of_log(&objects).await,
        };
        match damage {
            Some(damage) => Err(self.damaged(table, damage)),
            None => found.map(Some).map_err(|error| self.failed("read", table, error)),
        }
    }

    /// Reads every row of a partition, or of the whole table without `date`, in file order.
    pub(crate) async fn read(
        &self,
        snapshot: &TableSnapshot,
        date: Option<NaiveDate>,
    ) -> Result<RecordBatch, IngestError> {
        let mut batches = Vec::new();
        for file in snapshot.files.iter().filter(|file| date.is_none() || file.date == date) {
            for batch in self.read_file(snapshot, file, None).await? {
                batches.push(crate::merge::conform(snapshot.table, &batch)?);
            }
        }
        Ok(concat_batches(&snapshot.table.schema(), &batches)?)
    }

    /// Reads `columns` (all without) of one file, as they are stored.
    pub(crate) async fn read_file(
        &self,
        snapshot: &TableSnapshot,
        file: &FileEntry,
        columns: Option<&[&str]>,
    ) -> Result<Vec<RecordBatch>, IngestError> {
        self.open_file(snapshot, file).await?.read(columns, None).await
    }

    /// Earliest instant that the readings of each file stand for, in milliseconds, by path; `None`
    /// where its statistics do not tell.
    pub(crate) fn begins(
        &self,
        snapshot: &TableSnapshot,
    ) -> Result<HashMap<String, Option<i64>>, IngestError> {
        let instant = snapshot.table.partitioned_by().unwrap_or_default();
        delta::begins(&snapshot.delta, instant)
            .map_err(|error| self.failed("read", snapshot.table, error))
    }

    /// Clusters that the rows of a table with such a column name.
    ///
    /// # Errors
    /// [`IngestError::Store`] where its statistics cannot be read.
    pub fn clusters(&self, snapshot: &TableSnapshot) -> Result<Clusters, IngestError> {
        delta::clusters(&snapshot.delta).map_err(|error| self.failed("read", snapshot.table, error))
    }

    /// Writes a file beside the tables, whole or not at all. Returns its URL, or its path in a
    /// local store.
    pub(crate) async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<String, IngestError> {
        let path = name.split('/').fold(self.path.clone(), |path, part| path.join(part));
        self.bucket.put(&path, bytes.into()).await.map_err(|error| IngestError::Store {
            action: "write beside",
            table: name.to_owned(),
            store: self.url.to_string(),
            source: error.into(),
        })?;
        Ok(match self.folder() {
            Some(folder) => folder.join(name).to_string_lossy().into_owned(),
            None => format!("{}{name}", self.url),
        })
    }

    /// The last segment of a log whose rows `table` has; 0 for none.
    pub(crate) async fn segment_of(
        &self,
        snapshot: &TableSnapshot,
        application: &str,
    ) -> Result<u64, IngestError> {
        let found = delta::segment_of(&snapshot.delta, application).await;
        found.map_err(|error| self.failed("read", snapshot.table, error))
    }

    /// Old days that were taken out of a table; `None` where none ever was.
    ///
    /// # Errors
    /// [`IngestError::Store`] when the log cannot be read.
    pub async fn dropped(&self, snapshot: &TableSnapshot) -> Result<Option<Dropped>, IngestError> {
        let found = delta::dropped(&snapshot.delta).await;
        let found = found.map_err(|error| self.failed("read", snapshot.table, error))?;
        Ok(found.map(|(before, at)| Dropped { before, at }))
    }

    /// Paths of the files that were replaced and are remembered, and when that was.
    pub(crate) async fn replaced(
        &self,
        snapshot: &TableSnapshot,
    ) -> Result<HashMap<String, DateTime<Utc>>, IngestError> {
        let found = delta::replaced(&snapshot.delta).await;
        found.map_err(|error| self.failed("read", snapshot.table, error))
    }

    /// What the statistics of a day's files tell of their rows, by path.
    pub(crate) fn bounds(
        &self,
        snapshot: &TableSnapshot,
        date: NaiveDate,
    ) -> Result<HashMap<String, Bounds>, IngestError> {
        let instant = snapshot.table.partitioned_by().unwrap_or_default();
        delta::bounds(&snapshot.delta, date, instant)
            .map_err(|error| self.failed("read", snapshot.table, error))
    }

    /// Objects below the folder of a table.
    pub(crate) fn objects(&self, table: Table) -> PrefixStore<Arc<dyn ObjectStore>> {
        PrefixStore::new(Arc::clone(&self.bucket), self.path.clone().join(table.name()))
    }

    fn log(&self, table: Table) -> Result<LogStoreRef, IngestError> {
        let root = self
            .url
            .join(&format!("{}/", table.name()))
            .map_err(|error| self.failed("find", table, error.into()))?;
        let objects = self.objects(table);
        let bucket = Arc::clone(&self.bucket);
        Ok(default_logstore(Arc::new(objects), bucket, &root, &StorageConfig::default()))
    }

    fn damaged(&self, table: Table, damage: Damage) -> IngestError {
        let Damage { file, reason, hint } = damage;
        let store = self.url.to_string();
        IngestError::Damaged { table: table.name().into(), store, file, reason, hint }
    }

    pub(crate) fn failed(&self, action: &'static str, table: Table, source: Cause) -> IngestError {
        IngestError::Store {
            action,
            table: table.name().into(),
            store: self.url.to_string(),
            source,
        }
    }
}

type Cause = Box<dyn std::error::Error + Send + Sync>;
