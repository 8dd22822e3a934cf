//! `loadline sql` and `loadline query`.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use loadline_engine::{Answer, NamedQuery, Params, Session, query};

use super::{Context, print, shell, tell_dropped};
use crate::cli::{OutputFormat, QueryArgs, SqlArgs, TableArgs};
use crate::failure::Failure;

pub(super) async fn sql(context: &Context, args: &SqlArgs) -> Result<(), Failure> {
    let session = context.session().await?;
    match &args.query {
        Some(text) => print::answer(&session.sql(text).await?, &args.table),
        None => shell::run(&session, &args.table).await,
    }
}

pub(super) async fn query(context: &Context, args: &QueryArgs) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        return list(&context.questions()?, &args.table);
    };
    let query = query::find_in(context.questions()?, name)?;
    if args.show {
        return print::line(query.sql().trim_end());
    }
    let params = params(&args.params)?;
    let answer = asked(&context.session().await?, &query, &params).await?;
    print::answer(&answer, &args.table)
}

/// Answers a named question; where it is asked of a time of which the store knows nothing, that is
/// said beside the answer.
pub(super) async fn asked(
    session: &Session,
    query: &NamedQuery,
    params: &Params,
) -> Result<Answer, Failure> {
    let answer = session.query(query, params).await?;
    if let Some((from, _)) = session.period(query, params)? {
        tell_dropped(session, from);
    }
    let (first, last) = session.span();
    let given = ["from", "until"].iter().any(|name| params.contains_key(*name));
    if let Some((from, until)) = session.period(query, params)?
        && given
        && (until <= first || from >= last)
    {
        let told = |at| session.calendar().told(at);
        let side = if from >= last { "before" } else { "after" };
        let asked = match side {
            "before" => format!("from {} on", told(from)),
            _ => format!("until {}", told(until)),
        };
        print::aside(&format!(
            "note: `{}` was asked {asked}, and all that the store holds is {side} that: {} to {}",
            query.name(),
            told(first),
            told(last)
        ));
    }
    Ok(answer)
}

/// The questions there are: for people, or in the form asked for.
fn list(questions: &[NamedQuery], args: &TableArgs) -> Result<(), Failure> {
    if args.form() == OutputFormat::Table && args.output.is_none() {
        for query in questions {
            print::line(&format!("{:<20} {}", query.name(), query.purpose()))?;
        }
        return Ok(());
    }
    let of = |text: fn(&NamedQuery) -> String| -> ArrayRef {
        Arc::new(questions.iter().map(|query| Some(text(query))).collect::<StringArray>())
    };
    let batch = RecordBatch::try_from_iter([
        ("name", of(|query| query.name().to_owned())),
        ("purpose", of(|query| query.purpose().to_owned())),
        ("parameters", of(NamedQuery::declared)),
    ])?;
    print::answer(&Answer { schema: batch.schema(), batches: vec![batch] }, args)
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
