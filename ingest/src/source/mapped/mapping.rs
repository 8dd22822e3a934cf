//! The mapping file: which source column becomes which of ours, in which unit.

use std::collections::BTreeMap;

use chrono_tz::Tz;
use serde::Deserialize;

use crate::error::IngestError;
use crate::schema::Table;
use crate::source::instant::Ambiguous;

/// Format of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    /// Text with delimiters.
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// A mapping as written in TOML.
///
/// # Example
/// ```
/// use loadline_ingest::source::mapped::Mapping;
///
/// let mapping = Mapping::parse(
///     "philly.toml",
///     r#"
///     table = "jobs"
///     zone = "America/Los_Angeles"
///     [columns]
///     job_id = { row = true, prefix = "philly-" }
///     submitted_at = "timestamp"
///     started_at = { same_as = "submitted_at" }
///     ended_at = { start = "started_at", plus = "duration", unit = "s" }
///     [constants]
///     cluster = "philly"
///     "#,
/// )?;
/// assert_eq!(mapping.table.as_deref(), Some("jobs"));
/// # Ok::<(), loadline_ingest::IngestError>(())
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mapping {
    /// Table that the rows belong to; that of the command without one.
    pub table: Option<String>,
    /// Format of the files; told from their first bytes without one.
    pub format: Option<FileFormat>,
    /// Delimiter of CSV; told from the header without one.
    pub delimiter: Option<char>,
    /// Column names of a CSV without header.
    pub header: Vec<String>,
    /// Zone of times without offset.
    pub zone: Option<String>,
    /// What a local time that exists twice means; without it the order of the rows says so where
    /// they are readings, and the earlier instant is taken where they are not.
    pub ambiguous: Option<Ambiguous>,
    /// Take columns that already have our names, beside those that are mapped. So it is in any
    /// case where nothing is mapped.
    pub rest: bool,
    /// Our column (or `labels.KEY`, quoted) and where it comes from.
    pub columns: BTreeMap<String, Source>,
    /// Our column and the one value it has in all rows.
    pub constants: BTreeMap<String, toml::Value>,
    /// Sets of files that each hold some of the columns, joined on the table's key.
    pub files: Vec<FileGroup>,
}

/// Files that hold some of the columns.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileGroup {
    /// Glob that the file's name matches.
    #[serde(rename = "match")]
    pub pattern: String,
    /// Columns that only these files have.
    pub columns: BTreeMap<String, Source>,
}

/// Where a column comes from: the name of a source column, or more.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Source {
    /// Source column, taken as it is.
    Name(String),
    /// Source column with unit, or something computed.
    Spec(Box<Spec>),
}

/// One of `from`, `row`, `file_stem`, `same_as`, `start` with `plus`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spec {
    /// Source column.
    pub from: Option<String>,
    /// Unit in the source, e.g. `percent`, `MiB`, `ms`; our own without one.
    pub unit: Option<String>,
    /// Factor in place of a unit.
    pub scale: Option<f64>,
    /// Format of times, with chrono's `strftime` letters.
    pub format: Option<String>,
    /// Values that have another name with us.
    pub rename: BTreeMap<String, String>,
    /// The number of the row, counted over all files from 1.
    pub row: bool,
    /// Text before the row number.
    pub prefix: String,
    /// Digits of the row number, filled up with zeros.
    pub width: Option<usize>,
    /// The file's name up to its first dot.
    pub file_stem: bool,
    /// Another of our columns.
    pub same_as: Option<String>,
    /// An instant of ours, to which the source column `plus` is added.
    pub start: Option<String>,
    /// Source column with elapsed time, in `unit` (seconds without one).
    pub plus: Option<String>,
}

impl Source {
    /// The source as a spec.
    pub(crate) fn spec(&self) -> Spec {
        match self {
            Self::Name(name) => Spec { from: Some(name.clone()), ..Spec::default() },
            Self::Spec(spec) => (**spec).clone(),
        }
    }
}

impl Mapping {
    /// Reads the mapping file `name` with the content `text`.
    ///
    /// # Errors
    /// [`IngestError::Setting`] where the text is no mapping, an unknown zone is named, or a
    /// column's origin is not clear.
    pub fn parse(name: &str, text: &str) -> Result<Self, IngestError> {
        let mapping: Self = toml::from_str(text).map_err(|error| {
            setting("mapping", name, &error.to_string().trim().replace('\n', " "))
        })?;
        mapping.timezone()?;
        let groups = mapping.files.iter().map(|group| &group.columns);
        for (column, source) in groups.chain([&mapping.columns]).flatten() {
            check(column, &source.spec())?;
        }
        Ok(mapping)
    }

    /// The zone of times without offset, if one is named.
    pub(crate) fn timezone(&self) -> Result<Option<Tz>, IngestError> {
        let Some(name) = &self.zone else { return Ok(None) };
        let zone = name.parse().map_err(|_| {
            setting("zone", name, "not in the IANA list; for example `Asia/Shanghai` or `UTC`")
        })?;
        Ok(Some(zone))
    }

    /// Checks that the mapping is one for `table`.
    pub(crate) fn check_table(&self, table: Table) -> Result<(), IngestError> {
        let Some(name) = &self.table else { return Ok(()) };
        let named: Table =
            name.parse().map_err(|reason: String| setting("table", name, &reason))?;
        if named == table {
            return Ok(());
        }
        Err(setting("mapping for table", name, &format!("`{table}` is to be imported")))
    }
}

fn check(column: &str, spec: &Spec) -> Result<(), IngestError> {
    let origins = [
        spec.from.is_some(),
        spec.row,
        spec.file_stem,
        spec.same_as.is_some(),
        spec.start.is_some() && spec.plus.is_some(),
    ];
    if spec.width.is_some_and(|width| width > 64) {
        return Err(setting("width of column", column, "at most 64 digits"));
    }
    if origins.iter().filter(|there| **there).count() == 1
        && spec.start.is_some() == spec.plus.is_some()
    {
        return Ok(());
    }
    let reason = "needs exactly one of `from`, `row`, `file_stem`, `same_as`, `start` with `plus`";
    Err(setting("column", column, reason))
}

pub(crate) fn setting(what: &str, value: &str, reason: &str) -> IngestError {
    IngestError::Setting {
        what: what.to_owned(),
        value: value.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_in_a_mapping_are_told() {
        // Breaks when a typo silently leaves a column NULL.
        let told = |text: &str| Mapping::parse("m.toml", text).unwrap_err().to_string();
        assert!(told("tabel = \"jobs\"").contains("tabel"));
        assert!(told("zone = \"Mars/Base\"").contains("IANA"));
        assert!(told("[columns]\njob_id = { prefix = \"x\" }").contains("exactly one of"));
        assert!(told("[columns]\nended_at = { start = \"started_at\" }").contains("`plus`"));
        assert!(told("[columns]\njob_id = { row = true, width = 100000000 }").contains("64"));
        let jobs = Mapping::parse("m.toml", "table = \"jobs\"").unwrap();
        assert!(jobs.check_table(Table::Samples).is_err());
        assert!(jobs.check_table(Table::Jobs).is_ok());
    }
}
