//! How collecting goes, for the health page and the last word on stderr.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Gathered;
use crate::batch::Reject;
use crate::source::text::{plain, shown};
use crate::wal::Gone;

/// Sources that are told one by one, and the name of all further ones together.
const SOURCES_MAX: usize = 10_000;
const OTHERS: &str = "others";

/// How collecting goes. What is told here is also told to `tell`, in words.
pub struct Health {
    state: Mutex<State>,
    tell: Box<dyn Fn(&str) + Send + Sync>,
}

#[derive(Debug, Default)]
struct State {
    collectors: BTreeMap<String, CollectorHealth>,
    writer: WriterHealth,
    ship: Option<ShipHealth>,
}

/// How one source goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CollectorHealth {
    /// Rounds that were read.
    pub rounds_total: u64,
    /// Rounds that failed, wholly or in part.
    pub failures_total: u64,
    /// Rounds left out because the one before took too long, or the writer was behind.
    pub missed_total: u64,
    /// Rows read.
    pub rows_total: u64,
    /// Measurements set to NULL.
    pub nulled_total: u64,
    /// Lines kept aside.
    pub rejects_total: u64,
    /// File and reason of the last line that was told as kept aside, without its figures.
    pub last_reject: Option<String>,
    /// Seconds that the last round took.
    pub last_round_s: f64,
    /// When the last round that did not fail was read.
    pub last_success_at: Option<DateTime<Utc>>,
    /// Why the last round failed, if it did.
    pub last_failure: Option<String>,
    /// Calls that were refused: of somebody without the token, or that were not understood. They
    /// say nothing of how the source goes.
    pub refused_total: u64,
    /// Why the last of them was.
    pub last_refusal: Option<String>,
}

/// How writing goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WriterHealth {
    /// Rows in the log for good.
    pub rows_appended_total: u64,
    /// Rows that a sender repeated, and that were in the log before.
    pub rows_repeated_total: u64,
    /// Rows dropped because neither the log nor memory had room.
    pub rows_dropped_total: u64,
    /// Appends that failed and were tried again.
    pub append_failures_total: u64,
    /// Bytes in the log.
    pub wal_bytes: u64,
    /// Rows that waited in memory at the last append.
    pub rows_waiting: u64,
    /// Moves into the tables.
    pub flushes_total: u64,
    /// Moves that failed; the rows stay in the log.
    pub flush_failures_total: u64,
    /// Segments of the log of which some rows could not be read.
    pub segments_damaged_total: u64,
    /// Bytes of the log that somebody removed before they were moved on.
    pub wal_bytes_lost_total: u64,
    /// When rows were last moved.
    pub last_flush_at: Option<DateTime<Utc>>,
    /// Days compacted.
    pub days_compacted_total: u64,
}

/// How sending to a server goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ShipHealth {
    /// Rows that the server has.
    pub rows_shipped_total: u64,
    /// Calls that failed; what they held is sent again.
    pub failures_total: u64,
    /// Rows that were lost because the server was away for longer than the spool has room.
    pub rows_lost_total: u64,
    /// Segments of the spool of which some rows could not be read.
    pub segments_damaged_total: u64,
    /// Bytes that wait in the spool.
    pub spool_bytes: u64,
    /// When the server last took rows.
    pub last_success_at: Option<DateTime<Utc>>,
    /// Why the last call failed, if it did.
    pub last_failure: Option<String>,
}

