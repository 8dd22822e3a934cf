//! By whom: by team, or by user where no job names a team.

use super::super::chart::number;
use super::super::data::ReportData;
use super::super::lack::Lack;
use super::super::words::{Language, percent};
use super::{Answer, plural};

/// Who held most, and what share.
pub(crate) fn by_whom(data: &ReportData, language: Language) -> Answer {
    let words = language.words();
    let all: f64 = data.teams.iter().map(|team| team.gpu_hours_held).sum();
    let first = data.holders().first().filter(|_| all > 0.0);
    let Some(first) = first else {
        return Answer { figure: words.unknown.into(), sentence: nobody(data, all, language) };
    };
    let share = percent(Some(first.gpu_hours_held / all), words);
    let hours = number(first.gpu_hours_held);
    let jobs = data.totals.jobs;
    let sentence = match language {
        Language::En => {
            let holders = plural(data.teams.len() as u64, &data.teams_by);
            let jobs = jobs.map_or_else(
                || "; no ledger tells the jobs".to_owned(),
                |jobs| format!(" and {}", plural(jobs, "job")),
            );
            let unnamed = match data.teams_by.as_str() {
                "user" => " No job names its team.",
                _ => "",
            };
            format!(
                "{share} of all that was held, {hours} GPU-hours, among {holders}{jobs}.{unnamed}"
            )
        }
        Language::Zh => {
            let holders = match data.teams_by.as_str() {
                "user" => format!("作业没有标明团队；{} 个用户", data.teams.len()),
                _ => format!("{} 个团队", data.teams.len()),
            };
            let jobs =
                jobs.map_or_else(String::new, |jobs| format!("、{} 个作业", number(jobs as f64)));
            format!("{holders}{jobs}中占用最多：占全部的 {share}，共 {hours} GPU 小时。")
        }
    };
    Answer { figure: first.team.clone(), sentence }
}

/// Why nobody can be named.
fn nobody(data: &ReportData, held: f64, language: Language) -> String {
    let counted = data.totals.jobs.is_none();
    match (language, held > 0.0, &data.lack_of_demand) {
        (Language::En, true, _) if counted => "Counts tell how many GPUs were held, not by whom: a ledger would (loadline import sacct, or jobs).".to_owned(),
        (Language::Zh, true, _) if counted => "计数只给出占用的 GPU 数，不知道由谁占用；可导入作业账目（loadline import sacct 或 jobs）。".to_owned(),
        (Language::En, true, _) => "No job names its team or its user.".to_owned(),
        (Language::Zh, true, _) => "作业没有标明团队或用户。".to_owned(),
        (_, false, Some(Lack::Ledger)) => language.words().no_ledger.to_owned(),
        (Language::En, false, Some(_)) => "Nobody is known to have held a GPU.".to_owned(),
        (Language::Zh, false, Some(_)) => "不知道有谁占用过 GPU。".to_owned(),
        (Language::En, false, None) => "Nobody held a GPU in this period.".to_owned(),
        (Language::Zh, false, None) => "本期没有人占用 GPU。".to_owned(),
    }
}
