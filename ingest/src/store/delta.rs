//! Delta's log: create a table, load it, list its files, commit a change.

use chrono::NaiveDate;
use deltalake::kernel::transaction::CommitBuilder;
use deltalake::kernel::{Action, DataType, MapType, PrimitiveType, Remove, StructField};
use deltalake::operations::create::CreateBuilder;
use deltalake::protocol::{DeltaOperation, SaveMode};
use deltalake::{DeltaTable, DeltaTableBuilder, DeltaTableError};
use url::Url;

use super::{FileEntry, TableSnapshot};
use crate::schema::Table;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Column by which a table is partitioned: the UTC day.
pub(super) const DATE: &str = "date";

pub(super) async fn load(url: &Url) -> Result<Option<DeltaTable>, DeltaTableError> {
    match DeltaTableBuilder::from_url(url.clone())?.load().await {
        Ok(table) => Ok(Some(table)),
        Err(DeltaTableError::NotATable(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) async fn create(table: Table, url: &Url) -> Result<DeltaTable, Cause> {
    if let Ok(folder) = url.to_file_path() {
        std::fs::create_dir_all(folder)?;
    }
    let mut columns: Vec<StructField> = table
        .schema()
        .fields()
        .iter()
        .map(|field| StructField::nullable(field.name(), delta_type(field.data_type())))
        .collect();
    let mut builder = CreateBuilder::new()
        .with_location(url.as_str())
        .with_table_name(table.name())
        .with_save_mode(SaveMode::Ignore);
    if table.partitioned_by().is_some() {
        columns.push(StructField::nullable(DATE, DataType::Primitive(PrimitiveType::Date)));
        builder = builder.with_partition_columns([DATE]);
    }
    Ok(builder.with_columns(columns).await?)
}

fn delta_type(kind: &arrow::datatypes::DataType) -> DataType {
    use arrow::datatypes::DataType as Arrow;
    let primitive = match kind {
        Arrow::Int16 => PrimitiveType::Short,
        Arrow::Int32 => PrimitiveType::Integer,
        Arrow::Int64 => PrimitiveType::Long,
        Arrow::Float64 => PrimitiveType::Double,
        Arrow::Timestamp(_, _) => PrimitiveType::Timestamp,
        Arrow::Map(_, _) => {
            let text = DataType::Primitive(PrimitiveType::String);
            return DataType::from(MapType::new(text.clone(), text, true));
        }
        _ => PrimitiveType::String,
    };
    DataType::Primitive(primitive)
}

pub(super) fn snapshot(table: Table, delta: &DeltaTable) -> Result<TableSnapshot, Cause> {
    let state = delta.snapshot()?;
    let mut found: Vec<(FileEntry, Remove)> = Vec::new();
    for file in state.log_data() {
        let values = file.partition_values_map();
        let date = values.get(DATE).and_then(Option::as_deref);
        let date = date.map(|text| text.parse::<NaiveDate>()).transpose()?;
        let entry = FileEntry {
            path: file.path().into_owned(),
            size: u64::try_from(file.size())?,
            date,
            rows: file.num_records().and_then(|rows| u64::try_from(rows).ok()),
        };
        found.push((entry, file.remove_action(true)));
    }
    found.sort_by(|a, b| a.0.path.cmp(&b.0.path));
    let (files, removes) = found.into_iter().unzip();
    Ok(TableSnapshot {
        table,
        version: state.version(),
        root: delta.log_store().root_url().clone(),
        files,
        objects: delta.log_store().object_store(None),
        bucket: delta.log_store().root_object_store(None),
        removes,
    })
}

/// Commits `actions` on top of the version they were made from.
pub(super) async fn commit(
    delta: &DeltaTable,
    actions: Vec<Action>,
    base: Option<u64>,
) -> Result<u64, Cause> {
    let state = delta.snapshot()?;
    if base.is_some_and(|base| base != state.version()) {
        return Err("another writer committed in between; importing again is safe".into());
    }
    let operation =
        DeltaOperation::Write { mode: SaveMode::Append, partition_by: None, predicate: None };
    let committed = CommitBuilder::default()
        .with_actions(actions)
        .with_max_retries(0)
        .build(Some(state), delta.log_store(), operation)
        .await?;
    Ok(committed.version())
}
