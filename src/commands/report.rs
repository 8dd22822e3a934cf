//! `loadline report`: gathers the figures, then writes the page.

mod decide;
mod figures;

use chrono::{DateTime, Utc};
use indicatif::{ProgressBar, ProgressStyle};
use loadline_engine::Session;
use loadline_forecast::{ForecastError, Plan, PlanSettings, QuantileLevel, Rule, advise};

use super::outlook::expansion::Expansion;
use super::outlook::idle::Idle;
use super::outlook::local;
use super::{Context, outlook, period, print};
use crate::cli::ReportArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::report::data::{Decision, HourDemand, HourForecast, Outlook, ReportData};
use crate::report::lack::Lack;
use crate::report::note::Note;
use crate::report::planned::Planned;
use crate::report::tested::Tested;
use crate::report::{Format, render};
use decide::{Grounds, decide};
use figures::{Asked, Uses};

/// Days of demand before the forecast in the chart.
const HISTORY_HOURS: usize = 28 * 24;
/// Steps ahead in the chart.
const HORIZON_STEPS: usize = 168;
/// Questions that a report asks, for its progress.
const QUESTIONS: u64 = 15;
/// Weeks in a row and share of capacity of the expansion rule.
const EXPANSION: (u32, f64) = (4, 0.7);

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
    let idle = outlook::idle::idle(session).await?.fleet;
    let looked = match &lack_of_time {
        Some(lack) => Looked::nothing(lack.clone()),
        None => look(session, &idle, lead_time_days).await?,
    };
    asked.bar.finish_and_clear();
    let grounds = Grounds {
        plan: looked.plan.as_ref(),
        after_clean_up: looked.after_clean_up.as_ref(),
        rule: looked.rule,
        idle: &idle,
        totals: &totals,
        outlook: &looked.outlook,
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
        outlook: looked.outlook,
        decision,
    })
}

/// What lies ahead.
#[derive(Default)]
struct Looked {
    outlook: Outlook,
    rule: Rule,
    plan: Option<Plan>,
    after_clean_up: Option<Plan>,
}

impl Looked {
    /// Nothing can be said, and why.
    fn nothing(lack: Lack) -> Self {
        let mut looked = Self::default();
        looked.outlook.notes.push(Note::NoForecast(lack));
        looked
    }
}

