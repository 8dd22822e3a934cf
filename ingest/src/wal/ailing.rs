//! What is wrong with logs, for a doctor.

use std::path::Path;

use super::disk::{Disk, LocalDisk};
use super::segment::{Places, Segment};
use super::wal_error;
use crate::error::IngestError;

/// Segments below a folder of logs of which some rows cannot be read, or could not when they were
/// moved: each with what is wrong.
pub(crate) fn ailing(logs: &Path) -> Result<Vec<(String, String)>, IngestError> {
    let disk = LocalDisk;
    let failed = |source| wal_error("read", logs, source);
    let names = match disk.list(logs) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names.map_err(failed)?,
    };
    let mut found = Vec::new();
    for name in names.iter().filter(|name| logs.join(name).is_dir()) {
        let log = logs.join(name);
        for place in Places::find(&disk, &log).map_err(failed)?.places {
            let segment = Segment::read(&disk, &log, place).map_err(failed)?;
            let file = format!("{name}/{:016}.wal", segment.number);
            for at in segment.damaged_at {
                found.push((file.clone(), format!("what was written at byte {at} cannot be read")));
            }
        }
        let files = disk.list(&log).map_err(failed)?;
        for file in files.iter().filter(|file| file.ends_with(".damaged")) {
            let what = "some of its rows could not be read when it was moved".to_owned();
            found.push((format!("{name}/{file}"), what));
        }
    }
    found.sort();
    Ok(found)
}
