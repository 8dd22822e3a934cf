//! What `loadline collect` answers: rows that are sent are kept, and how collecting goes is told.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loadline_ingest::collect::{Gathered, Health, Sender};
use loadline_ingest::source::remote_write::{RemoteWrite, RemoteWriteError};

use super::metrics::page;
use super::request::{Request, Response};
use super::token::{Token, TurnedAway};

/// Name of the receiver in the health page.
const NAME: &str = "remote-write";

/// Key of the file with the token.
pub const BEARER_TOKEN_FILE: &str = "`collect.door.bearer_token_file`";

/// Time in which rows must be in the log: less than senders wait (30 s).
const KEPT_WITHIN: Duration = Duration::from_secs(20);

/// Answers `POST /api/v1/write` and `GET /metrics`.
#[derive(Debug)]
pub struct CollectDesk {
    /// Makes rows of what is sent; without it nothing is taken.
    pub receiver: Option<RemoteWrite>,
    /// Hands rows to the writer.
    pub sender: Sender,
    /// How collecting goes.
    pub health: Arc<Health>,
    /// File with the token that whoever sends rows must have.
    pub bearer_token_file: Option<PathBuf>,
}

impl CollectDesk {
    /// The answer to a request.
    #[must_use]
    pub fn answer(&self, request: &Request) -> Response {
        match (request.method.as_str(), request.path.as_str(), &self.receiver) {
            ("POST", "/api/v1/write", Some(receiver)) => self.write(receiver, request),
            ("GET", "/metrics", _) => page(&self.health),
            (_, "/metrics", _) | (_, "/api/v1/write", Some(_)) => {
                Response::text("405 Method Not Allowed", "POST /api/v1/write or GET /metrics")
            }
            _ => Response::text("404 Not Found", "POST /api/v1/write or GET /metrics"),
        }
    }

    fn write(&self, receiver: &RemoteWrite, request: &Request) -> Response {
        if let Some(refused) = self.stranger(request) {
            return refused;
        }
        let began = Instant::now();
        // Read as 1.0 such a message is empty. The sender falls back when it is told.
        if request.content_type.as_ref().is_some_and(|kind| kind.contains("write.v2")) {
            let why = "remote-write 2.0 is not known here: send 1.0".to_owned();
            self.health.round(NAME, &Gathered::default(), Some(why.clone()), began.elapsed());
            return Response::text("415 Unsupported Media Type", &why);
        }
        let gathered = match receiver.receive(&request.body) {
            Ok(gathered) => gathered,
            // It would not be understood the next time either: the sender drops it.
            Err(error) => {
                let why = error.to_string();
                self.health.round(NAME, &Gathered::default(), Some(why.clone()), began.elapsed());
                return match error {
                    RemoteWriteError::Rows(_) => Response::text("500 Internal Server Error", &why),
                    _ => Response::text("400 Bad Request", &why),
                };
            }
        };
        match self.sender.keep(gathered.clone(), KEPT_WITHIN) {
            Ok(_) => {
                self.health.round(NAME, &gathered, None, began.elapsed());
                Response { status: "204 No Content", headers: Vec::new(), body: String::new() }
            }
            Err(error) => {
                let why = format!("rows were not kept, and are asked for again: {error}");
                self.health.round(NAME, &Gathered::default(), Some(why.clone()), began.elapsed());
                receiver.not_kept(gathered);
                let mut response = Response::text("503 Service Unavailable", &why);
                response.headers.push(("Retry-After", "5".into()));
                response
            }
        }
    }

    /// The answer to one who lacks the token, where there is one.
    fn stranger(&self, request: &Request) -> Option<Response> {
        let token = Token::in_file(self.bearer_token_file.as_ref()?, BEARER_TOKEN_FILE);
        match token.check(request.authorization.as_deref()) {
            Ok(()) => return None,
            Err(TurnedAway::NoToken(why)) => {
                self.health.round(NAME, &Gathered::default(), Some(why), Duration::ZERO);
                return Some(Response::text("503 Service Unavailable", "the token cannot be read"));
            }
            Err(TurnedAway::Stranger) => {}
        }
        self.health.refused(NAME, "somebody without the token was turned away");
        let mut response = Response::text("401 Unauthorized", "give the token of this door");
        response.headers.push(("WWW-Authenticate", "Bearer".into()));
        Some(response)
    }
}
