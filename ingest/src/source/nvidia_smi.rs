//! `nvidia-smi` as fleets log it: query CSV in a loop, `-q -x` XML, and whole captures of both.
//!
//! One file is read line by line, and what a line is decides itself: a header, a row, a `date`
//! of the shell loop around the command, a message of the driver, a line of an XML document, a
//! banner between sections. So a header in the middle, a lost GPU or a log of several commands
//! needs no option.
//!
//! # Source
//! `nvidia-smi --help-query-gpu` and the outputs of drivers 418 to 610.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::clock::{Clock, Fault, Stamp, stamp};
use super::input::{Input, Line};
use super::sample::{Name, Names, Sample, Samples};
use super::value::Measure;
use crate::batch::{Notice, Output, Reject};
use crate::error::IngestError;
use crate::event::Event;

mod csv;
mod document;
mod row;
mod section;
mod xml;

use self::csv::Header;
use self::section::Sections;

/// What the files do not say.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Node for rows without a `hostname`.
    pub node: Option<String>,
    /// Cluster of every row.
    pub cluster: Option<String>,
    /// Zone of times without one, which is all that the driver prints.
    pub zone: Option<Tz>,
    /// Instant of rows without a time: no `timestamp` column and no `date` line before them.
    pub time: Option<DateTime<Utc>>,
    /// Columns of a log that was written with `noheader`.
    pub columns: Option<Vec<String>>,
}

/// Reads every file and hands over samples and the inventory of the GPUs in them.
///
/// # Errors
/// [`IngestError::Read`] where a file cannot be read, and [`IngestError::Format`] where a file
/// holds no output of `nvidia-smi`, its rows name no GPU, or its times need a zone or a time that
/// was not given.
pub fn read(inputs: &[Input], options: &Options, out: &mut dyn Output) -> Result<(), IngestError> {
    let mut samples = Samples::default();
    for input in inputs {
        let mut log = Log::new(input, options, &mut samples)?;
        // A file that breaks off leaves what was read of it.
        if let Err(error) = log.lines(input, out) {
            log.unsettled(out)?;
            out.unread(error)?;
        } else if let Err(error) = log.finish(out) {
            out.unread(error)?;
        }
    }
    samples.finish(out)
}

/// Which GPU a row is of: by UUID, else by where it sits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Gpu {
    Uuid(Arc<str>),
    Index(i16),
}

/// A GPU as a number, the same throughout a file.
fn who(gpu: &Gpu) -> u64 {
    let mut hasher = DefaultHasher::new();
    gpu.hash(&mut hasher);
    hasher.finish()
}

/// When a row was read, where the row itself does not say.
#[derive(Debug, Clone, PartialEq)]
enum BlockTime {
    Unknown,
    At(i64),
    Unclear(String),
}

struct Log<'a> {
    file: &'a str,
    samples: &'a mut Samples,
    names: Names,
    clock: Clock,
    cluster: Name,
    node: Name,
    sections: Sections,
    header: Option<Header>,
    block: BlockTime,
    block_gpus: BTreeSet<Gpu>,
    /// The latest reading of each GPU, held back until the processes listed after it are counted.
    pending: BTreeMap<Gpu, Sample>,
    by_bus: BTreeMap<String, Gpu>,
    document: Option<(u64, String)>,
    told: HashSet<String>,
    recognised: bool,
    lines: u64,
    processes_unplaced: u64,
    /// Messages before the first reading.
    untimed: Vec<Event>,
}

impl<'a> Log<'a> {
    fn new(
        input: &'a Input,
        options: &'a Options,
        samples: &'a mut Samples,
    ) -> Result<Self, IngestError> {
        let header = match &options.columns {
            Some(columns) => {
                Some(Header::of(&columns.join(", ")).ok_or_else(|| IngestError::Setting {
                    what: "columns".into(),
                    value: columns.join(","),
                    reason: "no field of `nvidia-smi --help-query-gpu` is among them".into(),
                })?)
            }
            None => None,
        };
        Ok(Self {
            file: input.name(),
            samples,
            names: Names::default(),
            clock: Clock::new(options.zone),
            cluster: options.cluster.as_deref().map(Arc::from),
            node: options.node.as_deref().map(Arc::from),
            sections: Sections::default(),
            recognised: header.is_some(),
            header,
            block: options.time.map_or(BlockTime::Unknown, |t| BlockTime::At(t.timestamp_millis())),
            block_gpus: BTreeSet::new(),
            pending: BTreeMap::new(),
            by_bus: BTreeMap::new(),
            document: None,
            told: HashSet::new(),
            lines: 0,
            processes_unplaced: 0,
            untimed: Vec::new(),
        })
    }

