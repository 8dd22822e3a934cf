//! Series of one page brought together: one sample for each GPU and slice.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::live::Learned;
use super::metric::{Told, Unit, of_board_only, of_slice, told};
use super::series::{Labels, Series};
use crate::batch::Output;
use crate::source::sample::{Name, Names, Sample};
use crate::source::text::bounded;
use crate::source::value::{Measure, Reading, blank, index};

/// What a sample is of. `at_ms` is there where the lines carry their own time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) at_ms: Option<i64>,
    pub(super) node: Name,
    pub(super) uuid: Name,
    pub(super) gpu: Option<i16>,
    pub(super) mig: Option<i16>,
}

impl Key {
    /// The GPU or slice that a series is of; `None` where its labels name none.
    pub(super) fn of(series: &Series<'_>, names: &mut Names, out: &mut dyn Output) -> Option<Self> {
        let labels = &series.labels;
        let told = labels.mig.as_deref().filter(|id| id.parse::<f64>().is_ok());
        let mig = told.and_then(|id| index(id, "mig", out));
        if told.is_some() && mig.is_none() {
            // A slice that cannot be named is not its board.
            return None;
        }
        let mut name = |text: Option<&Cow<'_, str>>| text.map(|text| names.of(text));
        let key = Self {
            at_ms: series.at_ms,
            node: name(labels.node()),
            uuid: name(labels.uuid.as_ref()),
            gpu: labels.gpu.as_ref().and_then(|gpu| index(gpu, "gpu", out)),
            mig,
        };
        (key.uuid.is_some() || key.gpu.is_some()).then_some(key)
    }
}

/// What the series of one GPU or slice say together.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) sample: Sample,
    pub(super) driver: Name,
    pub(super) vbios: Name,
    /// Where it begins: a line of a page; `None` in an answer of the API.
    pub(super) line: Option<u64>,
    jobs: BTreeSet<String>,
    ranks: BTreeMap<u8, u8>,
    engine: Option<f64>,
    free: Option<f64>,
    reserved: Option<f64>,
    /// The board's own figures that DCGM repeated on a slice.
    board: Vec<(Measure, f64)>,
}

/// Rows that are held before the older ones, or those of the nodes before, are handed over:
/// about 300 MB.
const ROWS_HELD_MAX: usize = 400_000;
/// How far apart in time the series of one page may lie.
const PAGE_MS_MAX: i64 = 600_000;
/// Series with their own time that are remembered to tell a repeated one.
const SERIES_HELD_MAX: usize = 1 << 20;

/// What became of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// It is part of a sample.
    Kept,
    /// It fills no column, or names no GPU.
    Other,
    /// The same series with the same value stood there already.
    Repeated,
    /// Samples of its time were handed over.
    Late,
    /// The same series stood there with another value, in the line named.
    Contradicts(Option<u64>),
}

/// The rows of the page that is being read.
#[derive(Debug)]
pub(super) struct Page {
    /// Rows held before some are handed over.
    pub(super) rows_held_max: usize,
    /// Latest time of a line, and that from which on rows are still held: ms since 1970.
    latest_ms: i64,
    held_from_ms: i64,
    rows: BTreeMap<Key, Row>,
    /// Series of the page, by name and labels as printed: value and line.
    series: HashMap<u64, (u64, Option<u64>)>,
    /// Which metrics it has, and of which GPUs.
    places: HashSet<u64>,
    /// `HELP` and `TYPE` comments it has.
    described: HashSet<u64>,
    metric: String,
    /// What the pages before it tell of this one.
    pub(super) learned: Learned,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            rows_held_max: ROWS_HELD_MAX,
            latest_ms: i64::MIN,
            held_from_ms: i64::MIN,
            rows: BTreeMap::new(),
            series: HashMap::new(),
            places: HashSet::new(),
            described: HashSet::new(),
            metric: String::new(),
            learned: Learned::default(),
        }
    }
}

impl Page {
    /// Whether a `HELP` or `TYPE` comment begins another page: the format has one of each for a
    /// metric.
    pub(super) fn ends_before_comment(&mut self, text: &str) -> bool {
        let mut words = text.split_whitespace();
        let (kind, name) = (words.next(), words.next().unwrap_or_default());
        told(name).is_some() && !self.described.insert(hash(&(kind, name)))
    }

