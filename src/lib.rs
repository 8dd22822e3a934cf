//! The `loadline` program as a library: adapters around the engine, no arithmetic.

pub mod cli;
pub mod demo;
pub mod elapsed;
pub mod failure;
pub mod report;
