//! From when until when does the store tell anything?

use std::collections::HashMap;

use arrow::array::AsArray;
use arrow::datatypes::TimestampMillisecondType;
use chrono::{DateTime, NaiveDate, Utc};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use loadline_ingest::Table;

use crate::calendar::{BinUnit, Calendar, LocalBin};

/// First and last day of each table that is kept by day.
pub(crate) type Days = HashMap<&'static str, (NaiveDate, NaiveDate)>;

pub(crate) type Span = Option<(DateTime<Utc>, DateTime<Utc>)>;

/// Earliest and latest instant of jobs, counts and readings; a reading stands for the time before
/// it, a count for the time from its instant on in the same local hour. Of tables kept by day only
/// the first and last day are read.
pub(crate) async fn span(
    context: &SessionContext,
    days: Option<&Days>,
    calendar: &Calendar,
) -> Result<Span, DataFusionError> {
    let mut found = None;
    for text in [
        "SELECT min(coalesce(submitted_at, started_at)), max(coalesce(ended_at, started_at, \
         submitted_at)) FROM jobs",
        "SELECT min(started_at), max(coalesce(ended_at, started_at)) FROM allocations",
    ] {
        found = wider(found, ends(context, text).await?);
    }
    for table in [Table::Samples, Table::GpuCounts, Table::NodeSamples] {
        let Some(instant) = table.partitioned_by() else { continue };
        let (early, late) = match days.and_then(|days| days.get(table.name())) {
            Some((first, last)) => (
                format!("WHERE {instant} < '{}T00:00:00Z'", first.succ_opt().unwrap_or(*first)),
                format!("WHERE {instant} >= '{last}T00:00:00Z'"),
            ),
            None => (String::new(), String::new()),
        };
        let between =
            |clause| format!("SELECT min({instant}), max({instant}) FROM {table} {clause}");
        let first = ends(context, &between(&early)).await?.map(|(first, _)| first);
        let last = ends(context, &between(&late)).await?.map(|(_, last)| last);
        let (Some(first), Some(last)) = (first, last) else {
            continue;
        };
        let period = "arrow_cast(CAST(coalesce(period_s, 0) * 1000 AS BIGINT), \
                      'Duration(Millisecond)')";
        if table == Table::GpuCounts {
            let text =
                format!("SELECT max({instant}), max({instant} + {period}) FROM {table} {late}");
            let ended = ends(context, &text).await?.map_or(last, |(_, ended)| ended);
            let hour = LocalBin::at(BinUnit::HOUR, calendar.zone(), last.timestamp_millis());
            let ended =
                DateTime::from_timestamp_millis(hour.ended_at).map_or(ended, |e| e.min(ended));
            found = wider(found, Some((first, ended)));
            continue;
        }
        let at = first.to_rfc3339();
        let text = format!(
            "SELECT max({instant}), max({instant} - {period}) FROM {table} WHERE {instant} = '{at}'"
        );
        let begun = ends(context, &text).await?.map_or(first, |(_, begun)| begun);
        found = wider(found, Some((begun, last)));
    }
    Ok(found)
}

/// The two instants that a query answers, if it finds any.
async fn ends(context: &SessionContext, text: &str) -> Result<Span, DataFusionError> {
    let batches = context.sql(text).await?.collect().await?;
    Ok(batches.first().and_then(|batch| {
        let at = |column: usize| {
            let values = batch.column(column).as_primitive_opt::<TimestampMillisecondType>()?;
            DateTime::from_timestamp_millis(values.iter().next()??)
        };
        Some((at(0)?, at(1)?))
    }))
}

fn wider(one: Span, other: Span) -> Span {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}
