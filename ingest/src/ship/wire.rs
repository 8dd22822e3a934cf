//! What passes between a shipper and a server.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::{FlightData, FlightDescriptor};
use chrono::Utc;
use futures::{Stream, StreamExt};
use tonic::Status;

use crate::batch::{Output as _, Reject};
use crate::collect::{Gathered, in_one_line};
use crate::schema::Table;
use crate::source::sound::sound;
use crate::wal::{Origin, Position, check};

/// Bytes of one message that a server takes, at most.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Bytes of all messages of one call that a server takes, at most.
pub const CALL_BYTES_MAX: usize = 32 << 20;

/// Bytes of the name of a log, at most.
const LOG_BYTES_MAX: usize = 512;

/// Names rows of a table, and the log that they come from.
#[must_use]
pub fn descriptor(table: Table, log: Option<&str>) -> FlightDescriptor {
    let path = std::iter::once(table.name()).chain(log);
    FlightDescriptor::new_path(path.map(str::to_owned).collect())
}

/// Rows as they came in one call.
#[derive(Debug)]
pub struct Put {
    /// Log that they come from, if they come from one.
    pub log: Option<Arc<str>>,
    /// Where they end in it.
    pub until: Option<Position>,
    /// The rows.
    pub gathered: Gathered,
}

/// Why a call was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// It would not be understood the next time either.
    #[error("{0}")]
    Malformed(String),
    /// There is more of it than is taken.
    #[error("a call of more than {CALL_BYTES_MAX} bytes: send fewer rows at once")]
    TooLarge,
    /// It did not come to its end.
    #[error("the call did not come to its end: {}", .0.message())]
    Broken(Status),
}

/// Reads a call to its end.
///
/// # Errors
/// [`PutError`]; nothing of the call is kept.
pub async fn receive(
    mut messages: impl Stream<Item = Result<FlightData, Status>> + Send + Unpin + 'static,
) -> Result<Put, PutError> {
    let malformed = |words: String| PutError::Malformed(words);
    let first = match messages.next().await {
        Some(first) => first.map_err(PutError::Broken)?,
        None => return Err(malformed("a call without messages".into())),
    };
    let (table, log) = named(first.flight_descriptor.as_ref()).map_err(malformed)?;
    let mut left = CALL_BYTES_MAX;
    let messages = futures::stream::once(async { Ok(first) }).chain(messages).map(move |message| {
        let message = message?;
        let bytes = message.data_body.len() + message.data_header.len();
        left = left.checked_sub(bytes).ok_or_else(|| FlightError::ExternalError("large".into()))?;
        Ok(message)
    });
    let mut decoder = FlightDataDecoder::new(messages);
    let mut put = Put { log, until: None, gathered: Gathered::default() };
    let now_ms = Utc::now().timestamp_millis();
    while let Some(message) = decoder.next().await {
        let message = message.map_err(|error| match error {
            FlightError::Tonic(status) => PutError::Broken(*status),
            FlightError::ExternalError(_) => PutError::TooLarge,
            error => PutError::Malformed(words_of(&error)),
        })?;
        match message.payload {
            DecodedPayload::RecordBatch(rows) => {
                put.add(table, &rows, &message.inner.app_metadata, now_ms).map_err(malformed)?;
            }
            DecodedPayload::Schema(_) | DecodedPayload::None => {}
        }
    }
    Ok(put)
}

impl Put {
    fn add(
        &mut self,
        table: Table,
        rows: &RecordBatch,
        metadata: &[u8],
        now_ms: i64,
    ) -> Result<(), String> {
        check(table, rows).map_err(|error| words_of(&error))?;
        let mut origin = None;
        if let Some(log) = &self.log {
            let text = std::str::from_utf8(metadata).unwrap_or_default();
            let until: Position = text.parse()?;
            if self.until.is_some_and(|last| last >= until) || until.row < rows.num_rows() as u64 {
                return Err(format!("a batch that ends at {until} cannot be where it is"));
            }
            origin = Some(Origin { log: Arc::clone(log), until });
            self.until = Some(until);
        }
        let sound = sound(table, rows, now_ms).map_err(|error| in_one_line(&error))?;
        self.gathered.nulled += sound.nulled;
        for (row, reason) in sound.faults {
            self.gathered.reject(Reject {
                file: table.name().to_owned(),
                line: None,
                reason,
                text: format!("row {row}"),
            });
        }
        // Fewer rows than there were up to the same place: of a batch that comes again, cut
        // otherwise, some may be kept twice, which the table tells by their key. None is lost.
        if sound.rows.num_rows() > 0 {
            self.gathered.origins.extend(origin);
            self.gathered.rows.push((table, sound.rows));
        }
        Ok(())
    }
}

/// What an error says, without the name of its kind in the program.
fn words_of(error: &(dyn std::error::Error + 'static)) -> String {
    let text = in_one_line(error);
    let kinds = ["Schema error: ", "Parser error: ", "Ipc error: ", "Arrow error: "];
    kinds.iter().fold(text, |text, kind| text.replace(kind, ""))
}

fn named(descriptor: Option<&FlightDescriptor>) -> Result<(Table, Option<Arc<str>>), String> {
    let form = "the path of the descriptor is a table, and the log that rows come from if any";
    let path = descriptor.map_or(&[][..], |descriptor| &descriptor.path);
    let (table, log) = match path {
        [table] => (table, None),
        [table, log] if !log.is_empty() && log.len() <= LOG_BYTES_MAX => (table, Some(log)),
        _ => return Err(form.to_owned()),
    };
    let plain = |c: char| c.is_ascii_graphic();
    if log.is_some_and(|log| !log.chars().all(plain)) {
        return Err("the name of a log is made of letters, digits and signs of ASCII".to_owned());
    }
    Ok((table.parse()?, log.map(|log| Arc::from(log.as_str()))))
}
