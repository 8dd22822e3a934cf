//! A table of the store as DataFusion sees it: exactly the files of one version, less those whose
//! day cannot hold an answer.
//!
//! # Why not the listing or Delta's own provider
//! Listing opens every file to learn its statistics, and Delta's provider takes longer to plan a
//! day's question than to answer it. The log already names the files and their days.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{SchemaRef, TimestampMillisecondType};
use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta};
use datafusion::catalog::Session;
use datafusion::common::pruning::PrunableStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::{Column, ColumnStatistics, DFSchema, ScalarValue, Statistics};
use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::{MemTable, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;
use datafusion::prelude::{SessionContext, coalesce, lit};
use loadline_ingest::wal::Overlay;
use loadline_ingest::{Table, TableSnapshot};
use object_store::ObjectMeta;
use object_store::path::Path;

use crate::cluster;

/// Registers `table` with rows in memory; it takes `INSERT`.
pub(crate) fn register_rows(
    context: &SessionContext,
    table: Table,
    rows: Vec<RecordBatch>,
) -> Result<()> {
    let rows = MemTable::try_new(table.schema(), vec![rows])?;
    context.register_table(table.name(), Arc::new(rows)).map(drop)
}

/// Registers what a reader of the store sees of a table. Its rows without a cluster are of `sole`.
pub(crate) fn register_stored(
    context: &SessionContext,
    overlay: Overlay,
    sole: Option<&str>,
) -> Result<()> {
    let table = overlay.table;
    let Some(snapshot) = &overlay.snapshot else {
        let rows = MemTable::try_new(table.schema(), vec![overlay.rows])?;
        return register(context, table, Arc::new(rows), sole);
    };
    let stored = StoredTable::new(snapshot, overlay.rows)?;
    if snapshot.root.scheme() != "file" {
        context.register_object_store(stored.place.as_ref(), Arc::clone(&snapshot.bucket));
    }
    register(context, table, Arc::new(stored), sole)
}

fn register(
    context: &SessionContext,
    table: Table,
    rows: Arc<dyn TableProvider>,
    sole: Option<&str>,
) -> Result<()> {
    let schema = rows.schema();
    let filled = sole.filter(|_| schema.column_with_name(cluster::COLUMN).is_some());
    let Some(sole) = filled else {
        return context.register_table(table.name(), rows).map(drop);
    };
    let columns = schema.fields().iter().map(|field| {
        let column = Expr::Column(Column::from_name(field.name()));
        if field.name() == cluster::COLUMN {
            coalesce(vec![column, lit(sole)]).alias(cluster::COLUMN)
        } else {
            column
        }
    });
    let seen = context.read_table(rows)?.select(columns.collect::<Vec<Expr>>())?;
    context.register_table(table.name(), seen.into_view()).map(drop)
}

/// Rows of each day of a table that is kept by day, stored or waiting. A file that does not tell its
/// rows counts as very many.
pub(crate) fn days(overlay: &Overlay) -> BTreeMap<NaiveDate, u64> {
    let files = overlay.snapshot.iter().flat_map(|snapshot| &snapshot.files);
    let files = files.filter_map(|file| Some((file.date?, file.rows.unwrap_or(u64::MAX))));
    let instant = overlay.table.partitioned_by();
    let waiting = overlay.rows.iter().filter_map(|rows| {
        rows.column_by_name(instant?)?.as_primitive_opt::<TimestampMillisecondType>()
    });
    let waiting = waiting.flat_map(|at| at.values().iter().copied());
    let waiting = waiting.filter_map(DateTime::from_timestamp_millis);
    let mut days: BTreeMap<NaiveDate, u64> = BTreeMap::new();
    for (date, rows) in files.chain(waiting.map(|at| (at.date_naive(), 1))) {
        let known = days.entry(date).or_default();
        *known = known.saturating_add(rows);
    }
    days
}

/// One file, and the day that all of its rows are in.
#[derive(Debug)]
struct StoredFile {
    meta: ObjectMeta,
    date: Option<NaiveDate>,
    rows: Option<usize>,
}

#[derive(Debug)]
struct StoredTable {
    table: Table,
    schema: SchemaRef,
    place: ObjectStoreUrl,
    files: Vec<StoredFile>,
    /// Rows that are in no file yet.
    waiting: Vec<RecordBatch>,
}

impl StoredTable {
    fn new(snapshot: &TableSnapshot, waiting: Vec<RecordBatch>) -> Result<Self> {
        let root = &snapshot.root;
        let files = snapshot.files.iter().map(|file| {
            let whole = format!("{}/{}", root.path().trim_end_matches('/'), file.path);
            Ok(StoredFile {
                meta: ObjectMeta {
                    location: Path::from_url_path(whole)?,
                    last_modified: DateTime::UNIX_EPOCH,
                    size: file.size,
                    e_tag: None,
                    version: None,
                },
                date: file.date,
                rows: file.rows.and_then(|rows| usize::try_from(rows).ok()),
            })
        });
        Ok(Self {
            table: snapshot.table,
            schema: snapshot.table.schema(),
            place: ObjectStoreUrl::parse(&root[..url::Position::BeforePath])?,
            files: files.collect::<Result<_, object_store::path::Error>>().map_err(outside)?,
            waiting,
        })
    }

    /// Files whose day may hold a row for which `filters` hold.
    fn needed(&self, state: &dyn Session, filters: &[Expr]) -> Result<Vec<&StoredFile>> {
        let Some(filter) = conjunction(filters.to_vec()) else {
            return Ok(self.files.iter().collect());
        };
        let columns = DFSchema::try_from(Arc::clone(&self.schema))?;
        let filter = state.create_physical_expr(filter, &columns)?;
        let predicate = PruningPredicateBuilder::new()
            .with_file_schema(Arc::clone(&self.schema))
            .try_build(filter)?;
        let days = self.files.iter().map(|file| Arc::new(self.bounds(file))).collect();
        let kept = predicate.prune(&PrunableStatistics::new(days, Arc::clone(&self.schema)))?;
        Ok(self.files.iter().zip(kept).filter(|(_, kept)| *kept).map(|(file, _)| file).collect())
    }

    /// What the day of a file says of its instants.
    fn bounds(&self, file: &StoredFile) -> Statistics {
        let mut known = Statistics::new_unknown(&self.schema);
        let instant = self.table.partitioned_by().and_then(|name| self.schema.index_of(name).ok());
        if let (Some(instant), Some(date)) = (instant, file.date) {
            let midnight = date.and_time(NaiveTime::MIN).and_utc();
            let last = midnight + TimeDelta::days(1) - TimeDelta::milliseconds(1);
            let at = |at: DateTime<_>| {
                let at = Some(at.timestamp_millis());
                Precision::Exact(ScalarValue::TimestampMillisecond(at, Some("UTC".into())))
            };
            known.column_statistics[instant] = ColumnStatistics {
                min_value: at(midnight),
                max_value: at(last),
                null_count: Precision::Exact(0),
                ..ColumnStatistics::new_unknown()
            };
        }
        known
    }
}

#[async_trait]
impl TableProvider for StoredTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = self.needed(state, filters)?;
        if files.is_empty() {
            // A scan of no file has no partition, which no plan above it takes.
            let rows = [self.waiting.clone()];
            let columns = projection.cloned();
            let rows = MemorySourceConfig::try_new_exec(&rows, Arc::clone(&self.schema), columns)?;
            return Ok(rows);
        }
        let mut known = Statistics::new_unknown(&self.schema);
        let rows: Option<Vec<usize>> = files.iter().map(|file| file.rows).collect();
        known.num_rows = match rows {
            Some(rows) => Precision::Exact(rows.iter().sum()),
            None => Precision::Absent,
        };
        let options = TableParquetOptions {
            global: state.config_options().execution.parquet.clone(),
            ..TableParquetOptions::default()
        };
        let source =
            ParquetSource::new(Arc::clone(&self.schema)).with_table_parquet_options(options);
        let files = files.iter().map(|file| PartitionedFile::new_from_meta(file.meta.clone()));
        let groups = FileGroup::new(files.collect())
            .split_files(state.config_options().execution.target_partitions);
        let scan = FileScanConfigBuilder::new(self.place.clone(), Arc::new(source))
            .with_file_groups(groups)
            .with_statistics(known)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        let stored: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(scan);
        if self.waiting.is_empty() {
            return Ok(stored);
        }
        let waiting = MemorySourceConfig::try_new_exec(
            std::slice::from_ref(&self.waiting),
            Arc::clone(&self.schema),
            projection.cloned(),
        )?;
        UnionExec::try_new(vec![stored, waiting])
    }
}

fn outside(error: object_store::path::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
