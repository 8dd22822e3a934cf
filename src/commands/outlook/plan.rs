//! `loadline plan`: when the load meets capacity, how many GPUs by when, and what could be had
//! back first.

use loadline_forecast::{PlanSettings, QuantileLevel};

use super::super::{Context, print};
use super::expansion::{Expansion, expansion};
use super::idle::idle;
use super::planner::{Planner, WhatIf};
use super::told::Told;
use super::{capacity, tell_blind};
use crate::cli::PlanArgs;
use crate::failure::Failure;
use crate::report::Language;
use crate::report::planned::LoadBasis;

/// Why `forecast` may say another thing of the same week.
const HOURS_DIFFER: &str = "loadline forecast looks at the demand of each hour, with its backlog and \
    its rhythm: a week that it keeps below capacity may be above it here, and the other way round";

pub(in crate::commands) async fn run(context: &Context, args: &PlanArgs) -> Result<(), Failure> {
    let session = context.session().await?;
    let known = capacity(&session).await?;
    tell_blind(&session).await?;
    let idle = idle(&session).await?;
    let rules = expansion(&session, args.expansion_weeks, args.expansion_ratio).await?;
    let planner = Planner::read(&session, &known, &idle, &rules).await?;
    let names = planner.names(&known);
    if let Some(pool) = args.pool.as_ref().filter(|pool| !names.contains(&pool.as_str())) {
        return Err(Failure::usage(format!("there is no pool `{pool}`"))
            .detail(format!("pools are {}", names.join(", "))));
    }
    let what_if = WhatIf {
        settings: PlanSettings {
            level: QuantileLevel::new((args.quantile * 1000.0).round() as u16)?,
            lead_time_days: args.lead_time_days,
            horizon_weeks: args.weeks,
            growth_ratio_per_year: args.growth,
            ..PlanSettings::default()
        },
        add_gpus: args.add_gpus,
        reclaim_idle: args.reclaim_idle,
    };
    let zone = session.calendar().zone();
    let told = match &args.pool {
        Some(pool) => vec![Told::of(&planner.pool(pool, &what_if)?, args.quantile, zone)],
        None => Told::all(&planner.plans(&what_if)?, args.quantile, zone),
    };
    let asked =
        |rule: &&Expansion| args.pool.as_ref().is_none_or(|pool| *pool == rule.name(&rules));
    let shown: Vec<&Expansion> = rules.iter().filter(asked).collect();
    if args.json {
        let all = serde_json::json!({ "plans": told, "expansion": shown });
        return print::line(&serde_json::to_string_pretty(&all)?);
    }
    let bases: Vec<LoadBasis> = told.iter().map(|one| one.load_basis).collect();
    let shared = bases.first().filter(|first| bases.iter().all(|basis| basis == *first));
    let basis = shared.unwrap_or(&LoadBasis::Both).text(Language::En);
    print::line(&format!(
        "basis     {basis}; a week counts with the level that nine hours of ten stay below"
    ))?;
    print::line(&format!("          {}", HOURS_DIFFER))?;
    let supposed = supposed(args);
    if let Some(supposed) = &supposed {
        print::line(&format!("what if   {supposed}"))?;
    }
    for one in &told {
        one.print(&context.config()?.money.currency)?;
    }
    if told.iter().all(|one| one.idle.gpu_hours.is_none()) {
        print::line("\nidle      unknown: no reading of what jobs held")?;
    }
    // The rule looks back at what was.
    let as_it_was = if supposed.is_some() { " (as it was, without the what-if)" } else { "" };
    for rule in &shown {
        print::line(&format!("\nexpand    {}{as_it_was}: {}", rule.name(&rules), rule.conclusion))?;
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
fn supposed(args: &PlanArgs) -> Option<String> {
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
