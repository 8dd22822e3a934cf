//! `loadline report`: gathers the figures, then writes the page.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use chrono::{DateTime, Utc};
use loadline_engine::calendar::Calendar;
use loadline_engine::{Session, query};
use loadline_forecast::{Meets, PlanSettings, QuantileLevel};

use super::{Context, outlook, print};
use crate::cli::ReportArgs;
use crate::failure::Failure;
use crate::report::data::{
    Action, DayUse, Decision, HourDemand, HourForecast, NodeUse, Outlook, ReportData, TeamUse,
    Totals,
};
use crate::report::{Format, render};

/// Days of demand before the forecast in the chart.
const HISTORY_HOURS: usize = 28 * 24;
/// Steps ahead in the chart.
const HORIZON_STEPS: usize = 168;

pub(super) async fn run(context: &Context, args: &ReportArgs) -> Result<(), Failure> {
    let session = context.session().await?;
    let span = session.span();
    let (from, until) = (args.from.unwrap_or(span.0), args.to.unwrap_or(span.1));
    if from >= until {
        return Err(Failure::usage(format!("the period from {from} to {until} is empty"))
            .detail(format!("the store holds {} to {}", span.0, span.1)));
    }
    let data = gather(&session, &context.config()?.calendar, from, until).await?;
    let text = render(&data, args.format, args.lang)?;
    let path = args.output.clone().unwrap_or_else(|| {
        match args.format {
            Format::Html => "report.html",
            Format::Md => "report.md",
            Format::Json => "report.json",
        }
        .into()
    });
    if path.as_os_str() == "-" {
        return print::line(&text);
    }
    std::io::Write::write_all(&mut print::create(&path)?, text.as_bytes())?;
    print::line(&format!("report    {}", path.display()))
}

/// All figures of `[from, until)`.
pub(super) async fn gather(
    session: &Session,
    calendar: &Calendar,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Result<ReportData, Failure> {
    let asked = Asked { session, from, until };
    let teams = asked.teams().await?;
    let totals = asked.totals(&teams).await?;
    let (outlook, plan) = look(session, calendar).await?;
    let decision = decide(plan, &totals, &outlook);
    Ok(ReportData {
        from,
        until,
        timezone: calendar.zone().name().to_owned(),
        currency: String::new(),
        days: asked.days().await?,
        nodes: asked.nodes().await?,
        totals,
        teams,
        baselines: Vec::new(),
        health: Vec::new(),
        jobs: Vec::new(),
        hardware: Vec::new(),
        outlook,
        decision,
    })
}

struct Asked<'a> {
    session: &'a Session,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
}

