//! Pages of dcgm-exporter, and answers of the Prometheus API over its series.
//!
//! A page says everything of one instant: its series are brought together into one sample for
//! each GPU and MIG slice. The instant is the line's own time, else that of a `date` line before
//! the page, else the one given, else the time at which the file was written.
//!
//! # Source
//! The Prometheus text format and OpenMetrics; dcgm-exporter 2 to 4.

use std::collections::HashSet;
use std::io::BufRead;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::clock::stamp;
use super::input::{Input, Line, Lines};
use super::sample::{Name, Names, Samples};
use crate::batch::{Notice, Output, Reject};
use crate::error::IngestError;

mod answer;
mod device;
mod found;
mod live;
mod map;
mod metric;
mod page;
mod series;
mod when;

use self::found::Found;
pub(crate) use self::live::{Live, Sent};
pub use self::map::{MetricMap, MetricMaps};
use self::page::{Added, Key, Page, Row};
use self::series::Series;
use self::when::{PageTime, When};

/// What an exporter without a GPU may lack.
const NO_GPUS: &str = "see whether the exporter reaches the driver";

/// What the pages do not say.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Node for series without a `Hostname`.
    pub node: Option<String>,
    /// Cluster for series without a `cluster`.
    pub cluster: Option<String>,
    /// Instant of a page whose lines have no time and that no `date` line precedes. Without it
    /// the time at which the file was written is taken, and said.
    pub time: Option<DateTime<Utc>>,
    /// Zone of `date` lines without one.
    pub zone: Option<Tz>,
    /// Metrics that are none of DCGM, and what they fill.
    pub maps: MetricMaps,
}

/// Reads every file and hands over samples and the inventory of the GPUs in them.
///
/// Lines that are no series, and a second page of one instant, are kept aside; series of other
/// metrics are counted and passed over. An empty file is said and passed over.
///
/// # Errors
/// [`IngestError::Read`] where a file cannot be read, and [`IngestError::Format`] where it holds
/// no series of DCGM, or its pages have no time and none was given.
pub fn read(inputs: &[Input], options: &Options, out: &mut dyn Output) -> Result<(), IngestError> {
    let mut samples = Samples::default();
    for input in inputs {
        if let Err(error) = read_file(input, options, &mut samples, out) {
            out.unread(error)?;
        }
    }
    samples.finish(out)
}

fn read_file(
    input: &Input,
    options: &Options,
    samples: &mut Samples,
    out: &mut dyn Output,
) -> Result<(), IngestError> {
    let mut pages = Pages::new(input, options, samples);
    let (json, reader) = answer::peek(input.open()?).map_err(|e| input.unreadable(e))?;
    if json {
        answer::read(&mut pages, reader, out)?;
    } else {
        pages.text(reader, out)?;
    }
    pages.finish(out)
}

/// One file under way.
struct Pages<'a> {
    input: &'a Input,
    samples: &'a mut Samples,
    names: Names,
    page: Page,
    when: When,
    cluster: Name,
    node: Name,
    /// Samples of pages that share one time, to tell a second page of the same GPUs.
    told: HashSet<Key>,
    kept: u64,
    repeated: u64,
    found: Found,
    maps: &'a MetricMaps,
    /// Whether it comes again and again: what is said of a file is not said of it.
    live: bool,
    /// The instant of its pages, where it was given.
    now: Option<DateTime<Utc>>,
}

impl<'a> Pages<'a> {
    fn new(input: &'a Input, options: &'a Options, samples: &'a mut Samples) -> Self {
        Self {
            input,
            samples,
            names: Names::default(),
            page: Page::default(),
            when: When::new(options),
            cluster: options.cluster.as_deref().map(Into::into),
            node: options.node.as_deref().map(Into::into),
            told: HashSet::new(),
            kept: 0,
            repeated: 0,
            found: Found::default(),
            maps: &options.maps,
            live: false,
            now: options.time,
        }
    }

    fn text(
        &mut self,
        reader: Box<dyn BufRead + Send>,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        let input = self.input;
        let mut lines = Lines::new(reader);
        while let Some(line) = lines.next_line().map_err(|e| input.unreadable(e))? {
            self.line(&line, out)?;
        }
        Ok(())
    }

    fn line(&mut self, line: &Line<'_>, out: &mut dyn Output) -> Result<(), IngestError> {
        let text = line.text.trim();
        if text.is_empty() {
            return Ok(());
        }
        if let Some(comment) = text.strip_prefix('#') {
            return self.comment(comment.trim(), line.number, out);
        }
        match series::read(text, self.maps) {
            // A number that the end of the file may have cut is no reading.
            Ok(_) if !line.ended && self.kept > 0 => {
                self.reject(Some(line.number), "the file ends inside this line", text, out);
                Ok(())
            }
            Ok(series) => self.series(&series, Some(line.number), text, out),
            Err(why) => {
                if !self.date_line(text, line.number, out)? {
                    self.found.line(line.number, text);
                    self.reject(Some(line.number), why, text, out);
                }
                Ok(())
            }
        }
    }

    fn comment(&mut self, text: &str, line: u64, out: &mut dyn Output) -> Result<(), IngestError> {
        if text == "EOF" {
            return self.end_page(out);
        }
        if text.starts_with("HELP ") || text.starts_with("TYPE ") {
            return if self.page.ends_before_comment(text) { self.end_page(out) } else { Ok(()) };
        }
        self.date_line(text, line, out).map(|_| ())
    }

