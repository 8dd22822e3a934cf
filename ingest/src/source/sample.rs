//! Rows of `samples` and of the inventory, gathered into batches by column name.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Builder, Int16Builder, Int32Builder, Int64Builder, RecordBatch, StringBuilder,
    TimestampMillisecondBuilder,
};

use super::text::bounded;
use super::trouble::{self, Troubles};
use super::value::{COLUMNS, Kind, Measure, Reading};
use crate::batch::Output;
use crate::error::IngestError;
use crate::event::{self, EventKind};
use crate::schema::Table;

/// Rows that are handed over at once.
const BATCH_ROWS: usize = 65_536;

/// Time after which a device is told again that is only still there.
const SIGHT_MS: i64 = 300_000;

/// Text that repeats from row to row.
pub(crate) type Name = Option<Arc<str>>;

/// One reading of one GPU or slice; what is not set is NULL.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    pub(crate) sampled_at_ms: i64,
    pub(crate) cluster: Name,
    pub(crate) node: Name,
    pub(crate) gpu: Option<i16>,
    pub(crate) gpu_uuid: Name,
    pub(crate) mig: Option<i16>,
    pub(crate) gpu_model: Name,
    pub(crate) job_id: Name,
    pub(crate) values: [Option<f64>; Measure::COUNT],
}

impl Sample {
    /// Sets a measurement in the unit of its column, if it can be true.
    pub(crate) fn set(&mut self, measure: Measure, reading: Reading, out: &mut dyn Output) {
        match reading {
            Reading::Value(value) => self.values[measure as usize] = Some(value),
            Reading::Impossible => out.nulled(measure.column().name, 1),
            Reading::Unavailable | Reading::Unreadable => {}
        }
    }

    /// Sets a figure that was checked.
    pub(crate) fn put(&mut self, measure: Measure, value: Option<f64>) {
        self.values[measure as usize] = value;
    }

    /// A measurement, if it is there.
    pub(crate) fn get(&self, measure: Measure) -> Option<f64> {
        self.values[measure as usize]
    }
}

#[derive(Debug)]
enum Values {
    Float(Float64Builder),
    Long(Int64Builder),
    Int(Int32Builder),
}

impl Values {
    fn append(&mut self, value: Option<f64>) {
        // Every value passed `Measure::check`, so the casts lose nothing but a fraction.
        match self {
            Self::Float(builder) => builder.append_option(value),
            Self::Long(builder) => builder.append_option(value.map(|v| v.round() as i64)),
            Self::Int(builder) => builder.append_option(value.map(|v| v.round() as i32)),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Float(builder) => Arc::new(builder.finish()),
            Self::Long(builder) => Arc::new(builder.finish()),
            Self::Int(builder) => Arc::new(builder.finish()),
        }
    }
}

/// Gathers samples and hands them over in batches; remembers the devices it saw, and what
/// happened to them.
#[derive(Debug)]
pub(crate) struct Samples {
    rows: usize,
    sampled_at: TimestampMillisecondBuilder,
    names: [StringBuilder; 5],
    gpu: Int16Builder,
    mig: Int16Builder,
    values: Vec<Values>,
    seen: BTreeMap<Arc<str>, Device>,
    /// Devices as they were handed over last.
    told: BTreeMap<Arc<str>, Device>,
    pub(crate) troubles: Troubles,
}

/// What the inventory learns of one GPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Device {
    pub(crate) cluster: Name,
    pub(crate) node: Name,
    pub(crate) gpu: Option<i16>,
    pub(crate) gpu_model: Name,
    pub(crate) mem_total_bytes: Option<i64>,
    pub(crate) driver_version: Name,
    pub(crate) cuda_version: Name,
    pub(crate) vbios_version: Name,
    pub(crate) state: Option<&'static str>,
    pub(crate) first_seen_at_ms: Option<i64>,
    pub(crate) last_seen_at_ms: Option<i64>,
}

impl Device {
    /// Whether there is nothing to tell since it was told as `told`: only that it is still there.
    fn old_news(&self, told: &Self) -> bool {
        let since = self.last_seen_at_ms.zip(told.last_seen_at_ms);
        let still = Self { last_seen_at_ms: told.last_seen_at_ms, ..self.clone() };
        since.is_some_and(|(now, then)| now - then < SIGHT_MS) && still == *told
    }

