//! What to do, and the figures it rests on: of the fleet, and of each pool.

use chrono_tz::Tz;
use loadline_forecast::{Advice, Wait};
use serde::{Serialize, Serializer};

use super::super::chart::number;
use super::super::lack::Lack;
use super::super::planned::{wait, wait_name};
use super::super::words::{Language, Words};
use super::Local;

/// The kind of decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Order GPUs.
    Buy,
    /// Turn GPUs on and off with demand.
    Scale,
    /// Take back what is held idle.
    CleanUp,
    /// A shortfall lies ahead, and the ground for buying does not: watch.
    Watch,
    /// Nothing to do now: a plan was made and demand stays below capacity.
    Nothing,
    /// No plan could be made, so no decision can rest on one.
    #[default]
    Undecided,
}

/// What to do, with the figures it rests on.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Decision {
    /// What to do first.
    pub action: Action,
    /// Whether a plan could be made.
    pub planned: bool,
    /// GPUs to order, after what is held idle is given back.
    pub gpus_to_add: Option<f64>,
    /// GPUs missing at the largest shortfall, of each pool where there are several, if nothing is
    /// done.
    pub gpus_missing: Option<f64>,
    /// The same after what is held idle is given back.
    pub gpus_missing_after_clean_up: Option<f64>,
    /// Instant by which they must be ordered.
    pub order_by: Option<Local>,
    /// That instant has passed.
    pub order_late: bool,
    /// Mean demand over the last day of the store, in GPUs.
    pub demand_gpus_last_day: Option<f64>,
    /// Why nothing is bought yet although a shortfall lies ahead: `rule-says-no`, `rule-not-known`
    /// or `no-trend`.
    #[serde(serialize_with = "wait_name")]
    pub wait: Option<Wait>,
    /// A trend beyond chance stands behind the weeks ahead.
    pub trend: bool,
    /// Instant at which the load meets capacity.
    pub full_at: Option<Local>,
    /// The load is at capacity already.
    pub full_already: bool,
    /// GPUs that the idle-held GPU-hours would give back, on average.
    pub gpus_reclaimable: Option<f64>,
    /// GPUs that the pools whose load fits leave free, each in its fullest week ahead; `None`
    /// without several pools.
    pub gpus_spare: Option<f64>,
    /// What each pool comes to, where there are several: GPUs of one do not serve another, so the
    /// decision is the sum of theirs. Those that lack the most come first.
    pub pools: Vec<PoolDecision>,
}

impl Decision {
    /// The pools that GPUs are to be ordered for.
    pub fn pools_to_buy(&self) -> impl Iterator<Item = (&PoolDecision, f64)> {
        let of = |pool: &PoolDecision| pool.gpus_to_add.filter(|gpus| *gpus > 0.0);
        self.pools.iter().filter_map(move |pool| Some((pool, of(pool)?)))
    }
}

/// What one of several pools comes to.
#[derive(Debug, Clone, Serialize)]
pub struct PoolDecision {
    /// Pool.
    pub pool: String,
    /// GPUs that jobs can be given; `None` where that is not known.
    pub gpus_available: Option<f64>,
    /// What is to be done as it is: `buy`, `not-yet` or `fits`; `None` without a plan.
    #[serde(serialize_with = "advice_name")]
    pub advice: Option<Advice>,
    /// The same after what is held idle is given back.
    #[serde(serialize_with = "advice_name")]
    pub advice_after_clean_up: Option<Advice>,
    /// Why nothing is bought yet, as in the decision.
    #[serde(serialize_with = "wait_name")]
    pub wait: Option<Wait>,
    /// GPUs missing at the largest shortfall if nothing is done.
    pub gpus_missing: Option<f64>,
    /// GPUs to order, after what is held idle is given back.
    pub gpus_to_add: Option<f64>,
    /// Instant by which they must be ordered.
    pub order_by: Option<Local>,
    /// That instant has passed.
    pub order_late: bool,
    /// Instant at which the load meets capacity.
    pub full_at: Option<Local>,
    /// The load is at capacity already.
    pub full_already: bool,
    /// Why there is no plan.
    pub no_plan: Option<Lack>,
}

impl PoolDecision {
    /// Titles of its row.
    pub(in crate::report) fn head(words: &Words) -> [&'static str; 7] {
        let w = words;
        [w.pool, w.available, w.full_from, w.missing, w.to_order, w.order_by, w.advice]
    }

    /// Its row; what is not known or not so is a dash.
    pub(in crate::report) fn cells(&self, language: Language, zone: Tz) -> Vec<String> {
        let words = language.words();
        let day = |at: Local| at.with_timezone(&zone).format("%Y-%m-%d").to_string();
        let gpus = |gpus: Option<f64>| gpus.map(number).unwrap_or_else(|| "–".to_owned());
        let or_now = |now: bool, at: Option<Local>| match at {
            _ if now => words.now.to_owned(),
            Some(at) => day(at),
            None => "–".to_owned(),
        };
        vec![
            self.pool.clone(),
            gpus(self.gpus_available),
            or_now(self.full_already, self.full_at),
            gpus(self.gpus_missing),
            gpus(self.gpus_to_add),
            or_now(self.order_late, self.order_by),
            self.told(language),
        ]
    }

    fn told(&self, language: Language) -> String {
        let words = language.words();
        let colon = if language == Language::Zh { "：" } else { ": " };
        match (self.advice, &self.no_plan) {
            (Some(Advice::Buy), _)
                if self.advice_after_clean_up.is_some_and(|after| after != Advice::Buy) =>
            {
                words.pool_cleans.to_owned()
            }
            (Some(Advice::Buy), _) => words.pool_buys.to_owned(),
            (Some(Advice::NotYet(why)), _) => {
                format!("{}{colon}{}", words.pool_watches, wait(why, language))
            }
            (Some(Advice::Fits), _) => words.pool_fits.to_owned(),
            (None, Some(lack)) => format!("{}{colon}{}", words.no_plan, lack.cause(language)),
            (None, None) => words.no_plan.to_owned(),
        }
    }
}

fn advice_name<S: Serializer>(advice: &Option<Advice>, serializer: S) -> Result<S::Ok, S::Error> {
    advice.map(Advice::name).serialize(serializer)
}
