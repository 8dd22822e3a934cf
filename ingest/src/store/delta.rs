//! Delta's log: create a table, load it, list its files, commit a change.

mod clusters;
mod columns;

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use deltalake::DeltaTable;
use deltalake::kernel::Transaction;
use deltalake::kernel::transaction::{CommitBuilder, CommitProperties};
use deltalake::kernel::{Action, Remove};
use deltalake::logstore::LogStoreRef;
use deltalake::operations::create::CreateBuilder;
use deltalake::protocol::{DeltaOperation, SaveMode};
use deltalake::table::config::TableProperty;
use futures::TryStreamExt;

pub use self::clusters::Clusters;
pub(super) use self::clusters::clusters;
use super::{Cause, FileEntry, TableSnapshot};
use crate::schema::Table;

/// Says in a commit that it holds the rows of a log up to a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The log.
    pub(crate) application: String,
    /// Its last segment.
    pub(crate) segment: u64,
}

/// Why there is a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// New rows, with the mark of the log they came from.
    Rows(Option<Mark>),
    /// The same rows in fewer files.
    Compaction,
    /// Whole days taken out: all before a day are gone from then on.
    Drop {
        /// First day that is left.
        before: NaiveDate,
        /// When that is.
        at: DateTime<Utc>,
    },
}

/// Between what the rows of a file are; `None` where its statistics do not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// First and last node by name, where every row has one.
    pub(crate) nodes: Option<(String, String)>,
    /// First and last instant in milliseconds.
    pub(crate) instants: Option<(i64, i64)>,
}

/// Column by which a table is partitioned: the UTC day.
pub(super) const DATE: &str = "date";

/// Names under which a table tells, beside its rows, the first day that is left (as days since 1970)
/// and when those before it were dropped (in milliseconds).
const DROPPED: [&str; 2] = ["loadline-dropped-before", "loadline-dropped-at"];

/// Commits between two checkpoints of a table's log. Whoever opens the table reads the last one and
/// every commit since, all at once: a collector makes a commit every few minutes.
const CHECKPOINT_EVERY: u32 = 16;

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
    purpose: &Purpose,
) -> Result<u64, Cause> {
    // Old log entries stay: a report names the version it was made from.
    let mut properties =
        CommitProperties::default().with_max_retries(0).with_cleanup_expired_logs(Some(false));
    if let Purpose::Rows(Some(mark)) = purpose {
        let segment = i64::try_from(mark.segment)?;
        properties = properties
            .with_application_transaction(Transaction::new(mark.application.clone(), segment));
    }
    if let Purpose::Drop { before, at } = purpose {
        let days = before.signed_duration_since(NaiveDate::default()).num_days();
        let told = DROPPED.into_iter().zip([days, at.timestamp_millis()]);
        let told = told.map(|(name, value)| Transaction::new(name, value)).collect();
        properties = properties.with_application_transactions(told);
    }
    if let Some(base) = base {
        let operation = match purpose {
            Purpose::Rows(_) => {
                let mode = SaveMode::Append;
                DeltaOperation::Write { mode, partition_by: None, predicate: None }
            }
            Purpose::Compaction => DeltaOperation::Optimize { predicate: None, target_size: 0 },
            Purpose::Drop { before, .. } => {
                let predicate = Some(format!("{DATE} < '{before}'"));
                DeltaOperation::Delete { predicate }
            }
        };
        let mut actions = actions;
        actions.extend(columns::added(table, base)?);
        let committed = CommitBuilder::from(properties)
            .with_actions(actions)
            .build(Some(base.snapshot()?), log, operation)
            .await?;
        return Ok(committed.version());
    }
    let mut builder = CreateBuilder::new()
        .with_log_store(log)
        .with_table_name(table.name())
        .with_commit_properties(properties)
        .with_configuration_property(
            TableProperty::CheckpointInterval,
            Some(CHECKPOINT_EVERY.to_string()),
        )
        .with_actions(actions);
    if table.partitioned_by().is_some() {
        builder = builder.with_partition_columns([DATE]);
    }
    let created = builder.with_columns(columns::of(table)).await?;
    created.version().ok_or_else(|| "the new table has no version".into())
}

