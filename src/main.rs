//! The `loadline` program.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use loadline::failure::Failure;
use loadline::{cli::Cli, commands};
use mimalloc::MiMalloc;

/// Arrays of megabytes come and go on many threads. The C library's allocator keeps what one thread
/// freed from the others and from the system, so that the program grew to twice what it held.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Planning a question with many views inside each other goes deep.
const STACK_BYTES: usize = 16 << 20;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match answer(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nothing more can be said where standard error is closed.
            let _ = write!(std::io::stderr(), "{failure}");
            ExitCode::from(failure.code())
        }
    }
}

fn answer(cli: Cli) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build()?;
    // On a thread of the runtime, whose stack is ours to size; the main thread's is not.
    let command = runtime.spawn(async move { commands::run(cli).await });
    runtime.block_on(command).map_err(|error| Failure::from_error(&error))?
}
