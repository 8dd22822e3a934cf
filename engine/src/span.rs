//! From when until when does the store tell anything?
//!
//! # Why some rows do not count
//! One job that ended in 2099, or one reading of a node whose clock had not been set, would stretch
//! every answer over decades. A handful of rows that stands more than a year apart from everything
//! else is an error and not history (`span/timeline.rs`): the span leaves it out, and says so.

mod timeline;

use std::collections::{BTreeMap, HashMap};

use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, TimestampMillisecondType};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use loadline_ingest::Table;

use self::timeline::{Core, DAYS_APART, Timeline};
use crate::calendar::{BinUnit, Calendar, LocalBin};

/// Rows of each day, for each table that is kept by day.
pub(crate) type Days = HashMap<&'static str, BTreeMap<NaiveDate, u64>>;

/// Two instants, the first no later than the second.
type Ends = Option<(DateTime<Utc>, DateTime<Utc>)>;

/// Rows that stand so far from everything else in the store that they are taken for an error: they
/// move neither its start nor now. In a store of a handful of rows they do, and are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlier {
    /// Table that holds them.
    pub table: &'static str,
    /// How many there are.
    pub rows: u64,
    /// Their first instant.
    pub first_at: DateTime<Utc>,
    /// Their last instant.
    pub last_at: DateTime<Utc>,
    /// They stand before everything else, not after it.
    pub early: bool,
    /// They count all the same: the store is too small to say which of its rows are wrong.
    pub counted: bool,
}

/// What a store spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: DateTime<Utc>,
    pub(crate) last: DateTime<Utc>,
    pub(crate) outliers: Vec<Outlier>,
}

/// Earliest and latest instant of jobs, counts and readings that are no outliers; a reading stands
/// for the time before it, a count for the time from its instant on in the same local hour. Of
/// tables kept by day only the first and last day are read.
pub(crate) async fn span(
    context: &SessionContext,
    days: Option<&Days>,
    calendar: &Calendar,
) -> Result<Option<Span>, DataFusionError> {
    let asked = Asked { context, days, calendar };
    let Some((first, last)) = asked.ends(None).await? else { return Ok(None) };
    let whole = Span { first, last, outliers: Vec::new() };
    if last - first <= TimeDelta::days(DAYS_APART) {
        return Ok(Some(whole));
    }
    let timeline = asked.timeline().await?;
    let Some(core) = timeline.core() else {
        let Some(core) = timeline.doubted() else { return Ok(Some(whole)) };
        return Ok(Some(Span { outliers: asked.outliers(core, true).await?, ..whole }));
    };
    let Some((first, last)) = asked.ends(Some(core)).await? else { return Ok(Some(whole)) };
    Ok(Some(Span { first, last, outliers: asked.outliers(core, false).await? }))
}

/// The instants of one table.
struct Instants {
    table: Table,
    /// Rows with the instants `at` and, where a row has a length, `ended`.
    rows: &'static str,
}

/// Tables that tell of time, those kept by day last.
const INSTANTS: [Instants; 5] = [
    Instants {
        table: Table::Jobs,
        rows: "(SELECT coalesce(submitted_at, started_at) AS at, \
               greatest(started_at, ended_at) AS ended FROM jobs)",
    },
    // The GPUs of one attempt are one event.
    Instants {
        table: Table::Allocations,
        rows: "(SELECT min(started_at) AS at, max(coalesce(ended_at, started_at)) AS ended \
               FROM allocations GROUP BY cluster, job_id, attempt)",
    },
    Instants { table: Table::Samples, rows: "(SELECT sampled_at AS at FROM samples)" },
    Instants { table: Table::GpuCounts, rows: "(SELECT counted_at AS at FROM gpu_counts)" },
    Instants { table: Table::NodeSamples, rows: "(SELECT sampled_at AS at FROM node_samples)" },
];

struct Asked<'a> {
    context: &'a SessionContext,
    days: Option<&'a Days>,
    calendar: &'a Calendar,
}

