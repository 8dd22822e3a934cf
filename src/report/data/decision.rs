//! What to do, and the figures it rests on: of the fleet, and of each pool.

use chrono_tz::Tz;
use loadline_forecast::{Advice, Wait};
use serde::{Serialize, Serializer};

use super::super::answer::tenths;
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
    /// GPUs that pools leave free, the sum of their `gpus_free`; `None` without several pools.
    pub gpus_spare: Option<f64>,
    /// What each pool comes to, where there are several: GPUs of one do not serve another, so the
    /// decision is the sum of theirs. Those that lack the most come first.
    pub pools: Vec<PoolDecision>,
}

impl Decision {
    /// The pools that GPUs are to be ordered for, with these.
    #[must_use]
    pub fn to_buy(&self) -> Vec<(String, u32)> {
        named(self.pools.iter(), |pool| pool.gpus_to_add)
    }

    /// The pools that may come to lack GPUs and give no ground to buy yet, with these.
    #[must_use]
    pub fn to_watch(&self) -> Vec<(String, u32)> {
        named(self.pools.iter().filter(|pool| pool.wait_left().is_some()), PoolDecision::left)
    }

    /// Why these give none, each reason once.
    #[must_use]
    pub fn waits(&self) -> Vec<Wait> {
        let mut all = Vec::new();
        for wait in self.pools.iter().filter_map(PoolDecision::wait_left) {
            if !all.contains(&wait) {
                all.push(wait);
            }
        }
        all
    }

    /// Pools that are full now, and pools that will be.
    #[must_use]
    pub fn full(&self) -> (usize, usize) {
        let now = self.pools.iter().filter(|pool| pool.full_already).count();
        (now, self.pools.iter().filter(|pool| pool.full_at.is_some()).count())
    }

    /// GPUs that pools leave free: those that have a plan, and those that have none.
    #[must_use]
    pub fn free(&self) -> (f64, f64) {
        let of = |planned: bool| {
            let pools = self.pools.iter().filter(|pool| pool.no_plan.is_none() == planned);
            pools.filter_map(|pool| pool.gpus_free).sum()
        };
        (of(true), of(false))
    }

    /// The pools that ask for GPUs and have no plan.
    #[must_use]
    pub fn open(&self) -> Vec<String> {
        let open = |pool: &&PoolDecision| pool.no_plan.as_ref().is_some_and(|l| *l != Lack::Load);
        self.pools.iter().filter(open).map(|pool| pool.pool.clone()).collect()
    }

    /// GPUs that a clean-up gives back on average, where it was planned with and makes a tenth.
    #[must_use]
    pub fn cleans(&self) -> Option<f64> {
        let gpus = self.gpus_reclaimable.filter(|gpus| *gpus >= 0.05);
        gpus.filter(|_| self.gpus_missing_after_clean_up.is_some() || !self.planned)
    }

    /// GPUs missing after what is held idle is given back, where that is known.
    #[must_use]
    pub fn gpus_left(&self) -> Option<f64> {
        self.gpus_missing_after_clean_up.or(self.gpus_missing)
    }
}

/// Names of pools with GPUs of which there are any.
fn named<'a>(
    pools: impl Iterator<Item = &'a PoolDecision>,
    gpus: impl Fn(&PoolDecision) -> Option<f64>,
) -> Vec<(String, u32)> {
    let of = |pool: &PoolDecision| {
        let gpus = gpus(pool).filter(|gpus| *gpus > 0.0)?;
        Some((pool.pool.clone(), gpus as u32))
    };
    pools.filter_map(of).collect()
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
    /// The same after what is held idle is given back.
    #[serde(serialize_with = "wait_name")]
    pub wait_after_clean_up: Option<Wait>,
    /// GPUs missing at the largest shortfall if nothing is done.
    pub gpus_missing: Option<f64>,
    /// The same after what is held idle is given back; `None` where nothing tells what is.
    pub gpus_missing_after_clean_up: Option<f64>,
    /// Whole GPUs left free in the fullest week ahead; without a plan, in the fullest so far.
    pub gpus_free: Option<f64>,
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
    /// GPUs missing after what is held idle is given back, where that is known.
    fn left(&self) -> Option<f64> {
        self.gpus_missing_after_clean_up.or(self.gpus_missing)
    }

    /// Why these are not bought yet.
    fn wait_left(&self) -> Option<Wait> {
        if self.advice_after_clean_up.is_some() { self.wait_after_clean_up } else { self.wait }
    }

    /// Titles of its row. What is missing after a clean-up is told where it is known of any pool.
    pub(in crate::report) fn head(words: &Words, cleaned: bool) -> Vec<&'static str> {
        let w = words;
        let mut head = vec![w.pool, w.available, w.full_from, w.missing];
        head.extend(cleaned.then_some(w.missing_after));
        head.extend([w.free_in_fullest, w.to_order, w.order_by, w.advice]);
        head
    }

    /// Its row; what is not known or not so is a dash.
    pub(in crate::report) fn cells(
        &self,
        cleaned: bool,
        language: Language,
        zone: Tz,
    ) -> Vec<String> {
        let words = language.words();
        let day = |at: Local| at.with_timezone(&zone).format("%Y-%m-%d").to_string();
        let gpus = |gpus: Option<f64>| gpus.map(tenths).unwrap_or_else(|| "–".to_owned());
        let or_now = |now: bool, at: Option<Local>| match at {
            _ if now => words.now.to_owned(),
            Some(at) => day(at),
            None => "–".to_owned(),
        };
        let mut cells = vec![
            self.pool.clone(),
            gpus(self.gpus_available),
            or_now(self.full_already, self.full_at),
            gpus(self.gpus_missing),
        ];
        cells.extend(cleaned.then(|| gpus(self.left())));
        cells.extend([
            gpus(self.gpus_free),
            gpus(self.gpus_to_add),
            or_now(self.order_late, self.order_by),
            self.told(language),
        ]);
        cells
    }

    /// What to do about it.
    fn told(&self, language: Language) -> String {
        let words = language.words();
        let colon = if language == Language::Zh { "：" } else { ": " };
        let Some(now) = self.advice else {
            return match &self.no_plan {
                Some(lack) => format!("{}{colon}{}", words.no_plan, lack.cause(language)),
                None => words.no_plan.to_owned(),
            };
        };
        match (now, self.advice_after_clean_up.unwrap_or(now)) {
            (Advice::Fits, _) if self.full_already => words.pool_just_fits.to_owned(),
            (Advice::Fits, _) => words.pool_fits.to_owned(),
            (_, Advice::Fits) => words.pool_cleans.to_owned(),
            (_, Advice::Buy) => words.pool_buys.to_owned(),
            (Advice::Buy, Advice::NotYet(why)) => {
                format!("{}{colon}{}", words.pool_cleans_and_watches, wait(why, language))
            }
            (Advice::NotYet(_), Advice::NotYet(why)) => {
                format!("{}{colon}{}", words.pool_watches, wait(why, language))
            }
        }
    }
}

fn advice_name<S: Serializer>(advice: &Option<Advice>, serializer: S) -> Result<S::Ok, S::Error> {
    advice.map(Advice::name).serialize(serializer)
}
