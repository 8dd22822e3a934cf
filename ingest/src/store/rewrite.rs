//! One commit in the making: new files of whole partitions, written while the next are prepared.

use std::collections::HashSet;
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::NaiveDate;
use deltalake::kernel::{Action, Add, Remove};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use tokio::task::JoinSet;

use super::parquet_file::{self, Content};
use super::{Cause, Purpose, Store, TableSnapshot, delta, durable};
use crate::error::IngestError;
use crate::schema::Table;

/// Files that are encoded at once, at most.
const FILES_AT_ONCE: usize = 4;

/// How often a compaction that rows outran is committed again.
const COMPACTION_TRIES: usize = 32;

/// Bytes of rows that are encoded at once, unless one file alone has more.
const ENCODING_BYTES: usize = 384 << 20;

/// What came of a commit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    /// The version that holds it.
    Version(u64),
    /// Another commit came first; what was written is gone. Merge with it and try again.
    Outrun,
}

/// What becomes of new content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It is written and committed.
    Commit(Purpose),
    /// It is counted.
    Count,
    /// It is kept in memory, for a reader.
    Keep,
}

/// New content that was kept in memory.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Partitions whose files it replaces.
    pub(crate) cleared: Vec<Option<NaiveDate>>,
    /// Content.
    pub(crate) contents: Vec<Content>,
}

/// New content of partitions of one table. Nothing is visible before [`Rewrite::commit`].
#[derive(Debug)]
pub(crate) struct Rewrite<'a> {
    store: &'a Store,
    table: Table,
    base: Option<&'a TableSnapshot>,
    effect: Effect,
    kept: Kept,
    removes: Vec<Remove>,
    adds: Vec<Add>,
    /// Files under way, each with the bytes of its rows.
    encoding: JoinSet<Result<(Add, usize), Cause>>,
    held_bytes: usize,
    files_at_once: usize,
    written: Arc<Mutex<Vec<Path>>>,
    partitions: usize,
}

