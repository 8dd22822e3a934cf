//! The sections below the answers: charts and tables.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::super::answer;
use super::super::chart::{self, Band, Bar, Line, number};
use super::super::data::{HourDemand, PoolDecision, ReportData};
use super::super::finding;
use super::super::words::{Language, Words, percent};
use super::day::{daily, days_left_out};
use super::{escape, list, picture, table};

/// Titles and bodies, in reading order. A section of which nothing is known is left out: an empty
/// one would read as good news.
pub(super) fn all(data: &ReportData, language: Language, zone: Tz) -> Vec<(&'static str, String)> {
    let words = language.words();
    let w = words;
    let idle_known = data.totals.gpu_hours_idle_held.is_some();
    [
        (true, w.utilisation, utilisation(data, words, zone)),
        (true, w.outlook, outlook(data, language, zone)),
        (!data.holders().is_empty(), teams_title(data, w), teams(data, words)),
        (idle_known, w.waste, waste(data, words)),
        (!data.health.is_empty(), w.health, health(data, language)),
        (!data.baselines.is_empty(), w.baselines, baselines(data, words)),
        (!data.nodes.is_empty(), w.nodes, nodes(data, words)),
        (!data.hardware.is_empty(), w.hardware, hardware(data, language)),
        (money_known(data), w.money, money(data, words)),
        (true, w.coverage, coverage(data, language, zone)),
    ]
    .into_iter()
    .filter_map(|(shown, title, body)| shown.then_some((title, body)))
    .collect()
}

/// Teams, or users where no job names a team.
pub(crate) fn teams_title(data: &ReportData, words: &Words) -> &'static str {
    let words = if words.code == "zh" { Language::Zh.words() } else { Language::En.words() };
    if data.teams_by == "user" { words.users } else { words.teams }
}

fn utilisation(data: &ReportData, words: &Words, zone: Tz) -> String {
    let mut lines = vec![Line {
        name: words.held.into(),
        colour: chart::BLUE,
        points: daily(data, zone, |day| day.held_ratio),
    }];
    if data.sampled() {
        lines.push(Line {
            name: words.busy.into(),
            colour: chart::ORANGE,
            points: daily(data, zone, |day| day.busy_ratio),
        });
    }
    let mut body = picture(chart::over_time(zone, &lines, &[], None, true), words);
    if days_left_out(data, zone) {
        body.push_str(&format!("<p class=\"note\">{}</p>", words.whole_days));
    }
    if !data.sampled() {
        body.push_str(&format!("<p class=\"note\">{}</p>", words.no_samples));
    }
    body
}

/// Demand by the hour, the line broken where an hour is not known.
fn broken_at_gaps(history: &[HourDemand]) -> Vec<(DateTime<Utc>, Option<f64>)> {
    let mut points: Vec<(DateTime<Utc>, Option<f64>)> = Vec::new();
    for hour in history {
        let after = points.last().map(|(at, _)| *at + TimeDelta::hours(1));
        let at = hour.at.to_utc();
        if let Some(after) = after.filter(|after| *after < at) {
            points.push((after, None));
        }
        points.push((at, Some(hour.gpus)));
    }
    points
}

fn outlook(data: &ReportData, language: Language, zone: Tz) -> String {
    let (outlook, words) = (&data.outlook, language.words());
    let mut lines = vec![Line {
        name: words.demand.into(),
        colour: chart::BLUE,
        points: broken_at_gaps(&outlook.history),
    }];
    let mut bands = Vec::new();
    if !outlook.forecast.is_empty() {
        lines.push(Line {
            name: words.forecast_p50.into(),
            colour: chart::ORANGE,
            points: outlook
                .forecast
                .iter()
                .map(|hour| (hour.at.to_utc(), Some(hour.gpus_p50)))
                .collect(),
        });
        bands.push(Band {
            name: words.forecast_band.into(),
            colour: chart::ORANGE,
            points: outlook
                .forecast
                .iter()
                .map(|h| (h.at.to_utc(), h.gpus_p10, h.gpus_p90))
                .collect(),
        });
    }
    let name = if outlook.capacity_is_floor() { words.capacity_floor } else { words.capacity };
    let limit = outlook.capacity_gpus.map(|gpus| (name, gpus));
    let mut body = match chart::over_time(zone, &lines, &bands, limit, false) {
        None => String::new(),
        drawn => picture(drawn, words),
    };
    if outlook.forecast.is_empty() {
        body.push_str(&format!("<p class=\"note\">{}</p>", words.no_forecast));
    }
    if !data.decision.pools.is_empty() {
        body.push_str(&pools(data, language, zone));
    }
    body.push_str(&list(outlook.notes.iter().map(|note| note.text(language))));
    body
}