/// The last segment of a log whose rows `table` has.
pub(super) async fn segment_of(table: &DeltaTable, application: &str) -> Result<u64, Cause> {
    let log = table.log_store();
    let found = table.snapshot()?.transaction_version(log.as_ref(), application).await?;
    Ok(found.map(u64::try_from).transpose()?.unwrap_or(0))
}

/// The first day that is left of a table whose old days were dropped, and when they were.
pub(super) async fn dropped(
    table: &DeltaTable,
) -> Result<Option<(NaiveDate, DateTime<Utc>)>, Cause> {
    let log = table.log_store();
    let snapshot = table.snapshot()?;
    let Some(days) = snapshot.transaction_version(log.as_ref(), DROPPED[0]).await? else {
        return Ok(None);
    };
    let at = snapshot.transaction_version(log.as_ref(), DROPPED[1]).await?;
    let before = TimeDelta::try_days(days).and_then(|d| NaiveDate::default().checked_add_signed(d));
    let before = before.ok_or_else(|| format!("`{}` is {days}: no day", DROPPED[0]))?;
    Ok(Some((before, at.and_then(DateTime::from_timestamp_millis).unwrap_or_default())))
}

/// Paths of the files that were replaced, and when.
pub(super) async fn replaced(table: &DeltaTable) -> Result<HashMap<String, DateTime<Utc>>, Cause> {
    let log = table.log_store();
    let mut tombstones = table.snapshot()?.all_tombstones(log.as_ref());
    let mut found = HashMap::new();
    while let Some(file) = tombstones.try_next().await? {
        let at = file.deletion_timestamp().and_then(DateTime::from_timestamp_millis);
        found.insert(file.path().into_owned(), at.unwrap_or_default());
    }
    Ok(found)
}

/// What the statistics of the files of `date` tell of their rows, by path.
pub(super) fn bounds(
    delta: &DeltaTable,
    date: NaiveDate,
    instant: &str,
) -> Result<HashMap<String, Bounds>, Cause> {
    let date = date.to_string();
    let mut found = HashMap::new();
    for file in delta.snapshot()?.log_data() {
        let values = file.partition_values_map();
        if values.get(DATE).and_then(Option::as_deref) != Some(date.as_str()) {
            continue;
        }
        let stats: serde_json::Value = match file.stats() {
            Some(stats) => serde_json::from_str(&stats)?,
            None => serde_json::Value::Null,
        };
        let text = |end: &str, column: &str| stats[end][column].as_str().map(str::to_owned);
        let at = |end: &str| {
            let at = DateTime::parse_from_rfc3339(stats[end][instant].as_str()?).ok()?;
            Some(at.timestamp_millis())
        };
        let nodes = match (text("minValues", "node"), text("maxValues", "node")) {
            (Some(low), Some(high)) if stats["nullCount"]["node"].as_i64() == Some(0) => {
                Some((low, high))
            }
            _ => None,
        };
        let instants = at("minValues").zip(at("maxValues"));
        found.insert(file.path().into_owned(), Bounds { nodes, instants });
    }
    Ok(found)
}

/// The earliest instant that the readings of each file stand for, in milliseconds, by path: none of
/// them begins before it. `None` where the statistics do not tell.
pub(super) fn begins(
    delta: &DeltaTable,
    instant: &str,
) -> Result<HashMap<String, Option<i64>>, Cause> {
    let mut found = HashMap::new();
    for file in delta.snapshot()?.log_data() {
        let stats: serde_json::Value = match file.stats() {
            Some(stats) => serde_json::from_str(&stats)?,
            None => serde_json::Value::Null,
        };
        let at = stats["minValues"][instant].as_str();
        let at = at.and_then(|at| DateTime::parse_from_rfc3339(at).ok());
        let rows = stats["numRecords"].as_i64();
        // A column without any value has no maximum.
        let none = rows.is_some() && stats["nullCount"]["period_s"].as_i64() == rows;
        let period_s = stats["maxValues"]["period_s"].as_f64().or(none.then_some(0.0));
        let begun = at
            .zip(period_s)
            .map(|(at, period_s)| at.timestamp_millis() - (period_s.max(0.0) * 1e3).round() as i64);
        found.insert(file.path().into_owned(), begun);
    }
    Ok(found)
}