impl Asked<'_> {
    /// Rows of a query in which `{from}` and `{until}` stand for the period.
    async fn rows(&self, text: &str) -> Result<Vec<Row>, Failure> {
        let quoted = |at: DateTime<Utc>| format!("TIMESTAMP '{}'", at.to_rfc3339());
        let text =
            text.replace("{from}", &quoted(self.from)).replace("{until}", &quoted(self.until));
        let answer = self.session.sql(&text).await?;
        let rows = |batch: &RecordBatch| {
            let batch = batch.clone();
            (0..batch.num_rows()).map(move |row| Row { batch: batch.clone(), row })
        };
        Ok(answer.batches.iter().flat_map(rows).collect())
    }

    /// GPU-hours by team, clipped exactly to the period by the named question.
    async fn teams(&self) -> Result<Vec<TeamUse>, Failure> {
        let params = [
            ("from", self.from.to_rfc3339()),
            ("until", self.until.to_rfc3339()),
            ("by", "team".to_owned()),
            ("per", "year".to_owned()),
        ];
        let params = params.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let answer = self.session.query(&query::find("gpu_hours")?, &params).await?;
        let mut held: BTreeMap<String, f64> = BTreeMap::new();
        for batch in &answer.batches {
            for row in 0..batch.num_rows() {
                let row = Row { batch: batch.clone(), row };
                *held.entry(row.text(1)).or_default() += row.number(2).unwrap_or(0.0);
            }
        }
        let mut teams: Vec<TeamUse> = held
            .into_iter()
            .map(|(team, gpu_hours_held)| TeamUse {
                team,
                gpu_hours_held,
                gpu_hours_busy: None,
                gpu_hours_idle_held: None,
                cost: None,
            })
            .collect();
        teams.sort_by(|a, b| b.gpu_hours_held.total_cmp(&a.gpu_hours_held));
        Ok(teams)
    }

    async fn totals(&self, teams: &[TeamUse]) -> Result<Totals, Failure> {
        let capacity = self
            .rows(
                "WITH hours AS (SELECT gpus_installed, source, \
                 (CAST(least(hour_started_at + INTERVAL '1 hour', {until}) AS BIGINT) \
                 - CAST(greatest(hour_started_at, {from}) AS BIGINT)) AS inside FROM capacity_hourly \
                 WHERE hour_started_at >= local_hour({from}) AND hour_started_at < {until}) \
                 SELECT sum(gpus_installed * inside) / 3600e9 AS hours, max(source) AS source, \
                 sum(gpus_installed * inside) / \
                 (CAST({until} AS BIGINT) - CAST({from} AS BIGINT)) AS gpus FROM hours",
            )
            .await?;
        let seen = self
            .rows(
                "SELECT sum(period_s) / 3600 AS seen, sum(gpu_util_ratio * period_s) / 3600 AS busy \
                 FROM samples WHERE sampled_at >= {from} AND sampled_at < {until} AND mig IS NULL \
                 AND gpu_util_ratio IS NOT NULL",
            )
            .await?;
        let jobs = self
            .rows(
                "SELECT count(*) AS jobs, approx_percentile_cont(wait_s, 0.5) AS p50, \
                 approx_percentile_cont(wait_s, 0.9) AS p90 FROM (SELECT \
                 (CAST(started_at AS BIGINT) - CAST(submitted_at AS BIGINT)) / 1000.0 AS wait_s \
                 FROM jobs WHERE gpus_allocated > 0 AND started_at >= {from} AND started_at < {until}) AS waits",
            )
            .await?;
        let number = |rows: &[Row], column| rows.first().and_then(|row| row.number(column));
        let installed = number(&capacity, 0);
        let seen_hours = number(&seen, 0);
        Ok(Totals {
            gpus_installed: number(&capacity, 2),
            capacity_source: capacity.first().map(|row| row.text(1)),
            gpu_hours_installed: installed,
            gpu_hours_held: teams.iter().map(|team| team.gpu_hours_held).sum(),
            gpu_hours_busy: number(&seen, 1),
            coverage_ratio: seen_hours.zip(installed).map(|(seen, all)| (seen / all).min(1.0)),
            jobs: number(&jobs, 0).map_or(0, |jobs| jobs as u64),
            queue_time_s_p50: number(&jobs, 1),
            queue_time_s_p90: number(&jobs, 2),
            ..Totals::default()
        })
    }

    async fn days(&self) -> Result<Vec<DayUse>, Failure> {
        let text = "WITH capacity AS (SELECT local_day(hour_started_at) AS day, \
                sum(gpus_installed) AS hours FROM capacity_hourly \
                WHERE hour_started_at >= local_hour({from}) AND hour_started_at < {until} GROUP BY 1), \
            held AS (SELECT local_day(hour_started_at) AS day, sum(gpus_held) AS hours \
                FROM demand_hourly WHERE hour_started_at >= local_hour({from}) AND hour_started_at < {until} GROUP BY 1), \
            seen AS (SELECT local_day(sampled_at) AS day, sum(period_s) / 3600 AS hours, \
                sum(gpu_util_ratio * period_s) / sum(period_s) AS busy FROM samples \
                WHERE sampled_at >= {from} AND sampled_at < {until} AND mig IS NULL \
                AND gpu_util_ratio IS NOT NULL GROUP BY 1) \
            SELECT local_text(c.day, '%Y-%m-%d') AS local_date, h.hours / c.hours AS held, s.busy, \
                least(s.hours / c.hours, 1) AS coverage FROM capacity c LEFT JOIN held h ON h.day = c.day \
            LEFT JOIN seen s ON s.day = c.day ORDER BY c.day";
        let rows = self.rows(text).await?;
        let day = |row: &Row| {
            Some(DayUse {
                day: row.text(0).parse().ok()?,
                held_ratio: row.number(1),
                busy_ratio: row.number(2),
                coverage_ratio: row.number(3),
                queue_time_s_p50: None,
            })
        };
        Ok(rows.iter().filter_map(day).collect())
    }

    async fn nodes(&self) -> Result<Vec<NodeUse>, Failure> {
        let text = "SELECT node, sum(gpu_util_ratio * period_s) / sum(period_s) AS busy, \
                sum(period_s) / (count(DISTINCT gpu_uuid) * \
                (CAST({until} AS BIGINT) - CAST({from} AS BIGINT)) / 1e9) AS coverage FROM samples \
            WHERE sampled_at >= {from} AND sampled_at < {until} AND mig IS NULL \
            AND gpu_util_ratio IS NOT NULL GROUP BY node ORDER BY busy DESC, node";
        let rows = self.rows(text).await?;
        let node = |row: &Row| NodeUse {
            node: row.text(0),
            busy_ratio: row.number(1),
            coverage_ratio: row.number(2),
        };
        Ok(rows.iter().map(node).collect())
    }
}

/// One row of an answer.
struct Row {
    batch: RecordBatch,
    row: usize,
}

impl Row {
    fn number(&self, column: usize) -> Option<f64> {
        let values = cast(self.batch.column(column), &DataType::Float64).ok()?;
        let values = values.as_primitive::<Float64Type>();
        values.is_valid(self.row).then(|| values.value(self.row)).filter(|value| value.is_finite())
    }

    fn text(&self, column: usize) -> String {
        let values = cast(self.batch.column(column), &DataType::Utf8);
        values.map_or_else(|_| String::new(), |v| v.as_string::<i32>().value(self.row).to_owned())
    }
}

