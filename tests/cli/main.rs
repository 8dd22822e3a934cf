#![allow(clippy::unwrap_used, missing_docs)]

//! The program as a user meets it: whole commands on a small made-up fleet, their output pinned.

mod answers;
mod clients;
mod collects;
mod decides;
mod fleet;
mod imports;
mod keeps;
mod ledgers;
mod object_stores;
mod proposes;
mod refusals;
mod reports;
mod ships;
mod strays;
mod times;
