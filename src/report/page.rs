//! The report as one self-contained HTML page: no script, no outside file, prints on A4.

use chrono::TimeZone;
use chrono_tz::Tz;

use super::chart::{self, Band, Bar, Line, number};
use super::data::ReportData;
use super::words::{self, Answer, Language, Words, percent};

const STYLE: &str = include_str!("page.css");

/// Writes the page.
#[must_use]
pub(crate) fn html(data: &ReportData, language: Language) -> String {
    let words = language.words();
    let zone: Tz = data.timezone.parse().unwrap_or(Tz::UTC);
    let day =
        |at| zone.from_utc_datetime(&chrono::DateTime::naive_utc(&at)).format("%Y-%m-%d %H:%M");
    let mut page = format!(
        "<!doctype html><html lang=\"{}\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{}</title><style>{STYLE}</style></head><body><header><h1>{}</h1><p>{} – {} · {}</p></header><main>",
        words.code,
        words.title,
        words.title,
        day(data.from),
        day(data.until),
        escape(&data.timezone)
    );
    page.push_str("<section class=\"answers\">");
    for (question, answer) in [
        (words.question_used, words::used(data, language)),
        (words.question_by_whom, words::by_whom(data, language)),
        (words.question_healthy, words::healthy(data, language)),
    ] {
        page.push_str(&answer_card(question, &answer, ""));
    }
    page.push_str(&answer_card(words.decision, &words::decision(data, language), " decision"));
    page.push_str("</section>");
    for (title, body) in sections(data, words, zone) {
        page.push_str(&format!("<section><h2>{title}</h2>{body}</section>"));
    }
    page.push_str("</main></body></html>\n");
    page
}

fn answer_card(question: &str, answer: &Answer, class: &str) -> String {
    format!(
        "<div class=\"answer{class}\"><h2>{question}</h2><strong>{}</strong><p>{}</p></div>",
        escape(&answer.figure),
        escape(&answer.sentence)
    )
}

fn sections(data: &ReportData, words: &Words, zone: Tz) -> Vec<(&'static str, String)> {
    let w = data_words(words);
    let idle_known = data.totals.gpu_hours_idle_held.is_some();
    // A section of which nothing was asked is left out: an empty one would read as good news.
    [
        (true, w.utilisation, utilisation(data, words, zone)),
        (true, w.outlook, outlook(data, words, zone)),
        (true, w.teams, teams(data, words)),
        (idle_known, w.waste, waste(data, words)),
        (!data.health.is_empty(), w.health, health(data, words)),
        (!data.baselines.is_empty(), w.baselines, baselines(data, words)),
        (!data.nodes.is_empty(), w.nodes, nodes(data, words)),
        (!data.hardware.is_empty(), w.hardware, hardware(data, words)),
        (true, w.coverage, coverage(data, words, zone)),
    ]
    .into_iter()
    .filter_map(|(shown, title, body)| shown.then_some((title, body)))
    .collect()
}

/// The phrases live as long as the program, whichever language.
fn data_words(words: &Words) -> &'static Words {
    if words.code == "zh" { Language::Zh.words() } else { Language::En.words() }
}

fn daily(
    data: &ReportData,
    zone: Tz,
    value: impl Fn(&super::data::DayUse) -> Option<f64>,
) -> Vec<(chrono::DateTime<chrono::Utc>, Option<f64>)> {
    let noon = |day: &super::data::DayUse| {
        let local = day.day.and_hms_opt(12, 0, 0)?;
        zone.from_local_datetime(&local).earliest().map(|at| at.to_utc())
    };
    data.days.iter().filter_map(|day| Some((noon(day)?, value(day)))).collect()
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
    let picture = picture(chart::over_time(zone, &lines, &[], None, true), words);
    if data.sampled() {
        picture
    } else {
        format!("{picture}<p class=\"note\">{}</p>", words.no_samples)
    }
}

