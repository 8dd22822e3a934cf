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
use std::sync::Arc;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::clock::{Clock, Fault, Stamp, stamp};
use super::input::{Input, Line};
use super::sample::{Name, Names, Sample, Samples};
use super::value::{Measure, available, distress};
use crate::batch::{Notice, Output, Reject};
use crate::error::IngestError;

mod csv;
mod section;
mod xml;

use self::csv::{Header, Role};
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
        let mut lines = input.lines()?;
        while let Some(line) = lines.next_line().map_err(|e| input.unreadable(e))? {
            log.line(&line, out)?;
        }
        log.finish(out)?;
    }
    samples.finish(out)
}

/// Which GPU a row is of: by UUID, else by where it sits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Gpu {
    Uuid(Arc<str>),
    Index(i16),
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
}

/// Longest XML document, in bytes: 64 GPUs of the newest driver take 4 MB.
const DOCUMENT_BYTES_MAX: usize = 64 << 20;

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
        self.block = match self.resolve(number, &stamp, text, out)? {
            Ok(at) => BlockTime::At(at),
            Err(why) => BlockTime::Unclear(why),
        };
        Ok(true)
    }

    fn resolve(
        &mut self,
        number: u64,
        stamp: &Stamp,
        text: &str,
        out: &mut dyn Output,
    ) -> Result<Result<i64, String>, IngestError> {
        if let (Stamp::Local(local, _), true, Some(at)) =
            (stamp, self.clock.lost(), self.sections.collected_at_ms)
        {
            self.clock.learn(*local, at);
        }
        let resolved = self.clock.resolve(stamp);
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

    fn row(
        &mut self,
        header: &Header,
        line: &Line<'_>,
        text: &str,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        if header.processes() {
            self.process_row(header, text);
            return Ok(());
        }
        if header.foreign() {
            return Ok(());
        }
        if !header.names_gpu() {
            return Err(self.format_error(
                "its rows name no GPU".into(),
                "add `uuid` and `index` to the fields of `--query-gpu`",
            ));
        }
        out.read(1);
        let row = csv::Row::read(header, text, line.ended, out);
        if !line.ended && row.last_doubtful {
            let text = "the file ends inside this row: its last cell is left out".to_owned();
            self.notice(Some(line.number), text, out);
        }
        let Some(gpu) = row.gpu(&mut self.names) else {
            self.reject(line.number, "neither `uuid` nor `index` tells the GPU".into(), text, out);
            return Ok(());
        };
        let at = match self.row_time(&row, line.number, &gpu, out)? {
            Ok(at) => at,
            Err(why) => {
                self.reject(line.number, why, text, out);
                return Ok(());
            }
        };
        self.keep_row(at, gpu, row, line.number, out)
    }

    fn row_time(
        &mut self,
        row: &csv::Row<'_>,
        number: u64,
        gpu: &Gpu,
        out: &mut dyn Output,
    ) -> Result<Result<i64, String>, IngestError> {
        if let Some(cell) = row.time {
            let Some(stamp) = stamp(cell) else {
                return Ok(Err(format!("`{cell}` is no time")));
            };
            return self.resolve(number, &stamp, cell, out);
        }
        match &self.block {
            BlockTime::At(at) => {
                let at = *at;
                if self.block_gpus.insert(gpu.clone()) {
                    Ok(Ok(at))
                } else {
                    let second = "a second reading of the same GPU without a time of its own";
                    Ok(Err(second.into()))
                }
            }
            BlockTime::Unclear(why) => Ok(Err(why.clone())),
            BlockTime::Unknown => Err(self.format_error(
                "its rows have no time: no `timestamp` column, no `date` line before them, \
                 and `--time` was not given"
                    .into(),
                "add `--time 2026-03-02T09:00:00Z`, or log with `timestamp` among the fields",
            )),
        }
    }

    fn keep_row(
        &mut self,
        at: i64,
        gpu: Gpu,
        row: csv::Row<'_>,
        number: u64,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        let mut sample = row.sample;
        sample.sampled_at_ms = at;
        sample.cluster.clone_from(&self.cluster);
        sample.node = row.host.map(|host| self.names.of(host)).or_else(|| self.node.clone());
        sample.gpu_model = row.model.map(|model| self.names.of(model));
        if let Some(bus) = row.bus
            && !self.by_bus.contains_key(bus)
        {
            self.by_bus.insert(bus.to_owned(), gpu.clone());
        }
        if let Gpu::Uuid(uuid) = &gpu {
            sample.gpu_uuid = Some(Arc::clone(uuid));
            let device = self.samples.device(uuid);
            device.state = row.state;
            for (known, new) in
                [(&mut device.driver_version, row.driver), (&mut device.vbios_version, row.vbios)]
            {
                if let Some(new) = new
                    && known.as_deref() != Some(new)
                {
                    *known = Some(self.names.of(new));
                }
            }
        }
        if let Some(state) = row.state {
            self.notice(Some(number), format!("{}: {state}", told_as(&gpu)), out);
        }
        match self.pending.insert(gpu, sample) {
            Some(earlier) => self.samples.push(&earlier, out),
            None => Ok(()),
        }
    }

    fn process_row(&mut self, header: &Header, text: &str) {
        let uuid = header.cell(Role::Uuid, text).and_then(available);
        let pending = uuid.and_then(|u| self.pending.get_mut(&Gpu::Uuid(Arc::from(u))));
        match pending {
            Some(sample) => {
                let listed = sample.get(Measure::Processes).unwrap_or(0.0);
                sample.put(Measure::Processes, Some(listed + 1.0));
            }
            None => self.processes_unplaced += 1,
        }
    }

    /// A line that is no row: a message of the driver, a torn row, or something else.
    fn other_text(&mut self, line: &Line<'_>, text: &str, out: &mut dyn Output) {
        out.read(1);
        if let Some(said) = csv::driver_message(text) {
            self.recognised = true;
            if let Some(state) = distress(text)
                && let Some(Gpu::Uuid(uuid)) = self.gpu_named_in(text)
            {
                self.samples.device(&uuid).state = Some(state);
            }
            self.notice(Some(line.number), said.to_owned(), out);
            self.reject(line.number, "a message of the driver, no reading".into(), text, out);
            return;
        }
        let cells = text.split(',').count();
        let reason = match self.header.as_ref().map(Header::len) {
            None => "no header before it says what the columns are".into(),
            Some(columns) if !line.ended => {
                format!("the file ends inside this row: {cells} of {columns} columns")
            }
            Some(columns) => format!("{cells} of the {columns} columns of the header"),
        };
        self.reject(line.number, reason, text, out);
    }

    fn gpu_named_in(&self, text: &str) -> Option<Gpu> {
        let text = text.to_ascii_uppercase();
        let within = |bus: &str| {
            // The driver shortens the domain of `00000000:02:00.0` in messages.
            let tail = bus.to_ascii_uppercase();
            text.contains(tail.trim_start_matches('0').trim_start_matches(':'))
        };
        self.by_bus.iter().find(|(bus, _)| within(bus)).map(|(_, gpu)| gpu.clone())
    }

    fn xml_line(
        &mut self,
        number: u64,
        text: &str,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        let (start, mut held) = self.document.take().unwrap_or_else(|| (number, String::new()));
        held.push_str(text);
        held.push('\n');
        let Some(end) = xml::end_of(&held, text.len()) else {
            if held.len() > DOCUMENT_BYTES_MAX {
                out.read(1);
                self.reject(start, "an XML document beyond 64 MiB".into(), &held, out);
            } else {
                self.document = Some((start, held));
            }
            return Ok(());
        };
        let rest = held.split_off(end);
        self.xml_document(start, &held, out)?;
        match rest.trim() {
            "" => Ok(()),
            rest => {
                let line = Line { number, text: rest.into(), ended: true };
                self.line(&line, out)
            }
        }
    }

    fn xml_document(
        &mut self,
        start: u64,
        text: &str,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        self.recognised = true;
        let log = xml::Document::read(text);
        if let Some(problem) = &log.problem {
            out.read(1);
            self.reject(start, problem.clone(), text, out);
        }
        let at = match &log.timestamp {
            Some(printed) => match stamp(printed) {
                Some(stamp) => self.resolve(start, &stamp, printed, out)?,
                None => Err(format!("`{printed}` is no time")),
            },
            None => match &self.block {
                BlockTime::At(at) => Ok(*at),
                BlockTime::Unclear(why) => Err(why.clone()),
                BlockTime::Unknown => {
                    return Err(self.format_error(
                        "it has no `timestamp`, and `--time` was not given".into(),
                        "add `--time 2026-03-02T09:00:00Z`",
                    ));
                }
            },
        };
        for (sample, device) in log.samples(&mut self.names, out) {
            out.read(1);
            let at = match &at {
                Ok(at) => *at,
                Err(why) => {
                    self.reject(start, why.clone(), &format!("{:?}", sample.gpu_uuid), out);
                    continue;
                }
            };
            self.keep_xml(start, Sample { sampled_at_ms: at, ..sample }, device, out)?;
        }
        Ok(())
    }

    fn keep_xml(
        &mut self,
        start: u64,
        mut sample: Sample,
        known: super::sample::Device,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        sample.cluster.clone_from(&self.cluster);
        sample.node.clone_from(&self.node);
        let Some(uuid) = sample.gpu_uuid.clone() else {
            self.reject(start, "a GPU without `uuid`".into(), "", out);
            return Ok(());
        };
        if sample.mig.is_none() {
            if let Some(state) = known.state {
                self.notice(Some(start), format!("`{uuid}`: {state}"), out);
            }
            self.samples.device(&uuid).learn(known);
        }
        self.samples.push(&sample, out)
    }

    fn finish(mut self, out: &mut dyn Output) -> Result<(), IngestError> {
        if let Some((start, text)) = self.document.take() {
            self.xml_document(start, &text, out)?;
        }
        for sample in std::mem::take(&mut self.pending).into_values() {
            self.samples.push(&sample, out)?;
        }
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

fn told_as(gpu: &Gpu) -> String {
    match gpu {
        Gpu::Uuid(uuid) => format!("`{uuid}`"),
        Gpu::Index(index) => format!("GPU {index}"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
