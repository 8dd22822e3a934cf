#![cfg_attr(test, allow(clippy::unwrap_used))]

//! SQL over the store: `session.rs` (tables) → `function.rs` (local time, intervals) → `view.rs`
//! → `query.rs` (named questions).

pub mod calendar;
pub mod config;
mod error;
mod function;
pub mod output;
pub mod query;
mod session;
mod setting;
mod span;
mod table;
mod view;

pub use config::EngineConfig;
pub use error::{EngineError, ErrorKind};
pub use query::{NamedQuery, Params};
pub use session::{Answer, Session};
