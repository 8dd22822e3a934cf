//! `loadline report`: gathers the figures, then writes the page.

mod decide;
mod figures;
mod look;

use chrono::{DateTime, Utc};
use indicatif::{ProgressBar, ProgressStyle};
use loadline_engine::Session;
use loadline_forecast::PlanSettings;

use super::outlook::local;
use super::outlook::planner::WhatIf;
use super::{Context, outlook, period, print};
use crate::cli::ReportArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::report::data::{Decision, ReadingsDropped, ReportData};
use crate::report::lack::Lack;
use crate::report::{Format, render};
use decide::{Grounds, decide};
use figures::{Asked, Uses};
use look::{Looked, look};

/// Questions that a report asks, for its progress.
const QUESTIONS: u64 = 15;

pub(super) async fn run(context: &Context, args: &ReportArgs) -> Result<(), Failure> {
    let (session, config) = (context.session().await?, context.config()?);
    let period = period(&session, &config, args.from.as_deref(), args.to.as_deref())?;
    // A report on the past is made as of its end: nothing later counts, the outlook begins there.
    let session = match period.1 < session.span().1 {
        true => context.session_at(Some(period.1)).await?,
        false => session,
    };
    let data = gather(&session, &config, period, args.lead_time_days).await?;
    write(&data, args)
}

/// Writes `data` as asked.
pub(super) fn write(data: &ReportData, args: &ReportArgs) -> Result<(), Failure> {
    let format = if args.json { Format::Json } else { args.format };
    let text = render(data, format, args.lang)?;
    let path = args.output.clone().unwrap_or_else(|| {
        match format {
            Format::Html => "report.html",
            Format::Md => "report.md",
            Format::Json => "report.json",
        }
        .into()
    });
    if path.as_os_str() == "-" {
        return print::line(text.trim_end());
    }
    print::whole(&path, text.as_bytes())?;
    print::line(&format!("report    {}", path.display()))
}

/// All figures of `[from, until)`.
pub(super) async fn gather(
    session: &Session,
    config: &Config,
    (from, until): (DateTime<Utc>, DateTime<Utc>),
    lead_time_days: u32,
) -> Result<ReportData, Failure> {
    let bar = ProgressBar::new(QUESTIONS).with_style(
        ProgressStyle::with_template("asking {bar:30} {pos}/{len} {msg}").expect("a fixed text"),
    );
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    let asked = Asked { session, from, until, bar };
    let Uses { mut totals, days, teams, teams_by } = asked.uses().await?;
    let zone = session.calendar().zone();
    let lack_of_time = outlook::lack_of_time(session, Some((from, until)));
    let lack_of_demand = match (&lack_of_time, totals.gpu_hours_held) {
        (Some(outside @ Lack::Outside { .. }), _) => Some(outside.clone()),
        (_, Some(_)) => None,
        (_, None) => outlook::lack_of_demand(session).await?,
    };
    if lack_of_demand.is_none() {
        // The ledger is there, and in this period nobody held a GPU.
        totals.gpu_hours_held.get_or_insert(0.0);
    }
    let (health, jobs) = asked.health().await?;
    let (nodes, baselines) = (asked.nodes().await?, asked.baselines().await?);
    let hardware = asked.hardware().await?;
    asked.bar.set_message("forecast and plan");
    asked.bar.inc(1);
    let idle = outlook::idle::idle(session).await?;
    let looked = match &lack_of_time {
        Some(lack) => Looked::nothing(lack.clone()),
        None => look(session, &idle).await?,
    };
    let what_if = |reclaim_idle| WhatIf {
        settings: PlanSettings { lead_time_days, ..PlanSettings::default() },
        reclaim_idle,
        ..WhatIf::default()
    };
    let planner = looked.planner.as_ref();
    let now = planner.map(|planner| planner.plans(&what_if(false))).transpose()?;
    let given_back = planner.filter(|_| idle.fleet.gpu_hours_per_week.is_some());
    let after_clean_up = given_back.map(|planner| planner.plans(&what_if(true))).transpose()?;
    let mut outlook = looked.outlook;
    if let Some(plans) = after_clean_up.as_ref().or(now.as_ref()) {
        outlook.load_basis = plans.fleet.plan.is_ok().then_some(plans.fleet.scope.basis);
        outlook.notes.extend(look::planned(plans, zone));
    }
    asked.bar.finish_and_clear();
    let grounds = Grounds {
        now: now.as_ref(),
        after_clean_up: after_clean_up.as_ref(),
        idle: &idle.fleet,
        totals: &totals,
        outlook: &outlook,
        zone,
    };
    // What is not in the period, or is long past, decides nothing.
    let decision = lack_of_time.map_or_else(|| decide(&grounds), |_| Decision::default());
    Ok(ReportData {
        from: local(from, zone),
        until: local(until, zone),
        timezone: zone.name().to_owned(),
        currency: config.money.currency.clone(),
        teams,
        teams_by,
        days,
        nodes,
        baselines,
        hardware,
        totals,
        lack_of_demand,
        health,
        jobs,
        outlook,
        decision,
        readings_dropped: super::dropped(session, from).map(|(before, at)| ReadingsDropped {
            before: local(before, zone),
            at: local(at, zone),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::Action;

    #[test]
    fn a_period_that_begins_within_an_hour_is_clipped_and_drops_nothing() {
        // Planning goes deeper than the 2 MiB of a test's thread, as it does in `main.rs`.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_stack_size(16 << 20)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(runtime.spawn(clipped())).unwrap();
    }

    async fn clipped() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let config = loadline_engine::EngineConfig::default();
        let now = Some(at("2026-01-05T12:00:00Z"));
        let session = Session::in_memory(&config, now).await.unwrap();
        session
            .sql(
                "INSERT INTO jobs (job_id, attempt, team, submitted_at, started_at, ended_at, \
                 gpus_allocated) VALUES ('1', 0, 'nlp', '2026-01-05T08:00:00Z', \
                 '2026-01-05T08:00:00Z', '2026-01-05T12:00:00Z', 4)",
            )
            .await
            .unwrap();
        let period = (at("2026-01-05T08:30:00Z"), at("2026-01-05T10:15:00Z"));
        let data = gather(&session, &Config::default(), period, 60).await.unwrap();
        // 4 GPUs from 08:30 to 10:15 are 4 x 1.75 h = 7; the floor of capacity is the same 4 GPUs.
        let totals = &data.totals;
        assert!((totals.gpu_hours_held.unwrap() - 7.0).abs() < 1e-9);
        assert_eq!(totals.gpus_installed.map(|gpus| (gpus * 1e6).round() / 1e6), Some(4.0));
        // A day of history is no ground for a plan, so there is no all-clear either.
        assert_eq!(data.decision.action, Action::Undecided);
        assert_eq!(totals.held_ratio().map(|ratio| (ratio * 1e6).round() / 1e6), Some(1.0));
        assert_eq!((totals.coverage_ratio, totals.gaps), (None, None));
    }
}
