//! A small server of HTTP/1.1: a thread a connection, with limits on all of it.
//!
//! # Why
//! Two addresses are asked by a handful of machines near by. A larger server would bring features
//! into the HTTP client that every build has.

use std::io::Read as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use loadline_ingest::collect::Stop;
use serde::Deserialize;

use super::open::Open;
use super::request::{NoRequest, Request, Response, end, next};
use crate::failure::Failure;

/// Time in which an answer must be taken.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Settings of the door.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DoorSettings {
    /// Address to listen on; port 0 is any that is free. Only this machine reaches the loopback.
    pub listen: String,
    /// Bytes of a body as it is sent, at most.
    pub body_bytes_max: usize,
    /// File with the token that whoever sends rows must have; read at every request.
    pub bearer_token_file: Option<PathBuf>,
}

impl Default for DoorSettings {
    fn default() -> Self {
        Self { listen: "127.0.0.1:9464".into(), body_bytes_max: 16 << 20, bearer_token_file: None }
    }
}

/// An open door.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    address: SocketAddr,
    body_bytes_max: usize,
}

impl Door {
    /// Listens.
    ///
    /// # Errors
    /// An address that is none or is taken.
    pub fn open(settings: &DoorSettings) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(format!("could not listen on `{}`: {error}", settings.listen))
                .hint("name an address that is free, such as `127.0.0.1:9465`")
        };
        let listener = TcpListener::bind(&settings.listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, body_bytes_max: settings.body_bytes_max })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is set; requests that are under way are answered to their end.
    pub fn serve(&self, answer: &(dyn Fn(&Request) -> Response + Sync), stop: &Stop) {
        let open = Open::default();
        thread::scope(|scope| {
            scope.spawn(|| {
                stop.wait();
                // Wakes the one that waits below, and those that rest between two requests.
                let _ = TcpStream::connect_timeout(&self.own(), Duration::from_secs(1));
                open.close();
            });
            for (number, stream) in self.listener.incoming().enumerate() {
                if stop.is_set() {
                    break;
                }
                let Ok(mut stream) = stream else { continue };
                let _ = stream.set_write_timeout(Some(ANSWER_WITHIN));
                let _ = stream.set_nodelay(true);
                if !open.add(number, &stream) {
                    let full = Response::text("503 Service Unavailable", "too many connections");
                    let _ = full.send(&mut stream, true);
                    // What it has asked by now is taken, so that it hears the answer.
                    let _ = stream.set_nonblocking(true);
                    let _ = stream.read(&mut [0; 4096]);
                    continue;
                }
                let open = &open;
                scope.spawn(move || {
                    self.talk(stream, answer, stop, &|waits| open.note(number, waits));
                    open.remove(number);
                });
            }
            // One that came in between is closed as well.
            open.close();
        });
    }

    /// Answers one request after the other; `note` hears whether it waits for one.
    fn talk(
        &self,
        mut stream: TcpStream,
        answer: &(dyn Fn(&Request) -> Response + Sync),
        stop: &Stop,
        note: &dyn Fn(bool),
    ) {
        let mut rest = Vec::new();
        let mut first = true;
        loop {
            note(true);
            let asked = next(&mut stream, &mut rest, self.body_bytes_max, first, &|| note(false));
            first = false;
            let (response, last, whole) = match asked {
                Ok(request) => (answer(&request), request.last || stop.is_set(), true),
                Err(NoRequest::Refused(response)) => (response, true, false),
                Err(NoRequest::Ended) => return,
            };
            if response.send(&mut stream, last).is_err() {
                return;
            }
            if last {
                note(true);
                if !whole {
                    end(&mut stream);
                }
                return;
            }
        }
    }

    /// The address by which it reaches itself.
    fn own(&self) -> SocketAddr {
        let mut own = self.address;
        if own.ip().is_unspecified() {
            match own {
                SocketAddr::V4(_) => own.set_ip(Ipv4Addr::LOCALHOST.into()),
                SocketAddr::V6(_) => own.set_ip(Ipv6Addr::LOCALHOST.into()),
            }
        }
        own
    }
}
