//! One GPU through the driver: what stands fast, and a reading of all that it offers.

use std::sync::Arc;

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::event::EventSet;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use super::activity::Activity;
use super::buffers::Buffers;
use super::rates::{Counters, pcie_throughput};
use super::reading::{Facts, Process, Row};
use super::slices::{self, Slice};
use crate::source::value::Measure;

/// Events of one GPU that are taken in one round.
const EVENTS_MAX: usize = 32;

/// Time in milliseconds after which place, versions and slices are looked at again.
const FACTS_HOLD_MS: i64 = 60_000;

/// Intervals below which the calls that take the driver 20 ms are left out.
const PATIENT_MS: i64 = 1_000;

/// A GPU that answered.
#[derive(Debug)]
pub(super) struct Board<'n> {
    device: Device<'n>,
    pub(super) facts: Arc<Facts>,
    looked_ms: i64,
    /// `None` where MIG is off.
    slices: Option<Vec<Slice<'n>>>,
    gpm: bool,
    fans: u32,
    activity: Activity<'n>,
    counters: Counters,
    buffers: Buffers,
    xids: Option<EventSet<'n>>,
}

impl<'n> Board<'n> {
    /// The GPU at place `index`.
    ///
    /// # Errors
    /// What the driver answers where it cannot tell which GPU that is.
    pub(super) fn open(nvml: &'n Nvml, index: u32, now_ms: i64) -> Result<Self, NvmlError> {
        let device = nvml.device_by_index(index)?;
        let facts = Arc::new(facts(&device)?);
        let slices = slices::of(&device, Vec::new())?;
        let gpm = device.gpm_support().unwrap_or(false);
        let fans = device.num_fans().unwrap_or(0);
        let xids = listen(nvml, &device);
        Ok(Self {
            device,
            facts,
            looked_ms: now_ms,
            slices,
            gpm,
            fans,
            activity: Activity::default(),
            counters: Counters::default(),
            buffers: Buffers::default(),
            xids,
        })
    }

    /// Whether what stands fast was looked at lately; a clock that went back says nothing.
    pub(super) fn fresh(&self, now_ms: i64) -> bool {
        (0..FACTS_HOLD_MS).contains(&(now_ms - self.looked_ms))
    }

    /// Looks again at what stands fast.
    ///
    /// # Errors
    /// What the driver answers where it cannot tell which GPU this is.
    pub(super) fn look(&mut self, now_ms: i64) -> Result<(), NvmlError> {
        let facts = facts(&self.device)?;
        if *self.facts != facts {
            self.facts = Arc::new(facts);
        }
        self.slices = slices::of(&self.device, self.slices.take().unwrap_or_default())?;
        self.looked_ms = now_ms;
        Ok(())
    }

    /// Reads the board and its slices.
    pub(super) fn read(&mut self, now_ms: i64, interval_ms: i64) -> Vec<Row> {
        let mut row = Row::of(None);
        self.utilisation(now_ms, interval_ms, &mut row);
        self.state(&mut row);
        self.errors(&mut row);
        self.counters.read(&self.device, now_ms, &mut row);
        if self.gpm {
            self.activity.read(&self.device, None, &mut row);
        }
        if !self.counters.pcie_counted() && !self.gpm && interval_ms >= PATIENT_MS {
            pcie_throughput(&self.device, &mut row);
        }
        let mut rows = vec![row];
        let (device, gpm) = (&self.device, self.gpm);
        for slice in self.slices.iter_mut().flatten() {
            let row = slice.read(device, gpm);
            match row.values.is_empty() {
                false => rows.push(row),
                // It is gone: which slices there are is asked at the next round.
                true => self.looked_ms = now_ms - FACTS_HOLD_MS,
            }
        }
        rows
    }

    fn utilisation(&mut self, now_ms: i64, interval_ms: i64, row: &mut Row) {
        let (device, buffers) = (&self.device, &mut self.buffers);
        // Where the driver tells no utilisation, as of a board in MIG mode, its buffer holds none
        // that could be trusted.
        if let Some(now) = row.take(device.utilization_rates()) {
            let both = [(Measure::GpuUtil, now.gpu), (Measure::MemCopyUtil, now.memory)];
            for (measure, percent) in both {
                let within = buffers.within(device, measure, now_ms, interval_ms, row);
                let now = f64::from(percent) * 0.01;
                row.put(measure, within.map_or(now, |within| within.mean));
                if let (Measure::GpuUtil, Some(within)) = (measure, within) {
                    row.put(Measure::GpuUtilMin, within.least);
                    row.put(Measure::GpuUtilMax, within.most);
                }
            }
        }
        let now_w = row.take(device.power_usage()).map(|milli| f64::from(milli) * 1e-3);
        let within = buffers.within(device, Measure::Power, now_ms, interval_ms, row);
        if let Some(watts) = within.map(|within| within.mean).or(now_w) {
            row.put(Measure::Power, watts);
        }
        if let Some(within) = within {
            row.put(Measure::PowerMin, within.least);
            row.put(Measure::PowerMax, within.most);
        }
    }

