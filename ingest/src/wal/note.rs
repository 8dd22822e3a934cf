//! A few bytes beside the segments of a log, kept whole: what its user must not forget.

use std::io::ErrorKind;

use super::{Wal, wal_error};
use crate::error::IngestError;

/// Bytes of a note that are read, at most.
const BYTES_MAX: usize = 1 << 20;

impl Wal {
    /// The note of that name, as it was kept last.
    ///
    /// # Errors
    /// [`IngestError::Wal`] when it cannot be read.
    pub(crate) fn note(&self, name: &str) -> Result<Option<Vec<u8>>, IngestError> {
        match self.disk.read(&self.folder.join(name), BYTES_MAX) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(wal_error("read a note of", &self.folder, error)),
        }
    }

    /// Keeps a note in the place of the one of that name: on the disk when it returns, and the one
    /// before when it does not.
    ///
    /// # Errors
    /// [`IngestError::Wal`].
    pub(crate) fn keep_note(&self, name: &str, bytes: &[u8]) -> Result<(), IngestError> {
        let path = self.folder.join(name);
        let draft = self.folder.join(format!("{name}.new"));
        let kept = || {
            match self.disk.remove(&draft) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = self.disk.create(&draft)?;
            file.append(bytes)?;
            file.sync()?;
            self.disk.rename(&draft, &path)?;
            self.disk.sync_folder(&self.folder)
        };
        kept().map_err(|error| wal_error("keep a note of", &self.folder, error))
    }
}
