//! `loadline export`: an answer as a folder of files that another program reads.

use loadline_engine::output::{self, ExportForm, ExportSettings};
use loadline_engine::query;

use super::{Context, ask, print};
use crate::cli::{ExportArgs, ExportFormat};
use crate::failure::Failure;

pub(super) async fn run(context: &Context, args: &ExportArgs) -> Result<(), Failure> {
    let known = context.questions()?;
    let session = context.session().await?;
    let params = ask::params(&args.params)?;
    let answer = if known.iter().any(|question| question.name() == args.what) {
        ask::asked(&session, &query::find_in(known, &args.what)?, &params).await?
    } else if !params.is_empty() {
        return Err(Failure::usage(format!(
            "`{}` is no named question, so it takes no parameter",
            args.what
        ))
        .hint("`loadline query` lists the questions"));
    } else if args.what.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        if session.context().table_exist(args.what.as_str()).is_ok_and(|exists| !exists) {
            return Err(Failure::usage(format!(
                "no question, view or table is named `{}`",
                args.what
            ))
            .hint("`loadline query` lists the questions, `\\d` in `loadline sql` the rest"));
        }
        session.sql(&format!("SELECT * FROM \"{}\"", args.what)).await?
    } else {
        session.sql(&args.what).await?
    };
    // A view or a table is told on the same clock as a question.
    let answer = answer.in_zone(session.calendar().zone())?;
    let settings = ExportSettings {
        form: match args.format {
            ExportFormat::Parquet => ExportForm::Parquet,
            ExportFormat::Csv => ExportForm::Csv,
        },
        partition_by: args.partition_by.clone(),
        local_times: args.local_times,
        replace: args.replace,
    };
    let made = output::export(&answer, &args.to, &settings)?;
    print::line(&format!(
        "exported  {} rows in {} files: {}",
        made.rows,
        made.files,
        args.to.display()
    ))
}