fn outlook(data: &ReportData, words: &Words, zone: Tz) -> String {
    let outlook = &data.outlook;
    let mut lines = vec![Line {
        name: words.demand.into(),
        colour: chart::BLUE,
        points: outlook.history.iter().map(|hour| (hour.at, Some(hour.gpus))).collect(),
    }];
    let mut bands = Vec::new();
    if !outlook.forecast.is_empty() {
        lines.push(Line {
            name: words.forecast_p50.into(),
            colour: chart::ORANGE,
            points: outlook.forecast.iter().map(|hour| (hour.at, Some(hour.gpus_p50))).collect(),
        });
        bands.push(Band {
            name: words.forecast_band.into(),
            colour: chart::ORANGE,
            points: outlook.forecast.iter().map(|h| (h.at, h.gpus_p10, h.gpus_p90)).collect(),
        });
    }
    let limit = outlook.capacity_gpus.map(|gpus| (words.capacity, gpus));
    let mut body = picture(chart::over_time(zone, &lines, &bands, limit, false), words);
    if outlook.forecast.is_empty() {
        body.push_str(&format!("<p class=\"note\">{}</p>", words.no_forecast));
    }
    body.push_str(&list(
        outlook.notes.iter().chain(&data.decision.expansion).chain(&data.decision.notes),
    ));
    body
}

fn teams(data: &ReportData, words: &Words) -> String {
    let bars: Vec<Bar> = data
        .teams
        .iter()
        .take(20)
        .map(|team| {
            let busy = team.gpu_hours_busy.unwrap_or(0.0).min(team.gpu_hours_held);
            let rest = (chart::BLUE_LIGHT, team.gpu_hours_held - busy);
            let mut text = number(team.gpu_hours_held);
            if let Some(cost) = team.cost {
                text.push_str(&format!(" · {} {}", number(cost), data.currency));
            }
            Bar { label: team.team.clone(), parts: vec![(chart::BLUE, busy), rest], text }
        })
        .collect();
    let legend = if data.teams.iter().any(|team| team.gpu_hours_busy.is_some()) {
        legend(&[(words.busy, "#1f5aa6"), (words.held, "#a9c4e6")])
    } else {
        legend(&[(words.held, "#a9c4e6")])
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
    if bars.is_empty() { sum } else { format!("{sum}{}", picture(chart::bars(&bars), words)) }
}

fn health(data: &ReportData, words: &Words) -> String {
    let counts: Vec<Vec<String>> = data
        .health
        .iter()
        .map(|row| vec![row.verdict.clone(), number(row.jobs as f64), number(row.gpu_hours)])
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
                job.verdict.clone(),
                number(job.gpu_hours),
                job.reason.clone(),
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
    picture(chart::bars(&bars), words)
}

fn hardware(data: &ReportData, words: &Words) -> String {
    let rows: Vec<Vec<String>> = data
        .hardware
        .iter()
        .map(|row| {
            let gpu = row.gpu.map_or_else(String::new, |gpu| gpu.to_string());
            vec![row.node.clone(), gpu, row.finding.clone()]
        })
        .collect();
    table(&[words.node, "GPU", words.finding], &rows, words)
}

fn coverage(data: &ReportData, words: &Words, zone: Tz) -> String {
    if !data.sampled() {
        return format!("<p class=\"note\">{}</p>", words.no_samples);
    }
    let line = Line {
        name: words.seen.into(),
        colour: chart::GREEN,
        points: daily(data, zone, |day| day.coverage_ratio),
    };
    picture(chart::over_time(zone, &[line], &[], None, true), words)
}

fn picture(svg: Option<String>, words: &Words) -> String {
    svg.map_or_else(
        || format!("<p class=\"note\">{}</p>", words.none_found),
        |svg| format!("<figure>{svg}</figure>"),
    )
}

fn legend(entries: &[(&str, &str)]) -> String {
    let entries: String = entries
        .iter()
        .map(|(name, colour)| format!("<span><i style=\"background:{colour}\"></i>{name}</span>"))
        .collect();
    format!("<p class=\"legend\">{entries}</p>")
}

fn list<'a>(lines: impl Iterator<Item = &'a String>) -> String {
    let items: String = lines.map(|line| format!("<li>{}</li>", escape(line))).collect();
    if items.is_empty() { items } else { format!("<ul>{items}</ul>") }
}

fn table(head: &[&str], rows: &[Vec<String>], words: &Words) -> String {
    if rows.is_empty() {
        return format!("<p class=\"note\">{}</p>", words.none_found);
    }
    let cells = |row: &[String], tag: &str| -> String {
        row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect()
    };
    let head: Vec<String> = head.iter().map(|text| (*text).to_owned()).collect();
    let body: String = rows.iter().map(|row| format!("<tr>{}</tr>", cells(row, "td"))).collect();
    format!("<table><thead><tr>{}</tr></thead><tbody>{body}</tbody></table>", cells(&head, "th"))
}

/// Text that came from outside, safe inside HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