/// The pools that the decision is the sum of.
fn pools(data: &ReportData, language: Language, zone: Tz) -> String {
    let words = language.words();
    let cleaned = data.decision.cleans().is_some();
    let cells = |pool: &PoolDecision| pool.cells(cleaned, language, zone);
    let rows: Vec<Vec<String>> = data.decision.pools.iter().map(cells).collect();
    table(&PoolDecision::head(words, cleaned), &rows, words)
}

fn teams(data: &ReportData, words: &Words) -> String {
    let bars: Vec<Bar> = data
        .teams
        .iter()
        .take(20)
        .map(|team| {
            let busy = team.gpu_hours_busy.unwrap_or(0.0).min(team.gpu_hours_held);
            let rest = (chart::BLUE_LIGHT, team.gpu_hours_held - busy);
            let mut text = format!("{} {}", number(team.gpu_hours_held), words.gpu_hours);
            if let Some(cost) = team.cost {
                text.push_str(&format!(" · {} {}", number(cost), data.currency));
            }
            Bar { label: team.team.clone(), parts: vec![(chart::BLUE, busy), rest], text }
        })
        .collect();
    let busy = (words.busy, chart::css(chart::BLUE, 1.0));
    let held = (words.held, chart::css(chart::BLUE_LIGHT, 1.0));
    let legend = if data.teams.iter().any(|team| team.gpu_hours_busy.is_some()) {
        chart::legend(&[busy, held])
    } else {
        chart::legend(&[held])
    };
    format!("{legend}{}", picture(chart::bars(&bars), words))
}

fn waste(data: &ReportData, words: &Words) -> String {
    let mut idle: Vec<_> = data
        .teams
        .iter()
        .filter_map(|team| Some((team, team.gpu_hours_idle_held.filter(|hours| *hours > 0.0)?)))
        .collect();
    idle.sort_by(|a, b| b.1.total_cmp(&a.1));
    let bars: Vec<Bar> = idle
        .into_iter()
        .take(12)
        .map(|(team, hours)| Bar {
            label: team.team.clone(),
            parts: vec![(chart::RED, hours)],
            text: format!("{} {}", number(hours), words.gpu_hours),
        })
        .collect();
    let sum = match (data.totals.gpu_hours_idle_held, data.totals.cost_idle_held) {
        (Some(hours), Some(cost)) => {
            format!(
                "<p>{} {} · {} {}</p>",
                number(hours),
                words.gpu_hours,
                number(cost),
                escape(&data.currency)
            )
        }
        (Some(hours), None) => format!("<p>{} {}</p>", number(hours), words.gpu_hours),
        (None, _) => format!("<p class=\"note\">{}</p>", words.no_samples),
    };
    let sum = format!("{sum}<p class=\"note\">{}</p>", words.idle_means);
    if bars.is_empty() { sum } else { format!("{sum}{}", picture(chart::bars(&bars), words)) }
}

fn health(data: &ReportData, language: Language) -> String {
    let words = language.words();
    let counts: Vec<Vec<String>> = data
        .health
        .iter()
        .map(|row| {
            let verdict = finding::verdict(&row.verdict, language).to_owned();
            vec![verdict, number(row.jobs as f64), number(row.gpu_hours)]
        })
        .collect();
    let findings: Vec<Vec<String>> = data
        .jobs
        .iter()
        .take(15)
        .map(|job| {
            vec![
                job.job_id.clone(),
                job.team.clone(),
                job.workload.clone(),
                finding::verdict(&job.verdict, language).to_owned(),
                number(job.gpu_hours),
                finding::job_reason(job, language),
            ]
        })
        .collect();
    let head =
        [words.job, words.team, words.workload, words.verdict, words.gpu_hours, words.reason];
    format!(
        "{}{}",
        table(&[words.verdict, words.jobs, words.gpu_hours], &counts, words),
        table(&head, &findings, words)
    )
}

