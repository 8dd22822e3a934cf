//! Every `tests/sql/*.slt`, in process: tiny tables, hand-worked answers.
//!
//! On top of SQL the files may say `SET loadline.KEY = 'value'` (a setting of `loadline.toml`,
//! `timezone`, or `as_of`; before the first row is inserted) and `@name key=value ...` (a named
//! query with its parameters).
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use chrono::{DateTime, Utc};
use loadline_engine::{Answer, EngineConfig, EngineError, Params, Session, query};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};

/// The planner recurses through views, and its frames are large without optimisation.
const STACK_BYTES: usize = 64 << 20;

#[test]
fn every_question_has_a_test_and_every_answer_is_right() {
    let asked = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(ask_everything).unwrap();
    if let Err(panic) = asked.join() {
        std::panic::resume_unwind(panic);
    }
}

fn ask_everything() {
    // Breaks when an answer changes, or a query or view comes without a hand-worked answer.
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut queries = names(&root.join("queries"), "sql");
    queries.extend(names(&root.join("queries/views"), "sql"));
    let tests = names(&root.join("tests/sql"), "slt");
    assert!(!queries.is_empty() && !tests.is_empty());

    let only = std::env::var("SLT").ok();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .unwrap();
    let untested = queries.difference(&tests);
    let mut failures: Vec<String> =
        untested.map(|name| format!("`{name}` has no tests/sql/{name}.slt")).collect();
    for name in tests.iter().filter(|name| only.as_ref().is_none_or(|only| *name == only)) {
        let file = root.join("tests/sql").join(format!("{name}.slt"));
        let mut runner = Runner::new(|| async { Ok(Database::new()) });
        if let Err(error) = runtime.block_on(runner.run_file_async(&file)) {
            failures.push(error.display(false).to_string());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn names(folder: &Path, extension: &str) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = files.filter(|file: &PathBuf| file.extension().is_some_and(|e| e == extension));
    named.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// An in-memory session whose settings may change as long as it holds no row.
struct Database {
    session: Option<Session>,
    settings: toml::Table,
    as_of: Option<DateTime<Utc>>,
    written: bool,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{}", told(.0))]
    Engine(#[from] EngineError),
    #[error("{0}")]
    Test(String),
}

/// The message and its causes on one line.
fn told(error: &EngineError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

impl Database {
    fn new() -> Self {
        Self { session: None, settings: toml::Table::new(), as_of: None, written: false }
    }

    /// The session, made when it is first asked.
    async fn session(&mut self) -> Result<&Session, Failure> {
        if self.session.is_none() {
            let config = self.config().map_err(Failure::Test)?;
            self.session = Some(Session::in_memory(&config, self.as_of).await?);
        }
        Ok(self.session.as_ref().expect("just made"))
    }

    fn config(&self) -> Result<EngineConfig, String> {
        let settings = toml::Value::Table(self.settings.clone());
        settings.try_into().map_err(|error: toml::de::Error| error.to_string())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        let wrong = |reason: String| Failure::Test(format!("SET loadline.{key}: {reason}"));
        if self.written {
            return Err(wrong("must stand before the first INSERT".into()));
        }
        if key == "as_of" {
            self.as_of = Some(value.parse().map_err(|e| wrong(format!("{e}")))?);
        } else {
            let key = if key == "timezone" { "calendar.timezone" } else { key };
            let parsed = format!("value = {value}").parse::<toml::Table>();
            let value = parsed.map_or_else(|_| toml::Value::from(value), |t| t["value"].clone());
            insert(&mut self.settings, key, value);
        }
        self.config().map_err(wrong)?;
        self.session = None;
        Ok(())
    }

    async fn answer(&mut self, text: &str) -> Result<Answer, Failure> {
        if let Some(named) = text.strip_prefix('@') {
            let mut words = named.split_whitespace();
            let name = words.next().unwrap_or_default();
            let params: Params = words
                .filter_map(|word| word.split_once('='))
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect();
            return Ok(self.session().await?.query(&query::find(name)?, &params).await?);
        }
        self.written |= text.to_ascii_uppercase().starts_with("INSERT");
        Ok(self.session().await?.sql(text).await?)
    }
}

fn insert(table: &mut toml::Table, key: &str, value: toml::Value) {
    match key.split_once('.') {
        None => drop(table.insert(key.to_owned(), value)),
        Some((section, key)) => {
            let empty = || toml::Value::Table(toml::Table::new());
            let section = table.entry(section).or_insert_with(empty);
            insert(section.as_table_mut().unwrap(), key, value);
        }
    }
}

#[async_trait::async_trait]
impl AsyncDB for Database {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let text = sql.trim();
        if let Some(setting) = text.strip_prefix("SET loadline.") {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            let value = value.trim();
            let quoted = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
            self.set(key.trim(), quoted.unwrap_or(value))?;
            return Ok(DBOutput::StatementComplete(0));
        }
        let answer = self.answer(text).await?;
        if text.to_ascii_uppercase().starts_with("INSERT") {
            return Ok(DBOutput::StatementComplete(0));
        }
        Ok(DBOutput::Rows {
            types: vec![DefaultColumnType::Any; answer.schema.fields().len()],
            rows: answer.batches.iter().flat_map(rows).collect(),
        })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "loadline"
    }
}

fn rows(batch: &RecordBatch) -> Vec<Vec<String>> {
    (0..batch.num_rows())
        .map(|row| batch.columns().iter().map(|column| shown(column, row)).collect())
        .collect()
}

/// A value as the tests write it: instants in RFC 3339 and UTC, whatever the zone that an answer
/// carries, numbers to ten digits, `NULL`, `(empty)`.
fn shown(column: &dyn Array, row: usize) -> String {
    if column.is_null(row) {
        return "NULL".into();
    }
    if let DataType::Timestamp(unit, Some(zone)) = column.data_type()
        && zone.as_ref() != "UTC"
    {
        let utc = cast(column, &DataType::Timestamp(*unit, Some("UTC".into()))).unwrap();
        return shown(&utc, row);
    }
    if column.data_type() == &DataType::Float64 {
        let value = column.as_primitive::<Float64Type>().value(row);
        let rounded: f64 = format!("{value:.9e}").parse().unwrap();
        return if rounded == 0.0 { "0".into() } else { rounded.to_string() };
    }
    let options = FormatOptions::default().with_timestamp_tz_format(Some("%Y-%m-%dT%H:%M:%S%.fZ"));
    let text = ArrayFormatter::try_new(column, &options).unwrap().value(row).to_string();
    if text.is_empty() { "(empty)".into() } else { text }
}