impl std::fmt::Debug for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Health").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Health {
    /// Health of which nothing is known yet; `tell` hears of what goes wrong and comes right.
    #[must_use]
    pub fn new(tell: Box<dyn Fn(&str) + Send + Sync>) -> Self {
        Self { state: Mutex::default(), tell }
    }

    /// How each source goes, by its name.
    #[must_use]
    pub fn collectors(&self) -> BTreeMap<String, CollectorHealth> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).collectors.clone()
    }

    /// How writing goes.
    #[must_use]
    pub fn writer(&self) -> WriterHealth {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).writer.clone()
    }

    /// How sending to a server goes, where rows are sent to one.
    #[must_use]
    pub fn ship(&self) -> Option<ShipHealth> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ship.clone()
    }

    /// Counts a round of the source `name` that took `took`, and tells when it begins to fail or
    /// is well again.
    pub fn round(&self, name: &str, gathered: &Gathered, failure: Option<String>, took: Duration) {
        let (mut news, mut kept_aside) = (None, None);
        self.note(name, |known| {
            known.rounds_total += 1;
            known.rows_total += gathered.row_count();
            known.nulled_total += gathered.nulled;
            let aside = gathered.rejects.len() as u64 + gathered.rejects_untold;
            known.rejects_total += aside;
            known.last_round_s = took.as_secs_f64();
            news = match (&known.last_failure, &failure) {
                (None, Some(failure)) => Some(format!("{name}: {failure}")),
                (Some(before), Some(failure)) if before != failure => {
                    Some(format!("{name}: {failure}"))
                }
                (Some(_), None) => Some(format!("{name}: well again")),
                _ => None,
            };
            match &failure {
                Some(_) => known.failures_total += 1,
                None => known.last_success_at = Some(Utc::now()),
            }
            known.last_failure = failure;
            kept_aside = told_aside(name, &gathered.rejects, aside, &mut known.last_reject);
        });
        for text in
            news.iter().chain(&kept_aside).chain(gathered.notices.iter().map(|notice| &notice.text))
        {
            self.tell(text);
        }
    }

    /// Counts a call of the source `name` that was refused, and tells why where that is another
    /// reason than that of the one before. It changes nothing of how the source goes.
    pub fn refused(&self, name: &str, why: &str) {
        let why = plain(why);
        let mut news = false;
        self.note(name, |known| {
            known.refused_total += 1;
            news = known.last_refusal.as_ref() != Some(&why);
            known.last_refusal = Some(why.clone());
        });
        if news {
            self.tell(&format!("{name}: {why}"));
        }
    }

    /// Counts and tells what somebody removed of the log while it was in use.
    pub(crate) fn note_gone(&self, gone: Option<Gone>) {
        let Some(Gone { segments, bytes, healed }) = gone else { return };
        self.note_writer(|known| known.wal_bytes_lost_total += bytes);
        let lost = match segments {
            0 => "nothing waited in it".to_owned(),
            1 => format!("a segment of {bytes} bytes is lost, with the rows that waited in it"),
            _ => format!("{segments} segments of {bytes} bytes are lost, with the rows in them"),
        };
        let anew = if healed { "; it was made anew and takes rows" } else { "" };
        self.tell(&format!("the write-ahead log was removed while it was in use: {lost}{anew}"));
    }

    pub(super) fn note(&self, name: &str, note: impl FnOnce(&mut CollectorHealth)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Who sends rows chooses a name: those of a large fleet have room, and not any number.
        let room = state.collectors.len() < SOURCES_MAX || state.collectors.contains_key(name);
        let name = if room { plain(name) } else { OTHERS.to_owned() };
        note(state.collectors.entry(name).or_default());
    }

    pub(super) fn note_writer(&self, note: impl FnOnce(&mut WriterHealth)) {
        note(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).writer);
    }

    pub(crate) fn note_ship(&self, note: impl FnOnce(&mut ShipHealth)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        note(state.ship.get_or_insert_default());
    }

    pub(crate) fn tell(&self, text: &str) {
        (self.tell)(&shown(text));
    }
}

/// That lines were kept aside, where another file or another reason than `last` is the first.
fn told_aside(
    name: &str,
    rejects: &[Reject],
    count: u64,
    last: &mut Option<String>,
) -> Option<String> {
    let first = rejects.first()?;
    let Reject { file, line, reason, .. } = first;
    // The same reason comes with other figures at every round.
    let plain = |c: char| !c.is_ascii_digit() && !c.is_control();
    let key = format!("{file}: {}", reason.chars().filter(|c| plain(*c)).collect::<String>());
    if last.replace(key.clone()).as_ref() == Some(&key) {
        return None;
    }
    let at = line.map_or_else(String::new, |line| format!(":{line}"));
    let reason: String = reason.chars().filter(|c| !c.is_control()).take(300).collect();
    Some(match count {
        1 => format!("{name}: a line was kept aside, {file}{at}: {reason}"),
        _ => format!("{name}: {count} lines were kept aside, the first {file}{at}: {reason}"),
    })
}
