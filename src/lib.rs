//! The `loadline` program as a library: adapters around the engine, no arithmetic.

pub mod report;
