//! Why a question could not be answered.

use datafusion::error::DataFusionError;
use loadline_ingest::IngestError;

/// Why a question could not be answered; one variant per decision the caller can make.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The SQL is wrong, or could not be carried out.
    #[error("cannot answer {what}")]
    Sql {
        /// Query name, or `the query`.
        what: String,
        /// Cause.
        #[source]
        source: Box<DataFusionError>,
    },
    /// No question of that name.
    #[error("no question is named `{name}`")]
    UnknownQuery {
        /// Name as given.
        name: String,
        /// Names there are.
        known: Vec<String>,
    },
    /// A parameter without value or default.
    #[error("query `{query}` needs `${parameter}`, which was not given")]
    MissingParameter {
        /// Query.
        query: String,
        /// Parameter.
        parameter: String,
        /// All parameters, as in the header.
        declared: String,
        /// A value of its type.
        example: &'static str,
    },
    /// A parameter that the query does not have.
    #[error("query `{query}` has no parameter `${parameter}`")]
    UnknownParameter {
        /// Query.
        query: String,
        /// Parameter as given.
        parameter: String,
        /// Names there are.
        known: Vec<String>,
        /// All parameters, as in the header.
        declared: String,
    },
    /// A value that is none of the parameter's type, or not among those it may have.
    #[error("cannot use `{value}` for `${parameter}` of query `{query}`: {reason}")]
    BadParameter {
        /// Query.
        query: String,
        /// Parameter.
        parameter: String,
        /// Value as given.
        value: String,
        /// What it should be.
        reason: String,
    },
    /// A period that ends before it begins, or when it does.
    #[error("query `{query}` was asked of {from} to {until}, which is no time at all")]
    EmptyPeriod {
        /// Query.
        query: String,
        /// Its begin, in local time.
        from: String,
        /// Its end.
        until: String,
        /// What the store holds.
        holds: String,
    },
    /// A query file whose header cannot be read.
    #[error("cannot read the header of query `{query}`, line {line}: {reason}")]
    Header {
        /// Query, or its file.
        query: String,
        /// Line of the file, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A folder of query files could not be read.
    #[error("could not read `{path}`")]
    Read {
        /// File or folder.
        path: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The store could not be read.
    #[error("could not open the store")]
    Store(#[from] IngestError),
}

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// What was asked for is not there.
    NotFound,
    /// The question must be put differently.
    BadRequest,
    /// The store could not be reached or read.
    Unavailable,
    /// A promise of our own was broken.
    Bug,
}

impl EngineError {
    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownQuery { .. } => ErrorKind::NotFound,
            Self::MissingParameter { .. }
            | Self::UnknownParameter { .. }
            | Self::BadParameter { .. }
            | Self::EmptyPeriod { .. }
            | Self::Header { .. } => ErrorKind::BadRequest,
            Self::Read { .. } | Self::Store(_) => ErrorKind::Unavailable,
            Self::Sql { source, .. } => match source.find_root() {
                DataFusionError::Internal(_) => ErrorKind::Bug,
                DataFusionError::ObjectStore(_)
                | DataFusionError::IoError(_)
                | DataFusionError::ParquetError(_)
                | DataFusionError::ResourcesExhausted(_) => ErrorKind::Unavailable,
                _ => ErrorKind::BadRequest,
            },
        }
    }

    /// Whether the same question may be answered a little later.
    #[must_use]
    pub fn retryable(&self) -> bool {
        self.kind() == ErrorKind::Unavailable
    }

    pub(crate) fn sql(what: impl Into<String>, source: DataFusionError) -> Self {
        Self::Sql { what: what.into(), source: Box::new(source) }
    }

    /// Further facts, where there are some.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::UnknownParameter { declared, .. } if declared.is_empty() => {
                Some("it has none".into())
            }
            Self::MissingParameter { declared, .. } | Self::UnknownParameter { declared, .. } => {
                Some(format!("parameters are {declared}"))
            }
            Self::EmptyPeriod { holds, .. } => Some(format!("the store holds {holds}")),
            Self::UnknownQuery { known, .. } => Some(format!("there are: {}", known.join(", "))),
            _ => None,
        }
    }

    /// A command to try, where one can help.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownQuery { name, known } => {
                closest(name, known).map(|known| format!("did you mean `{known}`?"))
            }
            Self::UnknownParameter { parameter, known, .. } => {
                closest(parameter, known).map(|known| format!("did you mean `${known}`?"))
            }
            Self::MissingParameter { parameter, example, .. } => {
                Some(format!("add `--param {parameter}={example}`"))
            }
            Self::EmptyPeriod { .. } => {
                Some("`from` must be before `until`: swap them, or leave one out".into())
            }
            Self::Store(error) => error.hint(),
            Self::Sql { source, .. } => match source.find_root() {
                DataFusionError::ObjectStore(_) | DataFusionError::ParquetError(_) => Some(
                    "that file of the store is missing or cut short: put it back from a copy of \
                     the store; without one, import the same files into a new store (`--store`)"
                        .into(),
                ),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The name with the fewest letters to change, if that is at most a third of them.
fn closest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let near = known.iter().map(|known| (distance(name, known), known.as_str())).min()?;
    (near.0 <= name.len().div_ceil(3)).then_some(near.1)
}

/// Letters to insert, delete or replace to turn one text into the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut costs: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.chars().enumerate() {
        let mut diagonal = costs[0];
        costs[0] = row + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = costs[column + 1];
            costs[column + 1] = replaced.min(diagonal + 1).min(costs[column] + 1);
        }
    }
    costs[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_told_the_name() {
        // Breaks if anything at all is taken for a slip, or the nearest name is not the one told.
        let known = ["gpu_hours", "gpu_hours_total", "queue"].map(str::to_owned);
        assert_eq!(closest("gpu_hour", &known), Some("gpu_hours"));
        assert_eq!(closest("quueue", &known), Some("queue"));
        assert_eq!(closest("weather", &known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
