//! The expansion rule of each pool: so many weeks in a row above a share of capacity while the queue
//! grows.

use chrono::DateTime;
use chrono_tz::Tz;
use loadline_engine::{Params, Session, query};
use loadline_forecast::Rule;
use serde::Serialize;

use super::super::row::rows;
use crate::failure::Failure;

/// One week of the expansion rule.
#[derive(Debug, Clone, Serialize)]
pub(in crate::commands) struct ExpansionWeek {
    /// Start of the local week.
    pub(in crate::commands) week_started_at: Option<DateTime<Tz>>,
    /// Held / available.
    pub(in crate::commands) held_ratio: Option<f64>,
    /// GPUs waited for, mean over the week.
    pub(in crate::commands) gpus_waiting_mean: Option<f64>,
}

/// What the expansion rule says of a pool, and the weeks behind it.
#[derive(Debug, Clone, Serialize)]
pub(in crate::commands) struct Expansion {
    /// Cluster, where one is named.
    pub(in crate::commands) cluster: Option<String>,
    /// Pool.
    pub(in crate::commands) pool: String,
    /// `expand`, `keep`, `watch` or `not enough history`, with the figures.
    pub(in crate::commands) conclusion: String,
    /// The last weeks, oldest first.
    pub(in crate::commands) weeks: Vec<ExpansionWeek>,
}

impl Expansion {
    /// The pool as it is told among `rules`: with its cluster where another has one of that name.
    pub(in crate::commands) fn name(&self, rules: &[Self]) -> String {
        let several = rules.iter().filter(|rule| rule.pool == self.pool).count() > 1;
        match self.cluster.as_ref().filter(|_| several) {
            Some(cluster) => format!("{cluster}/{}", self.pool),
            None => self.pool.clone(),
        }
    }

    /// What it comes to.
    pub(in crate::commands) fn rule(&self) -> Rule {
        match self.conclusion.split(':').next() {
            Some("expand") => Rule::Expand,
            Some("keep" | "watch") => Rule::No,
            _ => Rule::Unknown,
        }
    }
}

/// What the rule says of a pool, or, without one, of the fleet: to expand where it says so of a
/// pool.
pub(in crate::commands) fn rule(rules: &[Expansion], pool: Option<&str>) -> Rule {
    let of = rules.iter().filter(|rule| pool.is_none_or(|pool| rule.name(rules) == pool));
    let said: Vec<Rule> = of.map(Expansion::rule).collect();
    [Rule::Expand, Rule::No].into_iter().find(|rule| said.contains(rule)).unwrap_or(Rule::Unknown)
}

/// The expansion rule of each pool, with the last weeks behind it.
pub(in crate::commands) async fn expansion(
    session: &Session,
    weeks: u32,
    ratio: f64,
) -> Result<Vec<Expansion>, Failure> {
    let params: Params =
        [("weeks".to_owned(), weeks.to_string()), ("util_ratio".to_owned(), ratio.to_string())]
            .into();
    let answer = session.query(&query::find("expansion")?, &params).await?;
    let zone = session.calendar().zone();
    let mut rules: Vec<Expansion> = Vec::new();
    for row in rows(&answer) {
        let pool = row.text("partition").unwrap_or_else(|| "default".to_owned());
        let week = ExpansionWeek {
            week_started_at: row.instant("week_started_at").map(|at| at.with_timezone(&zone)),
            held_ratio: row.number("held_ratio"),
            gpus_waiting_mean: row.number("gpus_waiting_mean"),
        };
        let cluster = row.text("cluster");
        match rules.iter_mut().find(|rule| rule.pool == pool && rule.cluster == cluster) {
            Some(rule) => rule.weeks.push(week),
            None => rules.push(Expansion {
                cluster,
                pool,
                conclusion: row.text("conclusion").unwrap_or_default(),
                weeks: vec![week],
            }),
        }
    }
    // A pool that is gone is full or not no more.
    let last = |rule: &Expansion| rule.weeks.last().and_then(|week| week.week_started_at);
    let newest = rules.iter().filter_map(last).max();
    rules.retain(|rule| last(rule) == newest);
    for rule in &mut rules {
        let shown = rule.weeks.len().saturating_sub(weeks as usize);
        rule.weeks.drain(..shown);
    }
    Ok(rules)
}
