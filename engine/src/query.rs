//! Named questions: one file each in `queries/`, with a header that tells purpose, parameters and
//! columns.

mod bind;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use datafusion::common::ScalarValue;

mod folder;

pub use self::folder::queries_with;
use crate::calendar::{BinUnit, Calendar};
use crate::error::EngineError;
pub(crate) use bind::bind;

/// Begin and end.
pub type Period = (DateTime<Utc>, DateTime<Utc>);

/// Values given for parameters, by name.
pub type Params = BTreeMap<String, String>;

/// A question with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedQuery {
    name: String,
    purpose: String,
    parameters: Vec<Parameter>,
    sql: String,
}

/// A parameter of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    name: String,
    kind: Kind,
    default: Option<String>,
    /// The values that a text may have; any where there are none.
    choices: Vec<String>,
}

/// The choice that stands for every bin of local time: `hour`, `15 minutes`, `month`, ...
const BIN: &str = "bin";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Timestamp,
    Text,
    Float64,
    Int64,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Timestamp => "timestamp",
            Self::Text => "text",
            Self::Float64 => "float64",
            Self::Int64 => "int64",
        }
    }

    const fn example(self) -> &'static str {
        match self {
            Self::Timestamp => "2026-04-01T00:00:00Z",
            Self::Text => "TEXT",
            Self::Float64 => "0.5",
            Self::Int64 => "1",
        }
    }
}

/// The files of `queries/`, as listed by `build.rs`.
pub(crate) mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// The questions that come with the program, by name.
///
/// # Errors
/// A header that cannot be read, which a test rules out.
pub fn queries() -> Result<Vec<NamedQuery>, EngineError> {
    embedded::QUERIES.iter().map(|(name, text)| NamedQuery::parse(name, text)).collect()
}

/// The question `name` that comes with the program.
///
/// # Errors
/// [`EngineError::UnknownQuery`].
pub fn find(name: &str) -> Result<NamedQuery, EngineError> {
    find_in(queries()?, name)
}

/// The question `name` among `all`.
///
/// # Errors
/// [`EngineError::UnknownQuery`].
pub fn find_in(all: Vec<NamedQuery>, name: &str) -> Result<NamedQuery, EngineError> {
    let known = all.iter().map(|query| query.name.clone()).collect();
    all.into_iter()
        .find(|query| query.name == name)
        .ok_or_else(|| EngineError::UnknownQuery { name: name.to_owned(), known })
}

