//! Pages of dcgm-exporter, and answers of the Prometheus API over its series.
//!
//! A page says everything of one instant: its series are brought together into one sample for
//! each GPU and MIG slice. The instant is the line's own time, else that of a `date` line before
//! the page, else the one given, else the time at which the file was written.
//!
//! # Source
//! The Prometheus text format; dcgm-exporter 2 to 4.

use std::collections::{BTreeMap, HashSet};
use std::io::BufRead;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde::Deserialize;

use super::clock::{Clock, stamp};
use super::input::{Input, Lines};
use super::sample::{Name, Names, Sample, Samples, keep};
use super::value::Measure;
use crate::batch::{Notice, Output, Reject};
use crate::error::IngestError;

mod metric;
mod page;
mod series;

use self::page::{Key, Page, Row};
use self::series::{Labels, Series};

/// What the pages do not say.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Node for series without a `Hostname`.
    pub node: Option<String>,
    /// Cluster of every row.
    pub cluster: Option<String>,
    /// Instant of a page whose lines have no time and that no `date` line precedes. Without it
    /// the time at which the file was written is taken, and said.
    pub time: Option<DateTime<Utc>>,
    /// Zone of `date` lines without one.
    pub zone: Option<Tz>,
}

/// Reads every file and hands over samples and the inventory of the GPUs in them.
///
/// # Errors
/// [`IngestError::Read`] where a file cannot be read, and [`IngestError::Format`] where it holds
/// no series of DCGM, or its pages have no time and none was given.
pub fn read(inputs: &[Input], options: &Options, out: &mut dyn Output) -> Result<(), IngestError> {
    let mut samples = Samples::default();
    for input in inputs {
        let mut pages = Pages::new(input, options, &mut samples);
        let mut reader = input.open()?;
        let json = begins_with_brace(&mut *reader).map_err(|e| input.unreadable(e))?;
        if json {
            pages.answers(reader, out)?;
        } else {
            pages.text(reader, input, out)?;
        }
        pages.finish(out)?;
    }
    samples.finish(out)
}

fn begins_with_brace(reader: &mut dyn BufRead) -> std::io::Result<bool> {
    loop {
        let start = reader.fill_buf()?;
        let blank = |b: &u8| b.is_ascii_whitespace() || matches!(b, 0xef | 0xbb | 0xbf);
        let skipped = start.iter().take_while(|b| blank(b)).count();
        if skipped < start.len() || start.is_empty() {
            let brace = start.get(skipped) == Some(&b'{');
            if brace {
                reader.consume(skipped);
            }
            return Ok(brace);
        }
        reader.consume(skipped);
    }
}

struct Pages<'a> {
    input: &'a Input,
    samples: &'a mut Samples,
    names: Names,
    page: Page,
    clock: Clock,
    cluster: Name,
    node: Name,
    given_ms: Option<i64>,
    /// Time of the page from a `date` line, or why that line tells none.
    block: Option<Result<i64, String>>,
    /// Samples of pages that share one time, to tell a second page of the same GPUs.
    told: HashSet<Key>,
    latest_ms: i64,
    kept: u64,
    others: BTreeMap<String, u64>,
    written_said: bool,
}

/// Rows of lines with their own time that are held before the older ones are handed over.
const ROWS_HELD_MAX: usize = 50_000;
/// How far apart in time the series of one page may lie.
const PAGE_MS_MAX: i64 = 600_000;

/// An answer of `/api/v1/query` or `/api/v1/query_range`.
#[derive(Debug, Deserialize)]
struct Answer {
    data: AnswerData,
}

#[derive(Debug, Deserialize)]
struct AnswerData {
    result: Vec<AnswerSeries>,
}

#[derive(Debug, Deserialize)]
struct AnswerSeries {
    metric: BTreeMap<String, String>,
    value: Option<(f64, String)>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

impl<'a> Pages<'a> {
    fn new(input: &'a Input, options: &'a Options, samples: &'a mut Samples) -> Self {
        Self {
            input,
            samples,
            names: Names::default(),
            page: Page::default(),
            clock: Clock::new(options.zone),
            cluster: options.cluster.as_deref().map(Into::into),
            node: options.node.as_deref().map(Into::into),
            given_ms: options.time.map(|time| time.timestamp_millis()),
            block: None,
            told: HashSet::new(),
            latest_ms: i64::MIN,
            kept: 0,
            others: BTreeMap::new(),
            written_said: false,
        }
    }

    fn text(
        &mut self,
        reader: Box<dyn BufRead + Send>,
        input: &Input,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        let mut lines = Lines::new(reader);
        while let Some(line) = lines.next_line().map_err(|e| input.unreadable(e))? {
            let text = line.text.trim();
            if text.is_empty() {
                continue;
            }
            if let Some(comment) = text.strip_prefix('#') {
                self.comment(comment.trim(), out)?;
                continue;
            }
            match series::read(text) {
                // A number that the end of the file may have cut is no reading.
                Ok(_) if !line.ended && !text.ends_with('}') && self.kept > 0 => {
                    self.reject(line.number, "the file ends inside this line", text, out);
                }
                Ok(series) => self.series(series, line.number, out)?,
                Err(_) if self.date_line(text, out)? => {}
                Err(why) => self.reject(line.number, why, text, out),
            }
        }
        Ok(())
    }

