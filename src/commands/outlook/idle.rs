//! GPU-hours that jobs held while idle lately: what could be had back before anything is bought.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use loadline_engine::{Params, Session, query};
use serde::Serialize;

use super::super::row::{Row, rows};
use crate::failure::Failure;

/// Days over which idle-held GPU-hours are summed.
const IDLE_DAYS: i64 = 28;

/// GPU-hours that jobs held while idle in the last weeks of the store.
#[derive(Debug, Clone, Default, Serialize)]
pub(in crate::commands) struct Idle {
    /// GPU-hours; `None` where nothing was read.
    pub(in crate::commands) gpu_hours: Option<f64>,
    /// The same per week.
    pub(in crate::commands) gpu_hours_per_week: Option<f64>,
    /// What they cost; `None` where a GPU has no price.
    pub(in crate::commands) cost: Option<f64>,
    /// Days summed over.
    pub(in crate::commands) days: f64,
}

/// The same of the fleet and of each pool.
#[derive(Debug)]
pub(in crate::commands) struct IdleByPool {
    pub(in crate::commands) fleet: Idle,
    pools: BTreeMap<String, Idle>,
}

impl IdleByPool {
    /// That of a pool; of one whose GPUs nobody held nothing is known.
    pub(in crate::commands) fn of(&self, pool: &str) -> Idle {
        let unknown = || Idle { days: self.fleet.days, ..Idle::default() };
        self.pools.get(pool).cloned().unwrap_or_else(unknown)
    }
}

/// GPU-hours held while idle over the last weeks, in one question.
pub(in crate::commands) async fn idle(session: &Session) -> Result<IdleByPool, Failure> {
    let (first, until) = session.span();
    let from = first.max(until - TimeDelta::days(IDLE_DAYS));
    let days = (until - from).num_seconds() as f64 / 86_400.0;
    let params: Params =
        [("from".to_owned(), from.to_rfc3339()), ("until".to_owned(), until.to_rfc3339())].into();
    let text = "SELECT i.\"partition\" AS pool, grouping(i.\"partition\") AS whole, \
        sum(i.gpu_hours_idle) AS gpu_hours, CASE WHEN count(*) FILTER \
        (WHERE i.gpu_hours_idle > 0 AND i.cost_idle IS NULL) = 0 THEN sum(i.cost_idle) END AS cost \
        FROM answer i GROUP BY GROUPING SETS ((i.\"partition\"), ())";
    let answer = session.query_over(&query::find("idle_held")?, &params, text).await?;
    let told = |row: &Row| {
        let gpu_hours = row.number("gpu_hours");
        let gpu_hours_per_week = gpu_hours.filter(|_| days > 0.0).map(|hours| hours * 7.0 / days);
        Idle { gpu_hours, gpu_hours_per_week, cost: row.number("cost"), days }
    };
    let mut found = IdleByPool { fleet: Idle { days, ..Idle::default() }, pools: BTreeMap::new() };
    for row in rows(&answer) {
        match row.text("pool").filter(|_| row.number("whole") == Some(0.0)) {
            Some(pool) => drop(found.pools.insert(pool, told(&row))),
            None => found.fleet = told(&row),
        }
    }
    Ok(found)
}
