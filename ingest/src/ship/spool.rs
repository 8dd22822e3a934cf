//! The log of a node while its server is away: what goes when it is full, and that this is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::TimestampMillisecondType;
use chrono::{DateTime, SecondsFormat, Utc};

use super::call::{Part, parts};
use super::state::{Lost, State};
use crate::collect::{Health, in_one_line};
use crate::error::IngestError;
use crate::event::{Event, EventKind, batch};
use crate::schema::Table;
use crate::source::text::counted;
use crate::wal::{Position, Wal};

/// Keeps a log within its limit.
#[derive(Debug)]
pub(super) struct Spool {
    to: String,
    node: Arc<str>,
    cluster: Option<Arc<str>>,
    pub(super) state: State,
    /// Whether the state is not on the disk as it is here.
    unkept: bool,
    /// Rows lost since the server was last there.
    lost: u64,
    /// Whether it could not be made room.
    failing: bool,
}

impl Spool {
    pub(super) fn new(to: String, node: &str, cluster: Option<&str>) -> Self {
        let (node, cluster) = (Arc::from(node), cluster.map(Arc::from));
        let state = State::default();
        Self { to, node, cluster, state, unkept: false, lost: 0, failing: false }
    }

    /// Takes up what is known of the log.
    pub(super) fn begin(&mut self, wal: &Wal, health: &Health) {
        match State::read(wal) {
            Ok(state) => self.state = state,
            Err(error) => health.tell(&in_one_line(&error)),
        }
    }

    /// Drops the oldest segments until there is room for one more; `reached` is what the server
    /// has of each table.
    pub(super) fn fit(
        &mut self,
        wal: &mut Wal,
        reached: &BTreeMap<Table, Position>,
        health: &Health,
    ) {
        // What keeps the log from being seen is told when rows are appended.
        let _ = wal.look();
        let gone = wal.gone();
        self.unkept |= gone.as_ref().is_some_and(|gone| gone.healed);
        health.note_gone(gone);
        if self.unkept {
            self.keep(wal);
        }
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

    /// Keeps the state; where it cannot be, it is tried again at the next look.
    pub(super) fn keep(&mut self, wal: &Wal) {
        self.unkept = self.state.keep(wal).is_err();
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
        let rows: u64 = parts.iter().map(|part| part.rows.num_rows() as u64).sum();
        // Counted before it goes: a crash in between counts it once.
        if rows > 0 && segment.number > self.state.dropped {
            self.state.lost.add(rows, span(&parts));
            self.state.dropped = segment.number;
            self.keep(wal);
        }
        wal.forget(segment.number, &[])?;
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
        Ok(true)
    }

    /// What is to be told of lost rows, if there are any: the same until [`Spool::has_told`].
    pub(super) fn next_word(&mut self, wal: &Wal) -> Result<Option<RecordBatch>, IngestError> {
        if self.state.telling.is_none() && self.state.lost.rows > 0 {
            let told_at_ms = Utc::now().timestamp_millis();
            let lost = std::mem::take(&mut self.state.lost);
            self.state.telling = Some(Lost { told_at_ms, ..lost });
            self.keep(wal);
        }
        let Some(lost) = &self.state.telling else { return Ok(None) };
        let told = |ms: i64| {
            let at = DateTime::from_timestamp_millis(ms).unwrap_or_default();
            at.to_rfc3339_opts(SecondsFormat::Secs, true)
        };
        let when = match lost.span_ms {
            Some((first, last)) => format!(" from {} to {}", told(first), told(last)),
            None => String::new(),
        };
        let at_ms = lost.span_ms.map_or(lost.told_at_ms, |(_, last)| last);
        let rows = counted(lost.rows, "row");
        let detail = format!("{rows}{when}: the spool was full");
        Ok(Some(batch(&[self.event(EventKind::RowsLost, at_ms, detail)])?))
    }

    /// The server has what was told.
    pub(super) fn has_told(&mut self, wal: &Wal) {
        self.state.telling = None;
        self.keep(wal);
    }

    /// Something that happened to the spool.
    pub(super) fn event(&self, kind: EventKind, event_at_ms: i64, detail: String) -> Event {
        let (cluster, node) = (self.cluster.clone(), Some(Arc::clone(&self.node)));
        Event { event_at_ms, cluster, node, gpu: None, gpu_uuid: None, mig: None, kind, detail }
    }

    /// Tells how many rows were lost while the server was away.
    pub(super) fn told(&mut self, health: &Health) {
        if self.lost > 0 {
            let rows = counted(self.lost, "row");
            health.tell(&format!("{rows} lost while {} was away", self.to));
        }
        self.lost = 0;
    }
}

/// First and last instant of the rows that have one, in ms since 1970.
fn span(parts: &[Part]) -> Option<(i64, i64)> {
    let instants = parts.iter().filter_map(|part| {
        let column = part.rows.column_by_name(part.table.partitioned_by()?)?;
        let at = column.as_primitive_opt::<TimestampMillisecondType>()?;
        Some((at.values().iter().min().copied()?, at.values().iter().max().copied()?))
    });
    instants.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}
