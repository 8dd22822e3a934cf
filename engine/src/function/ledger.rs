//! What the functions know of the ledger: read when a question first asks for it.

use std::sync::{Arc, PoisonError, RwLock};

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::prelude::SessionContext;

use super::grants::{self, GrantIndex};
use super::shares::{self, HoldingIndex};

/// Allocations as the functions look them up. Each index is replaced as a whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    holdings: Arc<RwLock<Option<Arc<HoldingIndex>>>>,
    grants: Arc<RwLock<Option<Arc<GrantIndex>>>>,
}

/// What a plan asks of the ledger through functions.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Needs {
    holdings: bool,
    grants: bool,
}

impl Needs {
    /// Everything, for a door that plans by itself.
    pub(crate) const ALL: Self = Self { holdings: true, grants: true };

    /// What the functions that `plan` calls anywhere will look up.
    pub(crate) fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut needs = Self::default();
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expression| {
                expression.apply(|part| {
                    if let Expr::ScalarFunction(call) = part {
                        needs.holdings |= call.name() == shares::JOB_SHARES;
                        needs.grants |= [grants::GPU_SHARED, grants::PARTS].contains(&call.name());
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(needs)
    }
}

impl Ledger {
    /// Reads what is needed and not known yet; `anew` what is known too, since it may have changed.
    pub(crate) async fn read(
        &self,
        context: &SessionContext,
        needs: Needs,
        anew: bool,
    ) -> Result<()> {
        let ask = async |text: &str| context.sql(text).await?.collect().await;
        if needs.holdings && (anew || known(&self.holdings).is_none()) {
            let index = HoldingIndex::build([
                &ask(shares::ALLOCATIONS_SQL).await?,
                &ask(shares::JOBS_SQL).await?,
                &ask(shares::SUSPENDED_SQL).await?,
                &ask(shares::NODES_SQL).await?,
            ])?;
            replace(&self.holdings, index);
        }
        if needs.grants && (anew || known(&self.grants).is_none()) {
            replace(&self.grants, GrantIndex::build(&ask(grants::GRANTS_SQL).await?)?);
        }
        Ok(())
    }

    /// Who held what; nothing before it is read.
    pub(super) fn holdings(&self) -> Arc<HoldingIndex> {
        known(&self.holdings).unwrap_or_default()
    }

    /// What was granted to several at once; nothing before it is read.
    pub(super) fn grants(&self) -> Arc<GrantIndex> {
        known(&self.grants).unwrap_or_default()
    }
}

fn known<T>(index: &RwLock<Option<Arc<T>>>) -> Option<Arc<T>> {
    index.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn replace<T>(index: &RwLock<Option<Arc<T>>>, by: T) {
    *index.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(by));
}
