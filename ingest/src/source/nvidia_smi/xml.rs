//! `nvidia-smi -q -x`: schemas v10 to v13, boards and their MIG slices.
//!
//! A board whose slices are busy says `N/A` for its utilisation while it draws full power: that
//! stays NULL. Power and energy are the board's; slices carry memory, errors and processes.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::batch::Output;
use crate::source::sample::{Device, Names, Sample};
use crate::source::value::{Measure, Reading, available, distress, index};

/// Whether a line begins a document.
pub(super) fn begins(text: &str) -> bool {
    text.starts_with('<')
        && ["<?xml", "<!DOCTYPE nvidia_smi_log", "<nvidia_smi_log"]
            .iter()
            .any(|start| text.starts_with(start))
}

const END: &str = "</nvidia_smi_log>";

/// Where the document ends, if its end is among the last `added` bytes.
pub(super) fn end_of(text: &str, added: usize) -> Option<usize> {
    let mut from = text.len().saturating_sub(added + END.len() + 1);
    while !text.is_char_boundary(from) {
        from -= 1;
    }
    text[from..].find(END).map(|at| from + at + END.len())
}

/// An element; the text directly in it.
#[derive(Debug, Default)]
struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

impl Element {
    fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    fn all<'e>(&'e self, name: &'e str) -> impl Iterator<Item = &'e Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The text at a path such as `utilization/gpu_util`, if the driver has one.
    fn at(&self, path: &str) -> Option<&str> {
        let mut element = self;
        for name in path.split('/') {
            element = element.child(name)?;
        }
        available(&element.text)
    }
}

/// Deepest nesting of a document; the driver's is 7.
const DEPTH_MAX: usize = 64;

/// One document.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) timestamp: Option<String>,
    /// Why the document could not be read to its end; what came before it is kept.
    pub(super) problem: Option<String>,
    root: Element,
}

impl Document {
    /// Reads a document as far as it goes.
    pub(super) fn read(text: &str) -> Self {
        let (root, problem) = tree(text);
        let timestamp = root.at("timestamp").map(str::to_owned);
        Self { timestamp, problem, root }
    }

    /// The boards and slices of the document; a slice follows its board.
    pub(super) fn samples(&self, names: &mut Names, out: &mut dyn Output) -> Vec<(Sample, Device)> {
        let mut found = Vec::new();
        let gpus: Vec<&Element> = self.root.all("gpu").collect();
        let attached = self.root.at("attached_gpus").and_then(|n| n.parse::<usize>().ok());
        // With `-i` only some GPUs are listed, and then their place is not their index.
        let all = self.problem.is_some() || attached.is_none_or(|n| n == gpus.len());
        for (place, gpu) in gpus.into_iter().enumerate() {
            let index = all.then(|| i16::try_from(place).ok()).flatten();
            let (board, device) = self.board(gpu, index, names, out);
            let slices = slices(gpu, &board, out);
            found.push((board, device));
            found.extend(slices.into_iter().map(|slice| (slice, Device::default())));
        }
        found
    }

    fn board(
        &self,
        gpu: &Element,
        index: Option<i16>,
        names: &mut Names,
        out: &mut dyn Output,
    ) -> (Sample, Device) {
        use Measure as M;
        let mut sample = Sample {
            gpu: index,
            gpu_uuid: gpu.at("uuid").map(|uuid| names.of(uuid)),
            gpu_model: gpu.at("product_name").map(|model| names.of(model)),
            ..Sample::default()
        };
        for (measure, paths) in [
            (M::GpuUtil, &["utilization/gpu_util"] as &[&str]),
            (M::MemCopyUtil, &["utilization/memory_util"]),
            (M::MemUsed, &["fb_memory_usage/used"]),
            (M::MemTotal, &["fb_memory_usage/total"]),
            (M::Power, &POWER),
            (M::Temp, &["temperature/gpu_temp"]),
            (M::MemTemp, &["temperature/memory_temp"]),
            (M::Fan, &["fan_speed"]),
            (M::SmClock, &["clocks/sm_clock"]),
            (M::MemClock, &["clocks/mem_clock"]),
            (M::PcieRx, &["pci/rx_util"]),
            (M::PcieTx, &["pci/tx_util"]),
        ] {
            if let Some(text) = paths.iter().find_map(|path| gpu.at(path)) {
                sample.set(measure, measure.read(text, ""), out);
            }
        }
        errors(gpu, &mut sample, out);
        sample.put(M::Throttle, throttle(gpu));
        sample.put(M::Processes, processes(gpu, None));
        let device = Device {
            driver_version: self.root.at("driver_version").map(|text| names.of(text)),
            cuda_version: self.root.at("cuda_version").map(|text| names.of(text)),
            vbios_version: gpu.at("vbios_version").map(|text| names.of(text)),
            state: state(gpu),
            ..Device::default()
        };
        (sample, device)
    }
}

/// Where the board's power stands, by schema; the average over the last second is what older
/// drivers print as `power_draw`.
const POWER: [&str; 6] = [
    "power_readings/power_draw",
    "gpu_power_readings/power_draw",
    "gpu_power_readings/average_power_draw",
    "power_readings/average_power_draw",
    "gpu_power_readings/instant_power_draw",
    "power_readings/instant_power_draw",
];

