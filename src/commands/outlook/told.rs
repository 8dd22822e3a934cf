//! A plan as `loadline plan` tells it: fields of its JSON, and lines.

use chrono::DateTime;
use chrono_tz::Tz;
use loadline_forecast::{Advice, Meets};
use serde::Serialize;

use super::super::print;
use super::idle::Idle;
use super::planner::{Made, Plans};
use crate::failure::Failure;
use crate::report::Language;
use crate::report::lack::Lack;
use crate::report::planned::{self, LoadBasis, Planned};

const EN: Language = Language::En;

/// Plan of a pool or of the fleet, or why there is none.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    scope: String,
    /// GPUs, those added included; `None` where nothing tells them.
    capacity_gpus: Option<f64>,
    capacity_source: Option<String>,
    /// GPUs installed besides and down.
    gpus_down: Option<f64>,
    /// GPUs added by the what-if.
    gpus_added: f64,
    /// What the load is: `offered`, `held-and-waiting` or `both`.
    pub(super) load_basis: LoadBasis,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_plan: Option<String>,
    /// `buy`, `not-yet` or `fits`: of a fleet of several pools, the sum of theirs.
    advice: Option<&'static str>,
    meets: Option<String>,
    full_at: Option<DateTime<Tz>>,
    /// GPUs missing at the largest shortfall: of a fleet of several pools, the sum of theirs.
    gpus_needed: Option<u32>,
    /// Those of them that are to be bought.
    gpus_to_buy: Option<u32>,
    order_by: Option<DateTime<Tz>>,
    order_late: Option<bool>,
    /// `None` where no trend is beyond chance.
    trend_gpus_per_week: Option<f64>,
    trend: Option<String>,
    horizon_reason: Option<String>,
    /// What was held idle lately.
    pub(super) idle: Idle,
    gpus_given_back: Option<f64>,
}

impl Told {
    /// One plan, with its dates in `zone`.
    pub(super) fn of(made: &Made<'_>, level: f64, zone: Tz) -> Self {
        let scope = made.scope;
        let capacity = scope.capacity.as_ref();
        let mut told = Self {
            scope: scope.pool.clone().unwrap_or_else(|| "fleet".to_owned()),
            capacity_gpus: capacity.map(|capacity| capacity.gpus + made.add_gpus),
            capacity_source: capacity.map(|capacity| capacity.source.clone()),
            gpus_down: capacity.map(|capacity| capacity.gpus_down),
            gpus_added: made.add_gpus,
            load_basis: scope.basis,
            no_plan: None,
            advice: None,
            meets: None,
            full_at: None,
            gpus_needed: None,
            gpus_to_buy: None,
            order_by: None,
            order_late: None,
            trend_gpus_per_week: None,
            trend: None,
            horizon_reason: None,
            gpus_given_back: scope.idle.gpu_hours_per_week.map(|hours| hours / 168.0),
            idle: scope.idle.clone(),
        };
        match &made.plan {
            Err(lack) => told.no_plan = Some(no_plan(lack)),
            Ok((plan, advice)) => {
                let planned = Planned::new(plan, scope.basis, *advice, level, zone);
                told.meets = Some(planned.conclusion(EN));
                told.decided(*advice, plan.meets, plan.order_by_ms, zone);
                told.gpus_needed = Some(plan.gpus_needed);
                let buy = *advice == Advice::Buy;
                told.gpus_to_buy = Some(if buy { plan.gpus_needed } else { 0 });
                told.order_late = Some(plan.order_late && buy);
                let slope = plan.trend_gpus_per_week;
                told.trend_gpus_per_week = plan.ground.is_trend().then_some(slope);
                told.trend = Some(planned::ground(&plan.ground, slope, zone, EN));
                told.horizon_reason = Some(plan.horizon_reason.clone());
            }
        }
        told
    }