    fn comment(&mut self, text: &str, out: &mut dyn Output) -> Result<(), IngestError> {
        if text == "EOF" {
            return self.end_page(out);
        }
        if !text.starts_with("HELP ") && !text.starts_with("TYPE ") {
            self.date_line(text, out)?;
        }
        Ok(())
    }

    fn date_line(&mut self, text: &str, out: &mut dyn Output) -> Result<bool, IngestError> {
        let Some(stamp) = stamp(text) else { return Ok(false) };
        self.end_page(out)?;
        self.told.clear();
        let resolved = self.clock.resolve(&stamp);
        self.block = Some(resolved.map_err(|fault| match fault {
            super::clock::Fault::Unclear(why) => why,
            super::clock::Fault::NoZone => format!("`{text}` has no zone: give `--zone`"),
        }));
        Ok(true)
    }

    fn series(
        &mut self,
        series: Series<'_>,
        line: u64,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        if self.page.ends_before(&series) {
            self.end_page(out)?;
        }
        if let Some(at) = series.at_ms {
            self.latest_ms = self.latest_ms.max(at);
        }
        let name = series.name;
        if self.page.add(series, line, &mut self.names, out) {
            self.kept += 1;
        } else if self.others.len() < 10_000 || self.others.contains_key(name) {
            *self.others.entry(name.to_owned()).or_default() += 1;
        }
        if self.page.len() > ROWS_HELD_MAX {
            let older = self.page.take_older(self.latest_ms.saturating_sub(PAGE_MS_MAX));
            self.hand_over(older, out)?;
        }
        Ok(())
    }

    fn answers(
        &mut self,
        reader: Box<dyn BufRead + Send>,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        for answer in serde_json::Deserializer::from_reader(reader).into_iter::<Answer>() {
            let answer = answer.map_err(|error| {
                self.format_error(
                    format!("it is no answer of the Prometheus API: {error}"),
                    "save the whole answer of `/api/v1/query` or `/api/v1/query_range`",
                )
            })?;
            for (place, found) in answer.data.result.iter().enumerate() {
                let name = found.metric.get("__name__").map_or("", String::as_str);
                for (seconds, value) in found.value.iter().chain(&found.values) {
                    let mut labels = Labels::default();
                    for (label, value) in &found.metric {
                        labels.take(label, value.as_str().into());
                    }
                    let at_ms = Some((seconds * 1000.0).round() as i64);
                    let value = value.parse().unwrap_or(f64::NAN);
                    let series = Series { name, labels, value, at_ms, identity: name };
                    self.series(series, place as u64 + 1, out)?;
                }
            }
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
            sample.cluster.clone_from(&self.cluster);
            sample.node = sample.node.or_else(|| self.node.clone());
            self.note_device(&sample, &row.driver, &row.vbios, row.line, out);
            self.samples.push(&sample, out)?;
        }
        Ok(())
    }

    fn note_device(
        &mut self,
        sample: &Sample,
        driver: &Name,
        vbios: &Name,
        line: u64,
        out: &mut dyn Output,
    ) {
        let Some(uuid) = &sample.gpu_uuid else { return };
        let device = self.samples.device(uuid);
        keep(&mut device.driver_version, driver);
        keep(&mut device.vbios_version, vbios);
        // Xid 79: the GPU has fallen off the bus. The field keeps the last error, so it is said
        // once, not at every page.
        let lost = sample.get(Measure::Xid) == Some(79.0);
        if lost && device.state != Some("lost") {
            device.state = Some("lost");
            let text = format!("`{uuid}`: lost (Xid 79)");
            out.notice(Notice { file: self.input.name().to_owned(), line: Some(line), text });
        }
    }

    fn page_time(&mut self, out: &mut dyn Output) -> Result<Result<i64, String>, IngestError> {
        if let Some(at) = &self.block {
            return Ok(at.clone());
        }
        if let Some(at) = self.given_ms {
            return Ok(Ok(at));
        }
        let Some(written) = self.input.modified_at() else {
            return Err(self.format_error(
                "its pages have no time, and `--time` was not given".into(),
                "add `--time 2026-03-02T09:00:00Z`, the instant of the scrape",
            ));
        };
        if !self.written_said {
            self.written_said = true;
            let at = written.format("%Y-%m-%dT%H:%M:%SZ");
            let text = format!("no time in the page: taken as {at}, when the file was written");
            out.notice(Notice { file: self.input.name().to_owned(), line: None, text });
        }
        Ok(Ok(written.timestamp_millis()))
    }

    fn finish(mut self, out: &mut dyn Output) -> Result<(), IngestError> {
        self.end_page(out)?;
        if self.kept == 0 {
            return Err(self.format_error(
                "no series of DCGM that tells a GPU in it".into(),
                "save the page of dcgm-exporter, as in `curl -s http://NODE:9400/metrics > page.prom`",
            ));
        }
        if !self.others.is_empty() {
            let series: u64 = self.others.values().sum();
            let text =
                format!("{series} series of {} other metrics passed over", self.others.len());
            out.notice(Notice { file: self.input.name().to_owned(), line: None, text });
        }
        Ok(())
    }

    /// Keeps a line aside that counts as a record of its own.
    fn reject(&self, line: u64, reason: &str, text: &str, out: &mut dyn Output) {
        out.read(1);
        self.aside(line, reason, text, out);
    }

    fn aside(&self, line: u64, reason: &str, text: &str, out: &mut dyn Output) {
        out.reject(Reject {
            file: self.input.name().to_owned(),
            line: Some(line),
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
