//! The log of a node while its server is away: what goes when it is full.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::TimestampMillisecondType;
use chrono::{DateTime, SecondsFormat, Utc};

use super::call::{Part, parts};
use crate::collect::{Health, in_one_line};
use crate::error::IngestError;
use crate::event::{Event, EventKind, batch};
use crate::schema::Table;
use crate::wal::{Position, Wal};

/// Keeps a log within its limit.
#[derive(Debug)]
pub(super) struct Spool {
    to: String,
    node: Arc<str>,
    cluster: Option<Arc<str>>,
    /// Rows lost since the server was last there.
    lost: u64,
    /// Whether it could not be made room.
    failing: bool,
}

impl Spool {
    pub(super) fn new(to: String, node: &str, cluster: Option<&str>) -> Self {
        Self { to, node: Arc::from(node), cluster: cluster.map(Arc::from), lost: 0, failing: false }
    }

    /// Drops the oldest segments until there is room for one more; `reached` is what the server
    /// has of each table.
    pub(super) fn fit(
        &mut self,
        wal: &mut Wal,
        reached: &BTreeMap<Table, Position>,
        health: &Health,
    ) {
        let settings = wal.settings();
        let room = settings.segment_bytes.min(settings.bytes_max / 4);
        while wal.bytes_left() < room {
            let dropped = self.drop_oldest(wal, reached, health);
            if let Err(error) = &dropped
                && !self.failing
            {
                health.tell(&format!("no room in the spool: {}", in_one_line(error)));
            }
            self.failing = dropped.is_err();
            if !matches!(dropped, Ok(true)) {
                return;
            }
        }
    }

    /// Whether there was one.
    fn drop_oldest(
        &mut self,
        wal: &mut Wal,
        reached: &BTreeMap<Table, Position>,
        health: &Health,
    ) -> Result<bool, IngestError> {
        if wal.waiting().next().is_none() {
            wal.close();
        }
        let Some(place) = wal.waiting().next() else { return Ok(false) };
        let segment = wal.read(place)?;
        let (mut parts, _) = parts(&segment);
        parts.retain(|part| reached.get(&part.table).is_none_or(|known| part.until() > *known));
        wal.forget(segment.number, &[])?;
        let rows: u64 = parts.iter().map(|part| part.rows.num_rows() as u64).sum();
        if rows == 0 {
            return Ok(true);
        }
        if self.lost == 0 {
            let limit = wal.settings().bytes_max;
            health.tell(&format!(
                "the spool is full ({limit} bytes): the oldest rows are lost until {} takes some",
                self.to
            ));
        }
        self.lost += rows;
        health.note_ship(|known| known.rows_lost_total += rows);
        wal.append(&[(Table::Events, batch(&[self.event(&parts, rows)])?)])?;
        Ok(true)
    }

    fn event(&self, parts: &[Part], rows: u64) -> Event {
        let instants = parts.iter().filter_map(|part| {
            let column = part.rows.column_by_name(part.table.partitioned_by()?)?;
            let at = column.as_primitive_opt::<TimestampMillisecondType>()?;
            Some((at.values().iter().min().copied()?, at.values().iter().max().copied()?))
        });
        let span = instants.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let told = |ms: i64| {
            let at = DateTime::from_timestamp_millis(ms).unwrap_or_default();
            at.to_rfc3339_opts(SecondsFormat::Secs, true)
        };
        let when = match span {
            Some((first, last)) => format!(" from {} to {}", told(first), told(last)),
            None => String::new(),
        };
        Event {
            event_at_ms: span.map_or_else(|| Utc::now().timestamp_millis(), |(_, last)| last),
            cluster: self.cluster.clone(),
            node: Some(Arc::clone(&self.node)),
            gpu: None,
            gpu_uuid: None,
            mig: None,
            kind: EventKind::RowsLost,
            detail: format!("{rows} rows{when}: the spool was full"),
        }
    }

    /// Tells how many rows were lost while the server was away.
    pub(super) fn told(&mut self, health: &Health) {
        if self.lost > 0 {
            health.tell(&format!("{} rows were lost while {} was away", self.lost, self.to));
        }
        self.lost = 0;
    }
}
