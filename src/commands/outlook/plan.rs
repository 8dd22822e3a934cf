//! `loadline plan`: when the load meets capacity, how many GPUs by when, and what could be had
//! back first.

use chrono::DateTime;
use chrono_tz::Tz;
use loadline_engine::calendar::Calendar;
use loadline_forecast::{Meets, Plan, PlanSettings, QuantileLevel, Series};
use serde::Serialize;

use super::super::{Context, print};
use super::expansion::{Expansion, expansion};
use super::idle::{Idle, idle};
use super::{Capacity, capacity, offered};
use crate::cli::{PlanArgs, SplitBy};
use crate::failure::Failure;

/// Plan of a pool, or why there is none.
#[derive(Debug, Serialize)]
struct Planned {
    scope: String,
    capacity_gpus: f64,
    capacity_source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_plan: Option<String>,
    meets: Option<String>,
    full_at: Option<DateTime<Tz>>,
    gpus_needed: Option<u32>,
    order_by: Option<DateTime<Tz>>,
    order_late: Option<bool>,
    trend_gpus_per_week: Option<f64>,
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
    let idle = idle(&session).await?;
    let mut planned = Vec::new();
    if args.pool.is_none() {
        let load = offered(&session, None).await?;
        let idle = idle.fleet.clone();
        planned.push(make("fleet", load.first(), &fleet, idle, (args, calendar))?);
    }
    if args.pool.is_some() || pools.len() > 1 {
        let loads = offered(&session, Some(SplitBy::Pool)).await?;
        for (pool, capacity) in &pools {
            if args.pool.as_ref().is_none_or(|asked| asked == pool) {
                let load = loads.iter().find(|load| load.name() == pool);
                let idle = idle.of(pool);
                // GPUs to add are the fleet's, unless a pool was named.
                let add_gpus = if args.pool.is_some() { args.add_gpus } else { 0.0 };
                let args = PlanArgs { add_gpus, ..args.clone() };
                planned.push(make(pool, load, capacity, idle, (&args, calendar))?);
            }
        }
    }
    let rules = expansion(&session, args.expansion_weeks, args.expansion_ratio).await?;
    let rules: Vec<Expansion> = rules
        .into_iter()
        .filter(|rule| args.pool.as_ref().is_none_or(|pool| *pool == rule.pool))
        .collect();
    if args.json {
        let all = serde_json::json!({ "plans": planned, "expansion": rules });
        return print::line(&serde_json::to_string_pretty(&all)?);
    }
    print::line(
        "basis     load offered: GPUs held if every job started at once; a week counts with the level that nine hours of ten stay below",
    )?;
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

fn make(
    scope: &str,
    load: Option<&Series>,
    capacity: &Capacity,
    idle: Idle,
    (args, calendar): (&PlanArgs, &Calendar),
) -> Result<Planned, Failure> {
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
        scope: scope.to_owned(),
        capacity_gpus: capacity.gpus + args.add_gpus,
        capacity_source: capacity.source.clone(),
        no_plan: None,
        meets: None,
        full_at: None,
        gpus_needed: None,
        order_by: None,
        order_late: None,
        trend_gpus_per_week: None,
        horizon_reason: None,
        gpus_given_back: idle.gpu_hours_per_week.map(|hours| hours / 168.0),
        idle,
    };
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
            planned.meets = Some(words(&plan, calendar));
            planned.full_at = match plan.meets {
                Meets::At { week_ms } => at(Some(week_ms)),
                Meets::Already | Meets::NotWithin { .. } => None,
            };
            planned.gpus_needed = Some(plan.gpus_needed);
            planned.order_by = at(plan.order_by_ms.filter(|_| plan.gpus_needed > 0));
            planned.order_late = Some(plan.order_late && plan.gpus_needed > 0);
            planned.trend_gpus_per_week = Some(plan.trend_gpus_per_week);
            planned.horizon_reason = Some(plan.horizon_reason);
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
    if let Some(trend) = planned.trend_gpus_per_week {
        print::line(&format!("trend     {trend:+.2} GPUs a week"))?;
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

/// Why a capacity that is only a floor carries no plan.
pub(in crate::commands) fn floor(capacity: &Capacity) -> String {
    format!(
        "capacity is not known; the most GPUs ever held at once, {:.0}, is a floor (state it under [[capacity]] in loadline.toml, or import an inventory)",
        capacity.gpus
    )
}

/// When the load meets capacity and what to order by when, in words and local dates.
fn words(plan: &Plan, calendar: &Calendar) -> String {
    let day = |ms: i64| {
        DateTime::from_timestamp_millis(ms)
            .map_or_else(|| "an unknown day".to_owned(), |at| calendar.local_date(at).to_string())
    };
    let met = match plan.meets {
        Meets::Already => "the load is at capacity already".to_owned(),
        Meets::At { week_ms } => format!("the load meets capacity in the week of {}", day(week_ms)),
        Meets::NotWithin { weeks } => {
            return format!("the load does not meet capacity within {weeks} weeks");
        }
    };
    if plan.gpus_needed == 0 {
        return format!("{met}; no GPU is missing at the largest shortfall");
    }
    let order = match plan.order_by_ms {
        Some(_) if plan.order_late => {
            "; to be ordered now: the lead time is longer than what is left".to_owned()
        }
        Some(ms) => format!(", to be ordered by {}", day(ms)),
        None => String::new(),
    };
    format!("{met}; {} GPUs are missing at the largest shortfall{order}", plan.gpus_needed)
}
