//! Any CSV or Parquet as rows of any table, with a small TOML mapping, or none where the columns
//! already have our names.
//!
//! A file is read in batches of its own columns ([`file`]); a plan worked out once a file
//! ([`plan`]) turns them into ours, a column at a time. Parquet columns that are already as we keep
//! them pass through untouched. Rows that cannot be kept go aside with their line.

pub(crate) mod convert;
mod file;
mod join;
mod mapping;
pub(crate) mod plan;
pub(crate) mod unit;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;
use arrow::util::display::array_value_to_string;
use chrono_tz::Tz;

use crate::batch::{Notice, Output, Reject};
use crate::error::IngestError;
use crate::schema::Table;
use crate::source::input::Input;
use crate::workload::{JobFacts, WorkloadRules};
use file::{Opened, Rows};
use mapping::setting;
use plan::{Made, Plan};

pub use mapping::{FileFormat, FileGroup, Mapping, Source, Spec};

/// How to read mapped files.
#[derive(Debug, Clone, Default)]
pub struct MappedOptions {
    /// The mapping; columns are taken by name without one.
    pub mapping: Mapping,
    /// Zone of times without offset, where the mapping names none; else UTC.
    pub zone: Option<Tz>,
    /// Rules that give jobs their workload.
    pub rules: WorkloadRules,
}

/// Reads `inputs` into rows of `table`.
///
/// # Errors
/// [`IngestError::Setting`] where the mapping does not fit the table, [`IngestError::Format`]
/// where a file lacks a mapped column, [`IngestError::Read`] where one cannot be read; whatever
/// `out` answers.
pub fn read(
    inputs: &[Input],
    table: Table,
    options: &MappedOptions,
    out: &mut dyn Output,
) -> Result<(), IngestError> {
    let mapping = &options.mapping;
    mapping.check_table(table)?;
    let zone = mapping.timezone()?.or(options.zone).unwrap_or(Tz::UTC);
    let mut reader = Reader { table, options, zone, rows: 0 };
    if mapping.files.is_empty() {
        for input in inputs {
            let mut keep = |rows, out: &mut dyn Output| out.rows(table, rows);
            if let Err(error) = reader.read_file(input, None, out, &mut keep) {
                out.unread(error)?;
            }
        }
        return Ok(());
    }
    let mut groups: Vec<Vec<RecordBatch>> = mapping.files.iter().map(|_| Vec::new()).collect();
    for input in inputs {
        let group = group_of(mapping, input)?;
        let mut keep = |rows, _: &mut dyn Output| {
            groups[group].push(rows);
            Ok(())
        };
        if let Err(error) = reader.read_file(input, Some(group), out, &mut keep) {
            out.unread(error)?;
        }
    }
    let rows_of = |group: &Vec<RecordBatch>| group.iter().map(RecordBatch::num_rows).sum::<usize>();
    let parts = groups.iter().filter(|group| rows_of(group) > 0).count();
    let read: usize = groups.iter().map(rows_of).sum();
    let Some(rows) = join::join(table, groups)? else { return Ok(()) };
    if parts > 1 {
        let (files, joined) = (inputs.len(), rows.num_rows());
        let text = format!("{read} rows of {files} files were joined into {joined}");
        let file = format!("{} and {} more", inputs[0].name(), files - 1);
        out.notice(Notice { file, line: None, text });
    }
    out.rows(table, rows)
}

/// The group of files that `input` belongs to.
fn group_of(mapping: &Mapping, input: &Input) -> Result<usize, IngestError> {
    let name = input.name().rsplit('/').next().unwrap_or(input.name());
    for (at, group) in mapping.files.iter().enumerate() {
        let pattern = glob::Pattern::new(&group.pattern)
            .map_err(|error| setting("files.match", &group.pattern, error.msg))?;
        if pattern.matches(name) {
            return Ok(at);
        }
    }
    let patterns: Vec<&str> = mapping.files.iter().map(|group| group.pattern.as_str()).collect();
    let reason = format!("it matches none of the mapping's files: `{}`", patterns.join("`, `"));
    Err(setting("file", input.name(), &reason))
}

struct Reader<'o> {
    table: Table,
    options: &'o MappedOptions,
    zone: Tz,
    rows: u64,
}

/// Takes rows that are ready.
type Take<'a> = &'a mut dyn FnMut(RecordBatch, &mut dyn Output) -> Result<(), IngestError>;

