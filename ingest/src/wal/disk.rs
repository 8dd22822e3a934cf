//! The few calls that a log makes of a disk, so that a test can make each of them fail.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A disk. What a call has not synced may be lost, or be there in part, after a crash.
pub trait Disk: Debug + Send + Sync {
    /// Makes a folder and those above it, and syncs where they are named.
    ///
    /// # Errors
    /// The disk's own.
    fn make_folder(&self, folder: &Path) -> io::Result<()>;

    /// Locks a file, made if need be, until the answer is dropped or the process ends.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when another process holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Held>>;

    /// Makes a file for appending. It is named for good once its folder is synced.
    ///
    /// # Errors
    /// The disk's own, [`io::ErrorKind::AlreadyExists`] among them.
    fn create(&self, path: &Path) -> io::Result<Box<dyn LogFile>>;

    /// The first bytes of a file, `bytes_max` at most.
    ///
    /// # Errors
    /// The disk's own.
    fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>>;

    /// Names in a folder.
    ///
    /// # Errors
    /// The disk's own.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Deletes a file.
    ///
    /// # Errors
    /// The disk's own.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Gives a file another name in its folder.
    ///
    /// # Errors
    /// The disk's own.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in a folder survive a crash.
    ///
    /// # Errors
    /// The disk's own.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Whether there is a file of that name.
    ///
    /// # Errors
    /// The disk's own.
    fn there(&self, path: &Path) -> io::Result<bool>;
}

/// A file that is held open.
pub trait Held: Debug + Send + Sync {
    /// Whether its name still leads to it: not once it, or a folder above it, was removed, moved or
    /// replaced. What is written to it then is found by nobody.
    ///
    /// # Errors
    /// The disk's own.
    fn named(&self) -> io::Result<bool>;
}

/// A file that grows at its end.
pub trait LogFile: Held {
    /// Writes all bytes at the end; some of them may be there when it fails.
    ///
    /// # Errors
    /// The disk's own.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything appended survive a crash.
    ///
    /// # Errors
    /// The disk's own; what was appended since the last sync is then in doubt for good.
    fn sync(&mut self) -> io::Result<()>;
}

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalDisk;

impl Disk for LocalDisk {
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        let missing: Vec<PathBuf> =
            folder.ancestors().take_while(|above| !above.exists()).map(Path::to_path_buf).collect();
        fs::create_dir_all(folder)?;
        missing.iter().filter_map(|made| made.parent()).try_for_each(|above| {
            let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
            self.sync_folder(above)
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Held>> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(LocalFile { file, path: path.to_owned() })),
            Err(TryLockError::WouldBlock) => {
                Err(io::Error::new(io::ErrorKind::WouldBlock, "another process writes to it"))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        let file = OpenOptions::new().create_new(true).append(true).open(path)?;
        Ok(Box::new(LocalFile { file, path: path.to_owned() }))
    }

    fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(bytes_max as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(folder)?;
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn there(&self, path: &Path) -> io::Result<bool> {
        Ok(found(path)?.is_some())
    }
}

#[derive(Debug)]
struct LocalFile {
    file: File,
    path: PathBuf,
}

impl Held for LocalFile {
    fn named(&self) -> io::Result<bool> {
        let held = self.file.metadata()?;
        let same = |found: fs::Metadata| (found.dev(), found.ino()) == (held.dev(), held.ino());
        Ok(found(&self.path)?.is_some_and(same))
    }
}

impl LogFile for LocalFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// What stands at a path, if anything does.
fn found(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(error),
        },
    }
}
