//! How one table of an import meets the store: merge, commit, and again when another came first.

use arrow::array::RecordBatch;

use super::attempt;
use super::compaction::FILES_MAX;
use super::days::{Aim, Days};
use super::findings::Findings;
use super::outcome::Outcome;
use super::{ImportSettings, Waiting};
use crate::error::IngestError;
use crate::merge::{conform, merge};
use crate::schema::Table;
use crate::store::{
    Committed, Content, Effect, Kept, Mark, Purpose, Rewrite, Store, TableSnapshot,
};

/// How often an import that another one outran is merged again.
const TRIES: usize = 8;

/// How one table of an import meets the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merging<'a> {
    pub(super) store: &'a Store,
    pub(super) table: Table,
    pub(super) settings: &'a ImportSettings,
    pub(super) findings: &'a Findings,
    /// The log whose rows these are, and its last segment.
    pub(super) mark: Option<&'a Mark>,
    pub(super) part_rows: usize,
}

impl Merging<'_> {
    /// Merges and commits one table; again, when another import committed first.
    pub(super) async fn settle(
        &self,
        waiting: &mut Waiting,
    ) -> Result<(Outcome, Option<u64>), IngestError> {
        let Self { store, table, .. } = *self;
        for _ in 0..TRIES {
            let base = store.snapshot(table).await?;
            let effect = match self.settings.dry_run {
                true => Effect::Count,
                false => Effect::Commit(Purpose::Rows(self.mark.cloned())),
            };
            let mut rewrite = Rewrite::new(store, table, base.as_ref(), effect);
            let mut outcome = match self.merge(waiting, base.as_ref(), &mut rewrite).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    rewrite.abandon().await;
                    return Err(error);
                }
            };
            if outcome.unchanged || self.settings.dry_run {
                return Ok((outcome, None));
            }
            if let Committed::Version(version) = rewrite.commit().await? {
                let files = |day| base.iter().flat_map(|b| &b.files).filter(move |f| f.date == day);
                let mut days = waiting.buffer.days();
                days.retain(|day| files(Some(*day)).count() >= FILES_MAX);
                outcome.crowded = days.into_iter().collect();
                return Ok((outcome, Some(version)));
            }
        }
        let cause = format!("another import committed first, {TRIES} times in a row");
        Err(store.failed("commit to", table, cause.into()))
    }

    /// Merges one table in memory with what `base` has of it.
    pub(super) async fn keep(
        &self,
        waiting: &mut Waiting,
        base: Option<&TableSnapshot>,
    ) -> Result<Kept, IngestError> {
        let mut rewrite = Rewrite::new(self.store, self.table, base, Effect::Keep);
        self.merge(waiting, base, &mut rewrite).await?;
        Ok(rewrite.into_kept())
    }

    async fn merge(
        &self,
        waiting: &mut Waiting,
        base: Option<&TableSnapshot>,
        rewrite: &mut Rewrite<'_>,
    ) -> Result<Outcome, IngestError> {
        let Self { store, table, part_rows, findings, .. } = *self;
        let mut outcome = Outcome::default();
        let buffer = &waiting.buffer;
        if let Some(series) = &mut waiting.series {
            let interval_s = self.settings.interval_s;
            let aim = Aim::Rows { interval_s };
            let days = Days { store, table, base, buffer, aim, part_rows, findings };
            days.settle(series, rewrite, &mut outcome).await?;
        } else {
            let mut batches = vec![match base {
                Some(base) => store.read(base, None).await?,
                None => RecordBatch::new_empty(table.schema()),
            }];
            buffer.each(None, |batch| {
                batches.push(conform(table, &batch)?);
                Ok(())
            })?;
            if table == Table::Jobs {
                batches = attempt::number(batches)?;
            }
            let merged = merge(table, &batches[0], &batches[1..])?;
            outcome.rows_added = merged.added;
            outcome.rows_known = merged.duplicates;
            outcome.rows_updated = merged.updated;
            if merged.added + merged.updated > 0 {
                rewrite.clear(None);
                let rows = merged.rows;
                rewrite
                    .put(Content { date: None, part: (0, 1), rows, series: None, made_from: None })
                    .await?;
            }
        }
        outcome.unchanged = rewrite.partitions() == 0;
        Ok(outcome)
    }
}
