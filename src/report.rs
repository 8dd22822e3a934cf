//! A capacity report that can be handed over: three answers, a decision, and what they rest on.

mod answer;
mod chart;
pub mod data;
mod finding;
pub mod headroom;
pub mod lack;
mod markdown;
pub mod note;
mod page;
pub mod planned;
pub mod tested;
mod words;

pub(crate) use answer::plural;
pub use words::Language;
pub(crate) use words::signed_percent;

use data::ReportData;

/// Form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// One self-contained page.
    #[default]
    Html,
    /// Markdown.
    Md,
    /// The figures as JSON.
    Json,
}

/// Writes `data` in `format` and `language`.
///
/// # Errors
/// A figure that JSON cannot hold, which the data's construction rules out.
pub fn render(
    data: &ReportData,
    format: Format,
    language: Language,
) -> Result<String, serde_json::Error> {
    Ok(match format {
        Format::Html => page::html(data, language),
        Format::Md => markdown::markdown(data, language),
        Format::Json => serde_json::to_string_pretty(data)? + "\n",
    })
}
