#![cfg_attr(test, allow(clippy::unwrap_used))]

//! SQL over the store: `session.rs` (tables) → `function.rs` (local time, intervals) → `view.rs`
//! → `query.rs` (named questions).

pub mod calendar;
mod error;
mod function;
pub mod query;
mod session;
mod view;

pub use error::EngineError;
pub use query::{NamedQuery, Params};
pub use session::{Answer, EngineConfig, Session};
