//! How many GPUs each node has.

use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Float64Type;
use datafusion::common::Result;

use super::super::column::texts;
use super::super::suspension::meet;
use super::index::{Cluster, HoldingIndex};

/// Columns that [`Installed::read`] reads, in this order.
pub(in crate::function) const NODES_SQL: &str = "SELECT g.node, CAST(count(*) AS DOUBLE) AS gpus, g.cluster \
     FROM gpus g WHERE g.node IS NOT NULL GROUP BY g.node, g.cluster";

/// GPUs of each node of the inventory.
pub(super) struct Installed(HashMap<String, Vec<(Cluster, f64)>>);

impl Installed {
    /// Reads the inventory; clusters are numbered as `index` does.
    pub(super) fn read(batches: &[RecordBatch], index: &mut HoldingIndex) -> Result<Self> {
        let mut nodes: HashMap<String, Vec<(Cluster, f64)>> = HashMap::new();
        for batch in batches {
            let (names, clusters) = (texts(batch.column(0))?, texts(batch.column(2))?);
            let counts = batch.column(1).as_primitive::<Float64Type>();
            for row in 0..batch.num_rows() {
                let name = clusters.is_valid(row).then(|| clusters.value(row));
                let found = nodes.entry(names.value(row).to_owned()).or_default();
                found.push((index.add_cluster(name), counts.value(row)));
            }
        }
        Ok(Self(nodes))
    }

    /// GPUs of a node, where the inventory knows it.
    pub(super) fn gpus(&self, node: &str, cluster: Cluster) -> Option<f64> {
        let found = self.0.get(node)?.iter().filter(|(of, _)| meet(*of, cluster));
        Some(found.map(|(_, gpus)| gpus).sum::<f64>()).filter(|gpus| *gpus > 0.0)
    }

    /// The nodes that a job lists between commas, where `gpus` are all that they have; else none.
    pub(super) fn whole<'a>(&self, nodes: &'a str, gpus: f64, cluster: Cluster) -> Vec<&'a str> {
        let listed: Vec<&str> = nodes.split(',').map(str::trim).collect();
        let installed: Option<f64> = listed.iter().map(|node| self.gpus(node, cluster)).sum();
        let all = installed.is_some_and(|installed| gpus >= installed);
        if all { listed } else { Vec::new() }
    }
}
