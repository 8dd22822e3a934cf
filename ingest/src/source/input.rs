//! What is read: files, globs, folders and standard input, plain or gzip.
//!
//! Compression is told by the first two bytes, never by the name, so a rotated log that lost its
//! `.gz` and a pipe of compressed bytes both read well. Text has line numbers counted after
//! decompression.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use flate2::read::MultiGzDecoder;

use crate::error::IngestError;

/// Longest line that is kept, in bytes; the rest of a longer one is dropped. A driver prints no
/// line beyond a few kilobytes: what is longer is no text.
const LINE_BYTES_MAX: usize = 1 << 20;

/// One file to read, or standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    name: String,
    path: Option<PathBuf>,
    /// What is read where it is no file.
    text: Option<Arc<[u8]>>,
}

impl Input {
    /// Expands what the user named into the inputs to read, in a fixed order.
    ///
    /// `-` is standard input. An existing file is itself, even with `*` or `[` in its name. A
    /// folder gives the files directly in it, without hidden ones, by name. Anything else is a
    /// glob, whose matches come by name. A file named twice is read once.
    ///
    /// # Errors
    /// [`IngestError::NoMatch`] where a path, folder or glob gives no file, or
    /// [`IngestError::Setting`] where a glob cannot be parsed.
    pub fn expand<S: AsRef<str>>(paths: &[S]) -> Result<Vec<Self>, IngestError> {
        let mut seen = HashSet::new();
        let mut inputs = Vec::new();
        for given in paths {
            for input in expand_one(given.as_ref())? {
                if seen.insert(input.name.clone()) {
                    inputs.push(input);
                }
            }
        }
        Ok(inputs)
    }

    /// One file, or standard input for `-`, without looking whether it is there.
    #[must_use]
    pub fn one(path: &str) -> Self {
        let path_if_file = (path != "-").then(|| PathBuf::from(path));
        Self { name: path.to_owned(), path: path_if_file, text: None }
    }

    /// Something that is no file and is read otherwise, under the name that messages give it.
    #[must_use]
    pub(crate) fn stream(name: &str) -> Self {
        Self { name: name.to_owned(), path: None, text: None }
    }

    /// Text that a command printed, under the name that messages give it.
    #[must_use]
    pub(crate) fn text(name: &str, text: String) -> Self {
        Self { name: name.to_owned(), path: None, text: Some(text.into_bytes().into()) }
    }

    /// The file as named by the user; `-` for standard input.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the file lies; `None` for standard input.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// When the file was last written, to the millisecond; `None` for standard input.
    #[must_use]
    pub fn modified_at(&self) -> Option<DateTime<Utc>> {
        let modified = std::fs::metadata(self.path.as_ref()?).ok()?.modified().ok()?;
        DateTime::from_timestamp_millis(DateTime::<Utc>::from(modified).timestamp_millis())
    }

    /// Opens the input, decompressing gzip (several members in a row are one stream).
    ///
    /// # Errors
    /// [`IngestError::Read`] where the file cannot be opened or its first bytes cannot be read.
    pub fn open(&self) -> Result<Box<dyn BufRead + Send>, IngestError> {
        if let Some(text) = &self.text {
            return Ok(Box::new(io::Cursor::new(Arc::clone(text))));
        }
        let raw: Box<dyn Read + Send> = match &self.path {
            Some(path) => Box::new(File::open(path).map_err(|e| self.unreadable(e))?),
            None => Box::new(io::stdin()),
        };
        plain(raw).map_err(|source| self.unreadable(source))
    }

    /// Opens the input as lines of text.
    ///
    /// # Errors
    /// As [`Input::open`].
    pub fn lines(&self) -> Result<Lines, IngestError> {
        Ok(Lines::new(self.open()?))
    }

    /// The error that says that this input could not be read.
    #[must_use]
    pub fn unreadable(&self, source: io::Error) -> IngestError {
        IngestError::Read { path: self.name.clone(), source }
    }
}