    /// Whether a series begins another page: it comes back after other metrics. Where many rows
    /// are held, a metric that comes back for a new GPU is enough: further nodes follow.
    pub(super) fn ends_before(&self, name: &str, key: &Key) -> bool {
        let back = key.at_ms.is_none() && self.metric != name;
        let full = self.rows.len() > self.rows_held_max && !self.rows.contains_key(key);
        back && (self.places.contains(&hash(&(name, key)))
            || full && self.places.contains(&hash(&name)))
    }

    /// Adds a series of the GPU or slice `key`.
    pub(super) fn add(
        &mut self,
        key: Key,
        series: &Series<'_>,
        line: Option<u64>,
        names: &mut Names,
        out: &mut dyn Output,
    ) -> Added {
        let Some(told) = series.told else { return Added::Other };
        if let Some(at) = key.at_ms {
            if at < self.held_from_ms {
                return Added::Late;
            }
            self.latest_ms = self.latest_ms.max(at);
        }
        let identity = hash(&(series.identity, series.at_ms));
        let value = series.value.to_bits();
        if let Some((known, line)) = self.series.get(&identity) {
            return if *known == value { Added::Repeated } else { Added::Contradicts(*line) };
        }
        if key.at_ms.is_some() && self.series.len() >= SERIES_HELD_MAX {
            self.series.clear();
        }
        self.series.insert(identity, (value, line));
        if self.metric != series.name {
            series.name.clone_into(&mut self.metric);
        }
        if key.at_ms.is_none() {
            self.places.insert(hash(&series.name));
            self.places.insert(hash(&(series.name, &key)));
        }
        let ratio = self.ratio(told, series);
        self.learned.see(told, &key);
        let labels = &series.labels;
        let mut learn = |known: &mut Name, text: &Option<Cow<'_, str>>| {
            if let (None, Some(text)) = (&known, text) {
                *known = Some(names.of(text));
            }
        };
        let row = self.rows.entry(key).or_insert_with(|| Row { line, ..Row::default() });
        learn(&mut row.sample.cluster, &labels.cluster);
        learn(&mut row.sample.gpu_model, &labels.model);
        learn(&mut row.driver, &labels.driver);
        learn(&mut row.vbios, &labels.vbios);
        row.jobs.extend(labels.job());
        row.take(told, series.value, ratio, labels, out);
        Added::Kept
    }

    /// Whether a share that may be percent is a ratio: it has decimals, or this measurement had
    /// a fraction of 1 before. What was printed anew loses the decimals of a `1.000000`.
    fn ratio(&mut self, told: Told, series: &Series<'_>) -> bool {
        let Told::Measure { measure, unit: Unit::Share, .. } = told else { return false };
        let bit = 1 << (measure as u8);
        if series.value > 0.0 && series.value < 1.0 {
            self.learned.ratios |= bit;
        }
        series.decimals || self.learned.ratios & bit != 0
    }

    /// The rows of the page, each board before its slices; the page is empty after it.
    pub(super) fn take(&mut self) -> Vec<(Key, Row)> {
        self.series.clear();
        self.places.clear();
        self.described.clear();
        self.metric.clear();
        finished(std::mem::take(&mut self.rows), self.learned)
    }

    /// Where too many rows with their own time are held, those that are too old for a series to
    /// be missing from them.
    pub(super) fn take_older(&mut self) -> Vec<(Key, Row)> {
        if self.rows.len() <= self.rows_held_max || self.latest_ms == i64::MIN {
            return Vec::new();
        }
        self.held_from_ms = self.latest_ms.saturating_sub(PAGE_MS_MAX);
        let bound = Some(self.held_from_ms);
        let bound = Key { at_ms: bound, node: None, uuid: None, gpu: None, mig: None };
        let younger = self.rows.split_off(&bound);
        // Where they are all of ten minutes, the next few would bring nothing.
        self.rows_held_max = self.rows_held_max.max(younger.len() / 10 * 11);
        finished(std::mem::replace(&mut self.rows, younger), self.learned)
    }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

