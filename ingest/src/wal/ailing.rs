//! What is wrong with logs, for a doctor.

use std::path::Path;

use super::disk::{Disk, LocalDisk};
use super::segment::Segment;
use super::{logs, wal_error};
use crate::error::IngestError;

/// Segments below a folder of logs of which some rows cannot be read, or could not when they were
/// moved: each with what is wrong.
pub(crate) fn ailing(folder: &Path) -> Result<Vec<(String, String)>, IngestError> {
    let disk = LocalDisk;
    let failed = |source| wal_error("read", folder, source);
    let mut found = Vec::new();
    for log in logs(&disk, folder)? {
        for place in log.places.places {
            let segment = Segment::read(&disk, &log.folder, place).map_err(failed)?;
            let file = format!("{}/{:016}.wal", log.name, segment.number);
            for at in segment.damaged_at {
                found.push((file.clone(), format!("what was written at byte {at} cannot be read")));
            }
        }
        let files = disk.list(&log.folder).map_err(failed)?;
        for file in files.iter().filter(|file| file.ends_with(".damaged")) {
            let what = "some of its rows could not be read when it was moved".to_owned();
            found.push((format!("{}/{file}", log.name), what));
        }
    }
    found.sort();
    Ok(found)
}
