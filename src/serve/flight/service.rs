//! The calls of Flight, of which one is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use loadline_ingest::collect::{Gathered, Health, Sender};
use loadline_ingest::ship::{KNOWN, Put, PutError, receive};
use tokio::sync::Semaphore;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

use crate::serve::token::{Token, TurnedAway};

/// Name in the health page of calls that hold no rows, or not from a known log.
const NAME: &str = "flight";

/// Calls whose rows are in memory at the same time; further ones wait.
const CALLS_MAX: usize = 32;

/// Time in which rows must be in the log: less than senders wait (30 s).
const KEPT_WITHIN: Duration = Duration::from_secs(20);

/// Hands rows that come by Flight to the writer.
#[derive(Debug)]
pub struct FlightDesk {
    sender: Sender,
    health: Arc<Health>,
    token: Option<Token>,
    /// Whether the token could not be read when somebody came last.
    without_token: AtomicBool,
    calls: Semaphore,
}

impl FlightDesk {
    /// A desk before the writer at the other end of `sender`; whoever has no token is turned away.
    #[must_use]
    pub fn new(sender: Sender, health: Arc<Health>, token: Option<Token>) -> Self {
        let (without_token, calls) = (AtomicBool::new(false), Semaphore::new(CALLS_MAX));
        Self { sender, health, token, without_token, calls }
    }

    fn admit(&self, metadata: &MetadataMap) -> Result<(), Status> {
        let Some(token) = &self.token else { return Ok(()) };
        let given = metadata.get("authorization").and_then(|value| value.to_str().ok());
        match token.check(given) {
            Ok(()) => {
                if self.without_token.swap(false, Ordering::Relaxed) {
                    self.note(NAME, &Gathered::default(), None, Instant::now());
                }
                Ok(())
            }
            Err(TurnedAway::NoToken(why)) => {
                self.without_token.store(true, Ordering::Relaxed);
                self.note(NAME, &Gathered::default(), Some(why), Instant::now());
                Err(Status::unavailable("the token of this server cannot be read"))
            }
            Err(TurnedAway::Stranger) => {
                self.health.refused(NAME, "somebody without the token was turned away");
                Err(Status::unauthenticated("give the token of this server"))
            }
        }
    }

    /// Keeps the rows of a call, and tells how far they reach.
    /// How many of them had come before stands beside it.
    async fn keep(&self, put: Put, began: Instant) -> Result<(PutResult, u64), Status> {
        let Put { log, until, gathered } = put;
        let name = log.as_deref().map_or_else(|| NAME.to_owned(), of);
        let (sender, rows) = (self.sender.clone(), gathered.clone());
        let kept = tokio::task::spawn_blocking(move || sender.keep(rows, KEPT_WITHIN)).await;
        match kept.map_err(|_| Status::internal("this server is ending"))? {
            Ok(known) => {
                self.note(&name, &gathered, None, began);
                let until = until.map(|until| until.to_string()).unwrap_or_default();
                Ok((PutResult { app_metadata: until.into() }, known))
            }
            Err(error) => {
                let why = format!("rows were not kept, and are asked for again: {error}");
                self.note(&name, &Gathered::default(), Some(why.clone()), began);
                Err(Status::unavailable(why))
            }
        }
    }

    fn note(&self, name: &str, gathered: &Gathered, failure: Option<String>, began: Instant) {
        self.health.round(name, gathered, failure, began.elapsed());
    }
}

/// `flight n1` of the log `loadline-wal/n1/00ff`.
fn of(log: &str) -> String {
    let name = log.split('/').nth(1).unwrap_or(log);
    format!("{NAME} {name}")
}

fn unknown<T>(method: &str) -> Result<T, Status> {
    Err(Status::unimplemented(format!(
        "{method}: this server takes rows by DoPut; ask `loadline sql`, or read the Delta tables"
    )))
}

type Answers<T> = BoxStream<'static, Result<T, Status>>;

#[tonic::async_trait]
impl FlightService for FlightDesk {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoExchangeStream = Answers<FlightData>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        self.admit(request.metadata())?;
        let room = self.calls.acquire().await;
        let _room = room.map_err(|_| Status::unavailable("this server is ending"))?;
        let began = Instant::now();
        let put = receive(request.into_inner()).await.map_err(|error| {
            let status = match &error {
                PutError::Malformed(words) => Status::invalid_argument(words),
                PutError::TooLarge => Status::resource_exhausted(error.to_string()),
                PutError::Broken(status) => Status::new(status.code(), status.message()),
                error => Status::internal(error.to_string()),
            };
            // It says nothing of the door, nor of those who send what can be understood.
            self.health.refused(NAME, status.message());
            status
        })?;
        let (answer, known) = self.keep(put, began).await?;
        let mut answer = Response::new(futures::stream::iter([Ok(answer)]).boxed());
        answer.metadata_mut().insert(KNOWN, known.into());
        Ok(answer)
    }

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        unknown("Handshake")
    }

    async fn list_flights(
        &self,
        _: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        unknown("ListFlights")
    }

    async fn get_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        unknown("GetFlightInfo")
    }

    async fn poll_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        unknown("PollFlightInfo")
    }

    async fn get_schema(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        unknown("GetSchema")
    }

    async fn do_get(&self, _: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        unknown("DoGet")
    }

    async fn do_exchange(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        unknown("DoExchange")
    }

    async fn do_action(
        &self,
        _: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        unknown("DoAction")
    }

    async fn list_actions(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        unknown("ListActions")
    }
}
