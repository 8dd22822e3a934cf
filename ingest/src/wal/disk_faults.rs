//! A disk in memory that fails when told to and forgets what was not synced, for tests.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::disk::{Disk, Held, LogFile};

/// What a call does instead of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    Fails,
    /// Half of it, where it writes bytes.
    Half,
    /// Its work, and then it reports an error all the same.
    AnswerLost,
}

/// What is left of the bytes that nobody synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsynced {
    Gone,
    Half,
    Zeros,
    There,
}

/// What a power cut leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PowerCut {
    pub(crate) bytes: Unsynced,
    /// Whether changes of names that nobody synced are there.
    pub(crate) names: bool,
}

impl PowerCut {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        [Unsynced::Gone, Unsynced::Half, Unsynced::Zeros, Unsynced::There]
            .into_iter()
            .flat_map(|bytes| [true, false].map(|names| Self { bytes, names }))
    }
}

#[derive(Debug, Default, Clone)]
struct Content {
    bytes: Vec<u8>,
    synced: usize,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<PathBuf, Content>,
    /// Names as they were when their folder was last synced, with what they name now.
    lasting: BTreeMap<PathBuf, Option<Content>>,
    calls: usize,
    fault: Option<(usize, Fault)>,
}

/// The disk; clones are the same one.
#[derive(Debug, Default, Clone)]
pub(crate) struct MemoryDisk(Arc<Mutex<State>>);

impl MemoryDisk {
    /// The `call`th call from now on, counted from 1, does `fault`.
    pub(crate) fn fail_at(&self, call: usize, fault: Fault) {
        let mut state = self.state();
        state.fault = Some((state.calls + call, fault));
    }

    /// Calls made so far.
    pub(crate) fn calls(&self) -> usize {
        self.state().calls
    }

    /// Another disk, as this one is found after the power came back.
    pub(crate) fn after(&self, cut: PowerCut) -> Self {
        let state = self.state();
        let mut files = state.files.clone();
        if !cut.names {
            for (path, lasting) in &state.lasting {
                match lasting {
                    // Made and not yet named for good.
                    None => drop(files.remove(path)),
                    // Deleted, and not for good.
                    Some(content) => drop(files.insert(path.clone(), content.clone())),
                }
            }
        }
        for content in files.values_mut() {
            let unsynced = content.bytes.len() - content.synced;
            match cut.bytes {
                Unsynced::Gone => content.bytes.truncate(content.synced),
                Unsynced::Half => content.bytes.truncate(content.synced + unsynced / 2),
                Unsynced::Zeros => content.bytes[content.synced..].fill(0),
                Unsynced::There => {}
            }
            content.synced = content.bytes.len();
        }
        Self(Arc::new(Mutex::new(State { files, ..State::default() })))
    }

    /// Changes the bytes of a file behind everyone's back.
    pub(crate) fn spoil(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.state().files.get_mut(path).unwrap().bytes);
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.state().files.keys().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn call(&self) -> (MutexGuard<'_, State>, Option<Fault>) {
        let mut state = self.state();
        state.calls += 1;
        let calls = state.calls;
        let fault = state.fault.filter(|(at, _)| *at == calls).map(|(_, fault)| fault);
        (state, fault)
    }

    fn act<T>(&self, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        match self.call() {
            (mut state, None) => act(&mut state),
            (mut state, Some(Fault::AnswerLost)) => act(&mut state).and(Err(broken())),
            (_, Some(Fault::Fails | Fault::Half)) => Err(broken()),
        }
    }
}

fn broken() -> io::Error {
    io::Error::other("a fault was asked for")
}

impl Disk for MemoryDisk {
    fn make_folder(&self, _: &Path) -> io::Result<()> {
        self.act(|_| Ok(()))
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Held>> {
        self.act(|_| Ok(Box::new(MemoryLock) as Box<dyn Held>))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        self.act(|state| {
            if state.files.contains_key(path) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            state.files.insert(path.to_owned(), Content::default());
            state.lasting.entry(path.to_owned()).or_insert(None);
            let file = MemoryFile { disk: self.clone(), path: path.to_owned() };
            Ok(Box::new(file) as Box<dyn LogFile>)
        })
    }

    fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        self.act(|state| {
            let content = state.files.get(path).ok_or(io::ErrorKind::NotFound)?;
            Ok(content.bytes[..bytes_max.min(content.bytes.len())].to_vec())
        })
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.act(|state| {
            let below = state.files.keys().filter_map(|path| path.strip_prefix(folder).ok());
            let mut names: Vec<String> = below
                .filter_map(|path| Some(path.components().next()?.as_os_str()))
                .map(|name| name.to_string_lossy().into_owned())
                .collect();
            names.dedup();
            Ok(names)
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.act(|state| {
            let content = state.files.remove(path).ok_or(io::ErrorKind::NotFound)?;
            state.lasting.entry(path.to_owned()).or_insert(Some(content));
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(|state| {
            let content = state.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
            state.lasting.entry(from.to_owned()).or_insert(Some(content.clone()));
            let replaced = state.files.insert(to.to_owned(), content);
            state.lasting.entry(to.to_owned()).or_insert(replaced);
            Ok(())
        })
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.act(|state| {
            state.lasting.retain(|path, _| path.parent() != Some(folder));
            Ok(())
        })
    }

    // A look is no call that can fail in a test.
    fn there(&self, path: &Path) -> io::Result<bool> {
        Ok(self.state().files.contains_key(path))
    }
}

#[derive(Debug)]
struct MemoryLock;

impl Held for MemoryLock {
    fn named(&self) -> io::Result<bool> {
        Ok(true)
    }
}

#[derive(Debug)]
struct MemoryFile {
    disk: MemoryDisk,
    path: PathBuf,
}

impl Held for MemoryFile {
    fn named(&self) -> io::Result<bool> {
        self.disk.there(&self.path)
    }
}

impl LogFile for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (mut state, fault) = self.disk.call();
        let content = state.files.get_mut(&self.path).ok_or(io::ErrorKind::NotFound)?;
        match fault {
            None | Some(Fault::AnswerLost) => content.bytes.extend_from_slice(bytes),
            Some(Fault::Half) => content.bytes.extend_from_slice(&bytes[..bytes.len() / 2]),
            Some(Fault::Fails) => {}
        }
        if fault.is_some() { Err(broken()) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.act(|state| {
            let content = state.files.get_mut(&self.path).ok_or(io::ErrorKind::NotFound)?;
            content.synced = content.bytes.len();
            Ok(())
        })
    }
}
