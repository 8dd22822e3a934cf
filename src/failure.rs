//! How a failure leaves the program: message, causes, hint and exit code, in one place.

use std::error::Error;
use std::fmt;

use loadline_engine::EngineError;
use loadline_ingest::IngestError;

/// Why a command could not do its job.
#[derive(Debug)]
pub struct Failure {
    message: String,
    detail: Option<String>,
    causes: Vec<String>,
    hint: Option<String>,
    code: u8,
    broken_pipe: bool,
}

impl Failure {
    /// A failure with a message of its own; exit code 1.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            detail: None,
            causes: Vec::new(),
            hint: None,
            code: 1,
            broken_pipe: false,
        }
    }

    /// A command line that cannot be carried out; exit code 2.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, ..Self::new(message) }
    }

    /// Adds the measure and the limit.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a command or setting to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// An error with its causes.
    #[must_use]
    pub fn from_error(error: &(dyn Error + 'static)) -> Self {
        let mut failure = Self::new(error.to_string());
        // Libraries wrap the error of a closed pipe in their own.
        failure.broken_pipe = failure.message.contains("Broken pipe");
        let mut source = error.source();
        while let Some(cause) = source {
            // A wrapper that says what it wraps says nothing of its own.
            let text = cause.to_string();
            if failure.causes.last().is_none_or(|last| !last.contains(&text)) {
                failure.causes.push(text);
            }
            source = cause.source();
        }
        failure
    }

    /// Message and measure in one line, to stand inside another text.
    #[must_use]
    pub fn line(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{} ({detail})", self.message),
            None => self.message.clone(),
        }
    }

    /// The reader of our output went away, which is its right.
    #[must_use]
    pub const fn broken_pipe(&self) -> bool {
        self.broken_pipe
    }

    /// Exit code: 1 for what went wrong, 2 for what was asked wrongly.
    #[must_use]
    pub const fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        if let Some(detail) = &self.detail {
            writeln!(f, "detail: {detail}")?;
        }
        for cause in &self.causes {
            writeln!(f, "caused by: {cause}")?;
        }
        match &self.hint {
            Some(hint) => writeln!(f, "hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl Error for Failure {}

impl From<IngestError> for Failure {
    fn from(error: IngestError) -> Self {
        let code = match error {
            IngestError::Setting { .. } | IngestError::NoMatch { .. } => 2,
            _ => 1,
        };
        let hint = error.hint();
        Self { hint, code, ..Self::from_error(&error) }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let broken_pipe = error.kind() == std::io::ErrorKind::BrokenPipe;
        Self { broken_pipe, ..Self::from_error(&error) }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let (detail, hint) = (error.detail(), error.hint());
        let code = if matches!(error, EngineError::EmptyPeriod { .. }) { 2 } else { 1 };
        Self { detail, hint, code, ..Self::from_error(&error) }
    }
}

impl From<loadline_engine::output::ExportError> for Failure {
    fn from(error: loadline_engine::output::ExportError) -> Self {
        let hint = error.hint();
        Self { hint, ..Self::from_error(&error) }
    }
}

impl From<loadline_forecast::ForecastError> for Failure {
    fn from(error: loadline_forecast::ForecastError) -> Self {
        Self::from_error(&error)
    }
}

impl From<arrow::error::ArrowError> for Failure {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::from_error(&error)
    }
}

impl From<parquet::errors::ParquetError> for Failure {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::from_error(&error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::from_error(&error)
    }
}
