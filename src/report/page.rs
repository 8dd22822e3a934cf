//! The report as one self-contained HTML page: no script, no outside file, prints on A4.

use chrono_tz::Tz;

mod day;
mod sections;

use super::answer::{self, Answer};
use super::data::ReportData;
use super::markdown::local;
use super::words::{Language, Words};

const STYLE: &str = include_str!("page.css");

/// Writes the page.
#[must_use]
pub(crate) fn html(data: &ReportData, language: Language) -> String {
    let words = language.words();
    let zone: Tz = data.timezone.parse().unwrap_or(Tz::UTC);
    let mut page = format!(
        "<!doctype html><html lang=\"{}\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{}</title><style>{STYLE}</style></head><body><header><h1>{}</h1><p>{} – {} · {}</p></header><main>",
        words.code,
        words.title,
        words.title,
        local(data, data.from),
        local(data, data.until),
        escape(&data.timezone)
    );
    if let Some(dropped) = answer::dropped(data, language) {
        page.push_str(&format!("<p class=\"note\">{}</p>", escape(&dropped)));
    }
    page.push_str("<section class=\"answers\">");
    for (question, answer) in [
        (words.question_used, answer::used(data, language)),
        (words.question_by_whom, answer::by_whom(data, language)),
        (words.question_healthy, answer::healthy(data, language)),
    ] {
        page.push_str(&answer_card(question, &answer, ""));
    }
    page.push_str(&answer_card(words.decision, &answer::decision(data, language), " decision"));
    page.push_str("</section>");
    for (title, body) in sections::all(data, language, zone) {
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

fn picture(svg: Option<String>, words: &Words) -> String {
    svg.map_or_else(
        || format!("<p class=\"note\">{}</p>", words.none_found),
        |svg| format!("<figure>{svg}</figure>"),
    )
}

fn list(lines: impl Iterator<Item = String>) -> String {
    let items: String = lines.map(|line| format!("<li>{}</li>", escape(&line))).collect();
    if items.is_empty() { items } else { format!("<ul>{items}</ul>") }
}

fn table(head: &[&str], rows: &[Vec<String>], words: &Words) -> String {
    if rows.is_empty() {
        return format!("<p class=\"note\">{}</p>", words.none_found);
    }
    // A column of numbers is set to the right.
    let numeric: Vec<bool> = (0..head.len())
        .map(|column| {
            let number = |cell: &String| {
                cell == "–" || cell.starts_with(|c: char| c.is_ascii_digit() || c == '<')
            };
            column > 0 && rows.iter().filter_map(|row| row.get(column)).all(number)
        })
        .collect();
    let cells = |row: &[String], tag: &str| -> String {
        let cell = |((cell, numeric), title): ((&String, &bool), &&str)| {
            let class = if *numeric { " class=\"n\"" } else { "" };
            // Stands in front of the cell where a narrow screen stacks the cells of a row.
            let title = match tag {
                "td" => format!(" data-title=\"{}\"", escape(title)),
                _ => String::new(),
            };
            format!("<{tag}{class}{title}>{}</{tag}>", escape(cell))
        };
        row.iter().zip(&numeric).zip(head).map(cell).collect()
    };
    let titles: Vec<String> = head.iter().map(|text| (*text).to_owned()).collect();
    let body: String = rows.iter().map(|row| format!("<tr>{}</tr>", cells(row, "td"))).collect();
    format!(
        "<div class=\"scroll\"><table{}><thead><tr>{}</tr></thead><tbody>{body}</tbody></table></div>",
        if head.len() > 5 { " class=\"many\"" } else { " class=\"few\"" },
        cells(&titles, "th")
    )
}

/// Text that came from outside, safe inside HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
