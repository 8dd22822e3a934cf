//! What lies ahead of a report: demand, forecast and plans, and a line on each.

use chrono::DateTime;
use chrono_tz::Tz;
use loadline_engine::Session;
use loadline_forecast::{Advice, PlanSettings, QuantileLevel};

use super::super::outlook;
use super::super::outlook::expansion::Expansion;
use super::super::outlook::idle::IdleByPool;
use super::super::outlook::local;
use super::super::outlook::planner::{Made, Planner, Plans};
use crate::failure::Failure;
use crate::report::Language;
use crate::report::data::{HourDemand, HourForecast, Outlook};
use crate::report::lack::Lack;
use crate::report::note::Note;
use crate::report::planned::Planned;
use crate::report::tested::Tested;

/// Days of demand before the forecast in the chart.
const HISTORY_HOURS: usize = 28 * 24;
/// Steps ahead in the chart.
const HORIZON_STEPS: usize = 168;
/// Weeks in a row and share of capacity of the expansion rule.
const EXPANSION: (u32, f64) = (4, 0.7);

/// What lies ahead.
#[derive(Default)]
pub(super) struct Looked<'a> {
    /// Demand, its forecast and the capacity.
    pub(super) outlook: Outlook,
    /// What plans are made from; `None` where nothing can be planned, which a note tells.
    pub(super) planner: Option<Planner<'a>>,
}

impl Looked<'_> {
    /// Nothing can be said, and why.
    pub(super) fn nothing(lack: Lack) -> Self {
        let mut looked = Self::default();
        looked.outlook.notes.push(Note::NoForecast(lack));
        looked
    }
}

/// Demand of the fleet and its forecast, and what plans are made from, each with a reason where
/// there is none.
pub(super) async fn look<'a>(
    session: &'a Session,
    idle: &IdleByPool,
) -> Result<Looked<'a>, Failure> {
    let zone = session.calendar().zone();
    let mut looked = Looked::default();
    let outlook = &mut looked.outlook;
    outlook.notes.extend(outlook::blind(session).await?);
    let known = outlook::capacity_known(session).await?;
    let capacity = known.as_ref().map(|(fleet, _)| fleet);
    if let Some(fleet) = capacity {
        outlook.capacity_gpus = Some(fleet.gpus);
        outlook.capacity_source = Some(fleet.source.clone());
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
    match outlook::ahead::look_ahead(&series, session.calendar(), HORIZON_STEPS) {
        Ok(made) => {
            let forecast = &made.forecast;
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
            let tested = Tested::new(forecast, made.tested.as_ref(), made.lost);
            outlook.model = forecast.basis.name().to_owned();
            outlook.skill_ratio = tested.skill_ratio;
            outlook.skill_reason = tested.skill_reason();
            outlook.interval_coverage_80_ratio = tested.coverage_80_ratio;
            outlook.forecast_warning = tested.warning(Language::En);
            outlook.tested = Some(tested.clone());
            outlook.notes.push(Note::Forecast(tested));
            if let Some(capacity) = capacity {
                let headroom = outlook::headroom(forecast, capacity, session.calendar());
                outlook.notes.push(Note::Headroom(headroom.clone()));
                outlook.headroom = Some(headroom);
            }
            let reasons = forecast.reasons.iter().map(|reason| Note::Reason(*reason, zone));
            outlook.notes.extend(reasons);
        }
        Err(failure) => outlook.notes.push(Note::NoForecast(Lack::Told(failure.line()))),
    }
    if let Some(gpu_hours) = idle.fleet.gpu_hours {
        let gpus = idle.fleet.gpu_hours_per_week.unwrap_or(0.0) / 168.0;
        outlook.notes.push(Note::Idle { gpu_hours, gpus, days: idle.fleet.days });
    }
    let rules = outlook::expansion::expansion(session, EXPANSION.0, EXPANSION.1).await?;
    match known {
        Some(known) => {
            looked.planner = Some(Planner::read(session, &known, idle, &rules).await?);
        }
        None => outlook.notes.push(Note::NoPlan { pool: None, lack: Lack::CAPACITY }),
    }
    looked.outlook.notes.extend(expansion(rules));
    Ok(looked)
}

/// Lines on the plans that the decision rests on: the sum of the pools and each that is to be bought
/// for, or the fleet's. What the others come to stands in the table of the pools.
pub(super) fn planned(plans: &Plans<'_>, zone: Tz) -> Vec<Note> {
    let level = PlanSettings::default().level.ratio();
    let note = |made: &Made<'_>| {
        let pool = made.scope.pool.clone();
        match &made.plan {
            Ok((plan, advice)) => {
                let told = Planned::new(plan, made.scope.basis, *advice, level, zone);
                Note::Plan(Planned { pool, gpus_given_back: made.gpus_given_back, ..told })
            }
            Err(lack) => Note::NoPlan { pool, lack: lack.clone() },
        }
    };
    if plans.pools.is_empty() {
        return vec![note(&plans.fleet)];
    }
    let buys = |made: &&Made<'_>| made.decided().is_some_and(|(_, told)| told == Advice::Buy);
    let pools = plans.pools.iter().filter(buys).map(note);
    plans.summed(zone).map(Note::Plans).into_iter().chain(pools).collect()
}

/// The expansion rule: a line for each pool that is full, and one for how many are not.
fn expansion(rules: Vec<Expansion>) -> Vec<Note> {
    let (weeks_asked, ratio) = EXPANSION;
    let (mut notes, mut keep, mut unknown) = (Vec::new(), 0, 0);
    for rule in &rules {
        match rule.conclusion.split(':').next() {
            Some("keep") => keep += 1,
            Some("expand" | "watch") => {
                let last = rule.weeks.last();
                notes.push(Note::Expansion {
                    weeks_asked,
                    ratio,
                    held_ratio: last.and_then(|week| week.held_ratio),
                    waiting: rule.weeks.iter().map(|week| week.gpus_waiting_mean).collect(),
                    pool: rule.name(&rules),
                    conclusion: rule.conclusion.clone(),
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