impl Row {
    fn take(
        &mut self,
        told: Told,
        value: f64,
        ratio: bool,
        labels: &Labels<'_>,
        out: &mut dyn Output,
    ) {
        let figure = |factor: f64| (!blank(value) && value >= 0.0).then_some(value * factor);
        match told {
            Told::Engine => match Measure::GpuUtil.check(value) {
                Reading::Value(share) => {
                    let profile = labels.profile.as_deref().filter(|_| labels.mig.is_some());
                    let model = labels.model.as_deref();
                    let told = profile.map_or(share, |profile| of_slice(share, profile, model));
                    self.engine.get_or_insert(told);
                }
                other => self.sample.set(Measure::GpuUtil, other, out),
            },
            Told::MemFree(factor) => self.free = self.free.or(figure(factor)),
            Told::MemReserved(factor) => self.reserved = self.reserved.or(figure(factor)),
            Told::Measure { measure, unit, rank } => {
                let better = self.ranks.get(&(measure as u8)).is_none_or(|known| rank < *known);
                // Time slicing repeats a series for each pod: the first is as good as any.
                if !better {
                    return;
                }
                let reading = unit.read(measure, value, ratio);
                if let Reading::Value(value) = reading {
                    self.ranks.insert(measure as u8, rank);
                    if labels.mig.is_some() && of_board_only(measure) {
                        self.board.push((measure, value));
                        return;
                    }
                }
                self.sample.set(measure, reading, out);
            }
        }
    }
}

/// Derives what needs the whole page.
fn finished(mut rows: BTreeMap<Key, Row>, learned: Learned) -> Vec<(Key, Row)> {
    let mut sliced: BTreeMap<Key, Vec<(Measure, f64)>> = BTreeMap::new();
    for (key, row) in &mut rows {
        if key.mig.is_some() {
            let board = Key { mig: None, ..key.clone() };
            sliced.entry(board).or_default().append(&mut row.board);
        }
    }
    for (key, repeated) in sliced {
        if repeated.is_empty() && !rows.contains_key(&key) {
            continue;
        }
        // A board that is sliced may have no row of its own: its power still counts once.
        let slice = rows.range(key.clone()..).next().map(|(_, row)| row.of_same_board());
        let board = rows.entry(key).or_insert_with(|| slice.unwrap_or_default());
        for (measure, value) in repeated {
            let known = board.sample.get(measure);
            // Utilisation of a sliced board is not supported, whatever is printed for it.
            if known.is_none() && !matches!(measure, Measure::GpuUtil | Measure::MemCopyUtil) {
                board.sample.put(measure, Some(value));
            }
        }
        board.sample.put(Measure::GpuUtil, None);
        board.sample.put(Measure::MemCopyUtil, None);
    }
    rows.into_iter().map(|(key, row)| row.finished(key, learned)).collect()
}

impl Row {
    /// A row of the board that this slice is of, without a measurement.
    fn of_same_board(&self) -> Self {
        let sample = Sample {
            cluster: self.sample.cluster.clone(),
            gpu_model: self.sample.gpu_model.clone(),
            ..Sample::default()
        };
        let (driver, vbios) = (self.driver.clone(), self.vbios.clone());
        Self { sample, driver, vbios, line: self.line, ..Self::default() }
    }

    fn finished(mut self, key: Key, learned: Learned) -> (Key, Self) {
        let sample = &mut self.sample;
        // What another part of the page tells better is left to it.
        let driver_tells = learned.in_parts && learned.driver_util && key.mig.is_none();
        if sample.get(Measure::GpuUtil).is_none() && !driver_tells {
            sample.put(Measure::GpuUtil, self.engine);
        }
        if sample.get(Measure::MemTotal).is_none()
            && let (Some(used), Some(free)) = (sample.get(Measure::MemUsed), self.free)
            && !(learned.in_parts && learned.mem_reserved && self.reserved.is_none())
        {
            sample.put(Measure::MemTotal, Some(used + free + self.reserved.unwrap_or(0.0)));
        }
        if !self.jobs.is_empty() {
            let jobs: Vec<String> = std::mem::take(&mut self.jobs).into_iter().collect();
            sample.job_id = Some(Arc::from(&*bounded(&jobs.join(","))));
        }
        sample.gpu_uuid.clone_from(&key.uuid);
        sample.node.clone_from(&key.node);
        sample.gpu = key.gpu;
        sample.mig = key.mig;
        (key, self)
    }
}
