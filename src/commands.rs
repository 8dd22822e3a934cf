//! One module per command; what they share is here.

mod ask;
mod demo;
mod import;
mod outlook;
mod print;
mod report;
mod shell;

use loadline_engine::Session;
use loadline_ingest::Store;

use crate::cli::{Cli, Command};
use crate::config::{self, Config};
use crate::failure::Failure;

/// Carries out a command.
///
/// # Errors
/// Whatever went wrong, ready to be shown.
pub async fn run(cli: Cli) -> Result<(), Failure> {
    let context = Context { store: cli.store, config: cli.config, now: cli.now };
    match cli.command {
        Command::Demo(args) => demo::run(&args).await,
        Command::Init(args) => init(&args),
        Command::Import(args) => import::run(&context, &args).await,
        Command::Sql(args) => ask::sql(&context, &args).await,
        Command::Query(args) => ask::query(&context, &args).await,
        Command::Forecast(args) => outlook::forecast(&context, &args).await,
        Command::Plan(args) => outlook::plan(&context, &args).await,
        Command::Report(args) => report::run(&context, &args).await,
    }
}

/// Where the store and the configuration are.
struct Context {
    store: String,
    config: Option<std::path::PathBuf>,
    now: Option<chrono::DateTime<chrono::Utc>>,
}

impl Context {
    fn store(&self) -> Result<Store, Failure> {
        Ok(Store::open(&self.store)?)
    }

    fn config(&self) -> Result<Config, Failure> {
        Config::read(self.config.as_deref())
    }

    async fn session(&self) -> Result<Session, Failure> {
        Ok(Session::open(&self.store()?, &self.config()?.engine(), self.now).await?)
    }
}

fn init(args: &crate::cli::InitArgs) -> Result<(), Failure> {
    if args.path.exists() && !args.force {
        return Err(Failure::new(format!(
            "`{}` exists and was left as it is",
            args.path.display()
        ))
        .hint("add --force to replace it"));
    }
    std::fs::write(&args.path, config::TEMPLATE)?;
    print::line(&format!("wrote {}", args.path.display()))
}
