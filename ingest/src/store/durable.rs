//! Makes what was written to a local store survive the loss of power.
//!
//! The object store's calls leave that to the system, which may write in any order. Data files are
//! synced before the commit that names them, and the commit before anyone is told of it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Syncs files below the folder of a table, and every folder up to the one above the store's.
pub(super) fn sync(table: &Path, files: &[String]) -> io::Result<()> {
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    for file in files {
        let path = table.join(file);
        File::open(&path)?.sync_all()?;
        let root = table.parent().and_then(Path::parent).unwrap_or(table);
        let above = path.ancestors().skip(1).take_while(|above| above.starts_with(root));
        folders.extend(above.map(Path::to_path_buf));
    }
    folders.iter().try_for_each(|folder| File::open(folder)?.sync_all())
}

/// Path of a commit below the folder of its table.
pub(super) fn commit(version: u64) -> String {
    format!("_delta_log/{version:020}.json")
}
