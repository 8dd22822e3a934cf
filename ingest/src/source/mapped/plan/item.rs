//! One column of ours, and how it is made of a column of the file.

use super::*;

/// One column of ours, and how it is made.
pub(super) struct Item {
    pub(super) column: String,
    pub(super) kind: DataType,
    pub(super) spec: Spec,
    /// Position among the used source columns.
    pub(super) source: Option<usize>,
    pub(super) scale: f64,
    pub(super) moments: Moments,
}

impl Item {
    pub(super) fn new(
        table: Table,
        column: String,
        spec: Spec,
        found: &[String],
        used: &[usize],
        moments: &Moments,
        file: &str,
    ) -> Result<Self, IngestError> {
        let kind = if column.starts_with("labels.") && table == Table::Jobs {
            DataType::Utf8
        } else {
            kind_of(table, &column)?
        };
        let is_instant = matches!(kind, DataType::Timestamp(..));
        let unit = |reason: String| setting("unit of column", &column, &reason);
        let mut moments = moments.clone();
        let mut scale = spec.scale.unwrap_or(1.0);
        if spec.plus.is_some() {
            if !is_instant {
                return Err(setting("column", &column, "only an instant has `start` and `plus`"));
            }
            scale *= factor("elapsed_s", spec.unit.as_deref().unwrap_or("s")).map_err(unit)?;
        } else if is_instant {
            let unit = epoch_unit(spec.unit.as_deref()).map_err(unit)?;
            moments = moments.reading(unit, spec.format.as_deref());
        } else if let Some(name) = &spec.unit {
            scale *= factor(&column, name).map_err(unit)?;
        }
        let source = match spec.from.as_ref().or(spec.plus.as_ref()) {
            Some(name) => used.binary_search(&position(found, name, file)?).ok(),
            None => None,
        };
        Ok(Self { column, kind, spec, source, scale, moments })
    }

    pub(super) fn make(
        &mut self,
        batch: &RecordBatch,
        first_row: u64,
        stem: &str,
        utc: bool,
        made: &mut Made,
        out: &mut dyn Output,
    ) -> Result<ArrayRef, IngestError> {
        let rows = batch.num_rows();
        if self.spec.row {
            return Ok(self.row_numbers(first_row, rows));
        }
        if self.spec.file_stem {
            let name = self.renamed(stem).to_owned();
            return Ok(Arc::new(StringArray::from_iter_values(std::iter::repeat_n(name, rows))));
        }
        if let Some(other) = self.spec.same_as.as_ref().or(self.spec.start.as_ref()) {
            let base = made.columns.get(other).cloned().ok_or_else(|| {
                setting("column", &self.column, &format!("`{other}` is no column that is mapped"))
            })?;
            return self.column_from_ours(&base, batch, out);
        }
        let array = batch.column(self.source.expect("checked when the mapping was read"));
        match &self.kind {
            DataType::Utf8 => self.text(array),
            DataType::Timestamp(..) => {
                let unit = epoch_unit(self.spec.unit.as_deref()).unwrap_or_default();
                convert::instants(array, unit, utc, &mut self.moments, &mut made.faults)
            }
            _ => self.number(array, out),
        }
    }

    fn column_from_ours(
        &self,
        base: &ArrayRef,
        batch: &RecordBatch,
        out: &mut dyn Output,
    ) -> Result<ArrayRef, IngestError> {
        let Some(at) = self.source else {
            return if base.data_type() == &self.kind {
                Ok(Arc::clone(base))
            } else {
                Ok(cast(base, &self.kind)?)
            };
        };
        if !matches!(base.data_type(), DataType::Timestamp(..)) {
            return Err(setting("column", &self.column, "`start` must name an instant"));
        }
        let kind = DataType::Float64;
        let (seconds, lost) =
            convert::measurement(batch.column(at), "elapsed_s", self.scale, None, &kind)?;
        out.nulled(static_name(&self.column), lost);
        Ok(convert::later(base, &seconds))
    }

    fn number(&self, array: &ArrayRef, out: &mut dyn Output) -> Result<ArrayRef, IngestError> {
        let unit = self.spec.unit.as_deref();
        let (array, lost) =
            convert::measurement(array, &self.column, self.scale, unit, &self.kind)?;
        if lost > 0 {
            out.nulled(static_name(&self.column), lost);
        }
        Ok(array)
    }

    fn text(&self, array: &ArrayRef) -> Result<ArrayRef, IngestError> {
        let texts = texts(array)?;
        let state = self.column == "state";
        if self.spec.rename.is_empty() && !state && self.column != "workload" {
            return Ok(Arc::new(texts));
        }
        let ours = |text: &str| {
            let text = self.renamed(text);
            match self.column.as_str() {
                "state" => upper_state(text),
                "workload" => text.to_lowercase(),
                _ => text.to_owned(),
            }
        };
        Ok(Arc::new(texts.iter().map(|text| text.map(ours)).collect::<StringArray>()))
    }

    fn renamed<'a>(&'a self, text: &'a str) -> &'a str {
        self.spec.rename.get(text).map_or(text, String::as_str)
    }

    fn row_numbers(&self, first_row: u64, rows: usize) -> ArrayRef {
        let (prefix, width) = (&self.spec.prefix, self.spec.width.unwrap_or(1));
        let names = (first_row..).take(rows).map(|row| format!("{prefix}{row:0width$}"));
        Arc::new(StringArray::from_iter_values(names))
    }
}

pub(super) fn position(found: &[String], name: &str, file: &str) -> Result<usize, IngestError> {
    found.iter().position(|column| column == name).ok_or_else(|| IngestError::Format {
        path: file.to_owned(),
        format: "mapped",
        reason: format!("it has no column `{name}`; its columns are {}", listed(found)),
        hint: Some("name the column in the mapping as it stands in the file".into()),
    })
}

pub(super) fn listed(found: &[String]) -> String {
    let more = if found.len() > 30 { ", ..." } else { "" };
    format!("`{}`{more}", found.iter().take(30).cloned().collect::<Vec<_>>().join("`, `"))
}

pub(super) fn kind_of(table: Table, column: &str) -> Result<DataType, IngestError> {
    let schema = table.schema();
    if let Ok(field) = schema.field_with_name(column)
        && !matches!(field.data_type(), DataType::Map(..))
    {
        return Ok(field.data_type().clone());
    }
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    Err(setting("column", column, &format!("`{table}` has {}", names.join(", "))))
}