    /// The fleet, and each of its pools where there are several: then the fleet's plan is the sum
    /// of theirs, and its own trend is told beside it.
    pub(super) fn all(plans: &Plans<'_>, level: f64, zone: Tz) -> Vec<Self> {
        let mut fleet = Self::of(&plans.fleet, level, zone);
        if let Some(sum) = plans.summed(zone) {
            let told = sum.told;
            fleet.no_plan = None;
            fleet.meets = Some(sum.conclusion(EN));
            fleet.decided(told.advice, told.meets, told.order_by_ms, zone);
            (fleet.gpus_needed, fleet.gpus_to_buy) =
                (Some(told.gpus_needed), Some(told.gpus_to_buy));
            fleet.order_late = Some(told.order_late && told.advice == Advice::Buy);
        } else if !plans.pools.is_empty() && fleet.no_plan.is_none() {
            let reason = "not every pool that asks for GPUs has a plan, and the fleet's lacks some";
            fleet.no_plan = Some(reason.to_owned());
            (fleet.meets, fleet.advice) = (None, None);
            (fleet.gpus_needed, fleet.gpus_to_buy) = (None, None);
            (fleet.full_at, fleet.order_by, fleet.order_late) = (None, None, None);
        }
        let pools = plans.pools.iter().map(|made| Self::of(made, level, zone));
        std::iter::once(fleet).chain(pools).collect()
    }

    fn decided(&mut self, advice: Advice, meets: Meets, order_by_ms: Option<i64>, zone: Tz) {
        let at = |ms: Option<i64>| Some(DateTime::from_timestamp_millis(ms?)?.with_timezone(&zone));
        self.advice = Some(advice.name());
        self.full_at = match meets {
            Meets::At { week_ms } => at(Some(week_ms)),
            Meets::Already | Meets::NotWithin { .. } => None,
        };
        self.order_by = at(order_by_ms.filter(|_| advice == Advice::Buy));
    }

    /// The lines.
    pub(super) fn print(&self, currency: &str) -> Result<(), Failure> {
        print::line(&format!("\n{}", self.scope))?;
        if let (Some(gpus), Some(source)) = (self.capacity_gpus, &self.capacity_source) {
            let known = match source.as_str() {
                "peak-held" => "at least: the most ever held at once".to_owned(),
                source => format!("known from {source}"),
            };
            let added = match self.gpus_added {
                added if added > 0.0 => format!(", {added} added"),
                added if added < 0.0 => format!(", {} taken away", -added),
                _ => String::new(),
            };
            let down = match self.gpus_down {
                Some(down) if down >= 0.05 => {
                    format!(" and {} more down", (down * 10.0).round() / 10.0)
                }
                _ => String::new(),
            };
            print::line(&format!("capacity  {}{down}, {known}{added}", gpus_of(gpus)))?;
        }
        let lines = [
            ("no plan", &self.no_plan),
            ("trend", &self.trend),
            ("full", &self.meets),
            ("horizon", &self.horizon_reason),
        ];
        for (name, text) in lines {
            if let Some(text) = text {
                print::line(&format!("{name:<10}{text}"))?;
            }
        }
        let idle = &self.idle;
        if let (Some(hours), Some(gpus)) = (idle.gpu_hours, self.gpus_given_back) {
            let cost = idle
                .cost
                .filter(|cost| *cost > 0.0)
                .map_or_else(String::new, |cost| format!(", worth {cost:.0} {currency}"));
            print::line(&format!(
                "idle      {hours:.0} GPU-hours held while idle in the last {:.0} days{cost}: given back, they are {gpus:.1} GPUs",
                idle.days
            ))?;
        }
        Ok(())
    }
}

/// A number of GPUs, whole or with one digit behind the point.
fn gpus_of(gpus: f64) -> String {
    let gpus = (gpus * 10.0).round() / 10.0;
    if gpus == 1.0 { "1 GPU".to_owned() } else { format!("{gpus} GPUs") }
}

fn no_plan(lack: &Lack) -> String {
    let mut text = lack.cause(EN);
    if let Some(remedy) = lack.remedy(EN) {
        text.push_str(": ");
        text.push_str(remedy);
    }
    text
}
