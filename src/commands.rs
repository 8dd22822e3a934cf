//! One module per command; what they share is here.

mod ask;
mod collect;
mod demo;
mod export;
mod import;
mod judge;
mod keep;
mod outlook;
mod print;
mod propose;
mod report;
mod row;
mod serve;
mod shell;
mod waiting;

use chrono::{DateTime, Utc};
use loadline_engine::{NamedQuery, Outlier, Session, query};
use loadline_ingest::Store;

use crate::cli::{Cli, Command};
use crate::config::{self, Config};
use crate::failure::Failure;
use crate::report::plural;

/// Carries out a command.
///
/// # Errors
/// Whatever went wrong, ready to be shown.
pub async fn run(cli: Cli) -> Result<(), Failure> {
    let context =
        Context { store: cli.store, config: cli.config, now: cli.now, queries: cli.queries };
    let waits = match &cli.command {
        Command::Query(args) if args.name.is_some() => Some("asking"),
        Command::Sql(args) if args.query.is_some() => Some("asking"),
        Command::Export(_) | Command::Baseline(_) | Command::Health(_) => Some("asking"),
        Command::Propose(_) => Some("learning"),
        Command::Forecast(_) | Command::Plan(_) | Command::Scale(_) => Some("looking ahead"),
        _ => None,
    };
    if let Some(what) = waits {
        waiting::begin(what);
    }
    let outcome = carry_out(&context, cli.command).await;
    waiting::end();
    outcome
}

async fn carry_out(context: &Context, command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo(args) => demo::run(&args).await,
        Command::Init(args) => init(&args),
        Command::Import(args) => import::run(context, &args).await,
        Command::Sql(args) => ask::sql(context, &args).await,
        Command::Query(args) => ask::query(context, &args).await,
        Command::Export(args) => export::run(context, &args).await,
        Command::Baseline(args) => judge::baseline(context, &args).await,
        Command::Health(args) => judge::health(context, &args).await,
        Command::Propose(args) => propose::run(context, &args).await,
        Command::Forecast(args) => outlook::forecast::run(context, &args).await,
        Command::Plan(args) => outlook::plan::run(context, &args).await,
        Command::Scale(args) => outlook::scale::run(context, &args).await,
        Command::Report(args) => report::run(context, &args).await,
        Command::Collect(args) => collect::run(context, &args).await,
        Command::Serve(args) => serve::run(context, &args).await,
        Command::Compact(args) => keep::compact(context, &args).await,
        Command::Rollup(args) => keep::rollup(context, &args).await,
        Command::Retain(args) => keep::retain(context, &args).await,
        Command::Doctor(args) => keep::doctor(context, &args).await,
    }
}

/// Where the store and the configuration are.
struct Context {
    store: String,
    config: Option<std::path::PathBuf>,
    now: Option<String>,
    queries: Option<std::path::PathBuf>,
}

impl Context {
    fn store(&self) -> Result<Store, Failure> {
        Ok(Store::open(&self.store)?)
    }

    fn config(&self) -> Result<Config, Failure> {
        Config::read(self.config.as_deref())
    }

    /// A session over a store that holds something.
    async fn session(&self) -> Result<Session, Failure> {
        let config = self.config()?;
        let now = self.now.as_deref().map(|text| instant("--now", text, &config)).transpose()?;
        let session = self.session_at(now).await?;
        if let (Some(text), Some(begins_at)) = (&self.now, session.begins_at())
            && begins_at > session.as_of()
        {
            let begins_at = config.calendar.told(begins_at);
            return Err(Failure::usage(format!("nothing in the store is as old as --now {text}"))
                .detail(format!("it begins at {begins_at}")));
        }
        for outlier in session.outliers() {
            print::aside(&told(outlier, &session));
        }
        Ok(session)
    }

    /// The same, with `now` for the instant that counts as now.
    async fn session_at(&self, now: Option<DateTime<Utc>>) -> Result<Session, Failure> {
        let config = self.config()?;
        let store = self.filled_store().await?;
        Ok(Session::open(&store, &config.engine(), now).await?)
    }

    /// A store that holds something: a mistyped name is not an empty fleet.
    async fn filled_store(&self) -> Result<Store, Failure> {
        let store = self.store()?;
        if store.tables().await?.is_empty() && !loadline_ingest::wal::waits(&store)? {
            return Err(Failure::new(format!("the store at `{}` holds nothing yet", self.store))
                .hint(
                    "`loadline import` fills it, --store names another, `loadline demo` makes one",
                ));
        }
        Ok(store)
    }