    fn line(&mut self, line: &Line<'_>, out: &mut dyn Output) -> Result<(), IngestError> {
        let text = line.text.trim();
        if self.document.is_some() || xml::begins(text) {
            return self.xml_line(line.number, &line.text, out);
        }
        if text.is_empty() {
            return Ok(());
        }
        if self.sections.banner(text) {
            self.recognised |= self.sections.whole_capture();
            return Ok(());
        }
        if !self.sections.wanted() {
            if let Some(at) = section::collected_at(text) {
                self.collected(at);
            }
            return Ok(());
        }
        self.lines += 1;
        if let Some(header) = Header::of(text) {
            self.begin_block(header);
            return Ok(());
        }
        let columns = self.header.as_ref().map_or(0, Header::len);
        // A date may hold a comma, and a narrow row as many as it.
        if columns <= 2 && self.date_line(line.number, text, out)? {
            return Ok(());
        }
        match self.header.take() {
            Some(header) if header.fits(text, line.ended) => {
                let done = self.row(&header, line, text, out);
                self.header = Some(header);
                done
            }
            header => {
                self.header = header;
                if columns <= 2 || !self.date_line(line.number, text, out)? {
                    self.other_text(line, text, out);
                }
                Ok(())
            }
        }
    }

    fn collected(&mut self, at_ms: i64) {
        self.sections.collected_at_ms = Some(at_ms);
        if self.block == BlockTime::Unknown {
            self.block = BlockTime::At(at_ms);
        }
    }

    fn begin_block(&mut self, header: Header) {
        self.recognised = true;
        if header.processes() {
            // The list that follows is whole: a GPU it does not name has no process.
            for sample in self.pending.values_mut() {
                if sample.get(Measure::Processes).is_none() {
                    sample.put(Measure::Processes, Some(0.0));
                }
            }
        }
        self.header = Some(header);
    }

    /// Takes a line that `date` printed as the time of the rows after it.
    fn date_line(
        &mut self,
        number: u64,
        text: &str,
        out: &mut dyn Output,
    ) -> Result<bool, IngestError> {
        let Some(stamp) = stamp(text) else { return Ok(false) };
        self.recognised = true;
        self.block_gpus.clear();
        self.block = match self.resolve(number, None, &stamp, text, out)? {
            Ok(at) => BlockTime::At(at),
            Err(why) => BlockTime::Unclear(why),
        };
        Ok(true)
    }

    /// The instant of a time that was printed as `text`: of a reading of `gpu`, or of all after it.
    fn resolve(
        &mut self,
        number: u64,
        gpu: Option<&Gpu>,
        stamp: &Stamp,
        text: &str,
        out: &mut dyn Output,
    ) -> Result<Result<i64, String>, IngestError> {
        if let (Stamp::Local(local, _), true, Some(at)) =
            (stamp, self.clock.lost(), self.sections.collected_at_ms)
        {
            self.clock.learn(*local, at);
        }
        let who = gpu.filter(|_| self.clock.follows(stamp)).map_or(0, who);
        let resolved = self.clock.resolve_of(who, stamp);
        if let Some(text) = self.clock.notice() {
            self.notice(Some(number), text, out);
        }
        match resolved {
            Ok(at) => Ok(Ok(at)),
            Err(Fault::Unclear(why)) => Ok(Err(why)),
            Err(Fault::NoZone) => Err(self.format_error(
                format!("times such as `{text}` carry no zone and `--zone` was not given"),
                "add `--zone NAME`, the zone of the node's clock, such as `Asia/Shanghai` or `UTC`",
            )),
        }
    }

    fn lines(&mut self, input: &Input, out: &mut dyn Output) -> Result<(), IngestError> {
        let mut lines = input.lines()?;
        while let Some(line) = lines.next_line().map_err(|e| input.unreadable(e))? {
            self.line(&line, out)?;
        }
        Ok(())
    }

    /// Hands over the readings that wait for the processes listed after them.
    fn unsettled(&mut self, out: &mut dyn Output) -> Result<(), IngestError> {
        for sample in std::mem::take(&mut self.pending).into_values() {
            self.samples.push(&sample, out)?;
        }
        Ok(())
    }

    fn finish(mut self, out: &mut dyn Output) -> Result<(), IngestError> {
        if let Some((start, text)) = self.document.take() {
            self.xml_document(start, &text, out)?;
        }
        self.unsettled(out)?;
        if self.processes_unplaced > 0 {
            let text = format!(
                "{} processes listed for GPUs without a reading before them: passed over",
                self.processes_unplaced
            );
            self.notice(None, text, out);
        }
        if let Some(text) = self.sections.summary() {
            self.notice(None, text, out);
        }
        if !self.recognised && self.lines > 0 {
            return Err(self.format_error(
                "no header of `--query-gpu ... --format=csv` and no XML of `-q -x` in it".into(),
                "for a log written with `noheader`, name its fields with `--columns`",
            ));
        }
        Ok(())
    }

    fn notice(&mut self, line: Option<u64>, text: String, out: &mut dyn Output) {
        // A loop repeats a message every few seconds for days: once is enough.
        if self.told.len() < 1000 && self.told.insert(text.clone()) {
            out.notice(Notice { file: self.file.to_owned(), line, text });
        }
    }

    fn reject(&self, line: u64, reason: String, text: &str, out: &mut dyn Output) {
        let text = text.chars().take(200).collect();
        out.reject(Reject { file: self.file.to_owned(), line: Some(line), reason, text });
    }

    fn format_error(&self, reason: String, hint: &str) -> IngestError {
        IngestError::Format {
            path: self.file.to_owned(),
            format: "nvidia-smi",
            reason,
            hint: Some(hint.to_owned()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
