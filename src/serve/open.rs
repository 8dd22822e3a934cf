//! The connections of a door: how many there may be, and which of them goes for another.

use std::collections::HashMap;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Connections at the same time. For a further one the longest of those ends that wait and have
/// sent nothing; where there is none, it is turned away.
const CONNECTIONS_MAX: usize = 256;

/// The same of one address.
pub(super) const CONNECTIONS_OF_ONE_MAX: usize = 128;

/// Connections that are open; none is added once it was closed.
#[derive(Debug, Default)]
pub(super) struct Open(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    connections: HashMap<usize, Connection>,
    closed: bool,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    from: Option<IpAddr>,
    /// Since when it waits and has sent nothing; none while it asks or is answered.
    waits_since: Option<Instant>,
}

impl State {
    /// Makes room for one more from `from`, if that is possible.
    fn room(&mut self, from: Option<IpAddr>) -> bool {
        let of_one = self.connections.values().filter(|other| other.from == from).count();
        let crowded = of_one >= CONNECTIONS_OF_ONE_MAX;
        if !crowded && self.connections.len() < CONNECTIONS_MAX {
            return true;
        }
        // One that asks too much makes room among its own.
        let waiting = self.connections.iter().filter(|(_, other)| !crowded || other.from == from);
        let longest = waiting.filter_map(|(number, other)| Some((other.waits_since?, *number)));
        let Some((_, number)) = longest.min() else { return false };
        if let Some(evicted) = self.connections.remove(&number) {
            let _ = evicted.stream.shutdown(Shutdown::Both);
        }
        true
    }
}

impl Open {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one in, if there is room for it.
    pub(super) fn add(&self, number: usize, stream: &TcpStream) -> bool {
        let mut state = self.state();
        let Ok(stream) = stream.try_clone() else { return false };
        let from = stream.peer_addr().ok().map(|address| address.ip());
        let room = !state.closed && state.room(from);
        if room {
            let waits_since = Some(Instant::now());
            state.connections.insert(number, Connection { stream, from, waits_since });
        }
        room
    }

    /// Whether it waits and has sent nothing.
    pub(super) fn note(&self, number: usize, waits: bool) {
        if let Some(connection) = self.state().connections.get_mut(&number) {
            connection.waits_since = waits.then(Instant::now);
        }
    }

    /// Forgets one that ended.
    pub(super) fn remove(&self, number: usize) {
        self.state().connections.remove(&number);
    }

    /// Nothing more is read from any; what is answered still goes out.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        for connection in state.connections.values() {
            let _ = connection.stream.shutdown(Shutdown::Read);
        }
    }
}