fn baselines(data: &ReportData, words: &Words) -> String {
    let rows: Vec<Vec<String>> = data
        .baselines
        .iter()
        .map(|row| {
            let hours = if row.hours == "working" { words.working } else { words.other };
            vec![
                row.workload.clone(),
                row.gpu_model.clone(),
                hours.to_owned(),
                percent(row.gpu_util_ratio_mean, words),
                format!(
                    "{} – {}",
                    percent(row.gpu_util_ratio_p5, words),
                    percent(row.gpu_util_ratio_p95, words)
                ),
                number(row.jobs as f64),
                number(row.gpu_hours),
            ]
        })
        .collect();
    let head = [
        words.workload,
        words.gpu_model,
        words.hours,
        words.mean,
        words.range,
        words.jobs,
        words.gpu_hours,
    ];
    table(&head, &rows, words)
}

fn nodes(data: &ReportData, words: &Words) -> String {
    let bars: Vec<Bar> = data
        .nodes
        .iter()
        .take(40)
        .map(|node| Bar {
            label: node.node.clone(),
            parts: vec![(chart::ORANGE, node.busy_ratio.unwrap_or(0.0))],
            text: format!(
                "{} · {} {}",
                percent(node.busy_ratio, words),
                words.seen,
                percent(node.coverage_ratio, words)
            ),
        })
        .collect();
    format!("<p class=\"note\">{}</p>{}", words.nodes_mean, picture(chart::bars(&bars), words))
}

fn hardware(data: &ReportData, language: Language) -> String {
    let words = language.words();
    let rows: Vec<Vec<String>> = data
        .hardware
        .iter()
        .map(|row| {
            let gpu = row.gpu.map_or_else(String::new, |gpu| gpu.to_string());
            vec![row.node.clone(), gpu, finding::hardware(row, language)]
        })
        .collect();
    table(&[words.node, "GPU", words.finding], &rows, words)
}

fn coverage(data: &ReportData, language: Language, zone: Tz) -> String {
    let words = language.words();
    if !data.sampled() {
        return format!("<p class=\"note\">{}</p>", words.no_samples);
    }
    let line = Line {
        name: words.seen.into(),
        colour: chart::GREEN,
        points: daily(data, zone, |day| day.coverage_ratio),
    };
    let picture = picture(chart::over_time(zone, &[line], &[], None, true), words);
    format!("<p>{}</p>{picture}", escape(&answer::coverage(data, language)))
}

fn money_known(data: &ReportData) -> bool {
    data.totals.cost_held.is_some() || data.totals.energy_kwh.is_some()
}

/// What was held and its energy, in money, kWh and carbon.
fn money(data: &ReportData, words: &Words) -> String {
    let totals = &data.totals;
    let amount = |cost: f64| format!("{} {}", number(cost), data.currency);
    let kwh = |energy: Option<f64>| energy.map(|kwh| format!("{} kWh", number(kwh)));
    // Without overhead the site's energy is the boards', and is not told twice.
    let pue = totals.energy_site_kwh.zip(totals.energy_kwh).map(|(site, boards)| site / boards);
    let pue = pue.filter(|pue| pue.is_finite() && (pue - 1.0).abs() > 1e-6);
    let site = pue.map_or_else(String::new, |pue| format!("{} {pue:.2}", words.energy_site));
    let lines = [
        (words.cost_held, totals.cost_held.map(amount)),
        (words.cost_idle, totals.cost_idle_held.map(amount)),
        (words.unpriced, totals.gpu_hours_unpriced.filter(|hours| *hours > 0.0).map(number)),
        (words.energy, kwh(totals.energy_kwh)),
        (site.as_str(), kwh(totals.energy_site_kwh.filter(|_| pue.is_some()))),
        (words.carbon, totals.carbon_kg.map(|kg| format!("{} kg CO₂e", number(kg)))),
    ];
    let rows: Vec<Vec<String>> =
        lines.into_iter().filter_map(|(name, value)| Some(vec![name.to_owned(), value?])).collect();
    table(&[words.what, words.amount], &rows, words)
}