    /// Takes what `new` knows.
    pub(crate) fn learn(&mut self, new: Self) {
        keep(&mut self.cuda_version, &new.cuda_version);
        keep(&mut self.vbios_version, &new.vbios_version);
        self.state = new.state;
    }
}

impl Default for Samples {
    fn default() -> Self {
        let values = COLUMNS.iter().map(|column| match column.kind {
            Kind::Float => Values::Float(Float64Builder::new()),
            Kind::Long => Values::Long(Int64Builder::new()),
            Kind::Int => Values::Int(Int32Builder::new()),
        });
        Self {
            rows: 0,
            sampled_at: TimestampMillisecondBuilder::new(),
            names: std::array::from_fn(|_| StringBuilder::new()),
            gpu: Int16Builder::new(),
            mig: Int16Builder::new(),
            values: values.collect(),
            seen: BTreeMap::new(),
            told: BTreeMap::new(),
            troubles: Troubles::default(),
        }
    }
}

const NAMES: [&str; 5] = ["cluster", "node", "gpu_uuid", "gpu_model", "job_id"];

impl Samples {
    /// Takes one sample; hands a full batch over.
    pub(crate) fn push(
        &mut self,
        sample: &Sample,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        self.sampled_at.append_value(sample.sampled_at_ms);
        let names =
            [&sample.cluster, &sample.node, &sample.gpu_uuid, &sample.gpu_model, &sample.job_id];
        for (builder, name) in self.names.iter_mut().zip(names) {
            builder.append_option(name.as_deref());
        }
        self.gpu.append_option(sample.gpu);
        self.mig.append_option(sample.mig);
        for (builder, value) in self.values.iter_mut().zip(sample.values) {
            builder.append(value);
        }
        self.see(sample);
        self.rows += 1;
        if self.rows >= BATCH_ROWS { self.flush(out) } else { Ok(()) }
    }

    /// What is known of a device, to be added to.
    pub(crate) fn device(&mut self, gpu_uuid: &Arc<str>) -> &mut Device {
        if !self.seen.contains_key(gpu_uuid) {
            self.seen.insert(Arc::clone(gpu_uuid), Device::default());
        }
        self.seen.get_mut(gpu_uuid).expect("it was inserted above")
    }

    /// Takes the driver version that a reading tells; another one than before is an event.
    pub(crate) fn driver(&mut self, sample: &Sample, version: &Name) {
        let (Some(uuid), Some(new)) = (&sample.gpu_uuid, version) else { return };
        let device = self.device(uuid);
        let Some(old) = device.driver_version.replace(Arc::clone(new)) else { return };
        if old != *new {
            let detail = format!("driver {old} became {new}");
            self.troubles.event(trouble::of(sample, EventKind::DriverChanged, detail));
        }
    }

    fn see(&mut self, sample: &Sample) {
        let Some(uuid) = &sample.gpu_uuid else { return };
        let at = sample.sampled_at_ms;
        let device = self.device(uuid);
        let latest = device.last_seen_at_ms.is_none_or(|last| at >= last);
        device.first_seen_at_ms = Some(device.first_seen_at_ms.map_or(at, |first| first.min(at)));
        device.last_seen_at_ms = Some(device.last_seen_at_ms.map_or(at, |last| last.max(at)));
        if !latest {
            return;
        }
        // A board moves: where it sits is what its latest reading says.
        keep(&mut device.cluster, &sample.cluster);
        keep(&mut device.node, &sample.node);
        keep(&mut device.gpu_model, &sample.gpu_model);
        device.gpu = sample.gpu.or(device.gpu);
        if let (None, Some(bytes)) = (sample.mig, sample.get(Measure::MemTotal)) {
            device.mem_total_bytes = Some(bytes as i64);
        }
    }

