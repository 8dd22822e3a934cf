//! The plans of a fleet's pools, or of a fleet that has no several, and what they come to: one way
//! for `plan` and for the report.

use chrono::{DateTime, TimeDelta};
use chrono_tz::Tz;
use loadline_engine::Session;
use loadline_engine::calendar::Calendar;
use loadline_forecast::{
    Advice, ErrorKind, ForecastError, Plan, PlanSettings, Rule, Series, Together, Wait, advise,
    together,
};

use super::clusters::{by_cluster, shared_names};
use super::expansion::{Expansion, rule};
use super::idle::{Idle, IdleByPool};
use super::{Capacities, Capacity, lack_of_time, load_basis, offered};
use crate::cli::SplitBy;
use crate::failure::Failure;
use crate::report::lack::Lack;
use crate::report::planned::{FleetPlanned, LoadBasis};

/// Days behind, in which a pool whose capacity is not known must have asked for a GPU to count.
const RECENT_DAYS: i64 = 28;

/// What is planned for: a pool, or the fleet.
#[derive(Debug)]
pub(in crate::commands) struct Scope {
    /// Pool; `None` for the fleet.
    pub(in crate::commands) pool: Option<String>,
    /// GPUs that jobs can be given; `None` for a pool of which nothing tells them.
    pub(in crate::commands) capacity: Option<Capacity>,
    /// What the load is.
    pub(in crate::commands) basis: LoadBasis,
    /// What was held idle lately.
    pub(in crate::commands) idle: Idle,
    /// Hourly load; `None` where nothing asks for a GPU.
    pub(in crate::commands) load: Option<Series>,
    /// What the expansion rule says.
    pub(in crate::commands) rule: Rule,
}

/// What the answer supposes.
#[derive(Debug, Clone, Default)]
pub(in crate::commands) struct WhatIf {
    /// Quantile, lead time, horizon and growth; what is added and reclaimed stands below.
    pub(in crate::commands) settings: PlanSettings,
    /// GPUs added now.
    pub(in crate::commands) add_gpus: f64,
    /// What is held idle is given back.
    pub(in crate::commands) reclaim_idle: bool,
}

/// The plan of one scope.
#[derive(Debug)]
pub(in crate::commands) struct Made<'a> {
    /// What it is of.
    pub(in crate::commands) scope: &'a Scope,
    /// GPUs added.
    pub(in crate::commands) add_gpus: f64,
    /// GPUs of its idle-held hours that are given back; `None` where nothing is.
    pub(in crate::commands) gpus_given_back: Option<f64>,
    /// The plan and what to do about it, or why there is none.
    pub(in crate::commands) plan: Result<(Plan, Advice), Lack>,
    /// Whole GPUs left free: by a load that fits, in its fullest week ahead; without a plan, in
    /// the fullest week so far. `None` where GPUs are missing, or not enough is known.
    pub(in crate::commands) gpus_free: Option<f64>,
}

/// The plans of the fleet and of its pools.
#[derive(Debug)]
pub(in crate::commands) struct Plans<'a> {
    /// That of the load of all against the GPUs of all, which decides nothing where there are pools.
    pub(in crate::commands) fleet: Made<'a>,
    /// Those of the pools; none where there are no several.
    pub(in crate::commands) pools: Vec<Made<'a>>,
}

/// Loads, capacities and rules, read once for as many what-ifs as are asked.
pub(in crate::commands) struct Planner<'a> {
    /// Weeks and days of its dates.
    pub(in crate::commands) calendar: &'a Calendar,
    /// Why nothing can be planned at all.
    pub(in crate::commands) late: Option<Lack>,
    /// The load of all against the GPUs of all.
    pub(in crate::commands) fleet: Scope,
    /// The pools, where there are several.
    pub(in crate::commands) pools: Vec<Scope>,
}

