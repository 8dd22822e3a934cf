//! Prometheus remote-write 1.0: series that a Prometheus, or an agent like one, sends.
//!
//! A sender cuts what it has into requests as it likes, so that one scrape of a GPU may come in two
//! of them, through connections side by side. Each makes a row with what it knows; the store brings
//! rows of one reading together.
//!
//! # Source
//! The Prometheus remote-write specification 1.0 and `prompb/remote.proto`: a POST of a
//! `WriteRequest` in protobuf, compressed as one block of snappy.

mod message;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};

use arrow::array::RecordBatch;
use chrono::Utc;
use serde::Deserialize;

use self::message::{Message, Sample, TimeSeries};
use super::dcgm::{Live, MetricMap, MetricMaps, Options, Sent};
use super::input::Input;
use super::instant::untimely;
use crate::batch::{Output as _, Reject};
use crate::collect::Gathered;
use crate::error::IngestError;
use crate::schema::Table;

/// Bytes of a request after unpacking: as much as senders are known to make.
const UNPACKED_BYTES_MAX: usize = 32 << 20;

/// Batches that were not kept and whose news must not be lost.
const NEWS_MAX: usize = 1_000;

/// The value by which a sender says that a series has ended: no reading.
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// Settings of receiving.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RemoteWriteSettings {
    /// Cluster of series that name none.
    pub cluster: Option<String>,
    /// Metrics that are none of DCGM, and what they fill.
    pub map: Vec<MetricMap>,
}

/// Why a request was not understood. It would not be the next time either: its sender should drop
/// it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteWriteError {
    /// The body is no block of snappy.
    #[error("the body is no snappy block: {0}")]
    Snappy(#[from] snap::Error),
    /// The body is too long.
    #[error("the body has {bytes} bytes unpacked; at most {UNPACKED_BYTES_MAX} are taken")]
    TooLong {
        /// Bytes after unpacking.
        bytes: usize,
    },
    /// The body is no `WriteRequest`.
    #[error("the body is no WriteRequest of remote-write 1.0: at byte {at} {reason}")]
    Message {
        /// Byte after unpacking.
        at: usize,
        /// What was found there.
        reason: &'static str,
    },
    /// Its rows could not be made: a bug on our side.
    #[error("could not make rows of the request")]
    Rows(#[from] IngestError),
}

/// Makes rows of what is sent.
#[derive(Debug)]
pub struct RemoteWrite {
    options: Options,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    known: Live,
    /// Events and devices of requests that were not kept.
    news: Vec<(Table, RecordBatch)>,
}

impl RemoteWrite {
    /// A receiver.
    ///
    /// # Errors
    /// [`IngestError::Setting`] for a map that means nothing.
    pub fn new(settings: &RemoteWriteSettings) -> Result<Self, IngestError> {
        let options = Options {
            cluster: settings.cluster.clone(),
            maps: MetricMaps::new(&settings.map)?,
            ..Options::default()
        };
        let state = State { known: Live::in_parts(), news: Vec::new() };
        Ok(Self { options, state: Mutex::new(state) })
    }

    /// The rows of one request. Series of other metrics are passed over.
    ///
    /// # Errors
    /// [`RemoteWriteError`] for a body that is no request.
    pub fn receive(&self, body: &[u8]) -> Result<Gathered, RemoteWriteError> {
        let bytes = snap::raw::decompress_len(body)?;
        if bytes > UNPACKED_BYTES_MAX {
            return Err(RemoteWriteError::TooLong { bytes });
        }
        let body = snap::raw::Decoder::new().decompress_vec(body)?;
        let series = Message::series_of(&body)?;
        let mut gathered = Gathered::default();
        let input = Input::stream("remote-write");
        let now_ms = Utc::now().timestamp_millis();
        let sent = series.iter().flat_map(|series| readings(series, now_ms));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.known.sent(&input, sent, &self.options, &mut gathered)?;
        for (table, rows) in std::mem::take(&mut state.news) {
            gathered.rows(table, rows)?;
        }
        drop(state);
        for series in &series {
            for sample in &series.samples {
                let Some(why) = untimely(sample.at_ms, now_ms) else { continue };
                gathered.reject(Reject {
                    file: input.name().to_owned(),
                    line: None,
                    reason: format!("its time, {} ms since 1970, is {why}", sample.at_ms),
                    text: series.identity.chars().take(200).collect(),
                });
            }
        }
        Ok(gathered)
    }

    /// Takes back what was not kept. The sender comes again with its readings; what was news in
    /// them, an event or a device, goes with the next request that is.
    pub fn not_kept(&self, gathered: Gathered) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let room = NEWS_MAX.saturating_sub(state.news.len());
        let news = gathered.rows.into_iter().filter(|(table, _)| *table != Table::Samples);
        state.news.extend(news.take(room));
    }
}

/// The readings of a series: not its end, and nothing outside of time.
fn readings<'s>(series: &'s TimeSeries<'_>, now_ms: i64) -> impl Iterator<Item = Sent<'s>> {
    let good = move |sample: &&Sample| {
        sample.value.to_bits() != STALE && untimely(sample.at_ms, now_ms).is_none()
    };
    series.samples.iter().filter(good).map(|sample| Sent {
        name: series.name,
        labels: &series.labels,
        identity: &series.identity,
        value: sample.value,
        at_ms: sample.at_ms,
    })
}