    fn state(&self, row: &mut Row) {
        let device = &self.device;
        if let Some(memory) = row.take(device.memory_info()) {
            row.put(Measure::MemUsed, memory.used as f64);
            row.put(Measure::MemTotal, memory.total as f64);
        }
        if let Some(milli) = row.take(device.total_energy_consumption()) {
            row.put(Measure::Energy, milli as f64 * 1e-3);
        }
        if let Some(celsius) = row.take(device.temperature(TemperatureSensor::Gpu)) {
            row.put(Measure::Temp, f64::from(celsius));
        }
        let mut fastest = None;
        for fan in 0..self.fans {
            fastest = fastest.max(row.take(device.fan_speed(fan)));
        }
        if let Some(percent) = fastest {
            row.put(Measure::Fan, f64::from(percent) * 0.01);
        }
        for (clock, measure) in [(Clock::SM, Measure::SmClock), (Clock::Memory, Measure::MemClock)]
        {
            if let Some(mhz) = row.take(device.clock_info(clock)) {
                row.put(measure, f64::from(mhz));
            }
        }
        if let Some(reasons) = row.take(device.current_throttle_reasons()) {
            row.put(Measure::Throttle, reasons.bits() as f64);
        }
    }

    fn errors(&self, row: &mut Row) {
        for (error, measure) in [
            (MemoryError::Corrected, Measure::EccCorrected),
            (MemoryError::Uncorrected, Measure::EccUncorrected),
        ] {
            let total = self.device.total_ecc_errors(error, EccCounter::Aggregate);
            if let Some(count) = row.take(total) {
                row.put(measure, count as f64);
            }
        }
        let Some(set) = &self.xids else { return };
        // 0 where the driver told none since the row before, the last of them where it did.
        let mut last = 0.0;
        for _ in 0..EVENTS_MAX {
            match set.wait(0) {
                Ok(event) => match event.event_data {
                    Some(XidError::Value(xid)) => last = xid as f64,
                    Some(XidError::Unknown) => last = 999.0,
                    None => {}
                },
                Err(NvmlError::Timeout) => break,
                Err(error) => {
                    row.take::<()>(Err(error));
                    return;
                }
            }
        }
        row.put(Measure::Xid, last);
    }

    /// Processes on the board and its slices, each once; `None` where the driver does not list them.
    pub(super) fn processes(&self) -> Option<Vec<Process>> {
        let lists = [
            self.device.running_compute_processes(),
            self.device.running_graphics_processes(),
            self.device.mps_running_compute_processes(),
        ];
        let mut found: Option<Vec<Process>> = None;
        for listed in lists.into_iter().flatten() {
            let found = found.get_or_insert_default();
            for process in listed.iter().map(process) {
                let same =
                    |known: &&mut Process| known.pid == process.pid && known.mig == process.mig;
                match found.iter_mut().find(same) {
                    Some(known) => known.bytes = known.bytes.max(process.bytes),
                    None => found.push(process),
                }
            }
        }
        found
    }
}

fn process(told: &ProcessInfo) -> Process {
    let bytes = match told.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Some(bytes),
        UsedGpuMemory::Unavailable => None,
    };
    Process { pid: told.pid, bytes, mig: told.gpu_instance_id }
}

fn facts(device: &Device<'_>) -> Result<Facts, NvmlError> {
    let known = |text: Result<String, NvmlError>| text.ok().map(|text| Arc::from(text.as_str()));
    Ok(Facts {
        uuid: Arc::from(device.uuid()?.as_str()),
        model: known(device.name()),
        vbios: known(device.vbios_version()),
    })
}

/// Asks the driver to tell of Xids; `None` where it tells none.
fn listen<'n>(nvml: &'n Nvml, device: &Device<'n>) -> Option<EventSet<'n>> {
    let wanted = EventTypes::CRITICAL_XID_ERROR;
    if !device.supported_event_types().ok()?.contains(wanted) {
        return None;
    }
    device.register_events(wanted, nvml.create_event_set().ok()?).ok()
}
