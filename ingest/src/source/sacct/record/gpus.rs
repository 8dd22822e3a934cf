//! How many GPUs a job asked for and holds: which of a row's columns tells, and what it leaves open.

use std::collections::BTreeMap;

use super::{Fields, Reader, finite};
use crate::source::sacct::columns::Column;
use crate::source::sacct::command::command_gpus;
use crate::source::sacct::row::JobRow;
use crate::source::sacct::tres::{Gpus, gres_gpus, odd_gres, odd_tres, tres_gpus, unknown_ids};

/// Ids that a message names.
const IDS_TOLD: usize = 5;

/// What rows told of GPUs and could not be counted.
#[derive(Debug, Default)]
pub(crate) struct Uncounted {
    /// Jobs that hold shards of a GPU, without the number of shards that make one.
    shards: u64,
    /// Jobs without a GPU that hold a resource of unknown id, by id.
    ids: BTreeMap<u32, u64>,
}

impl Uncounted {
    /// What could not be counted since the last call, in words.
    pub(super) fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        let Self { shards, ids } = std::mem::take(self);
        if shards > 0 {
            told.push(format!(
                "{shards} jobs have shards of GPUs (`gres/shard`), and how many make one GPU is \
                 not told: their GPUs stay NULL; name it with `--shards-per-gpu`, or as \
                 `shards_per_gpu` under `[slurm]` in the configuration, and import again"
            ));
        }
        if !ids.is_empty() {
            let named = ids.iter().take(IDS_TOLD);
            let named: Vec<_> = named.map(|(id, jobs)| format!("{id} ({jobs} jobs)")).collect();
            let more = if ids.len() > IDS_TOLD { " and more" } else { "" };
            told.push(format!(
                "numeric resources {}{more} are not known and count as no GPU; where one is, name \
                 it with `--tres-id ID=gres/gpu:MODEL`, or under `[slurm.tres_ids]` in the \
                 configuration (`sacctmgr show tres` lists them), and import again",
                named.join(", ")
            ));
        }
        told
    }
}

impl Reader<'_> {
    pub(super) fn count_gpus(&mut self, row: &mut JobRow, fields: &Fields<'_>) {
        let requested = self.requested(fields);
        let allocated = self.allocated(fields);
        let model = |gpus: &Option<Gpus>| gpus.as_ref().and_then(|gpus| gpus.model.clone());
        let named = model(&requested).or_else(|| model(&allocated));
        row.gpu_model_requested = named.map(|name| self.texts.share(&name));
        let asked = self.total(requested.as_ref());
        let ids = &self.options.tres_ids;
        let odd_asked = fields.get(Column::ReqTres).is_some_and(|text| odd_tres(text, ids))
            || fields.get(Column::ReqGres).is_some_and(odd_gres);
        let odd_granted = fields.get(Column::AllocTres).is_some_and(|text| odd_tres(text, ids))
            || fields.get(Column::UsedGres).is_some_and(odd_gres);
        for (column, odd) in [("gpus_requested", odd_asked), ("gpus_allocated", odd_granted)] {
            if odd {
                *self.odd.entry(column).or_default() += 1;
            }
        }
        if row.started_at.is_some() && allocated.is_none() && odd_granted {
            row.gpus_allocated = None;
        } else if row.started_at.is_some() {
            // A ledger from before AllocTRES tells only what was asked for, and that was granted.
            row.gpus_allocated = self.total(allocated.as_ref().or(requested.as_ref()));
        }
        // What was allocated, a ledger that leaves `--gpus` out of ReqTRES was asked for.
        row.gpus_requested = asked.filter(|count| *count > 0.0).or(row.gpus_allocated).or(asked);
        let open = |gpus: &Option<Gpus>| {
            gpus.as_ref().is_some_and(|gpus| self.total(Some(gpus)).is_none())
        };
        self.uncounted.shards += u64::from(open(&requested) || open(&allocated));
        if !requested.is_some_and(|gpus| gpus.any()) && !allocated.is_some_and(|gpus| gpus.any()) {
            let tres = fields.get(Column::AllocTres).or(fields.get(Column::ReqTres));
            for id in unknown_ids(tres.unwrap_or_default(), &self.options.tres_ids) {
                *self.uncounted.ids.entry(id).or_default() += 1;
            }
        }
    }

    fn total(&self, gpus: Option<&Gpus>) -> Option<f64> {
        gpus?.total(self.options.shards_per_gpu)
    }

    /// What a step holds.
    pub(super) fn step_gpus(&self, fields: &Fields<'_>) -> Option<f64> {
        self.total(self.allocated(fields).as_ref())
    }

    fn allocated(&self, fields: &Fields<'_>) -> Option<Gpus> {
        let ids = &self.options.tres_ids;
        let tres = fields.get(Column::AllocTres).and_then(|text| tres_gpus(text, ids));
        let used = || fields.get(Column::UsedGres).and_then(gres_gpus);
        tres.clone().filter(Gpus::any).or_else(used).or(tres)
    }

    fn requested(&self, fields: &Fields<'_>) -> Option<Gpus> {
        let ids = &self.options.tres_ids;
        let count = |column| fields.get(column).and_then(finite).unwrap_or(1.0).max(1.0);
        let nodes = count(Column::Nodes);
        let tres = fields.get(Column::ReqTres).and_then(|text| tres_gpus(text, ids));
        let gres = |column, times: f64| {
            let gpus = fields.get(column).and_then(gres_gpus)?.times(times);
            gpus.any().then_some(gpus)
        };
        let line = || fields.get(Column::SubmitLine).and_then(|line| command_gpus(line, nodes));
        tres.clone()
            .filter(Gpus::any)
            .or_else(|| gres(Column::TresPerJob, 1.0))
            .or_else(|| gres(Column::TresPerNode, nodes))
            .or_else(|| gres(Column::TresPerTask, count(Column::Tasks)))
            .or_else(|| gres(Column::ReqGres, nodes))
            .or_else(line)
            .or(tres)
    }
}