fn slices(gpu: &Element, board: &Sample, out: &mut dyn Output) -> Vec<Sample> {
    use Measure as M;
    let mut slices: Vec<Sample> = Vec::new();
    let Some(devices) = gpu.child("mig_devices") else { return slices };
    for device in devices.all("mig_device") {
        let instance = device.at("gpu_instance_id").and_then(|id| index(id, "mig", out));
        let Some(instance) = instance else { continue };
        // Compute instances share the memory of their GPU instance: it is one slice.
        if slices.iter().any(|slice| slice.mig == Some(instance)) {
            continue;
        }
        let mut slice = Sample {
            gpu: board.gpu,
            gpu_uuid: board.gpu_uuid.clone(),
            gpu_model: board.gpu_model.clone(),
            mig: Some(instance),
            ..Sample::default()
        };
        for (measure, path) in [
            (M::MemUsed, "fb_memory_usage/used"),
            (M::MemTotal, "fb_memory_usage/total"),
            (M::EccUncorrected, "ecc_error_count/volatile_count/sram_uncorrectable"),
        ] {
            if let Some(text) = device.at(path) {
                slice.set(measure, measure.read(text, ""), out);
            }
        }
        slice.put(M::Processes, processes(gpu, Some(instance)));
        slices.push(slice);
    }
    slices
}

/// Lifetime errors of the board: the total where the schema has one, else the sum of its parts.
fn errors(gpu: &Element, sample: &mut Sample, out: &mut dyn Output) {
    for (measure, total, mark) in [
        (Measure::EccCorrected, "single_bit/total", "_correctable"),
        (Measure::EccUncorrected, "double_bit/total", "_uncorrectable"),
    ] {
        let Some(counts) = gpu.child("ecc_errors").and_then(|e| e.child("aggregate")) else {
            continue;
        };
        if let Some(text) = counts.at(total) {
            sample.set(measure, measure.read(text, ""), out);
            continue;
        }
        let mut sum = None;
        for part in counts.children.iter().filter(|part| part.name.contains(mark)) {
            if let Reading::Value(count) = measure.read(&part.text, "") {
                sum = Some(sum.unwrap_or(0.0) + count);
            }
        }
        if let Some(sum) = sum {
            sample.set(measure, measure.check(sum), out);
        }
    }
}

fn throttle(gpu: &Element) -> Option<f64> {
    const BITS: [(&str, f64); 9] = [
        ("gpu_idle", 1.0),
        ("applications_clocks_setting", 2.0),
        ("sw_power_cap", 4.0),
        ("hw_slowdown", 8.0),
        ("sync_boost", 16.0),
        ("sw_thermal_slowdown", 32.0),
        ("hw_thermal_slowdown", 64.0),
        ("hw_power_brake_slowdown", 128.0),
        ("display_clocks_setting", 256.0),
    ];
    let reasons = ["clocks_event_reasons", "clocks_throttle_reasons"];
    let reasons = reasons.iter().find_map(|name| gpu.child(name))?;
    let mut mask = None;
    for reason in &reasons.children {
        let name = reason.name.trim_start_matches("clocks_event_reason_");
        let name = name.trim_start_matches("clocks_throttle_reason_");
        let Some((_, bit)) = BITS.iter().find(|(known, _)| *known == name) else { continue };
        match reason.text.as_str() {
            "Active" => mask = Some(mask.unwrap_or(0.0) + bit),
            "Not Active" => mask = Some(mask.unwrap_or(0.0)),
            _ => {}
        }
    }
    mask
}

/// Processes on the board, or in one slice of it; `None` where the driver lists none at all.
fn processes(gpu: &Element, slice: Option<i16>) -> Option<f64> {
    let list = gpu.child("processes")?;
    // `<processes>N/A</processes>` is no empty list.
    if list.children.is_empty() && !list.text.is_empty() {
        return None;
    }
    let wanted = |process: &&Element| {
        let instance = process.at("gpu_instance_id").and_then(|id| id.parse::<i16>().ok());
        slice.is_none() || slice == instance
    };
    Some(list.all("process_info").filter(wanted).count() as f64)
}

fn state(gpu: &Element) -> Option<&'static str> {
    let action = gpu.at("gpu_recovery_action").or_else(|| gpu.at("recovery_action"));
    if action.is_some() {
        return Some("needs reset");
    }
    let mut open = vec![gpu];
    while let Some(element) = open.pop() {
        if let Some(state) = distress(&element.text) {
            return Some(state);
        }
        open.extend(&element.children);
    }
    None
}

/// Reads the elements under the root, up to the first fault.
fn tree(text: &str) -> (Element, Option<String>) {
    let mut reader = Reader::from_str(text);
    reader.config_mut().trim_text(true);
    let mut open: Vec<Element> = Vec::new();
    let mut root = Element::default();
    let problem = loop {
        match reader.read_event() {
            Ok(Event::Start(start)) if open.len() < DEPTH_MAX => open.push(element(&start)),
            Ok(Event::Start(_)) => break Some("XML nested too deeply".to_owned()),
            Ok(Event::Empty(start)) => {
                if let Some(parent) = open.last_mut() {
                    parent.children.push(element(&start));
                }
            }
            Ok(Event::Text(text)) => {
                if let Some(parent) = open.last_mut() {
                    parent.text.push_str(text.trim());
                }
            }
            Ok(Event::End(_)) => {
                let Some(closed) = open.pop() else { continue };
                match open.last_mut() {
                    Some(parent) => parent.children.push(closed),
                    None => root = closed,
                }
            }
            Ok(Event::Eof) if open.is_empty() => break None,
            Ok(Event::Eof) => break Some("the XML document ends before its time".to_owned()),
            Ok(_) => {}
            Err(error) => break Some(format!("the XML document is damaged: {error}")),
        }
    };
    // What was whole before the fault is kept: the root is open, its finished GPUs are in it.
    if problem.is_some() && !open.is_empty() {
        root = open.swap_remove(0);
    }
    (root, problem)
}

fn element(start: &BytesStart<'_>) -> Element {
    let name = start.local_name().as_ref().to_owned();
    Element { name, ..Element::default() }
}
