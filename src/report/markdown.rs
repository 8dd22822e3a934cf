//! The report as Markdown, for a merge request, a chat or a wiki.

use super::answer;
use super::chart::number;
use super::data::ReportData;
use super::finding;
use super::words::Language;

/// Writes the report.
#[must_use]
pub(crate) fn markdown(data: &ReportData, language: Language) -> String {
    let words = language.words();
    let mut text = format!(
        "# {}\n\n{} – {} ({})\n\n",
        words.title,
        data.from.to_rfc3339(),
        data.until.to_rfc3339(),
        data.timezone
    );
    for (question, answer) in [
        (words.question_used, answer::used(data, language)),
        (words.question_by_whom, answer::by_whom(data, language)),
        (words.question_healthy, answer::healthy(data, language)),
        (words.decision, answer::decision(data, language)),
    ] {
        text.push_str(&format!("- **{question}** **{}**. {}\n", answer.figure, answer.sentence));
    }
    text.push_str(&format!("\n## {}\n\n", words.teams));
    text.push_str(&format!(
        "| {} | {} | {} | {} |\n|---|---:|---:|---:|\n",
        words.team, words.held, words.busy, words.idle_held
    ));
    let hours = |value: Option<f64>| value.map_or_else(|| words.unknown.to_owned(), number);
    for team in &data.teams {
        text.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            cell(&team.team),
            number(team.gpu_hours_held),
            hours(team.gpu_hours_busy),
            hours(team.gpu_hours_idle_held)
        ));
    }
    text.push_str(&format!("\n## {}\n\n", words.health));
    for row in &data.health {
        let jobs = number(row.jobs as f64);
        text.push_str(&format!(
            "- {}: {jobs} {}, {} {}\n",
            finding::verdict(&row.verdict, language),
            words.jobs,
            number(row.gpu_hours),
            words.gpu_hours
        ));
    }
    text.push_str(&format!("\n## {}\n\n", words.outlook));
    for note in &data.outlook.notes {
        text.push_str(&format!("- {}\n", note.text(language)));
    }
    if !data.hardware.is_empty() {
        text.push_str(&format!("\n## {}\n\n", words.hardware));
        for gpu in &data.hardware {
            let index = gpu.gpu.map_or_else(String::new, |gpu| format!(" GPU {gpu}"));
            text.push_str(&format!(
                "- {}{index}: {}\n",
                gpu.node,
                finding::hardware(gpu, language)
            ));
        }
    }
    text.push_str(&format!("\n## {}\n\n{}\n", words.coverage, answer::coverage(data, language)));
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