impl<'a> Rewrite<'a> {
    pub(crate) fn new(
        store: &'a Store,
        table: Table,
        base: Option<&'a TableSnapshot>,
        effect: Effect,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            store,
            table,
            base,
            effect,
            kept: Kept::default(),
            removes: Vec::new(),
            adds: Vec::new(),
            encoding: JoinSet::new(),
            held_bytes: 0,
            files_at_once: cores.min(FILES_AT_ONCE),
            written: Arc::default(),
            partitions: 0,
        }
    }

    /// Writes each file before [`Rewrite::put`] returns: for small memory.
    pub(crate) fn one_by_one(self) -> Self {
        Self { files_at_once: 0, ..self }
    }

    /// Partitions that change.
    pub(crate) fn partitions(&self) -> usize {
        self.partitions
    }

    /// Takes the files of a partition (of the whole table without `date`) out of the next version.
    pub(crate) fn clear(&mut self, date: Option<NaiveDate>) {
        self.partitions += 1;
        self.kept.cleared.push(date);
        let Some(base) = self.base else { return };
        let gone = base.files.iter().zip(&base.removes).filter(|(file, _)| file.date == date);
        self.removes.extend(gone.map(|(_, remove)| remove.clone()));
    }

    /// Takes one file out of the next version.
    pub(crate) fn drop_file(&mut self, path: &str) {
        self.partitions += 1;
        let Some(base) = self.base else { return };
        let gone = base.files.iter().zip(&base.removes).filter(|(file, _)| file.path == path);
        self.removes.extend(gone.map(|(_, remove)| remove.clone()));
    }

    /// Adds to a partition, whose files stay.
    pub(crate) fn extend(&mut self) {
        self.partitions += 1;
    }

    /// What was kept in memory.
    pub(crate) fn into_kept(self) -> Kept {
        self.kept
    }

    /// Writes one file of a partition, in the background.
    pub(crate) async fn put(&mut self, content: Content) -> Result<(), IngestError> {
        match self.effect {
            Effect::Commit(_) => {}
            Effect::Count => return Ok(()),
            Effect::Keep => {
                self.kept.contents.push(content);
                return Ok(());
            }
        }
        let bytes = content.bytes();
        while self.encoding.len() >= self.files_at_once.max(1)
            || !self.encoding.is_empty() && self.held_bytes + bytes > ENCODING_BYTES
        {
            self.wait().await?;
        }
        self.held_bytes += bytes;
        let objects = self.store.log(self.table)?.object_store(None);
        let write = write(self.table, objects, Arc::clone(&self.written), content);
        self.encoding.spawn(async move { Ok((write.await?, bytes)) });
        // Its rows are gone before the next are read.
        if self.files_at_once == 0 { self.wait().await } else { Ok(()) }
    }

    async fn wait(&mut self) -> Result<(), IngestError> {
        let done = match self.encoding.join_next().await {
            Some(Ok(Ok((add, bytes)))) => {
                self.held_bytes -= bytes;
                self.adds.push(add);
                Ok(())
            }
            Some(Ok(Err(cause))) => Err(cause),
            Some(Err(broken)) => Err(broken.into()),
            None => Ok(()),
        };
        done.map_err(|cause| self.store.failed("write", self.table, cause))
    }

    /// Makes all of it visible in one version, or none.
    ///
    /// # Errors
    /// [`IngestError::Store`]; the files are deleted where that is possible and safe.
    pub(crate) async fn commit(mut self) -> Result<Committed, IngestError> {
        while !self.encoding.is_empty() {
            if let Err(error) = self.wait().await {
                self.abandon().await;
                return Err(error);
            }
        }
        self.adds.sort_by(|a, b| a.path.cmp(&b.path));
        let purpose = match &self.effect {
            Effect::Commit(purpose) => purpose.clone(),
            Effect::Count | Effect::Keep => Purpose::Rows(None),
        };
        if purpose == Purpose::Compaction {
            self.adds.iter_mut().for_each(|add| add.data_change = false);
            self.removes.iter_mut().for_each(|remove| remove.data_change = false);
        }
        let written: Vec<String> = self.paths().iter().map(ToString::to_string).collect();
        if let Err(cause) = self.persist(&written) {
            let error = self.store.failed("write", self.table, cause.into());
            self.abandon().await;
            return Err(error);
        }
        let (store, table) = (self.store, self.table);
        let log = store.log(table)?;
        let base = self.base.map(|base| &base.delta);
        let committed = match delta::commit(table, log, base, self.actions(), &purpose).await {
            Ok(version) => Committed::Version(version),
            Err(cause) => self.after_failure(cause, &purpose).await?,
        };
        if let (Committed::Version(version), Some(folder)) = (&committed, store.table_folder(table))
        {
            let synced = durable::sync(&folder, &[durable::commit(*version)]);
            synced.map_err(|cause| store.failed("commit to", table, cause.into()))?;
        }
        Ok(committed)
    }

    fn persist(&self, files: &[String]) -> std::io::Result<()> {
        match self.store.table_folder(self.table) {
            Some(folder) => durable::sync(&folder, files),
            None => Ok(()),
        }
    }

    fn actions(&self) -> Vec<Action> {
        let removes = self.removes.iter().cloned().map(Action::Remove);
        removes.chain(self.adds.iter().cloned().map(Action::Add)).collect()
    }

    /// An error does not say whether the commit landed: the answer of an object store can be lost,
    /// and files that a version names must stay. The log knows.
    async fn after_failure(
        self,
        mut cause: Cause,
        purpose: &Purpose,
    ) -> Result<Committed, IngestError> {
        let failed = |cause| Err(self.store.failed("commit to", self.table, cause));
        let Ok(mut now) = self.store.snapshot(self.table).await else { return failed(cause) };
        let written = self.paths();
        // Rows that came meanwhile leave a compaction as right as it was, while all that it
        // replaces is there still.
        for _ in 0..COMPACTION_TRIES {
            let Some(base) = now.as_ref().filter(|now| self.can_follow(now, purpose)) else {
                break;
            };
            let log = self.store.log(self.table)?;
            let base = Some(&base.delta);
            match delta::commit(self.table, log, base, self.actions(), purpose).await {
                Ok(version) => return Ok(Committed::Version(version)),
                Err(again) => cause = again,
            }
            let Ok(after) = self.store.snapshot(self.table).await else { return failed(cause) };
            now = after;
        }
        let named = now.as_ref().is_some_and(|now| {
            now.files.iter().any(|file| written.iter().any(|path| path.as_ref() == file.path))
        });
        let version = now.as_ref().map(|now| now.version);
        match version {
            Some(version) if named => Ok(Committed::Version(version)),
            Some(_) if version != self.base.map(|base| base.version) => {
                self.abandon().await;
                Ok(Committed::Outrun)
            }
            _ => {
                let error = self.store.failed("commit to", self.table, cause);
                self.abandon().await;
                Err(error)
            }
        }
    }

    fn can_follow(&self, now: &TableSnapshot, purpose: &Purpose) -> bool {
        let there: HashSet<&str> = now.files.iter().map(|file| file.path.as_str()).collect();
        *purpose == Purpose::Compaction
            && self.base.is_some_and(|base| base.version != now.version)
            && self.removes.iter().all(|file| there.contains(file.path.as_str()))
    }

    /// Deletes what was written, as far as possible: a file that no version names is invisible,
    /// only in the way.
    pub(crate) async fn abandon(mut self) {
        self.encoding.shutdown().await;
        let Ok(log) = self.store.log(self.table) else { return };
        let objects = log.object_store(None);
        for path in self.paths() {
            let _ = objects.delete(&path).await;
        }
    }

    fn paths(&self) -> Vec<Path> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn write(
    table: Table,
    objects: Arc<dyn ObjectStore>,
    written: Arc<Mutex<Vec<Path>>>,
    content: Content,
) -> Result<Add, Cause> {
    let encoded = tokio::task::spawn_blocking(move || parquet_file::encode(table, &content));
    let (add, bytes) = encoded.await??;
    let path = Path::from(add.path.as_str());
    written.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
    objects.put(&path, bytes.into()).await?;
    Ok(add)
}
