//! Attempts that were suspended for part of their time.

use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Float64Type;
use datafusion::common::Result;

use super::super::column::texts;
use super::index::{Cluster, meet, numbers};

/// Columns that [`SuspendedIndex::add`] reads, in this order.
pub(in crate::function) const SUSPENDED_SQL: &str = "SELECT a.job_id, a.attempt, a.cluster, \
     a.used_ratio FROM attempts a WHERE a.job_id IS NOT NULL AND a.used_ratio < 1";

/// The share of its time that each of them was not, by job.
#[derive(Debug, Default)]
pub(super) struct SuspendedIndex(HashMap<String, Vec<Suspended>>);

#[derive(Debug, Clone, Copy)]
struct Suspended {
    attempt: i32,
    cluster: Cluster,
    used_ratio: f64,
}

impl SuspendedIndex {
    /// Adds the rows of an answer, with the cluster of each.
    pub(super) fn add(&mut self, batch: &RecordBatch, clusters: &[Cluster]) -> Result<()> {
        let (job_ids, attempts) = (texts(batch.column(0))?, numbers(batch, 1)?);
        let ratios = batch.column(3).as_primitive::<Float64Type>();
        for (row, cluster) in clusters.iter().enumerate() {
            let attempt = if attempts.is_valid(row) { attempts.value(row) } else { 0 };
            let told = Suspended { attempt, cluster: *cluster, used_ratio: ratios.value(row) };
            self.0.entry(job_ids.value(row).to_owned()).or_default().push(told);
        }
        Ok(())
    }

    /// The share of its time, 0 to 1, in which an attempt was not suspended.
    pub(super) fn used_ratio(&self, job_id: &str, attempt: Option<i32>, cluster: Cluster) -> f64 {
        let same =
            |told: &&Suspended| told.attempt == attempt.unwrap_or(0) && meet(told.cluster, cluster);
        let told = self.0.get(job_id).into_iter().flatten().find(same);
        told.map_or(1.0, |told| told.used_ratio)
    }
}
