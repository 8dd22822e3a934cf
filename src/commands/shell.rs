//! The SQL shell: statements end with `;` and may span lines; `\d` lists tables, `\d TABLE` its
//! columns, `\q` leaves.

use std::io::IsTerminal as _;
use std::time::Instant;

use loadline_engine::Session;
use loadline_ingest::rollup;
use loadline_ingest::schema::rollup::LEGEND;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::print;
use super::row::rows;
use crate::cli::TableArgs;
use crate::failure::Failure;

const TABLES: &str = "SELECT table_name, table_type FROM information_schema.tables \
    WHERE table_schema = 'public' ORDER BY table_type, table_name";

pub(super) async fn run(session: &Session, args: &TableArgs) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return script(session, args).await;
    }
    let failed = |error: ReadlineError| Failure::from_error(&error);
    let mut editor = DefaultEditor::new().map_err(failed)?;
    let history = std::env::home_dir().map(|home| home.join(".loadline_history"));
    if let Some(path) = &history {
        // The first time there is none.
        let _ = editor.load_history(path);
    }
    let mut statement = String::new();
    loop {
        let prompt = if statement.is_empty() { "loadline> " } else { "      ... " };
        let line = match editor.readline(prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                statement.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        };
        if statement.is_empty() && line.trim_start().starts_with('\\') {
            match command(session, line.trim()).await {
                Ok(Some(text)) => answer(session, &text).await?,
                Ok(None) => break,
                Err(failure) => print::line(failure.to_string().trim_end())?,
            }
            continue;
        }
        statement.push_str(&line);
        statement.push('\n');
        if line.trim_end().ends_with(';') {
            let text = std::mem::take(&mut statement);
            let text = text.trim().trim_end_matches(';');
            if !text.is_empty() {
                editor.add_history_entry(format!("{};", text)).map_err(failed)?;
                answer(session, text).await?;
            }
        }
    }
    if let Some(path) = &history {
        editor.save_history(path).map_err(failed)?;
    }
    Ok(())
}

/// Statements from a pipe: each answered in the form asked for; the first that fails ends it.
async fn script(session: &Session, args: &TableArgs) -> Result<(), Failure> {
    let mut statement = String::new();
    let mut lines: Vec<String> = std::io::stdin().lines().collect::<Result<_, _>>()?;
    // A pipe may end without the last `;`.
    lines.push(";".to_owned());
    for line in lines {
        if statement.trim().is_empty() && line.trim_start().starts_with('\\') {
            match command(session, line.trim()).await? {
                Some(text) => print::answer(&session.sql(&text).await?, args)?,
                None => return Ok(()),
            }
            continue;
        }
        statement.push_str(&line);
        statement.push('\n');
        if line.trim_end().ends_with(';') {
            let text = std::mem::take(&mut statement);
            let text = text.trim().trim_end_matches(';').trim();
            if !text.is_empty() {
                print::answer(&session.sql(text).await?, args)?;
            }
        }
    }
    Ok(())
}

/// SQL behind a backslash command; `None` leaves.
async fn command(session: &Session, line: &str) -> Result<Option<String>, Failure> {
    let mut words = line.trim_end_matches(';').split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("\\q"), None, None) => Ok(None),
        (Some("\\d"), None, None) => Ok(Some(TABLES.to_owned())),
        (Some("\\d"), Some(table), None) => {
            let tables: Vec<String> = rows(&session.sql(TABLES).await?)
                .iter()
                .filter_map(|row| row.text("table_name"))
                .collect();
            if !tables.iter().any(|known| known == table) {
                return Err(Failure::usage(format!("there is no table or view `{table}`"))
                    .detail(format!("there are {}", tables.join(", "))));
            }
            if rollup::TABLES.iter().any(|rollup| rollup.name() == table) {
                print::aside(LEGEND);
            }
            Ok(Some(format!(
                "SELECT column_name, data_type FROM information_schema.columns \
                 WHERE table_name = '{}' ORDER BY ordinal_position",
                table.replace('\'', "''")
            )))
        }
        _ => Err(Failure::usage(format!("there is no command `{line}`"))
            .detail("\\d lists tables and views, \\d TABLE the columns of one, \\q leaves")),
    }
}

async fn answer(session: &Session, text: &str) -> Result<(), Failure> {
    let started = Instant::now();
    match session.sql(text).await {
        Ok(answer) => {
            let table = print::table(&answer.schema, &answer.batches)?;
            print::line(&format!("{table} in {:.3} s", started.elapsed().as_secs_f64()))
        }
        Err(error) => print::line(Failure::from(error).to_string().trim_end()),
    }
}