    fn flush(&mut self, out: &mut dyn Output) -> Result<(), IngestError> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let at = self.sampled_at.finish().with_timezone("UTC");
        let mut columns: Vec<(&str, ArrayRef)> = vec![("sampled_at", Arc::new(at))];
        for (name, builder) in NAMES.iter().zip(&mut self.names) {
            columns.push((name, Arc::new(builder.finish())));
        }
        columns.push(("gpu", Arc::new(self.gpu.finish())));
        columns.push(("mig", Arc::new(self.mig.finish())));
        for (column, builder) in COLUMNS.iter().zip(&mut self.values) {
            columns.push((column.name, builder.finish()));
        }
        columns.retain(|(name, array)| *name == "sampled_at" || array.null_count() < array.len());
        out.rows(Table::Samples, RecordBatch::try_from_iter_with_nullable(nullable(columns))?)
    }

    /// Hands over what is left, and the inventory of the devices seen.
    pub(crate) fn finish(mut self, out: &mut dyn Output) -> Result<(), IngestError> {
        self.hand_over(out)
    }

    /// Hands over what has come since the last call, and the devices of which there is news.
    pub(crate) fn hand_over(&mut self, out: &mut dyn Output) -> Result<(), IngestError> {
        self.round(true, out)
    }

    /// The same, with the inventory or without; what is known of devices and their troubles stays.
    pub(crate) fn round(
        &mut self,
        inventory: bool,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        self.flush(out)?;
        let events = self.troubles.take();
        if !events.is_empty() {
            out.rows(Table::Events, event::batch(&events)?)?;
        }
        if !inventory {
            return Ok(());
        }
        let known = |uuid: &Arc<str>, device: &Device| {
            self.told.get(uuid).is_some_and(|told| device.old_news(told))
        };
        let news: BTreeMap<Arc<str>, Device> = self
            .seen
            .iter()
            .filter(|(uuid, device)| !known(uuid, device))
            .map(|(uuid, device)| (Arc::clone(uuid), device.clone()))
            .collect();
        if news.is_empty() {
            return Ok(());
        }
        let text = |value: &dyn Fn(&Device) -> Option<&str>| -> ArrayRef {
            let mut builder = StringBuilder::new();
            news.values().for_each(|device| builder.append_option(value(device)));
            Arc::new(builder.finish())
        };
        let instant = |value: &dyn Fn(&Device) -> Option<i64>| -> ArrayRef {
            let mut builder = TimestampMillisecondBuilder::new();
            news.values().for_each(|device| builder.append_option(value(device)));
            Arc::new(builder.finish().with_timezone("UTC"))
        };
        let uuids = arrow::array::StringArray::from_iter_values(news.keys());
        let gpu: arrow::array::Int16Array = news.values().map(|d| d.gpu).collect();
        let mem: arrow::array::Int64Array = news.values().map(|d| d.mem_total_bytes).collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("gpu_uuid", Arc::new(uuids)),
            ("cluster", text(&|d| d.cluster.as_deref())),
            ("node", text(&|d| d.node.as_deref())),
            ("gpu", Arc::new(gpu)),
            ("gpu_model", text(&|d| d.gpu_model.as_deref())),
            ("mem_total_bytes", Arc::new(mem)),
            ("driver_version", text(&|d| d.driver_version.as_deref())),
            ("cuda_version", text(&|d| d.cuda_version.as_deref())),
            ("vbios_version", text(&|d| d.vbios_version.as_deref())),
            ("state", text(&|d| d.state)),
            ("first_seen_at", instant(&|d| d.first_seen_at_ms)),
            ("last_seen_at", instant(&|d| d.last_seen_at_ms)),
        ];
        self.told.extend(news);
        out.rows(Table::Gpus, RecordBatch::try_from_iter_with_nullable(nullable(columns))?)
    }
}

/// Takes `new` where it is known.
pub(crate) fn keep(known: &mut Name, new: &Name) {
    if new.is_some() && new != known {
        known.clone_from(new);
    }
}

fn nullable(columns: Vec<(&str, ArrayRef)>) -> impl Iterator<Item = (&str, ArrayRef, bool)> {
    columns.into_iter().map(|(name, array)| (name, array, true))
}

/// Text that repeats, held once.
#[derive(Debug, Default)]
pub(crate) struct Names(std::collections::HashSet<Arc<str>>);

impl Names {
    /// The one copy of `text`, as far as it can be shown.
    pub(crate) fn of(&mut self, text: &str) -> Arc<str> {
        let text = bounded(text);
        if let Some(known) = self.0.get(&*text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(text);
        // Beyond this, text does not repeat and holding it would only cost memory.
        if self.0.len() < 100_000 {
            self.0.insert(Arc::clone(&new));
        }
        new
    }
}