    /// Named questions: those of the folder that was named, and the program's own.
    fn questions(&self) -> Result<Vec<NamedQuery>, Failure> {
        let Some(folder) = &self.queries else { return Ok(query::queries()?) };
        let (all, bad) = query::queries_with(folder)?;
        for error in bad {
            let told = Failure::from(error).line();
            print::aside(&format!("warning: {told}; this file is left out"));
        }
        Ok(all)
    }
}

/// That some rows stand too far from all others to count, and the way out.
fn told(outlier: &Outlier, session: &Session) -> String {
    let calendar = session.calendar();
    let Outlier { table, rows, first_at, last_at, early, counted } = outlier;
    let (first_at, last_at) = (calendar.told(*first_at), calendar.told(*last_at));
    let when = match first_at == last_at {
        true => format!("at {first_at}"),
        false => format!("from {first_at} to {last_at}"),
    };
    let rows = plural(*rows, "row");
    let (started_at, now) = session.span();
    let (side, stays, or) = match early {
        true => ("before", format!("the store begins at {}", calendar.told(started_at)), ""),
        false => ("after", format!("now is {}", calendar.told(now)), "set --now, or "),
    };
    if *counted {
        let remedy = if *early { "" } else { "if so, set --now, or " };
        return format!(
            "warning: {rows} of table `{table}` {when}: more than a year {side} everything else, \
             which looks like an error; the store is too small to say, so it counts and {stays} \
             ({remedy}correct the file and import it again)"
        );
    }
    format!(
        "warning: {rows} of table `{table}` {when}: more than a year {side} everything else, so \
         taken for an error; {stays} ({or}correct the file and import it again)"
    )
}

/// The instant that an option names.
fn instant(option: &str, text: &str, config: &Config) -> Result<DateTime<Utc>, Failure> {
    let read = config.calendar.instant(text);
    read.map_err(|reason| {
        Failure::usage(format!("cannot use `{text}` for {option}")).detail(reason)
    })
}

/// The period that `--from` and `--to` name; each end of the store where one is not given.
fn period(
    session: &Session,
    config: &Config,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<(DateTime<Utc>, DateTime<Utc>), Failure> {
    let span = session.span();
    if span.1 == DateTime::UNIX_EPOCH {
        return Err(Failure::new("the store tells no time yet: no job, count or reading is in it")
            .hint("`loadline import` takes them; `loadline query assets` shows the inventory"));
    }
    if span.0 >= span.1 && from.is_none() && to.is_none() {
        return Err(Failure::new(format!(
            "no time has passed in the store: all of it is of {}",
            span.0
        ))
        .hint("import what came later, or name a later --now"));
    }
    let from = from.map_or(Ok(span.0), |text| instant("--from", text, config))?;
    let until = to.map_or(Ok(span.1), |text| instant("--to", text, config))?;
    if from >= until {
        let told = |at| config.calendar.told(at);
        return Err(Failure::usage(format!(
            "the period from {} to {} is empty",
            told(from),
            told(until)
        ))
        .detail(format!("the store holds {} to {}", told(span.0), told(span.1))));
    }
    tell_dropped(session, from);
    Ok((from, until))
}

/// Says that readings of a period are gone, which are no gaps and no idleness.
fn tell_dropped(session: &Session, from: DateTime<Utc>) {
    if let Some((before, at)) = dropped(session, from) {
        print::aside(&format!(
            "note: readings before {} were dropped on {}: of the time before, only gpu_5m and \
             gpu_1h tell of utilisation, and what rests on readings knows nothing",
            session.calendar().told(before),
            at.date_naive()
        ));
    }
}

/// The first instant of which readings are left and when those before it were dropped, where a
/// period that begins at `from` reaches before it.
fn dropped(session: &Session, from: DateTime<Utc>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    let dropped = session.dropped()?;
    let before = dropped.before.and_time(chrono::NaiveTime::MIN).and_utc();
    (from < before).then_some((before, dropped.at))
}

fn init(args: &crate::cli::InitArgs) -> Result<(), Failure> {
    if args.path.exists() && !args.force {
        return Err(Failure::new(format!(
            "`{}` exists and was left as it is",
            args.path.display()
        ))
        .hint("add --force to replace it"));
    }
    let failed = |what: &str, path: &std::path::Path, error: std::io::Error| {
        Failure::new(format!("could not {what} `{}`", path.display()))
            .detail(error.to_string())
            .hint("name a file in a folder that you may write to: `loadline init PATH`")
    };
    if let Some(folder) = args.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|error| failed("make the folder", folder, error))?;
    }
    std::fs::write(&args.path, config::TEMPLATE)
        .map_err(|error| failed("write", &args.path, error))?;
    print::line(&format!("wrote {}", args.path.display()))
}