type Looked = (Outlook, Option<loadline_forecast::Plan>);

/// Demand of the fleet, its forecast and the plan, each with a reason where there is none.
async fn look(session: &Session, calendar: &Calendar) -> Result<Looked, Failure> {
    let mut outlook = Outlook::default();
    let Ok(series) = outlook::demand(session, None).await else {
        return Ok((outlook, None));
    };
    let Some(series) = series.first() else { return Ok((outlook, None)) };
    let begin = series.len().saturating_sub(HISTORY_HOURS);
    outlook.history = (begin..series.len())
        .filter_map(|step| {
            let at = DateTime::from_timestamp_millis(series.step_start_ms(step))?;
            Some(HourDemand { at, gpus: series.values()[step]? })
        })
        .collect();
    match outlook::look_ahead(series, calendar, HORIZON_STEPS) {
        Ok((forecast, tested)) => {
            outlook.forecast = (0..forecast.quantiles.steps())
                .filter_map(|step| {
                    let at = |level| forecast.quantiles.at(step, QuantileLevel::new(level).ok()?);
                    Some(HourForecast {
                        at: DateTime::from_timestamp_millis(forecast.step_start_ms(step))?,
                        gpus_p10: at(100)?,
                        gpus_p50: at(500)?,
                        gpus_p90: at(900)?,
                    })
                })
                .collect();
            outlook.model = forecast.basis.name().to_owned();
            outlook.skill_ratio = tested.as_ref().and_then(|tested| tested.overall.skill());
            outlook.interval_coverage_80_ratio =
                tested.as_ref().map(|tested| tested.overall.coverage_80_ratio);
            outlook.notes.push(outlook::told(&forecast, tested.as_ref()));
        }
        Err(failure) => outlook.notes.push(failure.to_string()),
    }
    let Ok(capacity) = outlook::capacity(session).await else { return Ok((outlook, None)) };
    outlook.capacity_gpus = Some(capacity.gpus);
    let Some(load) = outlook::offered(session).await? else { return Ok((outlook, None)) };
    let plan = loadline_forecast::plan(&load, capacity.gpus, &PlanSettings::default());
    match plan {
        Ok(plan) if capacity.source != "peak-held" => {
            outlook.notes.push(outlook::words(&plan));
            outlook.notes.push(plan.horizon_reason.clone());
            Ok((outlook, Some(plan)))
        }
        Ok(_) => {
            outlook.notes.push(format!(
                "capacity is not known; the most GPUs ever held in an hour, {:.0}, is a floor, so no plan is made",
                capacity.gpus
            ));
            Ok((outlook, None))
        }
        Err(error) => {
            outlook.notes.push(error.to_string());
            Ok((outlook, None))
        }
    }
}

/// What to do. Without a plan there is no all-clear: a history too short to plan from says nothing
/// about whether demand stays below capacity.
fn decide(plan: Option<loadline_forecast::Plan>, totals: &Totals, outlook: &Outlook) -> Decision {
    let slack = totals.held_ratio().is_some_and(|ratio| ratio < 0.6);
    let action = match plan.as_ref().map(|plan| plan.meets) {
        None => Action::Undecided,
        Some(Meets::Already | Meets::At { .. }) => Action::Buy,
        Some(Meets::NotWithin { .. }) if slack => Action::Scale,
        Some(Meets::NotWithin { .. }) => Action::Nothing,
    };
    let day = &outlook.history[outlook.history.len().saturating_sub(24)..];
    let demand: f64 = day.iter().map(|hour| hour.gpus).sum();
    let at = |ms: Option<i64>| ms.and_then(DateTime::from_timestamp_millis);
    Decision {
        action,
        demand_gpus_last_day: (!day.is_empty()).then(|| demand / day.len() as f64),
        gpus_to_add: plan.as_ref().map(|plan| f64::from(plan.gpus_needed)),
        order_by: at(plan.as_ref().and_then(|plan| plan.order_by_ms)),
        full_at: plan.as_ref().and_then(|plan| match plan.meets {
            Meets::At { week_ms } => DateTime::from_timestamp_millis(week_ms),
            Meets::Already | Meets::NotWithin { .. } => None,
        }),
        gpus_reclaimable: None,
        expansion: None,
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let (from, until) = (at("2026-01-05T08:30:00Z"), at("2026-01-05T10:15:00Z"));
        let data = gather(&session, &Calendar::default(), from, until).await.unwrap();
        // 4 GPUs from 08:30 to 10:15 are 4 x 1.75 h = 7; the floor of capacity is the same 4 GPUs.
        assert!((data.totals.gpu_hours_held - 7.0).abs() < 1e-9);
        assert_eq!(data.totals.gpus_installed.map(|gpus| (gpus * 1e6).round() / 1e6), Some(4.0));
        // A day of history is no ground for a plan, so there is no all-clear either.
        assert_eq!(data.decision.action, Action::Undecided);
        assert_eq!(data.totals.held_ratio().map(|ratio| (ratio * 1e6).round() / 1e6), Some(1.0));
    }
}
