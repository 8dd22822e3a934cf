//! The rejects file: what was kept aside, with its file, line and reason.

use crate::batch::Reject;
use crate::error::IngestError;
use crate::store::Store;

/// Lines kept in a rejects file; further ones are only counted.
pub const REJECTS_MAX: usize = 100_000;

/// Writes `rejects` beside the tables, whole or not at all, under a name made of their content: the
/// same import again writes the same file. Returns its place, or `None` without rejects.
pub(super) async fn write(
    store: &Store,
    format: &str,
    rejects: &[Reject],
) -> Result<Option<String>, IngestError> {
    if rejects.is_empty() {
        return Ok(None);
    }
    let text = text(rejects)
        .map_err(|source| IngestError::Read { path: "the rejects file".into(), source })?;
    let mark = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let format = if format.is_empty() { "import" } else { format };
    store.put(&format!("rejects/{format}-{mark:016x}.csv"), text).await.map(Some)
}

fn text(rejects: &[Reject]) -> std::io::Result<Vec<u8>> {
    let mut text = csv::Writer::from_writer(Vec::new());
    text.write_record(["file", "line", "reason", "text"])?;
    for reject in rejects {
        let line = reject.line.map_or_else(String::new, |line| line.to_string());
        text.write_record([&reject.file, &line, &reject.reason, &reject.text])?;
    }
    text.into_inner().map_err(csv::IntoInnerError::into_error)
}
