//! Pages of dcgm-exporter and of any other Prometheus exporter, fetched at intervals.
//!
//! All targets are asked at the same time, each with its own time limit: one that hangs, breaks off
//! or sends too much stops no other, and is named. A page counts for the instant at which its round
//! began, unless its lines tell their own. A series that is no longer on a page is not known.

mod fetch;
mod settings;
mod target;
#[cfg(test)]
mod tests;

use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::TimestampMillisecondType;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use futures::StreamExt;

use self::fetch::Fetcher;
pub use self::settings::{BasicAuth, ScrapeSettings, ScrapeTarget};
use self::target::Target;
use super::dcgm::{Live, MetricMaps, Options};
use super::input::Input;
use crate::batch::{Notice, Output, Reject};
use crate::collect::Collector;
use crate::error::IngestError;
use crate::schema::Table;

/// Targets that are asked at the same time; more wait for these.
pub const TARGETS_AT_ONCE: usize = 512;

/// Targets that a failure names.
const NAMED_MAX: usize = 5;

/// Fetches pages.
#[derive(Debug)]
pub struct ScrapeCollector {
    interval: Duration,
    stale_after: TimeDelta,
    maps: MetricMaps,
    fetcher: Fetcher,
    targets: Vec<Target>,
    /// What is known of the GPUs of each target.
    known: Vec<Live>,
    /// Begun on the thread that reads, by the first round.
    runtime: Option<tokio::runtime::Runtime>,
}

impl ScrapeCollector {
    /// A collector of the targets in `settings`.
    ///
    /// # Errors
    /// [`IngestError::Setting`] for a target that is no URL, a limit out of range or a map that
    /// means nothing; [`IngestError::Read`] for a file of certificates that cannot be read.
    pub fn new(settings: &ScrapeSettings) -> Result<Self, IngestError> {
        settings.check()?;
        let targets = Target::all(settings)?;
        Ok(Self {
            interval: Duration::from_secs_f64(settings.interval_s),
            stale_after: TimeDelta::milliseconds((settings.stale_after_s * 1000.0) as i64),
            maps: MetricMaps::new(&settings.map)?,
            fetcher: Fetcher::new(settings)?,
            known: targets.iter().map(|_| Live::default()).collect(),
            targets,
            runtime: None,
        })
    }

    /// Reads the page of a target; why it could not be read.
    fn take(
        &mut self,
        place: usize,
        page: Vec<u8>,
        now: DateTime<Utc>,
        out: &mut dyn Output,
    ) -> Result<(), String> {
        let target = &self.targets[place];
        let options = Options {
            node: target.node.clone(),
            cluster: target.cluster.clone(),
            time: Some(now),
            zone: None,
            maps: self.maps.clone(),
        };
        let input = Input::stream(&target.name);
        let mut watched = Watched { out, latest_ms: None };
        self.known[place].page(&input, page, &options, &mut watched).map_err(
            |error| match error {
                IngestError::Format { reason, .. } => reason,
                other => other.to_string(),
            },
        )?;
        let latest = watched.latest_ms.and_then(DateTime::from_timestamp_millis);
        match latest {
            Some(latest) if (now - latest).abs() > self.stale_after => Err(format!(
                "its latest reading is of {}, {} s {} the scrape",
                latest.to_rfc3339_opts(SecondsFormat::Secs, true),
                (now - latest).abs().num_seconds(),
                if latest < now { "before" } else { "after" }
            )),
            _ => Ok(()),
        }
    }

    fn round(
        &mut self,
        runtime: &tokio::runtime::Runtime,
        now: DateTime<Utc>,
        out: &mut dyn Output,
    ) -> Vec<(String, String)> {
        let fetcher = self.fetcher.clone();
        let targets = self.targets.clone();
        let fetched = targets.into_iter().enumerate().map(|(place, target)| {
            let fetcher = fetcher.clone();
            async move { (place, fetcher.fetch(&target).await) }
        });
        let mut fetched = futures::stream::iter(fetched).buffer_unordered(TARGETS_AT_ONCE);
        let mut failed = Vec::new();
        runtime.block_on(async {
            while let Some((place, page)) = fetched.next().await {
                if let Err(why) = page.and_then(|page| self.take(place, page, now, out)) {
                    failed.push((self.targets[place].name.clone(), why));
                }
            }
        });
        // They answer in any order; the same failures are told as the same.
        failed.sort();
        failed
    }
}

impl Collector for ScrapeCollector {
    fn name(&self) -> String {
        "scrape".to_owned()
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn collect(&mut self, now: DateTime<Utc>, out: &mut dyn Output) -> Result<(), IngestError> {
        let runtime = match self.runtime.take() {
            Some(runtime) => runtime,
            None => tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| failure("any target", error.to_string()))?,
        };
        let failed = self.round(&runtime, now, out);
        self.runtime = Some(runtime);
        if failed.is_empty() {
            return Ok(());
        }
        let told = failed.iter().take(NAMED_MAX);
        let mut reason = told.map(|(name, why)| format!("`{name}`: {why}")).collect::<Vec<_>>();
        if let Some(more) = failed.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            reason.push(format!("and {more} more"));
        }
        let from = format!("{} of {} targets", failed.len(), self.targets.len());
        Err(failure(&from, reason.join("; ")))
    }
}

fn failure(from: &str, reason: String) -> IngestError {
    IngestError::Collect { from: from.to_owned(), reason, hint: None }
}

/// Hands on what is read, and remembers the latest instant.
struct Watched<'o> {
    out: &'o mut dyn Output,
    latest_ms: Option<i64>,
}

impl Output for Watched<'_> {
    fn rows(&mut self, table: Table, rows: RecordBatch) -> Result<(), IngestError> {
        if table == Table::Samples
            && let Some(at) = rows.column_by_name("sampled_at")
        {
            let latest = arrow::compute::max(at.as_primitive::<TimestampMillisecondType>());
            self.latest_ms = self.latest_ms.max(latest);
        }
        self.out.rows(table, rows)
    }

    fn read(&mut self, rows: u64) {
        self.out.read(rows);
    }

    fn reject(&mut self, reject: Reject) {
        self.out.reject(reject);
    }

    fn notice(&mut self, notice: Notice) {
        self.out.notice(notice);
    }

    fn nulled(&mut self, column: &'static str, values: u64) {
        self.out.nulled(column, values);
    }
}
