//! One import: takes what a source reads, merges it with what the store knows, integrates time,
//! and commits each table as a whole.
//!
//! Rows wait in memory by UTC day; past [`BUFFER_BYTES`] they wait in a temporary folder. Days are
//! then taken one by one, so that memory holds one day of all GPUs, not the whole history.

mod buffer;
mod rejects;
mod summary;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::TimestampMillisecondType;
use chrono::{DateTime, NaiveDate, Utc};

use crate::batch::{Notice, Output, Reject};
use crate::error::IngestError;
use crate::merge::{Merged, merge};
use crate::period::{Tails, integrate, tails};
use crate::schema::Table;
use crate::store::{Replacement, Store, TableSnapshot};
use buffer::Buffer;
pub use rejects::REJECTS_MAX;
pub use summary::{ImportSummary, LongestGap, TableSummary};

/// Bytes of rows that wait in memory before they wait on disk.
pub const BUFFER_BYTES: usize = 384 << 20;

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
    buffers: BTreeMap<Table, Buffer>,
    rejects: Vec<Reject>,
    summary: ImportSummary,
    progress: Progress,
    nodes: HashSet<String>,
    gpus: HashSet<String>,
    jobs: HashSet<String>,
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
        self.note_names(&rows);
        self.buffers.entry(table).or_insert_with(|| Buffer::new(table)).push(rows)?;
        let waiting: usize = self.buffers.values().map(Buffer::bytes).sum();
        if waiting > BUFFER_BYTES {
            for buffer in self.buffers.values_mut() {
                buffer.spill()?;
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
        self.summary.notices += 1;
        if self.summary.notice_texts.len() < 20 {
            let line = notice.line.map_or_else(String::new, |line| format!(":{line}"));
            self.summary.notice_texts.push(format!("{}{line}: {}", notice.file, notice.text));
        }
    }

    fn nulled(&mut self, column: &'static str, values: u64) {
        if values > 0 {
            *self.summary.values_nulled.entry(column.to_owned()).or_default() += values;
        }
    }
}

impl Import {
    /// Begins an import; `progress` hears of every batch of records read.
    #[must_use]
    pub fn new(settings: ImportSettings, progress: Progress) -> Self {
        Self {
            settings,
            buffers: BTreeMap::new(),
            rejects: Vec::new(),
            summary: ImportSummary::default(),
            progress,
            nodes: HashSet::new(),
            gpus: HashSet::new(),
            jobs: HashSet::new(),
        }
    }

    /// Merges and commits what was taken, one commit a table, inventory first.
    ///
    /// # Errors
    /// [`IngestError::Store`]; tables committed before the failure stay, the failed one and those
    /// after it are untouched. Running the same import again completes it.
    pub async fn finish(mut self, store: &Store) -> Result<ImportSummary, IngestError> {
        for table in Table::ALL {
            if let Some(buffer) = self.buffers.remove(&table) {
                let told = self.settle(store, table, buffer).await?;
                self.summary.tables.insert(table.name().to_owned(), told);
            }
        }
        self.summary.nodes = self.nodes.len() as u64;
        self.summary.gpus = self.gpus.len() as u64;
        self.summary.jobs = self.jobs.len() as u64;
        self.summary.dry_run = self.settings.dry_run;
        if !self.settings.dry_run {
            self.summary.rejects_file =
                rejects::write(store, &self.settings.format, &self.rejects)?;
        }
        self.summary.first_rejects = self.rejects.into_iter().take(5).collect();
        Ok(self.summary)
    }

    async fn settle(
        &mut self,
        store: &Store,
        table: Table,
        buffer: Buffer,
    ) -> Result<TableSummary, IngestError> {
        let base = store.snapshot(table).await?;
        let mut told = TableSummary::default();
        let mut changed = Vec::new();
        if table.partitioned_by().is_some() {
            self.settle_days(store, table, buffer, base.as_ref(), &mut told, &mut changed).await?;
        } else {
            let known = known(store, table, base.as_ref(), None).await?;
            let merged = merge(table, &known, &buffer.take(None)?)?;
            self.count(&merged, &mut told);
            if merged.rows != known {
                changed.push(Replacement { date: None, rows: merged.rows });
            }
        }
        told.rows_updated =
            if table.updates() && !changed.is_empty() { told.rows_known } else { 0 };
        told.unchanged = changed.is_empty();
        if !changed.is_empty() && !self.settings.dry_run {
            told.version = Some(store.replace(table, base.as_ref(), changed).await?);
        }
        Ok(told)
    }

