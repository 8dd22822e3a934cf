//! Grants by the device that they are on.

use std::collections::HashMap;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int16Array, Int32Array, RecordBatch, StringArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;

use super::super::at;
use super::super::column::{integers, smalls, texts};
use super::super::suspension::Suspensions;

/// One grant on a device, in ms since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant {
    pub(super) started: i64,
    pub(super) ended: i64,
    pub(super) mig: Option<i16>,
    pub(super) share_ratio: f64,
    /// The number of the attempt among the suspended.
    pub(super) suspended: Option<usize>,
}

/// Grants by cluster and UUID, else node and index.
pub(in crate::function) struct Devices {
    pub(super) keys: HashMap<String, usize>,
    pub(super) grants: Vec<Vec<Grant>>,
}

impl Devices {
    /// Reads the answer to [`super::GRANTS_SQL`].
    pub(in crate::function) fn read(
        batches: &[RecordBatch],
        suspensions: &Suspensions,
    ) -> Result<Self> {
        let mut keys: HashMap<String, usize> = HashMap::new();
        let mut grants: Vec<Vec<Grant>> = Vec::new();
        let mut key = String::new();
        for batch in batches {
            let columns = Columns::read(batch.columns())?;
            let (started, ended) = (at(batch.columns(), 6)?, at(batch.columns(), 7)?);
            for row in 0..batch.num_rows() {
                if !columns.key(row, &mut key) {
                    continue;
                }
                let number = keys.get(&key).copied().unwrap_or_else(|| {
                    keys.insert(key.clone(), grants.len());
                    grants.push(Vec::new());
                    grants.len() - 1
                });
                let ended = if ended.is_valid(row) { ended.value(row) } else { i64::MAX };
                grants[number].push(columns.grant(row, (started.value(row), ended), suspensions));
            }
        }
        Ok(Self { keys, grants })
    }
}

/// Where and what a grant is: the columns of [`super::GRANTS_SQL`], or the first four of them.
pub(super) struct Columns {
    clusters: StringArray,
    nodes: StringArray,
    gpus: Int16Array,
    uuids: StringArray,
    migs: Option<Int16Array>,
    shares: Option<Float64Array>,
    holders: Option<(StringArray, Int32Array)>,
}

impl Columns {
    pub(super) fn read(columns: &[ArrayRef]) -> Result<Self> {
        let shares = columns.get(5).map(|column| cast(column, &DataType::Float64)).transpose()?;
        let attempts = columns.get(9).map(integers).transpose()?;
        let jobs = columns.get(8).map(texts).transpose()?;
        Ok(Self {
            clusters: texts(&columns[0])?,
            nodes: texts(&columns[1])?,
            gpus: smalls(&columns[2])?,
            uuids: texts(&columns[3])?,
            migs: columns.get(4).map(smalls).transpose()?,
            shares: shares.map(|shares| shares.as_primitive::<Float64Type>().clone()),
            holders: jobs.zip(attempts),
        })
    }

    /// Writes the key of a row's device; whether it names one.
    pub(super) fn key(&self, row: usize, key: &mut String) -> bool {
        key.clear();
        key.push_str(self.cluster(row).unwrap_or_default());
        if self.uuids.is_valid(row) {
            key.push('\n');
            key.push_str(self.uuids.value(row));
            return true;
        }
        if self.nodes.is_null(row) || self.gpus.is_null(row) {
            return false;
        }
        key.push('\n');
        key.push_str(self.nodes.value(row));
        key.push('\n');
        key.push_str(&self.gpus.value(row).to_string());
        true
    }

    /// The grant of a row, over a stretch of its time.
    pub(super) fn grant(
        &self,
        row: usize,
        (started, ended): (i64, i64),
        suspensions: &Suspensions,
    ) -> Grant {
        let migs = self.migs.as_ref().filter(|migs| migs.is_valid(row));
        let shares = self.shares.as_ref().filter(|shares| shares.is_valid(row));
        let holders = self.holders.as_ref().filter(|(jobs, _)| jobs.is_valid(row));
        Grant {
            started,
            ended,
            mig: migs.map(|migs| migs.value(row)),
            share_ratio: shares.map_or(1.0, |shares| shares.value(row)),
            suspended: holders.and_then(|(jobs, attempts)| {
                let attempt = attempts.is_valid(row).then(|| attempts.value(row));
                suspensions.number(jobs.value(row), attempt, self.cluster(row))
            }),
        }
    }

    fn cluster(&self, row: usize) -> Option<&str> {
        self.clusters.is_valid(row).then(|| self.clusters.value(row))
    }
}
