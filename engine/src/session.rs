//! A session: the store's tables, the views and the functions, ready for SQL.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{SchemaRef, TimestampMillisecondType};
use chrono::{DateTime, Utc};
use datafusion::datasource::MemTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::DataFusionError;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use loadline_ingest::{Store, Table, TableSnapshot};

use crate::calendar::Calendar;
use crate::error::EngineError;
use crate::query::{NamedQuery, Params};
use crate::{function, query, view};

/// Settings that give the numbers their meaning.
#[derive(Debug, Clone, Default)]
pub struct EngineConfig {
    /// Zone, working hours, holidays.
    pub calendar: Calendar,
}

/// Rows of an answer and their columns.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Columns, also where there are no rows.
    pub schema: SchemaRef,
    /// Rows.
    pub batches: Vec<RecordBatch>,
}

/// A place to ask. What it sees is the store as of its opening.
#[derive(Clone)]
pub struct Session {
    context: SessionContext,
    as_of: DateTime<Utc>,
    span: (DateTime<Utc>, DateTime<Utc>),
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("as_of", &self.as_of).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens `store`. `as_of` is what counts as now; the latest instant in the store without it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn open(
        store: &Store,
        config: &EngineConfig,
        as_of: Option<DateTime<Utc>>,
    ) -> Result<Self, EngineError> {
        let context = context();
        for table in Table::ALL {
            match store.snapshot(table).await? {
                Some(snapshot) => register_stored(&context, &snapshot).await,
                None => register_empty(&context, table),
            }
            .map_err(|error| EngineError::sql(format!("table `{table}`"), error))?;
        }
        Self::complete(context, config, as_of).await
    }

    /// A session over empty tables that take `INSERT`: for tests and trials.
    ///
    /// # Errors
    /// A view that does not fit the tables, which would be a bug.
    pub async fn in_memory(
        config: &EngineConfig,
        as_of: Option<DateTime<Utc>>,
    ) -> Result<Self, EngineError> {
        let context = context();
        for table in Table::ALL {
            register_empty(&context, table)
                .map_err(|error| EngineError::sql(format!("table `{table}`"), error))?;
        }
        Self::complete(context, config, as_of).await
    }

    async fn complete(
        context: SessionContext,
        config: &EngineConfig,
        as_of: Option<DateTime<Utc>>,
    ) -> Result<Self, EngineError> {
        let found = span(&context).await.map_err(|e| EngineError::sql("the store's span", e))?;
        let as_of = as_of.or(found.map(|(_, last)| last)).unwrap_or(DateTime::UNIX_EPOCH);
        let first = found.map_or(as_of, |(first, _)| first).min(as_of);
        function::register(&context, &config.calendar, as_of);
        view::register(&context).await?;
        Ok(Self { context, as_of, span: (first, as_of) })
    }

    /// What counts as now.
    #[must_use]
    pub fn as_of(&self) -> DateTime<Utc> {
        self.as_of
    }

    /// Earliest instant in the store, and now.
    #[must_use]
    pub fn span(&self) -> (DateTime<Utc>, DateTime<Utc>) {
        self.span
    }

    /// Answers a query in SQL.
    ///
    /// # Errors
    /// [`EngineError::Sql`].
    pub async fn sql(&self, text: &str) -> Result<Answer, EngineError> {
        let frame = self.context.sql(text).await;
        collect(frame).await.map_err(|error| EngineError::sql("the query", error))
    }

    /// Answers a named question.
    ///
    /// # Errors
    /// A parameter that is missing or wrong, or [`EngineError::Sql`].
    pub async fn query(&self, query: &NamedQuery, given: &Params) -> Result<Answer, EngineError> {
        let values = query::values(query, given, self.span)?;
        let answer = async {
            let frame = self.context.sql(query.sql()).await?;
            collect(if values.is_empty() { Ok(frame) } else { frame.with_param_values(values) })
                .await
        };
        answer.await.map_err(|error| EngineError::sql(format!("query `{}`", query.name()), error))
    }
}

fn context() -> SessionContext {
    let config = SessionConfig::new()
        .with_information_schema(true)
        .set_bool("datafusion.sql_parser.enable_ident_normalization", true)
        .set_bool("datafusion.execution.parquet.schema_force_view_types", false)
        .set_bool("datafusion.sql_parser.map_string_types_to_utf8view", false)
        .set_bool("datafusion.execution.parquet.pushdown_filters", true);
    SessionContext::new_with_config(config)
}

async fn collect(frame: Result<DataFrame, DataFusionError>) -> Result<Answer, DataFusionError> {
    let frame = frame?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    Ok(Answer { schema, batches: frame.collect().await? })
}

fn register_empty(context: &SessionContext, table: Table) -> Result<(), DataFusionError> {
    let empty = MemTable::try_new(table.schema(), vec![vec![]])?;
    context.register_table(table.name(), Arc::new(empty)).map(drop)
}

/// Scans exactly the files that the snapshot names.
async fn register_stored(
    context: &SessionContext,
    snapshot: &TableSnapshot,
) -> Result<(), DataFusionError> {
    let table = snapshot.table;
    let root = &snapshot.root;
    if root.scheme() != "file" {
        context.register_object_store(root, Arc::clone(&snapshot.bucket));
    }
    let files: Vec<ListingTableUrl> = snapshot
        .files
        .iter()
        .map(|file| ListingTableUrl::parse(format!("{root}{}", file.path)))
        .collect::<Result<_, _>>()?;
    if files.is_empty() {
        return register_empty(context, table);
    }
    let options =
        ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension(".parquet");
    let config = ListingTableConfig::new_with_multi_paths(files)
        .with_listing_options(options)
        .with_schema(table.schema());
    context.register_table(table.name(), Arc::new(ListingTable::try_new(config)?)).map(drop)
}

type Span = Option<(DateTime<Utc>, DateTime<Utc>)>;

/// Earliest and latest instant of jobs, counts and readings.
async fn span(context: &SessionContext) -> Result<Span, DataFusionError> {
    let text = "SELECT min(first_at) AS first_at, max(last_at) AS last_at FROM (
        SELECT min(sampled_at) AS first_at, max(sampled_at) AS last_at FROM samples
        UNION ALL SELECT min(counted_at), max(counted_at) FROM gpu_counts
        UNION ALL SELECT min(coalesce(submitted_at, started_at)), max(submitted_at) FROM jobs
        UNION ALL SELECT min(started_at), max(started_at) FROM jobs
        UNION ALL SELECT min(ended_at), max(ended_at) FROM jobs) AS spans";
    let batches = context.sql(text).await?.collect().await?;
    Ok(batches.first().and_then(|batch| {
        let at = |column: usize| {
            let values = batch.column(column).as_primitive_opt::<TimestampMillisecondType>()?;
            DateTime::from_timestamp_millis(values.iter().next()??)
        };
        Some((at(0)?, at(1)?))
    }))
}