    /// Takes day by day in order, so that each knows the last readings of the day before; a stored
    /// day after a changed one is looked at too, since its first readings may stand for less.
    async fn settle_days(
        &mut self,
        store: &Store,
        table: Table,
        mut buffer: Buffer,
        base: Option<&TableSnapshot>,
        told: &mut TableSummary,
        changed: &mut Vec<Replacement>,
    ) -> Result<(), IngestError> {
        buffer.settle()?;
        let stored: BTreeSet<NaiveDate> =
            base.into_iter().flat_map(|base| base.files.iter().filter_map(|f| f.date)).collect();
        let mut days = buffer.days();
        let after: Vec<NaiveDate> = days.iter().filter_map(NaiveDate::succ_opt).collect();
        days.extend(after.into_iter().filter(|day| stored.contains(day)));
        let mut last: Option<(NaiveDate, Tails)> = None;
        for day in days {
            let before = match last.take() {
                Some((date, tails)) if date.succ_opt() == Some(day) => tails,
                _ => match day.pred_opt().filter(|date| stored.contains(date)) {
                    Some(date) => {
                        let rows = known(store, table, base, Some(date)).await?;
                        tails(table, &rows)?
                    }
                    None => Tails::new(),
                },
            };
            let known = known(store, table, base, Some(day)).await?;
            let merged = merge(table, &known, &buffer.take(Some(day))?)?;
            self.count(&merged, told);
            let (rows, gaps) = integrate(table, &merged.rows, &before, self.settings.interval_s)?;
            self.summary.note_span(&span(table, &rows));
            self.summary.note_gaps(table, &rows, &gaps);
            last = Some((day, tails(table, &rows)?));
            if rows != known {
                changed.push(Replacement { date: Some(day), rows });
            }
        }
        Ok(())
    }

    fn count(&mut self, merged: &Merged, told: &mut TableSummary) {
        told.rows_added += merged.added;
        told.rows_known += merged.duplicates;
        self.summary.rows_kept += merged.added;
        self.summary.rows_duplicate += merged.duplicates;
    }

    /// Fills the cluster that the option names where the rows do not tell one.
    fn with_cluster(&self, table: Table, rows: RecordBatch) -> Result<RecordBatch, IngestError> {
        let told = rows.column_by_name("cluster").is_some_and(|c| c.null_count() < c.len());
        let Some(cluster) = self.settings.cluster.as_deref().filter(|_| !told) else {
            return Ok(rows);
        };
        let has = table.schema().column_with_name("cluster").is_some();
        if !has {
            return Ok(rows);
        }
        let name: StringArray = std::iter::repeat_n(Some(cluster), rows.num_rows()).collect();
        let mut columns: Vec<(String, Arc<dyn Array>)> = rows
            .schema()
            .fields()
            .iter()
            .zip(rows.columns())
            .filter(|(field, _)| field.name() != "cluster")
            .map(|(field, column)| (field.name().clone(), Arc::clone(column)))
            .collect();
        columns.push(("cluster".into(), Arc::new(name)));
        Ok(RecordBatch::try_from_iter(columns)?)
    }

    fn note_names(&mut self, rows: &RecordBatch) {
        for (column, names) in
            [("node", &mut self.nodes), ("gpu_uuid", &mut self.gpus), ("job_id", &mut self.jobs)]
        {
            let Some(values) = rows.column_by_name(column).and_then(|c| c.as_string_opt::<i32>())
            else {
                continue;
            };
            let mut previous = None;
            for name in values.iter().flatten() {
                if previous != Some(name) && !names.contains(name) {
                    names.insert(name.to_owned());
                }
                previous = Some(name);
            }
        }
        for column in ["submitted_at", "started_at", "ended_at"] {
            if let Some(values) = rows.column_by_name(column)
                && let Ok(values) = arrow::compute::cast(values, &crate::schema::instant())
            {
                let values = values.as_primitive::<TimestampMillisecondType>();
                self.summary.note_span(&extent(values));
            }
        }
    }
}

async fn known(
    store: &Store,
    table: Table,
    base: Option<&TableSnapshot>,
    date: Option<NaiveDate>,
) -> Result<RecordBatch, IngestError> {
    match base {
        Some(base) => store.read(base, date).await,
        None => Ok(RecordBatch::new_empty(table.schema())),
    }
}

type Span = Option<(DateTime<Utc>, DateTime<Utc>)>;

fn span(table: Table, rows: &RecordBatch) -> Span {
    let column = rows.column_by_name(table.partitioned_by()?)?;
    extent(column.as_primitive::<TimestampMillisecondType>())
}

fn extent(values: &arrow::array::TimestampMillisecondArray) -> Span {
    let (low, high) = (arrow::compute::min(values)?, arrow::compute::max(values)?);
    Some((DateTime::from_timestamp_millis(low)?, DateTime::from_timestamp_millis(high)?))
}

#[cfg(test)]
mod tests;