impl NamedQuery {
    /// Reads a query file.
    ///
    /// # Errors
    /// [`EngineError::Header`].
    pub fn parse(name: &str, text: &str) -> Result<Self, EngineError> {
        let bad = |line: usize, reason: String| EngineError::Header {
            query: name.to_owned(),
            line,
            reason,
        };
        let lines = text.lines().take_while(|line| line.starts_with("--"));
        let header: Vec<&str> = lines.map(|line| line.trim_start_matches("--").trim()).collect();
        let purpose = header.first().copied().unwrap_or_default().to_owned();
        if purpose.is_empty() {
            return Err(bad(1, "the first line must be a comment that tells its purpose".into()));
        }
        let joined = header.join(" ");
        let declared = joined.split_once("parameters:").map_or("", |(_, rest)| rest);
        let declared = declared.split("columns:").next().unwrap_or_default();
        let parameters = declared
            .split(',')
            .map(str::trim)
            .filter(|part| part.starts_with('$'))
            .map(|part| {
                let name = part.split_whitespace().next().unwrap_or(part);
                let line = header.iter().position(|line| line.contains(name)).unwrap_or(0) + 1;
                Parameter::parse(part).map_err(|reason| bad(line, reason))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { name: name.to_owned(), purpose, parameters, sql: text.to_owned() })
    }

    /// Name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it answers, in one sentence.
    #[must_use]
    pub fn purpose(&self) -> &str {
        &self.purpose
    }

    /// Its text.
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Its parameters as in the header.
    #[must_use]
    pub fn declared(&self) -> String {
        let shown = self.parameters.iter().map(Parameter::shown);
        shown.collect::<Vec<_>>().join(", ")
    }
}

impl Parameter {
    /// Reads `$name kind`, then ` = default` and ` of one|other` where they are there.
    fn parse(text: &str) -> Result<Self, String> {
        let (text, choices) = match text.rsplit_once(" of ") {
            Some((text, choices)) if !choices.contains('\'') => (text, choices),
            _ => (text, ""),
        };
        let choices = choices.split('|').map(str::trim).filter(|choice| !choice.is_empty());
        let choices: Vec<String> = choices.map(str::to_owned).collect();
        let (declared, default) = match text.split_once('=') {
            Some((declared, default)) => (declared, Some(default.trim().trim_matches('\''))),
            None => (text, None),
        };
        let mut words = declared.trim().trim_start_matches('$').split_whitespace();
        let (name, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let kind = match kind {
            "timestamp" => Kind::Timestamp,
            "text" => Kind::Text,
            "float64" => Kind::Float64,
            "int64" => Kind::Int64,
            other => {
                return Err(format!(
                    "`{other}` is no type of `${name}`: must be timestamp, text, float64 or int64"
                ));
            }
        };
        let default = default.map(str::to_owned);
        let parameter = Self { name: name.to_owned(), kind, default, choices };
        if kind != Kind::Text && !parameter.choices.is_empty() {
            return Err(format!("`${name}` is no text and cannot be one of several"));
        }
        if let Some(default) = &parameter.default {
            parameter.choice(default).map_err(|reason| format!("`{default}`: {reason}"))?;
        }
        Ok(parameter)
    }

    /// Whether `text` is among the choices, or what it must be.
    fn choice(&self, text: &str) -> Result<(), String> {
        let named = |choice: &String| choice != BIN && choice == text;
        if self.choices.is_empty() || self.choices.iter().any(named) {
            return Ok(());
        }
        if !self.choices.iter().any(|choice| choice == BIN) {
            return Err(format!("must be one of {}", self.choices.join(", ")));
        }
        let others = self.choices.iter().filter(|choice| *choice != BIN);
        let others: String = others.map(|choice| format!(", or `{choice}`")).collect();
        text.parse::<BinUnit>().map(|_| ()).map_err(|reason| reason + &others)
    }

    fn shown(&self) -> String {
        let kind = self.kind.name();
        let default = self.default.as_ref().map_or_else(String::new, |text| format!(" = {text}"));
        let told = |choice: &String| match choice.as_str() {
            BIN => "hour|6 hours|day|week|month|...".to_owned(),
            choice => choice.to_owned(),
        };
        let of = if self.choices.is_empty() { "" } else { " of " };
        let choices = self.choices.iter().map(told).collect::<Vec<_>>().join("|");
        format!("${} {kind}{default}{of}{choices}", self.name)
    }

    fn value(&self, text: &str, calendar: &Calendar) -> Result<ScalarValue, String> {
        let number = |error: &dyn std::fmt::Display| format!("not a number: {error}");
        Ok(match self.kind {
            Kind::Text => {
                self.choice(text)?;
                ScalarValue::Utf8(Some(text.to_owned()))
            }
            Kind::Float64 => {
                let value: f64 = text.parse().map_err(|e| number(&e))?;
                ScalarValue::Float64(Some(value))
            }
            Kind::Int64 => ScalarValue::Int64(Some(text.parse().map_err(|e| number(&e))?)),
            Kind::Timestamp => instant(calendar.instant(text)?),
        })
    }
}

/// What else the length of a bin is called: a question that declares one name takes the other too.
fn other_name(name: &str) -> Option<&'static str> {
    match name {
        "per" => Some("step"),
        "step" => Some("per"),
        _ => None,
    }
}

fn instant(at: DateTime<Utc>) -> ScalarValue {
    ScalarValue::TimestampMillisecond(Some(at.timestamp_millis()), Some("UTC".into()))
}

/// A value for each parameter: the one given, its default, or, for `$from` and `$until`, the
/// ends of the store. Dates are local to the calendar.
pub(crate) fn values(
    query: &NamedQuery,
    given: &Params,
    span: (DateTime<Utc>, DateTime<Utc>),
    calendar: &Calendar,
) -> Result<Vec<(String, ScalarValue)>, EngineError> {
    let declared = |name: &str| query.parameters.iter().any(|parameter| parameter.name == name);
    for name in given.keys() {
        if !declared(name) && !other_name(name).is_some_and(declared) {
            return Err(EngineError::UnknownParameter {
                query: query.name.clone(),
                parameter: name.clone(),
                known: query.parameters.iter().map(|parameter| parameter.name.clone()).collect(),
                declared: query.declared(),
            });
        }
    }
    let value = |parameter: &Parameter| {
        let other = other_name(&parameter.name).filter(|other| !declared(other));
        let text = given.get(&parameter.name).or_else(|| given.get(other?));
        let text = text.or(parameter.default.as_ref());
        match (text, parameter.name.as_str()) {
            (Some(text), _) => {
                parameter.value(text, calendar).map_err(|reason| EngineError::BadParameter {
                    query: query.name.clone(),
                    parameter: parameter.name.clone(),
                    value: text.clone(),
                    reason,
                })
            }
            (None, "from") => Ok(instant(span.0)),
            (None, "until") => Ok(instant(span.1)),
            (None, _) => Err(EngineError::MissingParameter {
                query: query.name.clone(),
                parameter: parameter.name.clone(),
                declared: query.declared(),
                example: parameter.kind.example(),
            }),
        }
    };
    let values = query.parameters.iter().map(|p| Ok((p.name.clone(), value(p)?)));
    let values = values.collect::<Result<Vec<_>, EngineError>>()?;
    match period(&values) {
        Some((from, until))
            if from >= until && given.contains_key("from") && given.contains_key("until") =>
        {
            let told = |at| calendar.told(at);
            Err(EngineError::EmptyPeriod {
                query: query.name.clone(),
                from: told(from),
                until: told(until),
                holds: format!("{} to {}", told(span.0), told(span.1)),
            })
        }
        _ => Ok(values),
    }
}

/// What `$from` and `$until` are among `values`.
pub(crate) fn period(values: &[(String, ScalarValue)]) -> Option<Period> {
    let at = |wanted: &str| match values.iter().find(|(name, _)| name == wanted) {
        Some((_, ScalarValue::TimestampMillisecond(Some(at), _))) => {
            DateTime::from_timestamp_millis(*at)
        }
        _ => None,
    };
    at("from").zip(at("until"))
}

#[cfg(test)]
mod tests;
