//! What to do and why, in one figure and one sentence or two. Where there are several pools, each
//! number is a sum over a column of their table.

mod short;

use super::super::chart::number;
use super::super::data::{Action, ReportData};
use super::super::words::Language;
use super::{Answer, tenths};
use short::stand;

/// What to do and why.
pub(crate) fn decision(data: &ReportData, language: Language) -> Answer {
    let (words, choice) = (language.words(), &data.decision);
    let (figure, sentence) = match (choice.action, language) {
        (Action::Buy, _) => (words.buy, short::buy(data, language)),
        (Action::CleanUp, _) => (words.clean_up, clean_up(data, language)),
        (Action::Watch, _) => (words.watch, short::watch(data, language)),
        (Action::Scale, _) => (words.scale, scale(data, language)),
        (Action::Undecided, _) => (words.undecided, undecided(data, language)),
        (Action::Nothing, _) => (words.nothing, whole(stand(data, language), language)),
    };
    Answer { figure: figure.to_owned(), sentence }
}

/// What is held idle, and what giving it back comes to.
fn clean_up(data: &ReportData, language: Language) -> String {
    let choice = &data.decision;
    let idle = number(data.totals.gpu_hours_idle_held.unwrap_or(0.0));
    let missing = choice.planned && choice.gpus_missing.is_some_and(|gpus| gpus > 0.0);
    let back = choice.cleans().filter(|_| !missing).map(tenths);
    let idle = match (back, language) {
        (None, Language::En) => format!("Jobs held {idle} GPU-hours while idle"),
        (None, Language::Zh) => format!("作业占而不用 {idle} GPU 小时"),
        (Some(back), Language::En) => format!(
            "Jobs held {idle} GPU-hours while idle. Given back, they are {back} GPUs on average \
             over the last weeks"
        ),
        (Some(back), Language::Zh) => {
            format!("作业占而不用 {idle} GPU 小时。收回后，按最近几周平均相当于 {back} 块 GPU")
        }
    };
    match (choice.planned, missing, language) {
        (false, _, Language::En) => {
            format!("{idle} (no plan could be made: the reason stands below).")
        }
        (false, _, Language::Zh) => format!("{idle}（无法给出规划，原因见下）。"),
        (true, false, Language::En) => format!("{idle}. {}.", stand(data, language)),
        (true, false, Language::Zh) => format!("{idle}。{}。", stand(data, language)),
        (true, true, Language::En) => format!("{idle}. {}", short::cleaned(data, language)),
        (true, true, Language::Zh) => format!("{idle}。{}", short::cleaned(data, language)),
    }
}

/// What to switch GPUs by.
fn scale(data: &ReportData, language: Language) -> String {
    let stand = stand(data, language);
    let tested = data.outlook.tested.as_ref();
    match (tested.and_then(|tested| tested.warning(language)), language) {
        (None, Language::En) => {
            format!("{stand} and swings with the hours: switch GPUs on and off with the forecast.")
        }
        (None, Language::Zh) => format!("{stand}，且随时段起伏：按预测开关 GPU。"),
        (Some(why), Language::En) => format!(
            "{stand} and swings with the hours, so GPUs could be switched off. The forecast is no \
             ground for that: {why}. Do not switch by it alone: do so by hand or by the hours of \
             the week, with a headroom that holds the highest of the last weeks."
        ),
        (Some(why), Language::Zh) => format!(
            "{stand}，且随时段起伏，部分 GPU 可以关闭。但预测不足为据：{why}。不要只按预测开关：可人工或按每周时段开关，并留出容纳最近几周高峰的余量。"
        ),
    }
}

/// A clause as a sentence.
fn whole(clause: String, language: Language) -> String {
    clause + if language == Language::Zh { "。" } else { "." }
}

/// Why there is no decision, and how demand stands against capacity today.
fn undecided(data: &ReportData, language: Language) -> String {
    let (words, outlook) = (language.words(), &data.outlook);
    let floor = words.floor_of(outlook.capacity_is_floor());
    let hours = outlook.history.len().min(24);
    let over = match (language, hours) {
        (Language::En, 24) => "day".to_owned(),
        (Language::En, 1) => "hour".to_owned(),
        (Language::En, hours) => format!("{hours} hours"),
        (Language::Zh, 24) => "一天".to_owned(),
        (Language::Zh, hours) => format!(" {hours} 小时"),
    };
    let why = match language {
        Language::En => "No plan could be made (the reason stands below).",
        Language::Zh => "无法给出规划（原因见下）。",
    };
    let stand = match (language, data.decision.demand_gpus_last_day, outlook.capacity_gpus) {
        (_, None, _) => String::new(),
        (Language::En, Some(demand), Some(capacity)) => format!(
            " Demand over the last {over} was {} GPUs on average against {}{floor}.",
            tenths(demand),
            tenths(capacity)
        ),
        (Language::En, Some(demand), None) => {
            format!(" Demand over the last {over} was {} GPUs on average.", tenths(demand))
        }
        (Language::Zh, Some(demand), Some(capacity)) => format!(
            "最近{over}平均需求为 {} 块 GPU，容量为 {} 块{floor}。",
            tenths(demand),
            tenths(capacity)
        ),
        (Language::Zh, Some(demand), None) => {
            format!("最近{over}平均需求为 {} 块 GPU。", tenths(demand))
        }
    };
    format!("{why}{stand}")
}