    /// Takes a line that `date` printed as the time of the pages after it.
    fn date_line(
        &mut self,
        text: &str,
        line: u64,
        out: &mut dyn Output,
    ) -> Result<bool, IngestError> {
        let Some(stamp) = stamp(text) else { return Ok(false) };
        self.end_page(out)?;
        self.told.clear();
        if let Some(said) = self.when.begin(&stamp, text) {
            self.notice(Some(line), said, out);
        }
        Ok(true)
    }

    /// Takes a series; `line` and `text` are where and how it was printed.
    fn series(
        &mut self,
        series: &Series<'_>,
        line: Option<u64>,
        text: &str,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        let Some(key) = Key::of(series, &mut self.names, out) else {
            self.found.series(series.name);
            return Ok(());
        };
        if let Some(why) = self.untimely(series) {
            self.reject(line, &why, text, out);
            return Ok(());
        }
        if self.page.ends_before(series.name, &key) {
            self.end_page(out)?;
        }
        match self.page.add(key, series, line, &mut self.names, out) {
            Added::Kept => self.kept += 1,
            Added::Other => self.found.series(series.name),
            Added::Repeated => self.repeated += 1,
            Added::Late => {
                let why = "its time lies too far back: sort the file by time, or split it by GPU";
                self.reject(line, why, text, out);
            }
            Added::Contradicts(known) => {
                let known = known.map_or_else(String::new, |line| format!(" of line {line}"));
                let why = format!("the series{known} again, at the same time with another value");
                self.reject(line, &why, text, out);
            }
        }
        if line.is_some() {
            let older = self.page.take_older();
            self.hand_over(older, out)?;
        }
        Ok(())
    }

    fn end_page(&mut self, out: &mut dyn Output) -> Result<(), IngestError> {
        let rows = self.page.take();
        self.hand_over(rows, out)
    }

    fn hand_over(
        &mut self,
        rows: Vec<(Key, Row)>,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        for (key, row) in rows {
            out.read(1);
            let at = match key.at_ms {
                Some(at) => Ok(at),
                None if !self.told.insert(key) => {
                    Err("a second page of the same GPU without a time of its own".to_owned())
                }
                None => self.page_time(out)?,
            };
            let mut sample = row.sample;
            match at {
                Ok(at) => sample.sampled_at_ms = at,
                Err(why) => {
                    let text = sample.gpu_uuid.as_deref().unwrap_or("").to_owned();
                    self.aside(row.line, &why, &text, out);
                    continue;
                }
            }
            sample.cluster = sample.cluster.or_else(|| self.cluster.clone());
            sample.node = sample.node.or_else(|| self.node.clone());
            self.note_device(&sample, &row.driver, &row.vbios, row.line, out);
            self.samples.push(&sample, out)?;
        }
        Ok(())
    }

    /// The time of a page whose lines have none, or why it has none.
    fn page_time(&mut self, out: &mut dyn Output) -> Result<Result<i64, String>, IngestError> {
        match self.when.of_page(self.input) {
            PageTime::At(at) => Ok(Ok(at)),
            PageTime::Written(at, said) => {
                self.notice(None, said, out);
                Ok(Ok(at))
            }
            PageTime::Unclear(why) => Ok(Err(why)),
            PageTime::Unknown => Err(self.format_error(
                "its pages have no time, and `--time` was not given".into(),
                "add `--time 2026-03-02T09:00:00Z`, the instant of the scrape",
            )),
        }
    }

    fn finish(mut self, out: &mut dyn Output) -> Result<(), IngestError> {
        self.end_page(out)?;
        if self.kept == 0 {
            let Some(instead) = self.found.instead() else {
                if self.live {
                    return Err(self.format_error("the page has no series".into(), NO_GPUS));
                }
                self.notice(None, "no series in it: nothing was read".into(), out);
                return Ok(());
            };
            return Err(self.format_error(
                instead,
                "save the page of dcgm-exporter, as in `curl -s http://NODE:9400/metrics > page.prom`",
            ));
        }
        if self.live {
            return Ok(());
        }
        if let Some(text) = self.found.passed_over() {
            self.notice(None, text, out);
        }
        if self.repeated > 0 {
            let text = format!("{} series stood there twice and count once", self.repeated);
            self.notice(None, text, out);
        }
        if self.when.given_in_vain() {
            self.notice(None, "`--time` was not used: the page has its own".into(), out);
        }
        Ok(())
    }

    fn notice(&self, line: Option<u64>, text: String, out: &mut dyn Output) {
        out.notice(Notice { file: self.input.name().to_owned(), line, text });
    }

    /// Keeps a line aside that counts as a record of its own.
    fn reject(&self, line: Option<u64>, reason: &str, text: &str, out: &mut dyn Output) {
        out.read(1);
        self.aside(line, reason, text, out);
    }

    fn aside(&self, line: Option<u64>, reason: &str, text: &str, out: &mut dyn Output) {
        out.reject(Reject {
            file: self.input.name().to_owned(),
            line,
            reason: reason.to_owned(),
            text: text.chars().take(200).collect(),
        });
    }

    fn format_error(&self, reason: String, hint: &str) -> IngestError {
        IngestError::Format {
            path: self.input.name().to_owned(),
            format: "dcgm",
            reason,
            hint: Some(hint.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
