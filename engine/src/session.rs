//! A session: the store's tables, the views and the functions, ready for SQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, NaiveTime, Utc};
use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use loadline_ingest::wal::overlay;
use loadline_ingest::{Dropped, Store, Table};

use crate::answer::Answer;
use crate::calendar::Calendar;
use crate::config::EngineConfig;
use crate::error::EngineError;
use crate::function::ledger::{Ledger, Needs};
use crate::query::{NamedQuery, Params, Period};
use crate::span::{self, Days, Outlier};
use crate::{cluster, function, query, setting, table, view};

/// A place to ask. What it sees is the store as of its opening.
#[derive(Clone)]
pub struct Session {
    context: SessionContext,
    as_of: DateTime<Utc>,
    started: Arc<AtomicI64>,
    begins_at: Option<DateTime<Utc>>,
    ends_at: Option<DateTime<Utc>>,
    outliers: Arc<[Outlier]>,
    ledger: Ledger,
    calendar: Calendar,
    writable: bool,
    dropped: Option<Dropped>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("as_of", &self.as_of).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens `store`. `as_of` is what counts as now; without it, the latest instant in the store
    /// that is no outlier.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn open(
        store: &Store,
        config: &EngineConfig,
        as_of: Option<DateTime<Utc>>,
    ) -> Result<Self, EngineError> {
        let context = context();
        let (mut days, mut dropped) = (Days::new(), None);
        let overlays = overlay(store).await?;
        let sole = cluster::sole(store, &overlays)?;
        for overlay in overlays {
            let table = overlay.table;
            if let (Table::Samples, Some(samples)) = (table, &overlay.snapshot) {
                dropped = store.dropped(samples).await?;
            }
            days.insert(table.name(), table::days(&overlay));
            table::register_stored(&context, overlay, sole.as_deref())
                .map_err(|error| EngineError::sql(format!("table `{table}`"), error))?;
        }
        Self::complete(context, config, as_of, Some((&days, dropped))).await
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
            table::register_rows(&context, table, Vec::new())
                .map_err(|error| EngineError::sql(format!("table `{table}`"), error))?;
        }
        Self::complete(context, config, as_of, None).await
    }

    async fn complete(
        context: SessionContext,
        config: &EngineConfig,
        as_of: Option<DateTime<Utc>>,
        stored: Option<(&Days, Option<Dropped>)>,
    ) -> Result<Self, EngineError> {
        let found = span::span(&context, stored.map(|stored| stored.0), &config.calendar).await;
        let found = found.map_err(|error| EngineError::sql("the store's span", error))?;
        let given = as_of.is_some();
        let last = found.as_ref().map(|span| span.last);
        let as_of = as_of.or(last).unwrap_or(DateTime::UNIX_EPOCH);
        let first = found.as_ref().map_or(as_of, |span| span.first).min(as_of);
        let begins_at = found.as_ref().map(|span| span.first);
        // What lies after a now that was given is the future, not an error.
        let outliers = found.into_iter().flat_map(|span| span.outliers);
        let outliers: Arc<[Outlier]> = outliers.filter(|one| one.early || !given).collect();
        let started = Arc::new(AtomicI64::new(first.timestamp_millis()));
        let ledger = Ledger::default();
        setting::register(&context, config)
            .map_err(|error| EngineError::sql("the settings", error))?;
        let dropped = stored.and_then(|stored| stored.1);
        let since = dropped.map(|dropped| dropped.before.and_time(NaiveTime::MIN).and_utc());
        let instants = (Arc::clone(&started), since, as_of);
        function::register(&context, config, instants, ledger.clone());
        view::register(&context).await?;
        let (calendar, writable) = (config.calendar.clone(), stored.is_none());
        Ok(Self {
            context,
            as_of,
            started,
            begins_at,
            ends_at: last,
            outliers,
            ledger,
            calendar,
            writable,
            dropped,
        })
    }

    /// Earliest instant in the store at its opening, also where now was given as an earlier one;
    /// `None` where nothing in it tells a time.
    #[must_use]
    pub fn begins_at(&self) -> Option<DateTime<Utc>> {
        self.begins_at
    }

    /// Latest instant in the store at its opening that is no outlier, whatever counts as now;
    /// `None` where nothing in it tells a time.
    #[must_use]
    pub fn ends_at(&self) -> Option<DateTime<Utc>> {
        self.ends_at
    }

    /// Old days whose readings were taken out of the store; `None` where none ever was.
    #[must_use]
    pub fn dropped(&self) -> Option<Dropped> {
        self.dropped
    }

    /// What counts as now.
    #[must_use]
    pub fn as_of(&self) -> DateTime<Utc> {
        self.as_of
    }

    /// Earliest instant in the store that is no outlier, and now.
    #[must_use]
    pub fn span(&self) -> (DateTime<Utc>, DateTime<Utc>) {
        let started = self.started.load(Ordering::Relaxed);
        (DateTime::from_timestamp_millis(started).unwrap_or(self.as_of), self.as_of)
    }

    /// Rows so far from all others that the span leaves them out, as of the opening.
    #[must_use]
    pub fn outliers(&self) -> &[Outlier] {
        &self.outliers
    }

    /// Answers a query in SQL, with instants in UTC.
    ///
    /// # Errors
    /// [`EngineError::Sql`], also where a session over a store is asked to change anything.
    pub async fn sql(&self, text: &str) -> Result<Answer, EngineError> {
        let answer = async {
            self.follow_span().await?;
            collect(self.frame(text).await?).await
        };
        answer.await.map_err(|error| EngineError::sql("the query", error))
    }

    /// Answers a named question, with instants in the zone of the calendar.
    ///
    /// # Errors
    /// A parameter that is missing or wrong, or [`EngineError::Sql`].
    pub async fn query(&self, query: &NamedQuery, given: &Params) -> Result<Answer, EngineError> {
        let failed = |error| EngineError::sql(format!("query `{}`", query.name()), error);
        self.follow_span().await.map_err(failed)?;
        let values = query::values(query, given, self.span(), &self.calendar)?;
        let answer = async {
            let text = query::bind(query.sql(), &values)?;
            self.local(collect(self.frame(&text).await?).await?)
        };
        answer.await.map_err(failed)
    }

    /// The period of which a named question asks: what was given, else the ends of the store.
    /// `None` where it asks of none.
    ///
    /// # Errors
    /// A parameter that is missing or wrong.
    pub fn period(
        &self,
        query: &NamedQuery,
        given: &Params,
    ) -> Result<Option<Period>, EngineError> {
        let values = query::values(query, given, self.span(), &self.calendar)?;
        Ok(query::period(&values))
    }

    /// Asks `text` of the answer of a named question, which it sees as the table `answer` with
    /// instants in UTC; those of its own answer are in the zone of the calendar.
    ///
    /// # Errors
    /// A parameter that is missing or wrong, or [`EngineError::Sql`].
    pub async fn query_over(
        &self,
        query: &NamedQuery,
        given: &Params,
        text: &str,
    ) -> Result<Answer, EngineError> {
        let failed = |error| EngineError::sql(format!("query `{}`", query.name()), error);
        self.follow_span().await.map_err(failed)?;
        let values = query::values(query, given, self.span(), &self.calendar)?;
        let answer = async {
            let bound = query::bind(query.sql(), &values)?;
            let text = format!("WITH answer AS (\n{bound}\n)\n{text}");
            self.local(collect(self.frame(&text).await?).await?)
        };
        answer.await.map_err(failed)
    }

    /// The calendar of all local hours and days.
    #[must_use]
    pub fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// The context behind the session, for a door that plans by itself. Call
    /// [`Session::prepare`] first.
    #[must_use]
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Reads the allocations, so that samples can be given to jobs and GPUs that several jobs
    /// hold at once divided among them.
    ///
    /// # Errors
    /// [`EngineError::Sql`].
    pub async fn prepare(&self) -> Result<(), EngineError> {
        let read = self.read_ledger(Needs::ALL).await;
        read.map_err(|error| EngineError::sql("table `allocations`", error))
    }

    async fn frame(&self, text: &str) -> Result<DataFrame, DataFusionError> {
        // A store changes by imports alone; what would write or drop must not look as if it had.
        let options = SQLOptions::new()
            .with_allow_ddl(self.writable)
            .with_allow_dml(self.writable)
            .with_allow_statements(self.writable);
        let frame = self.context.sql_with_options(text, options).await?;
        self.read_ledger(Needs::of(frame.logical_plan())?).await?;
        Ok(frame)
    }

    fn local(&self, answer: Answer) -> Result<Answer, DataFusionError> {
        Ok(answer.in_zone(self.calendar.zone())?)
    }

    /// Tables that take `INSERT` begin where their rows do by now.
    async fn follow_span(&self) -> Result<(), DataFusionError> {
        if self.writable {
            let found = span::span(&self.context, None, &self.calendar).await?;
            let first = found.map_or(self.as_of, |span| span.first).min(self.as_of);
            self.started.store(first.timestamp_millis(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// A store's allocations are read once; tables that take `INSERT` are read each time.
    async fn read_ledger(&self, needs: Needs) -> Result<(), DataFusionError> {
        self.ledger.read(&self.context, needs, self.writable).await
    }
}

fn context() -> SessionContext {
    let config = SessionConfig::new()
        .with_information_schema(true)
        .set_bool("datafusion.sql_parser.enable_ident_normalization", true)
        // The generic dialect reads a comma before `cluster` as the last one of a list.
        .set_str("datafusion.sql_parser.dialect", "PostgreSQL")
        .set_bool("datafusion.execution.parquet.schema_force_view_types", false)
        .set_bool("datafusion.sql_parser.map_string_types_to_utf8view", false)
        .set_bool("datafusion.execution.parquet.pushdown_filters", true);
    SessionContext::new_with_config(config)
}

async fn collect(frame: DataFrame) -> Result<Answer, DataFusionError> {
    let schema = Arc::new(frame.schema().as_arrow().clone());
    Ok(Answer { schema, batches: frame.collect().await? })
}
