//! The three answers and the decision: one figure and one sentence each.

mod by_whom;
mod decision;
mod healthy;
mod used;

use super::chart::number;
use super::data::ReportData;
use super::markdown::local;
use super::words::{Language, percent};
pub(crate) use by_whom::by_whom;
pub(crate) use decision::decision;
pub(crate) use healthy::healthy;
pub(crate) use used::used;

/// One number and one sentence.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) figure: String,
    pub(crate) sentence: String,
}

/// A number of things in English.
pub(crate) fn plural(count: u64, thing: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {thing}{s}", number(count as f64))
}

/// That readings of the period are gone, and what that means for the figures.
pub(crate) fn dropped(data: &ReportData, language: Language) -> Option<String> {
    let dropped = data.readings_dropped?;
    let (before, at) = (local(data, dropped.before), local(data, dropped.at));
    Some(match language {
        Language::En => format!(
            "Readings before {before} were dropped on {} for their age. What was held is told of the whole period; what was busy or idle, the energy, the health of jobs and how much was seen are told of the time since.",
            &at[..10]
        ),
        Language::Zh => format!(
            "{before} 之前的采样已于 {} 按保留期限删除：占用按全部时段统计；忙碌、闲置、能耗、作业健康与观测覆盖只统计此后的时段。",
            &at[..10]
        ),
    })
}

/// How much of the time was seen, and what is missing.
pub(crate) fn coverage(data: &ReportData, language: Language) -> String {
    let (totals, words) = (&data.totals, language.words());
    if !data.sampled() {
        return words.no_samples.to_owned();
    }
    let seen = percent(totals.coverage_ratio, words);
    let hours = number(totals.gpu_hours_seen.unwrap_or(0.0));
    let missed = totals.gaps.filter(|gaps| *gaps > 0).map(|gaps| {
        let (hours, longest) = (
            number(totals.gpu_hours_gaps.unwrap_or(0.0)),
            number((totals.hours_longest_gap.unwrap_or(0.0) * 10.0).round() / 10.0),
        );
        match language {
            Language::En => {
                let gaps = plural(gaps, "gap");
                format!(" Missing: {hours} GPU-hours in {gaps}; the longest is {longest} h.")
            }
            Language::Zh => {
                format!("{gaps} 处缺口共缺 {hours} GPU 小时，最长 {longest} 小时。")
            }
        }
    });
    let missed = missed.unwrap_or_default();
    match language {
        Language::En => format!(
            "{seen} of the time in which GPUs were expected to report was seen: {hours} GPU-hours.{missed}"
        ),
        Language::Zh => format!("应报告的时间中 {seen} 有观测，共 {hours} GPU 小时。{missed}"),
    }
}

/// A number of GPUs with one digit behind the point.
pub(crate) fn tenths(gpus: f64) -> String {
    number((gpus * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests;
