//! What this node does beside its GPUs: processor, memory, disks and network, from `/proc`.
//!
//! Rates come from counters of two readings; the first reading has none.

mod counters;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use chrono::{DateTime, Utc};

use self::counters::{Counters, Roots, memory_bytes, used_ratio};
use crate::batch::Output;
use crate::collect::Collector;
use crate::error::IngestError;
use crate::schema::Table;

/// Settings of the collector.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// Cluster in every row.
    pub cluster: Option<String>,
    /// Name of this node in every row.
    pub node: String,
    /// Time between two readings.
    pub interval: Duration,
    /// Folder of the kernel's figures.
    pub proc_root: PathBuf,
    /// Folder of the kernel's devices.
    pub sys_root: PathBuf,
}

impl NodeSettings {
    /// Usual settings for `node`: every 30 s, from `/proc` and `/sys`.
    #[must_use]
    pub fn new(node: impl Into<String>) -> Self {
        Self {
            cluster: None,
            node: node.into(),
            interval: Duration::from_secs(30),
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
        }
    }
}

/// Reads this node again and again.
#[derive(Debug)]
pub struct NodeCollector {
    settings: NodeSettings,
    roots: Roots,
    /// Counters of the reading before, and when that was.
    last: Option<(i64, Counters)>,
}

impl NodeCollector {
    /// A collector that has read nothing yet.
    #[must_use]
    pub fn new(settings: NodeSettings) -> Self {
        let roots = Roots { proc: settings.proc_root.clone(), sys: settings.sys_root.clone() };
        Self { settings, roots, last: None }
    }
}

impl Collector for NodeCollector {
    fn name(&self) -> String {
        "node".into()
    }

    fn interval(&self) -> Duration {
        self.settings.interval
    }

    fn collect(&mut self, now: DateTime<Utc>, out: &mut dyn Output) -> Result<(), IngestError> {
        let now_ms = now.timestamp_millis();
        let (used, total) = memory_bytes(&self.roots)?;
        let new = Counters::read(&self.roots)?;
        let mut rates: Vec<(&'static str, Option<f64>)> = Vec::new();
        if let Some((last_ms, last)) = &self.last
            && now_ms > *last_ms
        {
            let seconds = (now_ms - last_ms) as f64 / 1e3;
            rates.push(("cpu_util_ratio", new.cpu_ratio(last)));
            rates.extend(new.rates(last, seconds));
        }
        self.last = Some((now_ms, new));
        let text = |text: Option<&str>| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
        let whole = |bytes: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![bytes])) };
        let float = |x: Option<f64>| -> ArrayRef { Arc::new(Float64Array::from(vec![x])) };
        let at = TimestampMillisecondArray::from(vec![now_ms]).with_timezone("UTC");
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("sampled_at", Arc::new(at)),
            ("cluster", text(self.settings.cluster.as_deref())),
            ("node", text(Some(&self.settings.node))),
            ("mem_used_bytes", whole(used)),
            ("mem_total_bytes", whole(total)),
            ("disk_used_ratio", float(used_ratio(&self.roots))),
        ];
        columns.extend(rates.into_iter().map(|(name, rate)| (name, float(rate))));
        let columns = columns.into_iter().map(|(name, array)| (name, array, true));
        out.read(1);
        out.rows(Table::NodeSamples, RecordBatch::try_from_iter_with_nullable(columns)?)
    }
}
