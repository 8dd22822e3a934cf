#![cfg_attr(test, allow(clippy::unwrap_used))]

//! Questions in SQL over the store of a fleet.
//!
//! Main path: `config.rs` (what gives the numbers their meaning) → `session.rs` (a version of the
//! store) → `table.rs` (its files) → `function.rs` (local time, intervals, who held a GPU) →
//! `view.rs` (`queries/views/`) → `query.rs` (named questions) → `output.rs` (folders of files).
//!
//! What holds everywhere: nothing reads the clock, `as_of()` is the latest instant of the store or
//! the one that was given (`span.rs`); instants are UTC in SQL and carry the calendar's zone in the
//! answer of a named question (`answer.rs`); elapsed time is counted in UTC and only bins are local; what was not
//! measured is NULL; parts sum to the whole.
//!
//! A new question is a file in `queries/` and one in `tests/sql/`, and no line of Rust. A new
//! table is one of `loadline_ingest::Table`. A new function goes in `function.rs`, with a line in
//! `tests/sql/functions.slt`.

mod answer;
pub mod calendar;
mod cluster;
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

pub use answer::Answer;
pub use config::EngineConfig;
pub use error::{EngineError, ErrorKind};
pub use query::{NamedQuery, Params, Period};
pub use session::Session;
pub use span::Outlier;