impl<'a> Planner<'a> {
    /// Reads what the plans rest on.
    pub(in crate::commands) async fn read(
        session: &'a Session,
        (fleet, pools): &Capacities,
        idle: &IdleByPool,
        rules: &[Expansion],
    ) -> Result<Self, Failure> {
        let scope = |pool: Option<&str>, load, basis, capacity: Option<&Capacity>| Scope {
            pool: pool.map(str::to_owned),
            capacity: capacity.cloned(),
            basis,
            idle: pool.map_or_else(|| idle.fleet.clone(), |pool| idle.of(pool)),
            load,
            rule: rule(rules, pool),
        };
        let load = offered(session, None, |name| name).await?.into_iter().next();
        let fleet = scope(None, load, load_basis(session, None).await?, Some(fleet));
        // As `pool_hourly` has it: jobs of a pool that nothing tells count in `default`, if there
        // is one.
        let place = |pool: String| match pools.contains_key(&pool) {
            false if pools.contains_key("default") => "default".to_owned(),
            _ => pool,
        };
        let mut loads = offered(session, Some(SplitBy::Pool), place).await?;
        let unknown = |load: &Series| !pools.contains_key(load.name()) && asks_lately(load);
        let mut scopes = Vec::new();
        let shared = shared_names(rules);
        for one in by_cluster(session, &shared).await? {
            let basis = load_basis(session, Some(&one.pool)).await?;
            scopes.push(scope(Some(&one.name), one.load, basis, Some(&one.capacity)));
        }
        if pools.len() > 1 || !shared.is_empty() || loads.iter().any(unknown) {
            for (pool, capacity) in pools.iter().filter(|(pool, _)| !shared.contains(*pool)) {
                let load = loads.iter().position(|load| load.name() == pool);
                let load = load.map(|at| loads.swap_remove(at));
                let basis = load_basis(session, Some(pool)).await?;
                scopes.push(scope(Some(pool), load, basis, Some(capacity)));
            }
            for load in loads.into_iter().filter(unknown) {
                let pool = load.name().to_owned();
                let basis = load_basis(session, Some(&pool)).await?;
                scopes.push(scope(Some(&pool), Some(load), basis, None));
            }
        }
        let late = lack_of_time(session, None);
        Ok(Self { calendar: session.calendar(), late, fleet, pools: scopes })
    }

