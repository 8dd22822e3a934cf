//! The rejects file: what was kept aside, with its file, line and reason.

use std::io::Write;

use crate::batch::Reject;
use crate::error::IngestError;
use crate::store::Store;

/// Lines kept in a rejects file; further ones are only counted.
pub const REJECTS_MAX: usize = 100_000;

/// Writes `rejects` beside the tables of a local store, under a name made of their content: the
/// same import again writes the same file. Returns its path, or `None` without rejects.
pub(super) fn write(
    store: &Store,
    format: &str,
    rejects: &[Reject],
) -> Result<Option<String>, IngestError> {
    let Some(folder) = store.folder().filter(|_| !rejects.is_empty()) else {
        return Ok(None);
    };
    let folder = folder.join("rejects");
    let mut text = csv::Writer::from_writer(Vec::new());
    let unwritable = |source: std::io::Error| IngestError::Read {
        path: folder.to_string_lossy().into_owned(),
        source,
    };
    let csv_error = |error: csv::Error| unwritable(std::io::Error::other(error));
    text.write_record(["file", "line", "reason", "text"]).map_err(csv_error)?;
    for reject in rejects {
        let line = reject.line.map_or_else(String::new, |line| line.to_string());
        text.write_record([&reject.file, &line, &reject.reason, &reject.text])
            .map_err(csv_error)?;
    }
    let text = text.into_inner().map_err(|e| unwritable(std::io::Error::other(e.to_string())))?;
    let mark = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    std::fs::create_dir_all(&folder).map_err(unwritable)?;
    let path = folder.join(format!("{format}-{mark:016x}.csv"));
    let mut file = tempfile::NamedTempFile::new_in(&folder).map_err(unwritable)?;
    file.write_all(&text).map_err(unwritable)?;
    file.persist(&path).map_err(|error| unwritable(error.error))?;
    Ok(Some(path.to_string_lossy().into_owned()))
}
