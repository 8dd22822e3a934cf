//! The report as Markdown, for a merge request, a chat or a wiki.

use chrono_tz::Tz;

use super::answer;
use super::chart::number;
use super::data::{Local, PoolDecision, ReportData};
use super::finding;
use super::words::{Language, Words};

/// Writes the report.
#[must_use]
pub(crate) fn markdown(data: &ReportData, language: Language) -> String {
    let words = language.words();
    let mut text = format!(
        "# {}\n\n{} – {} ({})\n\n",
        words.title,
        local(data, data.from),
        local(data, data.until),
        data.timezone
    );
    if let Some(dropped) = answer::dropped(data, language) {
        text.push_str(&format!("{}\n\n", cell(&dropped)));
    }
    for (question, answer) in [
        (words.question_used, answer::used(data, language)),
        (words.question_by_whom, answer::by_whom(data, language)),
        (words.question_healthy, answer::healthy(data, language)),
        (words.decision, answer::decision(data, language)),
    ] {
        text.push_str(&format!(
            "- **{question}** **{}**. {}\n",
            cell(&answer.figure),
            cell(&answer.sentence)
        ));
    }
    if !data.holders().is_empty() {
        teams(&mut text, data, words);
    }
    if !data.health.is_empty() {
        text.push_str(&format!("\n## {}\n\n", words.health));
    }
    for row in &data.health {
        let jobs = number(row.jobs as f64);
        text.push_str(&format!(
            "- {}\n",
            match language {
                Language::En => format!(
                    "{}: {}, {} GPU-hours",
                    row.verdict,
                    answer::plural(row.jobs, "job"),
                    number(row.gpu_hours)
                ),
                Language::Zh => format!(
                    "{}：{jobs} 个作业，{} GPU 小时",
                    finding::verdict(&row.verdict, language),
                    number(row.gpu_hours)
                ),
            }
        ));
    }
    text.push_str(&format!("\n## {}\n\n", words.outlook));
    if !data.decision.pools.is_empty() {
        pools(&mut text, data, language);
    }
    for note in &data.outlook.notes {
        text.push_str(&format!("- {}\n", cell(&note.text(language))));
    }
    if !data.hardware.is_empty() {
        text.push_str(&format!("\n## {}\n\n", words.hardware));
        for gpu in &data.hardware {
            let index = gpu.gpu.map_or_else(String::new, |gpu| format!(" GPU {gpu}"));
            text.push_str(&format!(
                "- {}{index}: {}\n",
                cell(&gpu.node),
                cell(&finding::hardware(gpu, language))
            ));
        }
    }
    text.push_str(&format!("\n## {}\n\n{}\n", words.coverage, answer::coverage(data, language)));
    text
}

fn teams(text: &mut String, data: &ReportData, words: &Words) {
    let by_user = data.teams_by == "user";
    let (title, name) = if by_user { (words.users, words.user) } else { (words.teams, words.team) };
    text.push_str(&format!("\n## {title}\n\n"));
    let known = data.teams.iter().any(|team| team.gpu_hours_busy.is_some());
    let priced = data.teams.iter().any(|team| team.cost.is_some_and(|cost| cost > 0.0));
    let hours_of = |what: &str| match words.code {
        "zh" => format!("{what}（{}）", words.gpu_hours),
        _ => format!("{what}, {}", words.gpu_hours),
    };
    let mut head = vec![name.to_owned(), hours_of(words.held)];
    if known {
        head.extend([hours_of(words.busy), hours_of(words.idle_held)]);
    }
    if priced {
        head.push(data.currency.clone());
    }
    text.push_str(&format!("| {} |\n|---|{}\n", head.join(" | "), "---:|".repeat(head.len() - 1)));
    let hours = |value: Option<f64>| value.map_or_else(|| words.unknown.to_owned(), number);
    for team in &data.teams {
        let mut row = vec![cell(&team.team), number(team.gpu_hours_held)];
        if known {
            row.extend([hours(team.gpu_hours_busy), hours(team.gpu_hours_idle_held)]);
        }
        if priced {
            row.push(hours(team.cost));
        }
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
}

/// The pools that the decision is the sum of.
fn pools(text: &mut String, data: &ReportData, language: Language) {
    let words = language.words();
    let zone: Tz = data.timezone.parse().unwrap_or(Tz::UTC);
    let cleaned = data.decision.cleans().is_some();
    let head = PoolDecision::head(words, cleaned);
    let right = "---:|".repeat(head.len() - 2);
    text.push_str(&format!("| {} |\n|---|{right}---|\n", head.join(" | ")));
    for pool in &data.decision.pools {
        let cells: Vec<String> =
            pool.cells(cleaned, language, zone).iter().map(|text| cell(text)).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.push('\n');
}

/// An instant on the clock of the report's zone.
pub(super) fn local(data: &ReportData, at: Local) -> String {
    let zone: Tz = data.timezone.parse().unwrap_or(Tz::UTC);
    at.with_timezone(&zone).format("%Y-%m-%d %H:%M").to_string()
}

/// Text that came from outside, safe inside Markdown and the HTML that is made of it.
fn cell(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '|' | '[' | ']' | '`' | '*' | '\\' => safe.extend(['\\', letter]),
            letter if letter.is_control() => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}
