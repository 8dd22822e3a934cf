//! How the columns of one file become columns of ours: worked out once a file, applied to every
//! batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, TimestampMillisecondType};
use chrono_tz::Tz;

use super::convert::{self, Faults, constant, epoch_unit, static_name, texts};
use super::mapping::{Mapping, Source, Spec, setting};
use super::unit::factor;
use crate::batch::Output;
use crate::error::IngestError;
use crate::schema::Table;
use crate::source::instant::{Ambiguous, Moments, YEARS, check_run, plausible};
use crate::source::sacct::row::labels;
use crate::source::sacct::upper_state;

mod item;

use item::{Item, kind_of, listed, position};

/// What a file gives.
pub(crate) struct Plan {
    table: Table,
    items: Vec<Item>,
    constants: Vec<(String, ArrayRef)>,
    /// Source columns that are read, rising.
    pub(crate) used: Vec<usize>,
    utc: bool,
    stem: String,
}

/// Our columns for a batch of rows, and the rows that have to go.
pub(crate) struct Made {
    pub(crate) columns: BTreeMap<String, ArrayRef>,
    pub(crate) labels: BTreeMap<String, StringArray>,
    pub(crate) faults: Faults,
}

impl Plan {
    /// Plans the reading of a file with the columns `found`.
    pub(crate) fn new(
        table: Table,
        mapping: &Mapping,
        extra: Option<&BTreeMap<String, Source>>,
        zone: Tz,
        found: &[String],
        file: &str,
    ) -> Result<Self, IngestError> {
        let mut wanted: BTreeMap<String, Spec> = BTreeMap::new();
        if mapping.rest || (mapping.columns.is_empty() && mapping.files.is_empty()) {
            wanted.extend(own_names(table, found));
        }
        for (column, source) in mapping.columns.iter().chain(extra.into_iter().flatten()) {
            wanted.insert(column.clone(), source.spec());
        }
        let mut used: Vec<usize> = Vec::new();
        for spec in wanted.values() {
            if let Some(name) = spec.from.as_ref().or(spec.plus.as_ref()) {
                used.push(position(found, name, file)?);
            }
        }
        used.sort_unstable();
        used.dedup();
        let usual = if table.timed() { Ambiguous::Order } else { Ambiguous::Earlier };
        let moments = Moments::new(zone, mapping.ambiguous.unwrap_or(usual));
        let mut items = Vec::with_capacity(wanted.len());
        for (column, spec) in wanted {
            items.push(Item::new(table, column, spec, found, &used, &moments, file)?);
        }
        // What another column is made of comes first.
        items.sort_by_key(|item| match (&item.spec.same_as, &item.spec.start) {
            (None, None) => 0,
            (Some(_), _) => 1,
            (None, Some(_)) => 2,
        });
        let constants = mapping
            .constants
            .iter()
            .map(|(column, value)| Ok((column.clone(), constant_value(table, column, value)?)))
            .collect::<Result<_, IngestError>>()?;
        let stem = stem_of(file);
        let plan = Self { table, items, constants, used, utc: zone == Tz::UTC, stem };
        plan.check_identity(found, file)?;
        Ok(plan)
    }

    /// Whether the plan makes `column`.
    pub(crate) fn makes(&self, column: &str) -> bool {
        self.items.iter().any(|item| item.column == column)
            || self.constants.iter().any(|(name, _)| name == column)
    }

    /// A row must be told from others, or the store takes all for one.
    fn check_identity(&self, found: &[String], file: &str) -> Result<(), IngestError> {
        let any_of: &[&[&str]] = match self.table {
            Table::Samples => &[&["sampled_at"], &["gpu_uuid", "gpu"]],
            Table::NodeSamples => &[&["sampled_at"], &["node"]],
            Table::GpuCounts => &[&["counted_at"]],
            Table::Jobs | Table::Allocations => &[&["job_id"]],
            Table::Gpus => &[&["gpu_uuid"]],
            Table::Nodes => &[&["node"]],
            Table::Events => &[&["event_at"], &["kind"]],
            // No file is read as what is made from others.
            Table::Gpu5m | Table::Gpu1h => &[&["bin_started_at"]],
        };
        for names in any_of {
            if !names.iter().any(|name| self.makes(name)) {
                return Err(IngestError::Format {
                    path: file.to_owned(),
                    format: self.table.name(),
                    reason: format!(
                        "nothing becomes `{}`; the file's columns are {}",
                        names.join("` or `"),
                        listed(found)
                    ),
                    hint: Some(
                        "map the columns: `--mapping FILE.toml`, as in `examples/mappings`".into(),
                    ),
                });
            }
        }
        Ok(())
    }

