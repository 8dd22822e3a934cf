//! Delta's log: create a table, load it, list its files, commit a change.

use chrono::NaiveDate;
use deltalake::DeltaTable;
use deltalake::kernel::transaction::{CommitBuilder, CommitProperties};
use deltalake::kernel::{Action, DataType, MapType, PrimitiveType, Remove, StructField};
use deltalake::logstore::LogStoreRef;
use deltalake::operations::create::CreateBuilder;
use deltalake::protocol::{DeltaOperation, SaveMode};

use super::{Cause, FileEntry, TableSnapshot};
use crate::schema::Table;

/// Column by which a table is partitioned: the UTC day.
pub(super) const DATE: &str = "date";

/// The newest version, or `None` where there is no table.
pub(super) async fn load(log: LogStoreRef) -> Result<Option<DeltaTable>, Cause> {
    if !log.is_delta_table_location().await? {
        return Ok(None);
    }
    let mut table = DeltaTable::new(log);
    table.load().await?;
    Ok(Some(table))
}

pub(super) fn snapshot(table: Table, delta: DeltaTable) -> Result<TableSnapshot, Cause> {
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
        delta,
    })
}

/// Commits `actions` on top of `base`, or as the first version of a table. Fails when another
/// commit came first: its rows have not been merged.
pub(super) async fn commit(
    table: Table,
    log: LogStoreRef,
    base: Option<&DeltaTable>,
    actions: Vec<Action>,
) -> Result<u64, Cause> {
    // Old log entries stay: a report names the version it was made from.
    let properties =
        CommitProperties::default().with_max_retries(0).with_cleanup_expired_logs(Some(false));
    if let Some(base) = base {
        let operation =
            DeltaOperation::Write { mode: SaveMode::Append, partition_by: None, predicate: None };
        let committed = CommitBuilder::from(properties)
            .with_actions(actions)
            .build(Some(base.snapshot()?), log, operation)
            .await?;
        return Ok(committed.version());
    }
    let mut columns: Vec<StructField> = table
        .schema()
        .fields()
        .iter()
        .map(|field| StructField::nullable(field.name(), delta_type(field.data_type())))
        .collect();
    let mut builder = CreateBuilder::new()
        .with_log_store(log)
        .with_table_name(table.name())
        .with_commit_properties(properties)
        .with_actions(actions);
    if table.partitioned_by().is_some() {
        columns.push(StructField::nullable(DATE, DataType::Primitive(PrimitiveType::Date)));
        builder = builder.with_partition_columns([DATE]);
    }
    let created = builder.with_columns(columns).await?;
    created.version().ok_or_else(|| "the new table has no version".into())
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
