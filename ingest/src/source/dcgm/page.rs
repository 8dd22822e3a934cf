//! Series of one page brought together: one sample for each GPU and slice.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::metric::{Told, of_board_only, slice_factor, told};
use super::series::{Labels, Series};
use crate::batch::Output;
use crate::source::sample::{Name, Names, Sample};
use crate::source::value::{Measure, Reading, blank};

/// What a sample is of. `at_ms` is there where the lines carry their own time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) at_ms: Option<i64>,
    pub(super) node: Name,
    pub(super) uuid: Name,
    pub(super) gpu: Option<i16>,
    pub(super) mig: Option<i16>,
}

/// What the series of one GPU or slice say together.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) sample: Sample,
    pub(super) driver: Name,
    pub(super) vbios: Name,
    pub(super) line: u64,
    jobs: BTreeSet<String>,
    ranks: BTreeMap<u8, u8>,
    engine: Option<f64>,
    free: Option<f64>,
    reserved: Option<f64>,
    /// The board's own figures that DCGM repeated on a slice.
    board: Vec<(Measure, f64)>,
}

/// The rows of the page that is being read.
#[derive(Debug, Default)]
pub(super) struct Page {
    rows: BTreeMap<Key, Row>,
    series: HashSet<u64>,
    metrics: HashSet<String>,
    metric: String,
}

impl Page {
    /// Whether a series begins another page: a metric comes back after others, which the format
    /// forbids within one, or a series is repeated.
    pub(super) fn ends_before(&self, series: &Series<'_>) -> bool {
        if series.at_ms.is_some() {
            return false;
        }
        let back = self.metric != series.name && self.metrics.contains(series.name);
        back || self.series.contains(&hash(series.identity))
    }

    /// Adds a series; `false` where it tells nothing that is kept.
    pub(super) fn add(
        &mut self,
        series: Series<'_>,
        line: u64,
        names: &mut Names,
        out: &mut dyn Output,
    ) -> bool {
        let Some(told) = told(series.name) else { return false };
        if self.metric != series.name {
            series.name.clone_into(&mut self.metric);
            self.metrics.insert(series.name.to_owned());
        }
        if series.at_ms.is_none() {
            self.series.insert(hash(series.identity));
        }
        let labels = &series.labels;
        let mut name =
            |text: &Option<std::borrow::Cow<'_, str>>| text.as_ref().map(|text| names.of(text));
        let key = Key {
            at_ms: series.at_ms,
            node: name(&labels.node).or_else(|| name(&labels.node_of_scrape)),
            uuid: name(&labels.uuid),
            gpu: labels.gpu.as_ref().and_then(|gpu| gpu.parse().ok()).filter(|gpu| *gpu >= 0),
            mig: labels.mig.as_ref().and_then(|id| id.parse().ok()),
        };
        if key.uuid.is_none() && key.gpu.is_none() {
            return false;
        }
        let (model, driver) = (name(&labels.model), name(&labels.driver));
        let vbios = name(&labels.vbios);
        let row = self.rows.entry(key).or_default();
        if row.line == 0 {
            row.line = line;
        }
        row.sample.gpu_model = row.sample.gpu_model.take().or(model);
        row.driver = row.driver.take().or(driver);
        row.vbios = row.vbios.take().or(vbios);
        row.jobs.extend(labels.job());
        row.take(told, series.value, labels, out);
        true
    }

    /// Number of rows held.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows of the page, each board before its slices; the page is empty after it.
    pub(super) fn take(&mut self) -> Vec<(Key, Row)> {
        self.series.clear();
        self.metrics.clear();
        self.metric.clear();
        finished(std::mem::take(&mut self.rows))
    }

    /// The rows older than `before_ms`, of a file whose lines carry their own time.
    pub(super) fn take_older(&mut self, before_ms: i64) -> Vec<(Key, Row)> {
        let bound = Key { at_ms: Some(before_ms), node: None, uuid: None, gpu: None, mig: None };
        let younger = self.rows.split_off(&bound);
        finished(std::mem::replace(&mut self.rows, younger))
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl Row {
    fn take(&mut self, told: Told, value: f64, labels: &Labels<'_>, out: &mut dyn Output) {
        let figure = |factor: f64| (!blank(value) && value >= 0.0).then_some(value * factor);
        match told {
            Told::Engine => match Measure::GpuUtil.check(value) {
                Reading::Value(share) => {
                    let profile = labels.profile.as_deref().filter(|_| labels.mig.is_some());
                    let model = labels.model.as_deref();
                    let factor = profile.map_or(1.0, |profile| slice_factor(profile, model));
                    self.engine.get_or_insert(f64::min(1.0, share * factor));
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
                let reading = unit.read(measure, value);
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
fn finished(mut rows: BTreeMap<Key, Row>) -> Vec<(Key, Row)> {
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
        let like = rows
            .range(key.clone()..)
            .next()
            .map(|(_, row)| (row.sample.gpu_model.clone(), row.driver.clone(), row.line));
        let board = rows.entry(key).or_insert_with(|| {
            let (model, driver, line) = like.unwrap_or_default();
            let sample = Sample { gpu_model: model, ..Sample::default() };
            Row { sample, driver, line, ..Row::default() }
        });
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
    rows.into_iter().map(|(key, row)| row.finished(key)).collect()
}

impl Row {
    fn finished(mut self, key: Key) -> (Key, Self) {
        let sample = &mut self.sample;
        if sample.get(Measure::GpuUtil).is_none() {
            sample.put(Measure::GpuUtil, self.engine);
        }
        if sample.get(Measure::MemTotal).is_none()
            && let (Some(used), Some(free)) = (sample.get(Measure::MemUsed), self.free)
        {
            sample.put(Measure::MemTotal, Some(used + free + self.reserved.unwrap_or(0.0)));
        }
        if !self.jobs.is_empty() {
            let jobs: Vec<String> = std::mem::take(&mut self.jobs).into_iter().collect();
            sample.job_id = Some(Arc::from(jobs.join(",")));
        }
        sample.gpu_uuid.clone_from(&key.uuid);
        sample.node.clone_from(&key.node);
        sample.gpu = key.gpu;
        sample.mig = key.mig;
        (key, self)
    }
}