/// Demand of the fleet, its forecast and the plan, each with a reason where there is none.
async fn look(session: &Session, idle: &Idle, lead_time_days: u32) -> Result<Looked, Failure> {
    let zone = session.calendar().zone();
    let mut looked = Looked::default();
    let outlook = &mut looked.outlook;
    outlook.notes.extend(outlook::blind(session).await?);
    let mut capacity = None;
    if let Some((fleet, _)) = outlook::capacity_known(session).await? {
        outlook.capacity_gpus = Some(fleet.gpus);
        outlook.capacity_source = Some(fleet.source.clone());
        capacity = Some(fleet);
    }
    let series = match outlook::demand_known(session, None).await? {
        Ok(mut found) => found.remove(0),
        Err(lack) => {
            outlook.notes.push(Note::NoForecast(lack));
            return Ok(looked);
        }
    };
    let begin = series.len().saturating_sub(HISTORY_HOURS);
    outlook.history = (begin..series.len())
        .filter_map(|step| {
            let at = DateTime::from_timestamp_millis(series.step_start_ms(step))?;
            Some(HourDemand { at: local(at, zone), gpus: series.values()[step]? })
        })
        .collect();
    match outlook::forecast::look_ahead(&series, session.calendar(), HORIZON_STEPS) {
        Ok((forecast, tested)) => {
            outlook.forecast = (0..forecast.quantiles.steps())
                .filter_map(|step| {
                    let at = |level| forecast.quantiles.at(step, QuantileLevel::new(level).ok()?);
                    Some(HourForecast {
                        at: local(
                            DateTime::from_timestamp_millis(forecast.step_start_ms(step))?,
                            zone,
                        ),
                        gpus_p10: at(100)?,
                        gpus_p50: at(500)?,
                        gpus_p90: at(900)?,
                    })
                })
                .collect();
            let tested = Tested::new(&forecast, tested.as_ref());
            outlook.model = forecast.basis.name().to_owned();
            outlook.skill_ratio = tested.skill_ratio;
            outlook.skill_reason = tested.skill_reason();
            outlook.interval_coverage_80_ratio = tested.coverage_80_ratio;
            outlook.notes.push(Note::Forecast(tested));
            if let Some(capacity) = &capacity {
                let headroom = outlook::headroom(&forecast, capacity, session.calendar());
                outlook.notes.push(Note::Headroom(headroom.clone()));
                outlook.headroom = Some(headroom);
            }
            let reasons = forecast.reasons.iter().map(|reason| Note::Reason(*reason, zone));
            outlook.notes.extend(reasons);
        }
        Err(failure) => outlook.notes.push(Note::NoForecast(Lack::Told(failure.line()))),
    }
    if let Some(gpu_hours) = idle.gpu_hours {
        let gpus = idle.gpu_hours_per_week.unwrap_or(0.0) / 168.0;
        outlook.notes.push(Note::Idle { gpu_hours, gpus, days: idle.days });
    }
    let rules = outlook::expansion::expansion(session, EXPANSION.0, EXPANSION.1).await?;
    looked.rule = outlook::expansion::rule(&rules, None);
    outlook.notes.extend(expansion(rules));
    let gpus_held_most = capacity.as_ref().map_or(0.0, |capacity| capacity.gpus);
    let Some(capacity) = capacity.filter(|capacity| !capacity.is_floor()) else {
        outlook.notes.push(Note::NoPlan(Lack::Capacity { gpus_held_most }));
        return Ok(looked);
    };
    let Some(load) = outlook::offered(session, None).await?.into_iter().next() else {
        return Ok(looked);
    };
    let planned = |reclaim_idle_gpu_hours_per_week| {
        let settings = PlanSettings {
            lead_time_days,
            reclaim_idle_gpu_hours_per_week,
            ..PlanSettings::default()
        };
        outlook::planned(&load, capacity.gpus, settings, session.calendar())
    };
    match planned(0.0) {
        Ok(plan) => {
            let basis = outlook::load_basis(session, None).await?;
            outlook.load_basis = Some(basis);
            let (advice, level) =
                (advise(&plan, looked.rule), PlanSettings::default().level.ratio());
            let told = Planned::new(&plan, basis, advice, level, zone);
            outlook.notes.push(Note::Plan(told));
            looked.after_clean_up = idle.gpu_hours_per_week.and_then(|hours| planned(hours).ok());
            looked.plan = Some(plan);
        }
        Err(ForecastError::TooLittleHistory { have_days, need_days, .. }) => {
            outlook.notes.push(Note::NoPlan(Lack::Weeks { have_days, need_days }));
        }
        Err(error) => outlook.notes.push(Note::NoPlan(Lack::Told(error.to_string()))),
    }
    Ok(looked)
}

/// The expansion rule: a line for each pool that is full, and one for how many are not.
fn expansion(rules: Vec<Expansion>) -> Vec<Note> {
    let (weeks_asked, ratio) = EXPANSION;
    let (mut notes, mut keep, mut unknown) = (Vec::new(), 0, 0);
    for rule in rules {
        match rule.conclusion.split(':').next() {
            Some("keep") => keep += 1,
            Some("expand" | "watch") => {
                let last = rule.weeks.last();
                let first = rule.weeks.first().and_then(|week| week.gpus_waiting_mean);
                notes.push(Note::Expansion {
                    weeks_asked,
                    ratio,
                    held_ratio: last.and_then(|week| week.held_ratio),
                    waiting: first.zip(last.and_then(|week| week.gpus_waiting_mean)),
                    pool: rule.pool,
                    conclusion: rule.conclusion,
                });
            }
            _ => unknown += 1,
        }
    }
    if keep + unknown > 0 {
        notes.push(Note::NoExpansion { weeks_asked, ratio, keep, unknown });
    }
    notes
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
