//! Rows of query CSV in their log: which GPU, when, and what lines that are no rows mean.

use std::sync::Arc;

use super::csv::{self, Header, Role};
use super::{BlockTime, Gpu, Log};
use crate::batch::Output;
use crate::error::IngestError;
use crate::event::{Event, EventKind};
use crate::source::clock::stamp;
use crate::source::input::Line;
use crate::source::trouble;
use crate::source::value::{Measure, available, distress, kind};

/// Letters of a message that are kept.
const DETAIL_LETTERS_MAX: usize = 200;

impl Log<'_> {
    pub(super) fn row(
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
            return self.resolve(number, Some(gpu), &stamp, cell, out);
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
            let driver = row.driver.map(|driver| self.names.of(driver));
            self.samples.driver(&sample, &driver);
            let device = self.samples.device(uuid);
            device.state = row.state;
            if let Some(new) = row.vbios
                && device.vbios_version.as_deref() != Some(new)
            {
                device.vbios_version = Some(self.names.of(new));
            }
        }
        match row.state {
            Some(state) => {
                self.notice(Some(number), format!("{}: {state}", told_as(&gpu)), out);
                self.samples.troubles.begin(trouble::of(&sample, kind(state), state.to_owned()));
            }
            None => {
                self.samples.troubles.reading(&sample);
            }
        }
        self.place_untimed(at);
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
    pub(super) fn other_text(&mut self, line: &Line<'_>, text: &str, out: &mut dyn Output) {
        out.read(1);
        if let Some(said) = csv::driver_message(text) {
            self.recognised = true;
            let gpu = self.gpu_named_in(text);
            let state = distress(text);
            if let (Some(state), Some(Gpu::Uuid(uuid))) = (state, &gpu) {
                self.samples.device(uuid).state = Some(state);
            }
            let kind = match state {
                Some(state) => Some(kind(state)),
                None => csv::driver_failed(text).then_some(EventKind::DriverFailed),
            };
            if let Some(kind) = kind {
                self.message(kind, gpu, said);
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

    /// Takes a message of the driver as an event at the time of the reading before it, or, where
    /// the file begins with it, of the one after it.
    fn message(&mut self, kind: EventKind, gpu: Option<Gpu>, text: &str) {
        let of_block = match self.block {
            BlockTime::At(at) => Some(at),
            BlockTime::Unknown | BlockTime::Unclear(_) => None,
        };
        let at = self.clock.last().max(of_block);
        // The latest reading of the GPU, which may still be held back, says where it sits.
        let seen = gpu.as_ref().and_then(|gpu| self.pending.get(gpu));
        let (seen_in, seen_at) = seen.map_or((None, None), |seen| (seen.node.clone(), seen.gpu));
        let (gpu_uuid, index) = match gpu {
            Some(Gpu::Uuid(uuid)) => (Some(uuid), seen_at),
            Some(Gpu::Index(index)) => (None, Some(index)),
            None => (None, None),
        };
        let event = Event {
            event_at_ms: at.unwrap_or_default(),
            cluster: self.cluster.clone(),
            node: seen_in.or(self.node.clone()),
            gpu: index,
            gpu_uuid,
            mig: None,
            kind,
            detail: text.chars().take(DETAIL_LETTERS_MAX).collect(),
        };
        match at {
            Some(_) => self.samples.troubles.begin(event),
            None => self.untimed.push(event),
        }
    }

    /// Gives messages that stood before the first reading its time.
    fn place_untimed(&mut self, at: i64) {
        for event in std::mem::take(&mut self.untimed) {
            self.samples.troubles.begin(Event { event_at_ms: at, ..event });
        }
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
}

fn told_as(gpu: &Gpu) -> String {
    match gpu {
        Gpu::Uuid(uuid) => format!("`{uuid}`"),
        Gpu::Index(index) => format!("GPU {index}"),
    }
}
