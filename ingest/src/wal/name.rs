//! What logs are called: by those who name them, and by those who remember them.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use super::segment::LogId;
use crate::error::IngestError;

/// Whether a log can have this name.
///
/// # Errors
/// [`IngestError::Setting`] for a name that is no plain file name.
pub fn check_name(name: &str) -> Result<(), IngestError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        return Err(IngestError::Setting {
            what: "the name of a write-ahead log".into(),
            value: name.to_owned(),
            reason: "letters, digits, `-`, `_` and `.` make a name, and none begins with `.`"
                .into(),
        });
    }
    Ok(())
}

/// What a table calls the segments of a log.
pub(super) fn application(name: &str, id: LogId) -> String {
    format!("loadline-wal/{name}/{id:032x}")
}

/// An identity that no other log has.
pub(super) fn draw() -> LogId {
    let half = || u128::from(RandomState::new().build_hasher().finish());
    half() << 64 | half()
}
