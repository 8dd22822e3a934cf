//! From the raw figures of a round to rows and events.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::NvmlCollector;
use super::fault::Fault;
use super::held::Memory;
use super::owners::Owner;
use super::reading::{Facts, Process, Reading, Row};
use crate::batch::Output;
use crate::error::IngestError;
use crate::event::{Event, EventKind};
use crate::source::sample::{Name, Sample, keep};
use crate::source::trouble;
use crate::source::value::Measure;

/// What a GPU that works tells, by which its recovery is known.
const SIGNS: [Measure; 3] = [Measure::GpuUtil, Measure::Power, Measure::Temp];

impl NvmlCollector {
    /// Takes the reading of one place. Why its GPU is in trouble, if it is.
    pub(super) fn take(
        &mut self,
        reading: Reading,
        facts: Option<&Facts>,
        now_ms: i64,
        out: &mut dyn Output,
    ) -> Result<Option<Fault>, IngestError> {
        let Some(facts) = facts else { return Ok(reading.fault) };
        if reading.fault.is_none() {
            self.learn(reading.index, reading.facts.as_ref());
        }
        let sliced = reading.rows.len() > 1;
        for row in &reading.rows {
            if row.values.is_empty() {
                continue;
            }
            out.read(1);
            let mut sample = self.sample(reading.index, facts, now_ms);
            sample.mig = row.mig;
            for (measure, value) in &row.values {
                // Of a GPU in trouble a call here and there still answers. Its row keeps what it
                // says, but nothing by which it would be taken for well again.
                if reading.fault.is_none() || !SIGNS.contains(measure) {
                    sample.set(*measure, measure.check(*value), out);
                }
            }
            if let Some(processes) = &reading.processes {
                self.processes(&mut sample, row, sliced, processes);
            }
            if reading.fault.is_none() && row.mig.is_none() {
                self.well(&sample);
            }
            self.samples.push(&sample, out)?;
        }
        Ok(reading.fault)
    }

    fn sample(&self, index: u32, facts: &Facts, now_ms: i64) -> Sample {
        Sample {
            sampled_at_ms: now_ms,
            cluster: self.cluster.clone(),
            node: self.node.clone(),
            gpu: i16::try_from(index).ok(),
            gpu_uuid: Some(Arc::clone(&facts.uuid)),
            gpu_model: facts.model.clone(),
            ..Sample::default()
        }
    }

    /// Tells the inventory what stands fast of a board, where it is new.
    fn learn(&mut self, index: u32, facts: Option<&Arc<Facts>>) {
        let (Some(facts), Some(driver)) = (facts, &self.driver) else { return };
        let known = self.told.get(&facts.uuid);
        if known.is_some_and(|(at, known)| *at == index && Arc::ptr_eq(known, facts)) {
            return;
        }
        self.inventory_due |= known.is_none_or(|(at, known)| *at != index || known != facts);
        let device = self.samples.device(&facts.uuid);
        keep(&mut device.driver_version, &driver.version);
        keep(&mut device.cuda_version, &driver.cuda);
        keep(&mut device.vbios_version, &facts.vbios);
        self.told.insert(Arc::clone(&facts.uuid), (index, Arc::clone(facts)));
    }

    /// Takes a reading without a fault: the board may be well again, or tell that it is lost.
    fn well(&mut self, sample: &Sample) {
        let Some(uuid) = &sample.gpu_uuid else { return };
        if trouble::lost(sample) {
            let detail = format!("Xid {}", trouble::XID_LOST);
            self.samples.troubles.begin(trouble::of(sample, EventKind::Lost, detail));
            self.stands(uuid, Some("lost"), sample.sampled_at_ms);
            return;
        }
        if self.samples.troubles.reading(sample) {
            self.stands(uuid, None, sample.sampled_at_ms);
        }
        // A GPU that was lost before it told its name was told by its place.
        let place = Sample { gpu_uuid: None, ..sample.clone() };
        self.samples.troubles.reading(&place);
    }

    /// Tells events and the inventory that a GPU is in trouble.
    pub(super) fn trouble(
        &mut self,
        index: u32,
        facts: Option<&Facts>,
        fault: &Fault,
        now_ms: i64,
    ) {
        if fault.kind == EventKind::DriverFailed {
            self.failed(now_ms, fault.words.clone());
            return;
        }
        let event = Event {
            event_at_ms: now_ms,
            cluster: self.cluster.clone(),
            node: self.node.clone(),
            gpu: i16::try_from(index).ok(),
            gpu_uuid: facts.map(|facts| Arc::clone(&facts.uuid)),
            mig: None,
            kind: fault.kind,
            detail: fault.words.clone(),
        };
        self.samples.troubles.begin(event);
        if let Some(facts) = facts {
            self.stands(&facts.uuid, fault.state(), now_ms);
        }
    }

    /// Sets the state of a board in the inventory.
    fn stands(&mut self, uuid: &Arc<str>, state: Option<&'static str>, now_ms: i64) {
        let device = self.samples.device(uuid);
        self.inventory_due |= device.state != state;
        device.state = state;
        // When it was last seen in trouble: what is read later and is good is its recovery.
        if state.is_some() {
            device.first_seen_at_ms.get_or_insert(now_ms);
            device.last_seen_at_ms = device.last_seen_at_ms.max(Some(now_ms));
        }
    }

    /// Processes of a board or slice: how many, of which jobs, and memory that is left of none.
    fn processes(&mut self, sample: &mut Sample, row: &Row, sliced: bool, all: &[Process]) {
        let here = |process: &&Process| match row.mig {
            None => true,
            Some(slice) => process.mig.is_some_and(|instance| i16::try_from(instance) == Ok(slice)),
        };
        let count = all.iter().filter(here).count();
        sample.put(Measure::Processes, Some(count as f64));
        // The jobs of a board in slices stand in the rows of these.
        if sliced && row.mig.is_none() {
            return;
        }
        let mut jobs = BTreeSet::new();
        let mut living = Some(0);
        for process in all.iter().filter(here) {
            let owner = self.owners.of(process.pid);
            if owner == Owner::Gone {
                continue;
            }
            living = living.zip(process.bytes).map(|(sum, bytes)| sum + bytes);
            if let Owner::Job(job) = owner {
                jobs.insert(job);
            }
        }
        sample.job_id = self.joined(&jobs);
        let (Some(used), Some(total)) = (row.get(Measure::MemUsed), row.get(Measure::MemTotal))
        else {
            return;
        };
        if let (true, Some(uuid)) = (self.owners.sees_all(), &sample.gpu_uuid) {
            let device = (Arc::clone(uuid), sample.mig);
            let memory = Memory { used, total, living };
            if let Some(bytes) = self.held.look(device, memory, sample.sampled_at_ms) {
                let detail = format!("{bytes} bytes held by no living process");
                let event = trouble::of(sample, EventKind::MemoryHeld, detail);
                self.samples.troubles.event(Event { mig: sample.mig, ..event });
            }
        }
    }

    /// The jobs of a row, with commas between them.
    fn joined(&mut self, jobs: &BTreeSet<Arc<str>>) -> Name {
        match jobs.first() {
            None => None,
            Some(only) if jobs.len() == 1 => Some(Arc::clone(only)),
            Some(_) => {
                let all: Vec<&str> = jobs.iter().map(|job| &**job).collect();
                Some(self.names.of(&all.join(",")))
            }
        }
    }
}