impl Asked<'_> {
    /// The first and the last instant inside `core`, or of all.
    async fn ends(&self, core: Option<Core>) -> Result<Ends, DataFusionError> {
        let mut found = None;
        let after = core.map_or("true".into(), |core| format!("at >= {}", midnight(core.first)));
        let before = |name: &str, day: fn(Core) -> i64| {
            core.map_or("true".into(), |core| format!("{name} < {}", midnight(day(core) + 1)))
        };
        for Instants { table, rows } in &INSTANTS {
            if table.partitioned_by().is_some() {
                found = wider(found, self.kept_by_day(*table, core).await?);
                continue;
            }
            let text = format!(
                "SELECT min(at) FILTER (WHERE {after} AND {}), \
                 greatest(max(at) FILTER (WHERE {}), max(ended) FILTER (WHERE {})) FROM {rows}",
                before("at", |core| core.last),
                before("at", |core| core.last),
                before("ended", |core| core.ended),
            );
            found = wider(found, self.two(&text).await?);
        }
        Ok(found)
    }

    /// The same of a table that is kept by day.
    async fn kept_by_day(&self, table: Table, core: Option<Core>) -> Result<Ends, DataFusionError> {
        let Some(instant) = table.partitioned_by() else { return Ok(None) };
        let Some((early, late)) = self.first_and_last_day(table, core) else { return Ok(None) };
        let (early, late) = (within(instant, early), within(instant, late));
        let between =
            |clause| format!("SELECT min({instant}), max({instant}) FROM {table} WHERE {clause}");
        let first = self.two(&between(&early)).await?.map(|(first, _)| first);
        let last = self.two(&between(&late)).await?.map(|(_, last)| last);
        let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
        let period = "arrow_cast(CAST(coalesce(period_s, 0) * 1000 AS BIGINT), \
                      'Duration(Millisecond)')";
        if table == Table::GpuCounts {
            let text = format!(
                "SELECT max({instant}), max({instant} + {period}) FROM {table} WHERE {late}"
            );
            let ended = self.two(&text).await?.map_or(last, |(_, ended)| ended);
            let hour = LocalBin::at(BinUnit::HOUR, self.calendar.zone(), last.timestamp_millis());
            let ended =
                DateTime::from_timestamp_millis(hour.ended_at).map_or(ended, |e| e.min(ended));
            return Ok(Some((first, ended)));
        }
        let at = first.to_rfc3339();
        let text = format!(
            "SELECT max({instant}), max({instant} - {period}) FROM {table} WHERE {instant} = '{at}'"
        );
        let begun = self.two(&text).await?.map_or(first, |(_, begun)| begun);
        Ok(Some((begun, last)))
    }

    /// The first and the last day of a table inside `core`, each as the days to look at: one where
    /// its days are known, any where they are not. `None` where the table has no such day.
    fn first_and_last_day(&self, table: Table, core: Option<Core>) -> Option<(Within, Within)> {
        let (first, last) = core.map_or((None, None), |core| (Some(core.first), Some(core.last)));
        let Some(days) = self.days else { return Some(((first, last), (first, last))) };
        let inside = |day: &i64| {
            first.is_none_or(|first| *day >= first) && last.is_none_or(|last| *day <= last)
        };
        let mut days = days.get(table.name())?.keys().map(|day| since_1970(*day)).filter(inside);
        let first = days.next()?;
        let last = days.next_back().unwrap_or(first);
        Some(((Some(first), Some(first)), (Some(last), Some(last))))
    }

    /// How many rows begin and end on which day.
    async fn timeline(&self) -> Result<Timeline, DataFusionError> {
        let mut timeline = Timeline::default();
        for (place, Instants { table, rows }) in INSTANTS.iter().enumerate() {
            let known = self.days.filter(|_| table.partitioned_by().is_some());
            if let Some(known) = known {
                for (day, rows) in known.get(table.name()).into_iter().flatten() {
                    timeline.begun(place, since_1970(*day), *rows);
                }
                continue;
            }
            for (day, rows) in self.by_day("at", rows).await? {
                timeline.begun(place, day, rows);
            }
            if table.partitioned_by().is_none() {
                for (day, rows) in self.by_day("ended", rows).await? {
                    timeline.ended(place, day, rows);
                }
            }
        }
        Ok(timeline)
    }

    /// Rows by the UTC day of an instant.
    async fn by_day(&self, at: &str, rows: &str) -> Result<Vec<(i64, u64)>, DataFusionError> {
        let text = format!(
            "SELECT CAST({at} AS BIGINT) / {DAY_MS}, count(*) FROM {rows} \
             WHERE {at} IS NOT NULL GROUP BY 1"
        );
        let mut found = Vec::new();
        for batch in self.context.sql(&text).await?.collect().await? {
            let column = |place: usize| batch.column(place).as_primitive::<Int64Type>().values();
            let rows = column(1).iter().map(|rows| u64::try_from(*rows).unwrap_or_default());
            found.extend(column(0).iter().copied().zip(rows));
        }
        Ok(found)
    }

    /// The rows outside `core`, by table and side.
    async fn outliers(&self, core: Core, counted: bool) -> Result<Vec<Outlier>, DataFusionError> {
        let mut found = Vec::new();
        for table in INSTANTS.map(|instants| instants.table) {
            let (at, ended) = match (table.partitioned_by(), table) {
                (Some(instant), _) => (instant, instant),
                (None, Table::Jobs) => (
                    "coalesce(submitted_at, started_at)",
                    "greatest(submitted_at, started_at, ended_at)",
                ),
                (None, _) => ("started_at", "greatest(started_at, ended_at)"),
            };
            for (early, at, clause) in [
                (true, at, format!("{at} < {}", midnight(core.first))),
                (false, ended, format!("{ended} >= {}", midnight(core.ended + 1))),
            ] {
                let text = format!("SELECT min({at}), max({at}) FROM {table} WHERE {clause}");
                let Some((first_at, last_at)) = self.two(&text).await? else { continue };
                let text = format!("SELECT 0, count(*) FROM {table} WHERE {clause}");
                let answer = self.context.sql(&text).await?.collect().await?;
                let rows = answer.first().map_or(0, |batch| {
                    batch.column(1).as_primitive::<Int64Type>().values().iter().sum::<i64>()
                });
                let rows = u64::try_from(rows).unwrap_or_default();
                found.push(Outlier {
                    table: table.name(),
                    rows,
                    first_at,
                    last_at,
                    early,
                    counted,
                });
            }
        }
        Ok(found)
    }

    /// The two instants that a query answers, if it finds any.
    async fn two(&self, text: &str) -> Result<Ends, DataFusionError> {
        let batches = self.context.sql(text).await?.collect().await?;
        Ok(batches.first().and_then(|batch| {
            let at = |column: usize| {
                let values = batch.column(column).as_primitive_opt::<TimestampMillisecondType>()?;
                DateTime::from_timestamp_millis(values.iter().next()??)
            };
            Some((at(0)?, at(1)?))
        }))
    }
}

const DAY_MS: i64 = 86_400_000;

/// Days since 1970, first and last, where they are limited.
type Within = (Option<i64>, Option<i64>);

fn within(instant: &str, (first, last): Within) -> String {
    let first = first.map(|first| format!("{instant} >= {}", midnight(first)));
    let last = last.map(|last| format!("{instant} < {}", midnight(last + 1)));
    let clauses: Vec<String> = first.into_iter().chain(last).collect();
    if clauses.is_empty() { "true".to_owned() } else { clauses.join(" AND ") }
}

fn since_1970(day: NaiveDate) -> i64 {
    day.signed_duration_since(NaiveDate::default()).num_days()
}

/// The start of a day since 1970 as SQL.
fn midnight(day: i64) -> String {
    format!("arrow_cast({}, 'Timestamp(Millisecond, Some(\"UTC\"))')", day * DAY_MS)
}

fn wider(one: Ends, other: Ends) -> Ends {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}
