//! Pools of one name in several clusters: each is a pool of its own.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use loadline_engine::Session;
use loadline_forecast::Series;

use super::super::row::rows;
use super::expansion::Expansion;
use super::{Capacity, demanded, series};
use crate::cli::SplitBy;
use crate::failure::Failure;

/// A pool of one cluster, with what is known of it.
pub(super) struct OfCluster {
    /// The pool's name in the store.
    pub(super) pool: String,
    /// The same with its cluster.
    pub(super) name: String,
    pub(super) capacity: Capacity,
    pub(super) load: Option<Series>,
}

/// Names of pools that stand in several clusters.
pub(super) fn shared_names(rules: &[Expansion]) -> BTreeSet<String> {
    let several = |pool: &str| rules.iter().filter(|rule| rule.pool == pool).count() > 1;
    rules.iter().map(|rule| &rule.pool).filter(|pool| several(pool)).cloned().collect()
}

/// The pools of these names, by cluster.
pub(super) async fn by_cluster(
    session: &Session,
    names: &BTreeSet<String>,
) -> Result<Vec<OfCluster>, Failure> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let text = "SELECT coalesce(cluster, '') AS cluster, coalesce(\"partition\", 'default') AS pool, \
        sum(gpus_available) AS gpus, sum(gpus_down) AS gpus_down, max(source) AS source \
        FROM capacity_hourly \
        WHERE hour_started_at = (SELECT max(hour_started_at) FROM capacity_hourly) GROUP BY 1, 2 \
        ORDER BY 2, 1";
    let mut found = Vec::new();
    for row in rows(&session.sql(text).await?) {
        let (Some(cluster), Some(pool)) = (row.text("cluster"), row.text("pool")) else { continue };
        let (Some(gpus), Some(source)) = (row.number("gpus"), row.text("source")) else { continue };
        if names.contains(&pool) {
            let gpus_floor = if source == "peak-held" { gpus } else { 0.0 };
            let gpus_down = row.number("gpus_down").unwrap_or(0.0);
            let capacity = Capacity { gpus, source, gpus_down, gpus_floor };
            found.push(OfCluster { name: format!("{cluster}/{pool}"), pool, capacity, load: None });
        }
    }
    let mut loads = loads(session, &found).await?;
    for one in &mut found {
        let load = loads.iter().position(|load| load.name() == one.name);
        one.load = load.map(|at| loads.swap_remove(at));
    }
    Ok(found)
}

/// Hourly load of each, over the hours in which the demand of its pools is known.
async fn loads(session: &Session, pools: &[OfCluster]) -> Result<Vec<Series>, Failure> {
    let text = "SELECT concat(coalesce(cluster, ''), '/', \"partition\") AS name, hour_started_at, \
        sum(gpus_offered) AS gpus FROM offered_hourly GROUP BY 1, 2";
    let mut loads: BTreeMap<(String, DateTime<Utc>), f64> = BTreeMap::new();
    for row in rows(&session.sql(text).await?) {
        if let (Some(name), Some(at), Some(gpus)) =
            (row.text("name"), row.instant("hour_started_at"), row.number("gpus"))
        {
            loads.insert((name, at), gpus);
        }
    }
    let known = demanded(session, Some(SplitBy::Pool)).await?;
    let hours = pools.iter().flat_map(|one| {
        let hours = known.iter().filter(|(pool, _, _)| *pool == one.pool);
        hours.map(|(_, at, demand)| {
            let load = loads.get(&(one.name.clone(), *at)).copied().unwrap_or(0.0);
            (one.name.clone(), *at, demand.map(|_| load))
        })
    });
    series(session, hours)
}
