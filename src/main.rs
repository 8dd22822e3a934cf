//! The `loadline` program.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use loadline::{cli::Cli, commands};

#[tokio::main]
async fn main() -> ExitCode {
    match commands::run(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nothing more can be said where standard error is closed.
            let _ = write!(std::io::stderr(), "{failure}");
            ExitCode::from(failure.code())
        }
    }
}