    /// The plans under a what-if. GPUs that are added go to the pools that lack them, those that
    /// lack them first.
    ///
    /// # Errors
    /// GPUs taken away from a fleet of several pools, settings outside of their range.
    pub(in crate::commands) fn plans(&self, what_if: &WhatIf) -> Result<Plans<'_>, Failure> {
        let fleet = self.make(&self.fleet, what_if, what_if.add_gpus)?;
        if what_if.add_gpus < 0.0 && !self.pools.is_empty() {
            return Err(Failure::usage("which pool loses the GPUs?")
                .detail("the fleet has several, and GPUs of one do not serve another")
                .hint("name it with --pool"));
        }
        let mut pools = Vec::new();
        for scope in &self.pools {
            pools.push(self.make(scope, what_if, 0.0)?);
        }
        let mut short: Vec<(i64, usize, f64)> = pools
            .iter()
            .enumerate()
            .filter_map(|(at, made)| Some((made, at)).zip(made.plan.as_ref().ok()))
            .filter(|(_, (plan, _))| plan.gpus_needed > 0)
            .map(|((_, at), (plan, _))| (plan.meets.order(), at, f64::from(plan.gpus_needed)))
            .collect();
        short.sort_by_key(|(when, at, _)| (*when, *at));
        let mut left = what_if.add_gpus;
        for (_, at, missing) in short {
            let given = left.min(missing);
            if given > 0.0 {
                pools[at] = self.make(pools[at].scope, what_if, given)?;
                left -= given;
            }
        }
        Ok(Plans { fleet, pools })
    }

    /// Names of the pools; those of the capacity where there are no several.
    pub(in crate::commands) fn names<'n>(&'n self, known: &'n Capacities) -> Vec<&'n str> {
        match self.pools.is_empty() {
            true => known.1.keys().map(String::as_str).collect(),
            false => self.pools.iter().filter_map(|scope| scope.pool.as_deref()).collect(),
        }
    }

    /// The plan of one pool under a what-if: where there are no several, the fleet is the pool.
    pub(in crate::commands) fn pool(
        &self,
        pool: &str,
        what_if: &WhatIf,
    ) -> Result<Made<'_>, Failure> {
        let scope = self.pools.iter().find(|scope| scope.pool.as_deref() == Some(pool));
        self.make(scope.unwrap_or(&self.fleet), what_if, what_if.add_gpus)
    }

    fn make<'s>(
        &'s self,
        scope: &'s Scope,
        what_if: &WhatIf,
        add_gpus: f64,
    ) -> Result<Made<'s>, Failure> {
        let idle = scope.idle.gpu_hours_per_week.filter(|_| what_if.reclaim_idle);
        let settings = PlanSettings {
            add_gpus,
            reclaim_idle_gpu_hours_per_week: idle.unwrap_or(0.0),
            ..what_if.settings.clone()
        };
        let gpus_given_back = idle.map(|hours| hours / 168.0);
        let plan = self.plan(scope, settings)?.map(|plan| {
            let advice = advise(&plan, scope.rule);
            (plan, advice)
        });
        let gpus_free = match &plan {
            Ok((plan, Advice::Fits)) => plan.spare_gpus(),
            Ok(_) => None,
            Err(lack) => self.free_so_far(scope, lack)?,
        };
        let gpus_free = gpus_free.map(|gpus| (gpus + 1e-9).floor());
        Ok(Made { scope, add_gpus, gpus_given_back, plan, gpus_free })
    }

    /// GPUs that a pool of too few weeks to plan from left free in the fullest of them.
    fn free_so_far(&self, scope: &Scope, lack: &Lack) -> Result<Option<f64>, Failure> {
        let known = scope.capacity.as_ref().filter(|capacity| !capacity.is_floor());
        let short = matches!(lack, Lack::Weeks { .. } | Lack::Load);
        let Some(capacity) = known.filter(|_| short) else { return Ok(None) };
        let most = match &scope.load {
            None => Some(0.0),
            Some(load) => super::fullest_week(load, self.calendar)?,
        };
        Ok(most.map(|most| (capacity.gpus - most).max(0.0)))
    }

    fn plan(&self, scope: &Scope, settings: PlanSettings) -> Result<Result<Plan, Lack>, Failure> {
        if let Some(late) = &self.late {
            return Ok(Err(late.clone()));
        }
        let Some(capacity) = &scope.capacity else { return Ok(Err(Lack::PoolCapacity)) };
        let Some(load) = &scope.load else { return Ok(Err(Lack::Load)) };
        if capacity.is_floor() {
            return Ok(Err(capacity.lack()));
        }
        match super::planned(load, capacity.gpus, settings, self.calendar) {
            Ok(plan) => Ok(Ok(plan)),
            Err(ForecastError::TooLittleHistory { have_days, need_days, from_ms, .. }) => {
                let first = DateTime::from_timestamp_millis(from_ms).unwrap_or_default();
                let since = (first, self.calendar.zone());
                Ok(Err(Lack::Weeks { have_days, need_days, since }))
            }
            Err(error) if error.kind() == ErrorKind::Refused => {
                Ok(Err(Lack::Told(error.to_string())))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Plans<'_> {
    /// What the plans come to. Where a pool that asks for GPUs has no plan, its part of an
    /// all-clear must come from the fleet's.
    pub(in crate::commands) fn together(&self) -> Option<Together> {
        let fleet = together(self.fleet.decided());
        if self.pools.is_empty() {
            return fleet;
        }
        let fits = |told: &Together| told.advice == Advice::Fits;
        let told = together(self.pools.iter().flat_map(Made::decided));
        match told {
            Some(told) if !fits(&told) || self.open().next().is_none() => Some(told),
            told => fleet.filter(fits).and(told.or(fleet)),
        }
    }
}

impl<'a> Plans<'a> {
    /// The sum of the pools, as it is told; `None` where there are no several, or too few of them
    /// have a plan.
    pub(in crate::commands) fn summed(&self, zone: Tz) -> Option<FleetPlanned> {
        let told = self.together().filter(|_| !self.pools.is_empty())?;
        let of = |asked: &str| -> Vec<(String, u32)> {
            let short = |made: &Made<'_>| {
                let (plan, advice) = made.decided()?;
                let pool = made.scope.pool.clone().unwrap_or_default();
                (advice.name() == asked).then_some((pool, plan.gpus_needed))
            };
            self.pools.iter().filter_map(short).collect()
        };
        let name = |made: &Made<'_>| made.scope.pool.clone().unwrap_or_default();
        let free = |planned: bool| {
            let of = self.pools.iter().filter(|made| made.plan.is_ok() == planned);
            of.filter_map(|made| made.gpus_free).sum()
        };
        Some(FleetPlanned {
            load: self.fleet.scope.basis,
            gpus_given_back: self.fleet.gpus_given_back,
            told,
            pools: self.pools.len(),
            open: self.open().map(name).collect(),
            free: (free(true), free(false)),
            to_buy: of(Advice::Buy.name()),
            to_watch: of(Advice::NotYet(Wait::NoTrend).name()),
            zone,
        })
    }

    /// The pools that ask for GPUs and have no plan.
    pub(in crate::commands) fn open(&self) -> impl Iterator<Item = &Made<'a>> {
        let open = |made: &&Made<'a>| made.plan.as_ref().is_err_and(|lack| *lack != Lack::Load);
        self.pools.iter().filter(open)
    }
}

impl Made<'_> {
    /// The plan and what to do about it, where there is one.
    pub(in crate::commands) fn decided(&self) -> Option<(&Plan, Advice)> {
        self.plan.as_ref().ok().map(|(plan, advice)| (plan, *advice))
    }
}

fn asks_lately(load: &Series) -> bool {
    let steps = TimeDelta::days(RECENT_DAYS).num_seconds() / i64::from(load.step_s());
    let recent = load.values().iter().rev().take(usize::try_from(steps).unwrap_or_default());
    recent.flatten().any(|gpus| *gpus > 0.0)
}
