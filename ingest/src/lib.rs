#![cfg_attr(test, allow(clippy::unwrap_used))]

//! From files that fleets write to rows in the store.
//!
//! Main path: [`source`] (a format) -> [`batch::Output`] (rows, rejects, notices) -> import
//! (deduplicate, order, integrate time) -> store (one Delta table per [`schema::Table`]).

pub mod batch;
pub mod collect;
pub mod compact;
pub mod doctor;
pub mod error;
pub mod event;
pub mod import;
mod merge;
pub mod period;
pub mod retain;
pub mod rollup;
pub mod schema;
pub mod ship;
pub mod source;
pub mod store;
pub mod wal;
pub mod workload;

pub use error::IngestError;
pub use event::{Event, EventKind};
pub use import::{Import, ImportSettings, ImportSummary};
pub use schema::Table;
pub use store::{Dropped, FileEntry, Store, TableSnapshot};
