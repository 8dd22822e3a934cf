//! `loadline sql` and `loadline query`.

use loadline_engine::{Params, query};

use super::{Context, print, shell};
use crate::cli::{QueryArgs, SqlArgs};
use crate::failure::Failure;

pub(super) async fn sql(context: &Context, args: &SqlArgs) -> Result<(), Failure> {
    let session = context.session().await?;
    match &args.query {
        Some(text) => print::answer(&session.sql(text).await?, &args.table),
        None => shell::run(&session).await,
    }
}

pub(super) async fn query(context: &Context, args: &QueryArgs) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        for query in context.questions()? {
            print::line(&format!("{:<20} {}", query.name(), query.purpose()))?;
        }
        return Ok(());
    };
    let query = query::find_in(context.questions()?, name)?;
    if args.show {
        return print::line(query.sql().trim_end());
    }
    let params = params(&args.params)?;
    let answer = context.session().await?.query(&query, &params).await?;
    print::answer(&answer, &args.table)
}

/// Values of parameters as typed.
pub(super) fn params(given: &[String]) -> Result<Params, Failure> {
    given
        .iter()
        .map(|text| match text.split_once('=') {
            Some((name, value)) => Ok((name.trim_start_matches('$').to_owned(), value.to_owned())),
            None => Err(Failure::usage(format!("cannot read parameter `{text}`"))
                .hint("write it as NAME=VALUE")),
        })
        .collect()
}
