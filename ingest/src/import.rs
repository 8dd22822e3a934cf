//! One import: takes what a source reads, merges it with what the store knows, integrates time,
//! and commits each table as a whole.
//!
//! Rows wait in memory by UTC day; past [`BUFFER_BYTES`] they wait in a temporary folder. Days are
//! then taken one by one, so that memory holds one day of all GPUs, not the whole history.

mod append;
mod attempt;
mod buffer;
mod clock;
mod compaction;
mod days;
mod distress;
mod findings;
mod hung;
mod inventory;
mod merging;
mod names;
mod outcome;
mod part;
mod rejects;
mod series;
mod silence;
mod stale;
mod stays;
mod summary;
mod waiting;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, Scalar, StringArray};
use arrow::compute::{cast, is_null, kernels::zip::zip};
use arrow::datatypes::{DataType, TimestampMillisecondType};

use crate::batch::{Notice, Output, Reject};
use crate::error::IngestError;
use crate::schema::Table;
use crate::store::{Kept, Mark, Store, TableSnapshot};
use buffer::Buffer;
use clock::Clock;
pub use compaction::FILES_MAX;
pub(crate) use compaction::{Compaction, parts_within, rows_within};
pub(crate) use days::PART_ROWS;
use findings::Findings;
use merging::Merging;
pub use rejects::REJECTS_MAX;
pub(crate) use series::Series;
pub use stale::STALE_READINGS;
pub use summary::{ImportSummary, LongestGap, TableSummary};

/// Bytes of rows that wait in memory before they wait on disk.
pub const BUFFER_BYTES: usize = 384 << 20;

/// Notices that a summary tells in words.
const NOTICES_TOLD: usize = 20;

/// Settings of an import.
#[derive(Debug, Clone, Default)]
pub struct ImportSettings {
    /// Format name, for the rejects file.
    pub format: String,
    /// Cluster of rows that do not tell theirs.
    pub cluster: Option<String>,
    /// Sampling interval in seconds; the median spacing of each GPU and day without it.
    pub interval_s: Option<f64>,
    /// Tell everything and write nothing.
    pub dry_run: bool,
}

/// Called with the number of records read so far.
pub type Progress = Box<dyn Fn(u64) + Send>;

/// An import under way.
pub struct Import {
    settings: ImportSettings,
    waiting: BTreeMap<Table, Waiting>,
    rejects: Vec<Reject>,
    summary: ImportSummary,
    progress: Progress,
    nodes: HashSet<String>,
    gpus: HashSet<String>,
    jobs: HashSet<String>,
    /// Why the first of the files that could not be read was not.
    unread: Option<IngestError>,
    mark: Option<Mark>,
    part_rows: usize,
}

/// Rows of one table that wait for its commit.
#[derive(Debug)]
struct Waiting {
    buffer: Buffer,
    /// For a table of readings.
    series: Option<Series>,
    clock: Clock,
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import").field("summary", &self.summary).finish_non_exhaustive()
    }
}

impl Output for Import {
    fn rows(&mut self, table: Table, rows: RecordBatch) -> Result<(), IngestError> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let rows = self.with_cluster(table, rows)?;
        self.note_span(table, &rows)?;
        let waiting = match self.waiting.entry(table) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => new.insert(Waiting::new(table)?),
        };
        let rows = waiting.push(table, rows)?;
        self.note_names(&rows)?;
        let waiting: usize = self.waiting.values().map(|waiting| waiting.buffer.bytes()).sum();
        if waiting > BUFFER_BYTES {
            for waiting in self.waiting.values_mut() {
                waiting.buffer.spill()?;
            }
        }
        Ok(())
    }

    fn read(&mut self, rows: u64) {
        self.summary.rows_read += rows;
        (self.progress)(self.summary.rows_read);
    }

    fn reject(&mut self, reject: Reject) {
        self.summary.rows_kept_aside += 1;
        if self.rejects.len() < REJECTS_MAX {
            self.rejects.push(reject);
        }
    }

    fn notice(&mut self, notice: Notice) {
        let line = notice.line.map_or_else(String::new, |line| format!(":{line}"));
        self.told(format!("{}{line}: {}", notice.file, notice.text));
    }

    fn unread(&mut self, error: IngestError) -> Result<(), IngestError> {
        let (file, reason) = match &error {
            IngestError::Read { path, source } => (path, format!("could not be read: {source}")),
            IngestError::Format { path, format, reason, .. } => {
                (path, format!("as {format}: {reason}"))
            }
            _ => return Err(error),
        };
        let text = String::new();
        self.reject(Reject { file: file.clone(), line: None, reason, text });
        self.summary.files_unread += 1;
        self.unread.get_or_insert(error);
        Ok(())
    }

    fn nulled(&mut self, column: &'static str, values: u64) {
        if values > 0 {
            *self.summary.values_nulled.entry(column.to_owned()).or_default() += values;
        }
    }
}

impl Waiting {
    fn new(table: Table) -> Result<Self, IngestError> {
        let series = table.partitioned_by().map(|_| Series::new(table)).transpose()?;
        Ok(Self { buffer: Buffer::new(table), series, clock: Clock::default() })
    }

    /// Takes rows, and hands them back in the form in which they wait.
    fn push(&mut self, table: Table, rows: RecordBatch) -> Result<RecordBatch, IngestError> {
        let rows = match &mut self.series {
            Some(series) => waiting::narrow(table, series, &rows)?,
            None => rows,
        };
        if let Some(name) = table.partitioned_by()
            && let Some(instants) = rows.column_by_name(name)
        {
            let instants = instants.as_primitive::<TimestampMillisecondType>();
            if table.timed() {
                self.clock.watch(waiting::numbers(&rows).values(), instants.values());
            }
        }
        self.buffer.push(rows.clone())?;
        Ok(rows)
    }
}

