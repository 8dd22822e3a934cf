//! What the writer is handed: rounds of sources, and rows whose sender waits until they are kept.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use super::Gathered;

/// Rounds of one source that wait for the writer, at most.
const ROUNDS_WAITING: usize = 64;

/// What the writer is handed.
#[derive(Debug)]
pub(super) enum Work {
    /// A round of a source.
    Round(Gathered),
    /// Rows whose sender waits for the answer.
    Asked(Gathered, SyncSender<Answer>),
    /// No more rounds will come.
    End,
}

/// How many of the rows had come before, once all are in the log, or why they are not.
pub(super) type Answer = Result<u64, String>;

/// Hands rows to the writer and waits until they are in the log; clones hand to the same one.
#[derive(Debug, Clone)]
pub struct Sender(SyncSender<Work>);

/// Where a [`Sender`] hands rows to, for [`super::run_with`].
#[derive(Debug)]
pub struct Inbox {
    pub(super) send: SyncSender<Work>,
    pub(super) receive: Receiver<Work>,
}

/// Why rows were not kept; whoever has them may hand them over again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotKept {
    /// The writer has enough to do.
    #[error("{ROUNDS_WAITING} rounds wait to be written")]
    Behind,
    /// The log refused them.
    #[error("{0}")]
    Refused(String),
    /// There was no answer in time: they may be kept, or not.
    #[error("they were not written within {} s", .0.as_secs_f64())]
    Late(Duration),
    /// Collecting has ended.
    #[error("collecting has ended")]
    Ended,
}

/// A sender and the inbox that it fills.
#[must_use]
pub fn inbox() -> (Sender, Inbox) {
    let (send, receive) = sync_channel(ROUNDS_WAITING);
    (Sender(send.clone()), Inbox { send, receive })
}

impl Sender {
    /// Returns when the rows are in the log, on the disk: how many of them had come before, from
    /// the log that they come from.
    ///
    /// # Errors
    /// [`NotKept`], when they are not, or not yet.
    pub fn keep(&self, gathered: Gathered, within: Duration) -> Result<u64, NotKept> {
        if gathered.rows.is_empty() {
            return Ok(0);
        }
        let (answer, answered) = sync_channel(1);
        self.0.try_send(Work::Asked(gathered, answer)).map_err(|error| match error {
            TrySendError::Full(_) => NotKept::Behind,
            TrySendError::Disconnected(_) => NotKept::Ended,
        })?;
        match answered.recv_timeout(within) {
            Ok(answer) => answer.map_err(NotKept::Refused),
            Err(RecvTimeoutError::Timeout) => Err(NotKept::Late(within)),
            Err(RecvTimeoutError::Disconnected) => Err(NotKept::Ended),
        }
    }
}
