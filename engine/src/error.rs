//! Why a question could not be answered.

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
        source: Box<datafusion::error::DataFusionError>,
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
    },
    /// A parameter that the query does not have, or a value that is none of its type.
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
    /// A query file whose header cannot be read.
    #[error("cannot read the header of query `{query}`: {reason}")]
    Header {
        /// Query.
        query: String,
        /// What is wrong.
        reason: String,
    },
    /// The store could not be read.
    #[error("could not open the store")]
    Store(#[from] IngestError),
}

impl EngineError {
    pub(crate) fn sql(what: impl Into<String>, source: datafusion::error::DataFusionError) -> Self {
        Self::Sql { what: what.into(), source: Box::new(source) }
    }

    /// Further facts, where there are some.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::MissingParameter { declared, .. } => Some(format!("parameters are {declared}")),
            _ => None,
        }
    }

    /// A command to try, where one can help.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownQuery { known, .. } => Some(format!("there are: {}", known.join(", "))),
            Self::MissingParameter { parameter, .. } => {
                Some(format!("add `--param {parameter}=VALUE`"))
            }
            _ => None,
        }
    }
}
