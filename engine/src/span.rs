//! From when until when does the store tell anything?

use std::collections::HashMap;

use arrow::array::AsArray;
use arrow::datatypes::TimestampMillisecondType;
use chrono::{DateTime, NaiveDate, Utc};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;

/// First and last day of each table that is kept by day.
pub(crate) type Days = HashMap<&'static str, (NaiveDate, NaiveDate)>;

pub(crate) type Span = Option<(DateTime<Utc>, DateTime<Utc>)>;

/// Earliest and latest instant of jobs, counts and readings; a reading stands for the time before
/// it. Of tables kept by day only the first and last day are read.
pub(crate) async fn span(
    context: &SessionContext,
    days: Option<&Days>,
) -> Result<Span, DataFusionError> {
    let mut found = None;
    for text in [
        "SELECT min(coalesce(submitted_at, started_at)), max(coalesce(ended_at, started_at, \
         submitted_at)) FROM jobs",
        "SELECT min(started_at), max(coalesce(ended_at, started_at)) FROM allocations",
    ] {
        found = wider(found, ends(context, text).await?);
    }
    for (table, instant) in
        [("samples", "sampled_at"), ("gpu_counts", "counted_at"), ("node_samples", "sampled_at")]
    {
        let (early, late) = match days.and_then(|days| days.get(table)) {
            Some((first, last)) => (
                format!("WHERE {instant} < '{}T00:00:00Z'", first.succ_opt().unwrap_or(*first)),
                format!("WHERE {instant} >= '{last}T00:00:00Z'"),
            ),
            None => (String::new(), String::new()),
        };
        let between =
            |clause| format!("SELECT min({instant}), max({instant}) FROM {table} {clause}");
        let early = ends(context, &between(early)).await?;
        let late = ends(context, &between(late)).await?;
        let (Some((first, _)), Some((_, last))) = (early, late) else {
            continue;
        };
        let at = first.to_rfc3339();
        let text = format!(
            "SELECT max({instant}), max({instant} - arrow_cast(CAST(coalesce(period_s, 0) * 1000 \
             AS BIGINT), 'Duration(Millisecond)')) FROM {table} WHERE {instant} = '{at}'"
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
