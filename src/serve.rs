//! Doors: servers that others talk to.

mod collect;
mod door;
mod flight;
mod metrics;
mod open;
mod request;
#[cfg(test)]
mod tests;
mod token;

pub use collect::{BEARER_TOKEN_FILE, CollectDesk};
pub use door::{Door, DoorSettings};
pub use flight::{Flight, FlightDesk, FlightSettings};
pub use metrics::page;
pub use request::{Request, Response};
pub use token::{Token, TurnedAway};