fn expand_one(given: &str) -> Result<Vec<Input>, IngestError> {
    let no_match = || IngestError::NoMatch { pattern: given.to_owned() };
    let path = Path::new(given);
    if given == "-" || path.is_file() {
        return Ok(vec![Input::one(given)]);
    }
    let mut found = if path.is_dir() { files_in(path)? } else { files_like(given)? };
    found.sort();
    // A pipe such as /dev/fd/63 or a named one is neither a file nor a folder, yet readable.
    if found.is_empty() && path.exists() && !path.is_dir() {
        found.push(path.to_owned());
    }
    if found.is_empty() {
        return Err(no_match());
    }
    Ok(found.iter().map(|path| Input::one(&path.to_string_lossy())).collect())
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>, IngestError> {
    let unreadable =
        |source| IngestError::Read { path: folder.to_string_lossy().into_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
        if path.is_file() && !hidden {
            files.push(path);
        }
    }
    Ok(files)
}

fn files_like(pattern: &str) -> Result<Vec<PathBuf>, IngestError> {
    let found = glob::glob(pattern).map_err(|error| IngestError::Setting {
        what: "path".into(),
        value: pattern.to_owned(),
        reason: format!("not a glob: {}", error.msg),
    })?;
    Ok(found.filter_map(Result::ok).filter(|path| path.is_file()).collect())
}

/// Undoes gzip, told by its first two bytes, and UTF-16, told by its byte-order mark.
fn plain(mut raw: Box<dyn Read + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    const BUFFER: usize = 256 * 1024;
    let start = first_bytes(&mut raw)?;
    let zipped = start == [0x1f, 0x8b];
    if start == [0xff, 0xfe] || start == [0xfe, 0xff] {
        let text = Utf16 { raw, little: start[0] == 0xff, rest: Vec::new(), text: Vec::new() };
        return Ok(Box::new(BufReader::with_capacity(BUFFER, text)));
    }
    let whole = io::Cursor::new(start).chain(raw);
    if !zipped {
        return Ok(Box::new(BufReader::with_capacity(BUFFER, whole)));
    }
    let unzipped = MultiGzDecoder::new(BufReader::with_capacity(BUFFER, whole));
    Ok(Box::new(BufReader::with_capacity(BUFFER, unzipped)))
}

fn first_bytes(raw: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(2);
    raw.take(2).read_to_end(&mut start)?;
    Ok(start)
}

/// UTF-16 as UTF-8: what `>` writes in Windows PowerShell.
struct Utf16 {
    raw: Box<dyn Read + Send>,
    little: bool,
    /// Bytes of a unit, or a first surrogate, whose other half is still to come.
    rest: Vec<u8>,
    /// Decoded and not handed out yet, last byte first.
    text: Vec<u8>,
}

impl Read for Utf16 {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.text.is_empty() {
            let mut chunk = [0; 8192];
            let read = self.raw.read(&mut chunk)?;
            if read == 0 {
                return Ok(0);
            }
            self.rest.extend_from_slice(&chunk[..read]);
            self.decode();
        }
        let count = out.len().min(self.text.len());
        for byte in &mut out[..count] {
            *byte = self.text.pop().expect("count is at most its length");
        }
        Ok(count)
    }
}

impl Utf16 {
    fn decode(&mut self) {
        let unit = |pair: &[u8]| match self.little {
            true => u16::from_le_bytes([pair[0], pair[1]]),
            false => u16::from_be_bytes([pair[0], pair[1]]),
        };
        let mut units: Vec<u16> = self.rest.chunks_exact(2).map(unit).collect();
        if units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            units.pop();
        }
        self.rest.drain(..units.len() * 2);
        self.text = String::from_utf16_lossy(&units).into_bytes();
        self.text.reverse();
    }
}

/// One line of text.
#[derive(Debug)]
pub struct Line<'a> {
    /// Counted from 1.
    pub number: u64,
    /// Text without its end of line and without a byte-order mark; bytes that are no UTF-8 are
    /// replaced by U+FFFD.
    pub text: Cow<'a, str>,
    /// Whether the line ended with a newline; the last line of a file that was cut did not.
    pub ended: bool,
}

/// Lines of an input, with LF or CRLF, read one at a time.
pub struct Lines {
    reader: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    number: u64,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Lines {
    /// Reads lines from `reader`, which is already decompressed.
    #[must_use]
    pub fn new(reader: Box<dyn BufRead + Send>) -> Self {
        Self { reader, buffer: Vec::with_capacity(4096), number: 0 }
    }

    /// The next line, or `None` at the end.
    ///
    /// # Errors
    /// What the file or the decompressor answers, e.g. for a gzip file that was cut.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let kept =
            (&mut self.reader).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut self.buffer)?;
        if kept == 0 {
            return Ok(None);
        }
        self.number += 1;
        let mut ended = self.buffer.ends_with(b"\n");
        if !ended && kept == LINE_BYTES_MAX {
            ended = self.reader.skip_until(b'\n')? > 0;
        }
        let text = trim_end_of_line(&self.buffer);
        let text = if self.number == 1 { without_mark(text) } else { text };
        Ok(Some(Line { number: self.number, text: String::from_utf8_lossy(text), ended }))
    }
}

fn trim_end_of_line(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

#[cfg(test)]
mod tests;
