//! XML documents in their log: one after the other, between `date` lines, the last one torn.

use super::{BlockTime, Log, xml};
use crate::batch::Output;
use crate::error::IngestError;
use crate::source::clock::stamp;
use crate::source::input::Line;
use crate::source::sample::{Device, Sample};
use crate::source::trouble;
use crate::source::value::kind;

/// Longest XML document, in bytes: 64 GPUs of the newest driver take 4 MB.
const DOCUMENT_BYTES_MAX: usize = 64 << 20;

impl Log<'_> {
    pub(super) fn xml_line(
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

    pub(super) fn xml_document(
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
                Some(stamp) => self.resolve(start, None, &stamp, printed, out)?,
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
        known: Device,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        sample.cluster.clone_from(&self.cluster);
        sample.node.clone_from(&self.node);
        let Some(uuid) = sample.gpu_uuid.clone() else {
            self.reject(start, "a GPU without `uuid`".into(), "", out);
            return Ok(());
        };
        if sample.mig.is_none() {
            match known.state {
                Some(state) => {
                    self.notice(Some(start), format!("`{uuid}`: {state}"), out);
                    let event = trouble::of(&sample, kind(state), state.to_owned());
                    self.samples.troubles.begin(event);
                }
                None => {
                    self.samples.troubles.reading(&sample);
                }
            }
            self.samples.driver(&sample, &known.driver_version);
            self.samples.device(&uuid).learn(known);
        }
        self.samples.push(&sample, out)
    }
}
