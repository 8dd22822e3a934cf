//! `loadline plan`: when the load meets capacity, how many GPUs by when, and what could be had
//! back first.

use chrono::DateTime;
use chrono_tz::Tz;
use loadline_engine::calendar::Calendar;
use loadline_forecast::{
    Advice, ForecastError, Meets, PlanSettings, QuantileLevel, Rule, Series, advise,
};
use serde::Serialize;

use super::super::{Context, print};
use super::expansion::{Expansion, expansion, rule};
use super::idle::{Idle, idle};
use super::{Capacity, capacity, lack_of_time, load_basis, offered, tell_blind};
use crate::cli::{PlanArgs, SplitBy};
use crate::failure::Failure;
use crate::report::lack::Lack;
use crate::report::planned::{self, LoadBasis};
use crate::report::{Language, plural};

/// Plan of a pool, or why there is none.
#[derive(Debug, Serialize)]
struct Planned {
    scope: String,
    capacity_gpus: f64,
    capacity_source: String,
    /// What the load is: `offered`, `held-and-waiting` or `both`.
    load_basis: LoadBasis,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_plan: Option<String>,
    /// `buy`, `not-yet` or `fits`.
    advice: Option<&'static str>,
    meets: Option<String>,
    full_at: Option<DateTime<Tz>>,
    gpus_needed: Option<u32>,
    order_by: Option<DateTime<Tz>>,
    order_late: Option<bool>,
    /// `None` where no trend is beyond chance.
    trend_gpus_per_week: Option<f64>,
    trend: Option<String>,
    horizon_reason: Option<String>,
    idle: Idle,
    gpus_given_back: Option<f64>,
}

pub(in crate::commands) async fn run(context: &Context, args: &PlanArgs) -> Result<(), Failure> {
    let session = context.session().await?;
    let calendar = session.calendar();
    let (fleet, pools) = capacity(&session).await?;
    if let Some(pool) = args.pool.as_ref().filter(|pool| !pools.contains_key(*pool)) {
        let known: Vec<&str> = pools.keys().map(String::as_str).collect();
        return Err(Failure::usage(format!("there is no pool `{pool}`"))
            .detail(format!("pools are {}", known.join(", "))));
    }
    tell_blind(&session).await?;
    let late = lack_of_time(&session, None);
    let idle = idle(&session).await?;
    let rules = expansion(&session, args.expansion_weeks, args.expansion_ratio).await?;
    let mut planned = Vec::new();
    if args.pool.is_none() {
        let load = offered(&session, None).await?;
        let idle = idle.fleet.clone();
        let of = Scope {
            name: "fleet",
            load: load.first(),
            basis: load_basis(&session, None).await?,
            capacity: &fleet,
            rule: rule(&rules, None),
            late: late.as_ref(),
        };
        planned.push(make(&of, idle, args, calendar)?);
    }
    if args.pool.is_some() || pools.len() > 1 {
        let loads = offered(&session, Some(SplitBy::Pool)).await?;
        for (pool, capacity) in &pools {
            if args.pool.as_ref().is_none_or(|asked| asked == pool) {
                let of = Scope {
                    name: pool,
                    load: loads.iter().find(|load| load.name() == pool),
                    basis: load_basis(&session, Some(pool)).await?,
                    capacity,
                    rule: rule(&rules, Some(pool)),
                    late: late.as_ref(),
                };
                let idle = idle.of(pool);
                // GPUs to add are the fleet's, unless a pool was named.
                let add_gpus = if args.pool.is_some() { args.add_gpus } else { 0.0 };
                let args = PlanArgs { add_gpus, ..args.clone() };
                planned.push(make(&of, idle, &args, calendar)?);
            }
        }
    }
    let rules: Vec<Expansion> = rules
        .into_iter()
        .filter(|rule| args.pool.as_ref().is_none_or(|pool| *pool == rule.pool))
        .collect();
    if args.json {
        let all = serde_json::json!({ "plans": planned, "expansion": rules });
        return print::line(&serde_json::to_string_pretty(&all)?);
    }
    let bases: Vec<LoadBasis> = planned.iter().map(|one| one.load_basis).collect();
    let shared = bases.first().filter(|first| bases.iter().all(|basis| basis == *first));
    let basis = shared.unwrap_or(&LoadBasis::Both).text(Language::En);
    print::line(&format!(
        "basis     {basis}; a week counts with the level that nine hours of ten stay below"
    ))?;
    if let Some(what_if) = what_if(args) {
        print::line(&format!("what if   {what_if}"))?;
    }
    for one in &planned {
        tell(one, &context.config()?.money.currency)?;
    }
    if planned.iter().all(|one| one.idle.gpu_hours.is_none()) {
        print::line("\nidle      unknown: no reading of what jobs held")?;
    }
    for rule in &rules {
        print::line(&format!("\nexpand    {}: {}", rule.pool, rule.conclusion))?;
        for week in &rule.weeks {
            print::line(&format!(
                "          week of {}: {} held, {} GPUs waiting",
                week.week_started_at
                    .map_or_else(String::new, |at| at.format("%Y-%m-%d").to_string()),
                week.held_ratio.map_or_else(|| "unknown".into(), |r| format!("{:.0} %", r * 100.0)),
                week.gpus_waiting_mean.map_or_else(|| "unknown".into(), |g| format!("{g:.1}")),
            ))?;
        }
    }
    Ok(())
}

