//! What the functions know of the ledger: read when a question first asks for it.

use std::sync::{Arc, PoisonError, RwLock};

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::prelude::SessionContext;

use super::grants::{self, Devices, GrantIndex};
use super::shares::{self, HoldingIndex};
use super::suspension::{self, Suspensions};

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
        let holdings = needs.holdings && (anew || known(&self.holdings).is_none());
        let grants = needs.grants && (anew || known(&self.grants).is_none());
        if !holdings && !grants {
            return Ok(());
        }
        let mut suspensions = Suspensions::read(&ask(suspension::SUSPENDED_SQL).await?)?;
        if grants || !suspensions.is_empty() {
            let granted = ask(grants::GRANTS_SQL).await?;
            let mut devices = Devices::read(&granted, &suspensions)?;
            suspensions.take(grants::taken(&mut devices));
            let shared = Arc::new(suspensions.clone());
            replace(&self.grants, GrantIndex::build(devices, shared));
        }
        if holdings {
            let told = [
                ask(shares::ALLOCATIONS_SQL).await?,
                ask(shares::JOBS_SQL).await?,
                ask(shares::NODES_SQL).await?,
            ];
            let build = |suspensions: &Suspensions| {
                HoldingIndex::build([&told[0], &told[1], &told[2]], Arc::new(suspensions.clone()))
            };
            replace(&self.holdings, build(&suspensions)?);
            if let Some(span) = suspensions.span() {
                // How idle their readings were is asked of the readings as they are shared so far.
                suspensions.set_idle(&ask(&shares::idle_sql(span)).await?)?;
                replace(&self.holdings, build(&suspensions)?);
            }
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