impl Reader<'_> {
    fn read_file(
        &mut self,
        input: &Input,
        group: Option<usize>,
        out: &mut dyn Output,
        take: Take<'_>,
    ) -> Result<(), IngestError> {
        let mapping = &self.options.mapping;
        let opened = Opened::open(input, mapping)?;
        let extra = group.map(|at| &mapping.files[at].columns);
        let columns = opened.columns().to_vec();
        let mut plan = Plan::new(self.table, mapping, extra, self.zone, &columns, input.name())?;
        let mut reading = opened.rows(input, &plan.used)?;
        while let Some(rows) = reading.next_rows(input, out)? {
            let count = rows.batch.num_rows();
            if count == 0 {
                continue;
            }
            let made = plan.make(&rows.batch, self.rows + 1, out)?;
            self.rows += count as u64;
            let ready = self.finish(input, &rows, made, out)?;
            if ready.num_rows() > 0 {
                take(ready, out)?;
            }
        }
        for text in plan.doubts() {
            out.notice(Notice { file: input.name().to_owned(), line: None, text });
        }
        Ok(())
    }

    /// Adds what follows from other columns and drops the rows that go aside.
    fn finish(
        &self,
        input: &Input,
        rows: &Rows,
        mut made: Made,
        out: &mut dyn Output,
    ) -> Result<RecordBatch, IngestError> {
        let count = rows.batch.num_rows();
        if self.table == Table::Jobs {
            self.complete_jobs(&mut made, count)?;
        }
        let columns = made.columns.iter().map(|(name, array)| (name, Arc::clone(array), true));
        let ready = RecordBatch::try_from_iter_with_nullable(columns)?;
        if made.faults.is_empty() {
            return Ok(ready);
        }
        for (row, reason) in &made.faults {
            out.reject(Reject {
                file: input.name().to_owned(),
                line: rows.lines.get(*row).copied(),
                reason: reason.clone(),
                text: row_text(&rows.batch, *row),
            });
        }
        let kept: BooleanArray =
            (0..count).map(|row| Some(!made.faults.contains_key(&row))).collect();
        Ok(filter_record_batch(&ready, &kept)?)
    }

    fn complete_jobs(&self, made: &mut Made, rows: usize) -> Result<(), IngestError> {
        let attempts = || Arc::new(Int32Array::from_value(0, rows)) as ArrayRef;
        made.columns.entry("attempt".into()).or_insert_with(attempts);
        let workload = self.workloads(made, rows);
        made.columns.insert("workload".into(), workload);
        if let Some(labels) = made.label_column(rows)? {
            made.columns.insert("labels".into(), labels);
        }
        Ok(())
    }

    /// The workload that is mapped, else that of the rules.
    fn workloads(&self, made: &Made, rows: usize) -> ArrayRef {
        let texts = |name: &str| made.columns.get(name).map(|array| array.as_string::<i32>());
        let mapped = texts("workload");
        let (partition, name, user) = (texts("partition"), texts("name"), texts("user"));
        let (team, project) = (texts("team"), texts("project"));
        let at = |texts: Option<&'_ StringArray>, row: usize| -> Option<String> {
            texts.filter(|texts| texts.is_valid(row)).map(|texts| texts.value(row).to_owned())
        };
        let of_row = |row: usize| -> String {
            if let Some(workload) = at(mapped, row) {
                return workload;
            }
            let labels: Vec<(&str, &str)> = made
                .labels
                .iter()
                .filter(|(_, texts)| texts.is_valid(row))
                .map(|(key, texts)| (key.as_str(), texts.value(row)))
                .collect();
            let [partition, name, user, team, project] =
                [partition, name, user, team, project].map(|texts| at(texts, row));
            let facts = JobFacts {
                partition: partition.as_deref(),
                name: name.as_deref(),
                user: user.as_deref(),
                team: team.as_deref(),
                project: project.as_deref(),
                labels: &labels,
            };
            self.options.rules.workload(&facts).to_owned()
        };
        Arc::new(StringArray::from_iter_values((0..rows).map(of_row)))
    }
}

/// The row as text, for the rejects file.
fn row_text(batch: &RecordBatch, row: usize) -> String {
    let cell = |array: &ArrayRef| array_value_to_string(array, row).unwrap_or_default();
    let text = batch.columns().iter().map(cell).collect::<Vec<_>>().join(",");
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests;