impl Import {
    /// The same, with the mark of the log whose rows it will take.
    pub(crate) fn marked(self, mark: Mark) -> Self {
        Self { mark: Some(mark), ..self }
    }

    /// Begins an import; `progress` hears of every batch of records read.
    #[must_use]
    pub fn new(settings: ImportSettings, progress: Progress) -> Self {
        Self {
            settings,
            waiting: BTreeMap::new(),
            rejects: Vec::new(),
            summary: ImportSummary::default(),
            progress,
            mark: None,
            nodes: HashSet::new(),
            gpus: HashSet::new(),
            jobs: HashSet::new(),
            unread: None,
            part_rows: days::PART_ROWS,
        }
    }

    /// Merges and commits what was taken, one commit a table, in the order of [`Table::ALL`]; then
    /// folds the small files of days that have more than [`FILES_MAX`]. Where that fails, they stay,
    /// and a notice says so.
    ///
    /// # Errors
    /// Why the first file could not be read, where nothing at all was read; then
    /// [`IngestError::Store`]; tables committed before the failure stay, the failed one and those
    /// after it are untouched. Running the same import again completes it.
    pub async fn finish(mut self, store: &Store) -> Result<ImportSummary, IngestError> {
        if let Some(error) = self.unread.take_if(|_| self.waiting.is_empty()) {
            return Err(error);
        }
        let mut findings = Findings::begin(store, &self.waiting).await?;
        let mut crowded = Vec::new();
        for table in Table::ALL {
            if let Some(rows) = findings.rows(table)? {
                self.rows(table, rows)?;
            }
            if let Some(mut waiting) = self.waiting.remove(&table) {
                waiting.buffer.settle()?;
                self.note_series(table, &waiting)?;
                let merging = self.merging(store, table, &findings);
                let (outcome, version) = merging.settle(&mut waiting).await?;
                let room = REJECTS_MAX.saturating_sub(self.rejects.len());
                self.rejects.extend(outcome.stale.iter().take(room).cloned());
                self.summary.absorb(table, &outcome, version);
                // A collector compacts at its own times.
                if self.mark.is_none() {
                    crowded.extend(outcome.crowded.iter().map(|date| (table, *date)));
                }
                findings.take(table, outcome, &waiting)?;
            }
        }
        self.summary.sum_up();
        self.summary.nodes = self.nodes.len() as u64;
        self.summary.gpus = self.gpus.len() as u64;
        self.summary.jobs = self.jobs.len() as u64;
        self.summary.dry_run = self.settings.dry_run;
        if !self.settings.dry_run {
            self.summary.rejects_file =
                rejects::write(store, &self.settings.format, &self.rejects).await?;
        }
        for (table, date) in crowded {
            if let Err(error) =
                (Compaction { store, table, date, part_rows: PART_ROWS }).fold().await
            {
                self.told(format!(
                    "the small files of {date} of `{table}` stay as they are: {error}"
                ));
            }
        }
        self.summary.first_rejects = self.rejects.into_iter().take(5).collect();
        Ok(self.summary)
    }

    /// Merges in memory with the versions in `bases`, and writes nothing.
    pub(crate) async fn keep(
        mut self,
        store: &Store,
        bases: &BTreeMap<Table, TableSnapshot>,
    ) -> Result<BTreeMap<Table, Kept>, IngestError> {
        let mut kept = BTreeMap::new();
        let findings = Findings::default();
        for (table, mut waiting) in std::mem::take(&mut self.waiting) {
            waiting.buffer.settle()?;
            let merged =
                self.merging(store, table, &findings).keep(&mut waiting, bases.get(&table)).await?;
            kept.insert(table, merged);
        }
        Ok(kept)
    }

    fn merging<'a>(
        &'a self,
        store: &'a Store,
        table: Table,
        findings: &'a Findings,
    ) -> Merging<'a> {
        let (settings, mark, part_rows) = (&self.settings, self.mark.as_ref(), self.part_rows);
        Merging { store, table, settings, findings, mark, part_rows }
    }

    /// Fills the cluster that the option names where the rows do not tell one.
    fn with_cluster(&self, table: Table, rows: RecordBatch) -> Result<RecordBatch, IngestError> {
        let Some(cluster) = self.settings.cluster.as_deref() else { return Ok(rows) };
        let told = rows.column_by_name("cluster");
        if told.is_some_and(|told| told.null_count() == 0)
            || table.schema().column_with_name("cluster").is_none()
        {
            return Ok(rows);
        }
        let filled: ArrayRef = match told {
            Some(told) => {
                let name = Scalar::new(StringArray::from(vec![cluster]));
                let told = cast(told, &DataType::Utf8)?;
                zip(&is_null(&told)?, &name, &told)?
            }
            None => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(
                cluster,
                rows.num_rows(),
            ))),
        };
        let schema = rows.schema();
        let others = schema.fields().iter().zip(rows.columns());
        let others = others.filter(|(field, _)| field.name() != "cluster");
        let mut columns: Vec<(String, ArrayRef)> =
            others.map(|(field, column)| (field.name().clone(), Arc::clone(column))).collect();
        columns.push(("cluster".into(), filled));
        Ok(RecordBatch::try_from_iter(columns)?)
    }

    fn told(&mut self, text: String) {
        self.summary.notices += 1;
        if self.summary.notice_texts.len() < NOTICES_TOLD {
            self.summary.notice_texts.push(text);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
