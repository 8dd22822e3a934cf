//! Errors of reading input and of the store: one variant per decision the caller can make.

use std::io;

/// Why an import or a store operation could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// A file could not be opened or read.
    #[error("could not read `{path}`")]
    Read {
        /// File as named by the user.
        path: String,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// A file is not in the format that was asked for.
    #[error("cannot read `{path}` as {format}: {reason}")]
    Format {
        /// File as named by the user.
        path: String,
        /// Format name as on the command line.
        format: &'static str,
        /// What was found and what was expected.
        reason: String,
        /// What to try.
        hint: Option<String>,
    },
    /// No file matches.
    #[error("no file matches `{pattern}`")]
    NoMatch {
        /// Path or glob as given.
        pattern: String,
    },
    /// An option or mapping does not make sense.
    #[error("cannot use {what} `{value}`: {reason}")]
    Setting {
        /// Option, or key of the mapping file.
        what: String,
        /// Value given.
        value: String,
        /// The rule it breaks, with the legal values.
        reason: String,
    },
    /// The store could not be read or written.
    #[error("could not {action} table `{table}` in `{store}`")]
    Store {
        /// What was attempted, e.g. `commit to`.
        action: &'static str,
        /// Table.
        table: String,
        /// URL of the store.
        store: String,
        /// Cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file of the store is not what it was when it was written.
    #[error("table `{table}` in `{store}` is damaged: `{file}` {reason}")]
    Damaged {
        /// Table.
        table: String,
        /// URL of the store.
        store: String,
        /// File below the table's folder.
        file: String,
        /// What is wrong with it.
        reason: String,
        /// How to go on.
        hint: String,
    },
    /// A write-ahead log could not be read or written.
    #[error("could not {action} the write-ahead log in `{place}`")]
    Wal {
        /// What was attempted, e.g. `append to`.
        action: &'static str,
        /// Folder.
        place: String,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The NVIDIA driver cannot be used.
    #[error("cannot read GPUs through `{library}`: {reason}")]
    Driver {
        /// Library, as it was looked for.
        library: String,
        /// What the driver said.
        reason: String,
        /// Why it could not be loaded, where that is the reason.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// A part of what is collected did not answer.
    #[error("could not read {what}: {reason}; {well} others were read")]
    Unread {
        /// What did not answer, with its place and node.
        what: String,
        /// What was said, or for how long nothing was.
        reason: String,
        /// Number of its like that did answer.
        well: usize,
    },
    /// A source that is asked again and again did not answer as it should, or a part of it.
    #[error("could not collect from {from}: {reason}")]
    Collect {
        /// What was asked.
        from: String,
        /// What was found and what was expected.
        reason: String,
        /// What to try.
        hint: Option<String>,
    },
    /// A server did not take the rows that were sent to it.
    #[error("could not send rows to {to}: {reason}")]
    Ship {
        /// URL of the server.
        to: String,
        /// What it said, or why it could not be reached.
        reason: String,
    },
    /// A file that should hold a token does not.
    #[error("no token in `{path}`, which {option} names: {reason}")]
    Token {
        /// Option or key that names the file.
        option: &'static str,
        /// File.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Arrow refused a batch: a bug on our side or a damaged file.
    #[error("could not convert a batch of rows")]
    Arrow(#[from] arrow::error::ArrowError),
}

impl IngestError {
    /// A command or setting to try, where one can help.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Format { hint, .. } | Self::Collect { hint, .. } => hint.clone(),
            Self::Damaged { hint, .. } => Some(hint.clone()),
            Self::Token { path, .. } => Some(format!(
                "make one: `openssl rand -hex 32 > {path}; chmod 600 {path}`; the server and those \
                 who send to it have the same"
            )),
            Self::NoMatch { .. } => {
                Some("check the path; quote a glob so that the shell leaves it alone".into())
            }
            Self::Driver { source: Some(_), .. } => Some(
                "install the NVIDIA driver on this node, or give the path of its library \
                 `libnvidia-ml.so.1`"
                    .into(),
            ),
            Self::Driver { .. } => {
                Some("run `nvidia-smi` on this node: it says what the driver lacks".into())
            }
            Self::Unread { .. } => {
                Some("see `nvidia-smi` and the kernel log of the node for its Xid".into())
            }
            Self::Wal { source, .. } => match source.kind() {
                io::ErrorKind::WouldBlock => {
                    Some("stop the other collector, or give this one another name".into())
                }
                io::ErrorKind::QuotaExceeded => {
                    Some("see why rows are not moved on: the program tells on stderr".into())
                }
                _ => None,
            },
            _ => None,
        }
    }
}
