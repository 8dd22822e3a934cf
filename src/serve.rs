//! Doors: servers that others talk to.

mod collect;
mod door;
mod metrics;
mod request;
#[cfg(test)]
mod tests;

pub use collect::CollectDesk;
pub use door::{Door, DoorSettings};
pub use metrics::page;
pub use request::{Request, Response};