    /// Makes our columns from `batch`, whose first row is number `first_row` of the import.
    pub(crate) fn make(
        &mut self,
        batch: &RecordBatch,
        first_row: u64,
        out: &mut dyn Output,
    ) -> Result<Made, IngestError> {
        let mut made =
            Made { columns: BTreeMap::new(), labels: BTreeMap::new(), faults: Faults::new() };
        for (column, value) in &self.constants {
            let rows = arrow::array::UInt32Array::from(vec![0; batch.num_rows()]);
            made.columns.insert(column.clone(), arrow::compute::take(value, &rows, None)?);
        }
        for item in &mut self.items {
            let array = item.make(batch, first_row, &self.stem, self.utc, &mut made, out)?;
            match item.column.strip_prefix("labels.") {
                Some(key) => {
                    made.labels.insert(key.to_owned(), texts(&array)?);
                }
                None => {
                    made.columns.insert(item.column.clone(), array);
                }
            }
        }
        check_years(&mut made);
        self.check_order(&mut made);
        self.check_required(&mut made);
        Ok(made)
    }

    /// What was doubtful about local times since the last call.
    pub(crate) fn doubts(&mut self) -> Vec<String> {
        let told = |item: &mut Item| {
            let text = item.moments.doubts()?;
            Some(format!("`{}`: {text}", item.column))
        };
        self.items.iter_mut().filter_map(told).collect()
    }

    fn check_order(&self, made: &mut Made) {
        let (Some(starts), Some(ends)) =
            (made.columns.get("started_at"), made.columns.get("ended_at"))
        else {
            return;
        };
        let starts = starts.as_primitive::<TimestampMillisecondType>();
        let ends = ends.as_primitive::<TimestampMillisecondType>();
        for (row, (start, end)) in starts.iter().zip(ends.iter()).enumerate() {
            let (Some(start), Some(end)) = (start, end) else { continue };
            if let Err(reason) = check_run(start, end) {
                made.faults.entry(row).or_insert(reason);
            }
        }
    }

    fn check_required(&self, made: &mut Made) {
        let required = required(self.table);
        let Some(array) = made.columns.get(required).filter(|array| array.null_count() > 0) else {
            return;
        };
        for row in (0..array.len()).filter(|row| array.is_null(*row)) {
            made.faults.entry(row).or_insert_with(|| format!("it has no `{required}`"));
        }
    }
}

/// The column without which a row of `table` is none.
pub(crate) const fn required(table: Table) -> &'static str {
    match table {
        Table::Samples | Table::NodeSamples => "sampled_at",
        Table::GpuCounts => "counted_at",
        Table::Events => "event_at",
        Table::Gpu5m | Table::Gpu1h => "bin_started_at",
        Table::Jobs | Table::Allocations => "job_id",
        Table::Gpus => "gpu_uuid",
        Table::Nodes => "node",
    }
}

/// Instants that a typed file brings are held to the same years as those that are read from text.
fn check_years(made: &mut Made) {
    for (name, column) in &made.columns {
        let Some(instants) = column.as_primitive_opt::<TimestampMillisecondType>() else {
            continue;
        };
        for (row, at) in instants.iter().enumerate() {
            if at.is_some_and(|at| !plausible(at)) {
                let reason = || format!("its `{name}` is outside the years {YEARS}");
                made.faults.entry(row).or_insert_with(reason);
            }
        }
    }
}

impl Made {
    /// The labels as one column, if there are any.
    pub(crate) fn label_column(&self, rows: usize) -> Result<Option<ArrayRef>, IngestError> {
        if self.labels.is_empty() {
            return Ok(None);
        }
        let of_row = |row: usize| {
            self.labels
                .iter()
                .filter(move |(_, texts)| texts.is_valid(row))
                .map(move |(key, texts)| (key.as_str(), texts.value(row)))
        };
        labels((0..rows).map(of_row)).map(Some)
    }
}

fn own_names(table: Table, found: &[String]) -> Vec<(String, Spec)> {
    let schema = table.schema();
    let named = |field: &Arc<arrow::datatypes::Field>| {
        let name = found.iter().find(|name| name.eq_ignore_ascii_case(field.name()))?;
        let flat = !matches!(field.data_type(), DataType::Map(..));
        flat.then(|| (field.name().clone(), Spec { from: Some(name.clone()), ..Spec::default() }))
    };
    schema.fields().iter().filter_map(named).collect()
}

/// A constant as an array of one row.
fn constant_value(
    table: Table,
    column: &str,
    value: &toml::Value,
) -> Result<ArrayRef, IngestError> {
    let text = match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let kind = kind_of(table, column)?;
    let refuse = |reason: &str| setting("constant", column, reason);
    match kind {
        DataType::Utf8 => Ok(Arc::new(StringArray::from(vec![text]))),
        DataType::Timestamp(..) => {
            let millis = Moments::new(Tz::UTC, Ambiguous::Reject).parse(&text);
            let millis = millis.map_err(|reason| refuse(&reason))?;
            let millis = millis.ok_or_else(|| refuse("is no time"))?;
            let millis = constant::<TimestampMillisecondType>(millis, 1);
            Ok(Arc::new(millis.with_timezone("UTC")))
        }
        kind => {
            let number: f64 = text.parse().map_err(|_| refuse("must be a number"))?;
            let number: Float64Array = constant::<Float64Type>(number, 1);
            Ok(cast(&number, &kind)?)
        }
    }
}

/// `vc3sl` of `/data/vc3sl.csv.gz`.
fn stem_of(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.split('.').next().unwrap_or(name).to_owned()
}