/// What the answer supposes that is not so.
fn what_if(args: &PlanArgs) -> Option<String> {
    let mut parts = Vec::new();
    if args.add_gpus != 0.0 {
        parts.push(format!("{:+} GPUs", args.add_gpus));
    }
    if args.growth != 0.0 {
        parts.push(format!("{:+.0} % load a year on top of the trend", args.growth * 100.0));
    }
    if args.reclaim_idle {
        parts.push("GPUs held while idle are given back, where readings tell them".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What is planned for.
struct Scope<'a> {
    name: &'a str,
    load: Option<&'a Series>,
    basis: LoadBasis,
    capacity: &'a Capacity,
    rule: Rule,
    /// Why nothing can be decided at all.
    late: Option<&'a Lack>,
}

fn make(
    scope: &Scope<'_>,
    idle: Idle,
    args: &PlanArgs,
    calendar: &Calendar,
) -> Result<Planned, Failure> {
    let Scope { load, capacity, .. } = scope;
    let settings = PlanSettings {
        level: QuantileLevel::new((args.quantile * 1000.0).round() as u16)?,
        lead_time_days: args.lead_time_days,
        horizon_weeks: args.weeks,
        growth_ratio_per_year: args.growth,
        add_gpus: args.add_gpus,
        reclaim_idle_gpu_hours_per_week: match args.reclaim_idle {
            true => idle.gpu_hours_per_week.unwrap_or(0.0),
            false => 0.0,
        },
        ..PlanSettings::default()
    };
    let mut planned = Planned {
        scope: scope.name.to_owned(),
        capacity_gpus: capacity.gpus + args.add_gpus,
        capacity_source: capacity.source.clone(),
        load_basis: scope.basis,
        no_plan: None,
        advice: None,
        meets: None,
        full_at: None,
        gpus_needed: None,
        order_by: None,
        order_late: None,
        trend_gpus_per_week: None,
        trend: None,
        horizon_reason: None,
        gpus_given_back: idle.gpu_hours_per_week.map(|hours| hours / 168.0),
        idle,
    };
    if let Some(lack) = scope.late {
        planned.no_plan = Some(format!("{}: {}", lack.cause(Language::En), remedy(lack)));
        return Ok(planned);
    }
    let Some(load) = load else {
        planned.no_plan = Some("no job and no count asks for a GPU of this pool".to_owned());
        return Ok(planned);
    };
    if capacity.source == "peak-held" {
        planned.no_plan = Some(floor(capacity));
        return Ok(planned);
    }
    match super::planned(load, capacity.gpus, settings, calendar) {
        Ok(plan) => {
            let at = |ms: Option<i64>| {
                let at = DateTime::from_timestamp_millis(ms?)?;
                Some(at.with_timezone(&calendar.zone()))
            };
            let (advice, zone) = (advise(&plan, scope.rule), calendar.zone());
            let told = planned::Planned::new(&plan, scope.basis, advice, args.quantile, zone);
            planned.advice = Some(match advice {
                Advice::Buy => "buy",
                Advice::NotYet(_) => "not-yet",
                Advice::Fits => "fits",
            });
            planned.meets = Some(told.conclusion(Language::En));
            planned.full_at = match plan.meets {
                Meets::At { week_ms } => at(Some(week_ms)),
                Meets::Already | Meets::NotWithin { .. } => None,
            };
            planned.gpus_needed = Some(plan.gpus_needed);
            let buy = advice == Advice::Buy;
            planned.order_by = at(plan.order_by_ms.filter(|_| buy));
            planned.order_late = Some(plan.order_late && buy);
            let slope = plan.trend_gpus_per_week;
            planned.trend_gpus_per_week = plan.ground.is_trend().then_some(slope);
            planned.trend = Some(planned::ground(&plan.ground, slope, zone, Language::En));
            planned.horizon_reason = Some(plan.horizon_reason);
        }
        Err(ForecastError::TooLittleHistory { have_days, need_days, from_ms, .. }) => {
            let since = DateTime::from_timestamp_millis(from_ms)
                .map_or_else(String::new, |at| format!(", since {}", calendar.local_date(at)));
            planned.no_plan = Some(format!(
                "{} has {} of history in weeks that were seen{since}, and a plan needs {need_days}",
                scope.name,
                plural(u64::from(have_days), "day")
            ));
        }
        Err(error) if error.kind() == loadline_forecast::ErrorKind::Refused => {
            planned.no_plan = Some(error.to_string());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(planned)
}

fn tell(planned: &Planned, currency: &str) -> Result<(), Failure> {
    print::line(&format!("\n{}", planned.scope))?;
    let known = match planned.capacity_source.as_str() {
        "peak-held" => "at least: the most ever held at once".to_owned(),
        source => format!("known from {source}"),
    };
    print::line(&format!("capacity  {:.0} GPUs, {known}", planned.capacity_gpus))?;
    if let Some(reason) = &planned.no_plan {
        print::line(&format!("no plan   {reason}"))?;
    }
    if let Some(trend) = &planned.trend {
        print::line(&format!("trend     {trend}"))?;
    }
    if let Some(meets) = &planned.meets {
        print::line(&format!("full      {meets}"))?;
    }
    if let Some(reason) = &planned.horizon_reason {
        print::line(&format!("horizon   {reason}"))?;
    }
    let idle = &planned.idle;
    match (idle.gpu_hours, planned.gpus_given_back) {
        (Some(hours), Some(gpus)) => {
            let cost = idle
                .cost
                .filter(|cost| *cost > 0.0)
                .map_or_else(String::new, |cost| format!(", worth {cost:.0} {currency}"));
            print::line(&format!(
                "idle      {hours:.0} GPU-hours held while idle in the last {:.0} days{cost}: given back, they are {gpus:.1} GPUs",
                idle.days
            ))
        }
        _ => Ok(()),
    }
}

fn remedy(lack: &Lack) -> &'static str {
    lack.remedy(Language::En).unwrap_or_default()
}

/// Why a capacity that is only a floor carries no plan.
pub(in crate::commands) fn floor(capacity: &Capacity) -> String {
    format!(
        "capacity is not known; the most GPUs ever held at once, {:.0}, is a floor (state it under [[capacity]] in loadline.toml, or import an inventory)",
        capacity.gpus
    )
}
