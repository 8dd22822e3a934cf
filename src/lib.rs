#![cfg_attr(test, allow(clippy::unwrap_used))]

//! The `loadline` program as a library: adapters around the engine, no arithmetic.

pub mod cli;
pub mod commands;
pub mod config;
pub mod demo;
pub mod elapsed;
pub mod failure;
pub mod report;
pub mod serve;
