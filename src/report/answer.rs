//! The three answers and the decision: one figure and one sentence each.

mod by_whom;
mod healthy;
mod used;

use loadline_forecast::{Meets, PlanSettings};

use super::chart::number;
use super::data::{Action, Local, ReportData};
use super::planned::{self, LoadBasis};
use super::words::{Language, percent};
pub(crate) use by_whom::by_whom;
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

/// What to do and why.
pub(crate) fn decision(data: &ReportData, language: Language) -> Answer {
    let (words, choice) = (language.words(), &data.decision);
    let zone: chrono_tz::Tz = data.timezone.parse().unwrap_or(chrono_tz::Tz::UTC);
    let day = |at: Local| at.with_timezone(&zone).format("%Y-%m-%d").to_string();
    let gpus = number(choice.gpus_to_add.unwrap_or(0.0).ceil());
    let back = choice.gpus_reclaimable.filter(|gpus| *gpus >= 0.05).map(tenths);
    let load = data.outlook.load_basis.unwrap_or(LoadBasis::Offered).subject(language);
    let idle = number(data.totals.gpu_hours_idle_held.unwrap_or(0.0));
    let (figure, sentence) = match (choice.action, language) {
        (Action::Buy, Language::En) => {
            let when = match choice.full_at {
                _ if choice.full_already => "is at capacity already".to_owned(),
                Some(at) => format!("meets capacity in the week of {}", day(at)),
                None => "meets capacity".to_owned(),
            };
            let order = match choice.order_by {
                Some(at) if !choice.order_late => format!("order them by {}", day(at)),
                _ => "order them now, the lead time is longer than what is left".to_owned(),
            };
            let first = back.map_or_else(String::new, |back| {
                format!(" Take back first what jobs hold while idle, {back} GPUs on average: that is counted here.")
            });
            (
                words.buy,
                format!("{load} {when}; {gpus} more GPUs would let them start at once in nine hours of ten: {order}.{first}"),
            )
        }
        (Action::Buy, Language::Zh) => {
            let when = match choice.full_at {
                _ if choice.full_already => "已达到容量".to_owned(),
                Some(at) => format!("将在 {} 当周达到容量", day(at)),
                None => "将达到容量".to_owned(),
            };
            let order = match choice.order_by {
                Some(at) if !choice.order_late => format!("最迟 {} 下单", day(at)),
                _ => "剩余时间已短于采购周期，应立即下单".to_owned(),
            };
            let first = back.map_or_else(String::new, |back| {
                format!("应先收回占而不用的部分（平均 {back} 块 GPU），此处已计入。")
            });
            (
                words.buy,
                format!("{load}{when}；再增加 {gpus} 块 GPU，可使十分之九的时段作业无需排队：{order}。{first}"),
            )
        }
        (Action::CleanUp, Language::En) => {
            let frees = back.map_or_else(String::new, |back| {
                format!(" Given back, they are {back} GPUs on average over the last weeks")
            });
            let then = match (choice.planned, choice.gpus_missing.filter(|gpus| *gpus > 0.0)) {
                (false, _) => " (no plan could be made: the reason stands below).".to_owned(),
                (true, Some(missing)) => format!(
                    ", which covers the shortfall of {} GPUs ahead: nothing needs to be bought.",
                    number(missing)
                ),
                (true, None) => ", and the load stays below capacity.".to_owned(),
            };
            (words.clean_up, format!("Jobs held {idle} GPU-hours while idle.{frees}{then}"))
        }
        (Action::CleanUp, Language::Zh) => {
            let frees = back.map_or_else(String::new, |back| {
                format!("收回后，按最近几周平均相当于 {back} 块 GPU")
            });
            let then = match (choice.planned, choice.gpus_missing.filter(|gpus| *gpus > 0.0)) {
                (false, _) => "（无法给出规划，原因见下）。".to_owned(),
                (true, Some(missing)) => {
                    format!("，足以弥补未来 {} 块的缺口，无需采购。", number(missing))
                }
                (true, None) => "，且负载低于容量。".to_owned(),
            };
            (words.clean_up, format!("作业占而不用 {idle} GPU 小时。{frees}{then}"))
        }
        (Action::Watch, _) => (words.watch, watch(data, language)),
        (Action::Scale, Language::En) => (
            words.scale,
            "The load stays below capacity and swings with the hours: switch GPUs on and off with the forecast.".into(),
        ),
        (Action::Scale, Language::Zh) => {
            (words.scale, "需求低于容量且随时段起伏：按预测开关 GPU。".into())
        }
        (Action::Undecided, _) => (words.undecided, undecided(data, language)),
        (Action::Nothing, Language::En) => (
            words.nothing,
            format!("{load} stays below capacity within the horizon."),
        ),
        (Action::Nothing, Language::Zh) => {
            (words.nothing, format!("规划期内{load}低于容量。"))
        }
    };
    Answer { figure: figure.to_owned(), sentence }
}

/// What lies ahead, and why that is no ground to buy yet.
fn watch(data: &ReportData, language: Language) -> String {
    let choice = &data.decision;
    let load = data.outlook.load_basis.unwrap_or(LoadBasis::Offered).subject(language);
    let zone: chrono_tz::Tz = data.timezone.parse().unwrap_or(chrono_tz::Tz::UTC);
    let meets = match choice.full_at {
        Some(at) if !choice.full_already => Meets::At { week_ms: at.timestamp_millis() },
        _ => Meets::Already,
    };
    let high_ratio = 1.0 - PlanSettings::default().level.ratio();
    let earliest = planned::earliest(meets, choice.trend, high_ratio, zone, language);
    let why = choice.wait.map_or("", |wait| planned::wait(wait, language));
    let missing = choice.gpus_missing.unwrap_or(0.0);
    match language {
        Language::En => format!(
            "{load} may come to lack {} ({earliest}), but {why}: watch, and do not order yet.",
            plural(missing as u64, "GPU")
        ),
        Language::Zh => format!(
            "{load}可能缺少 {} 块 GPU（{earliest}），但{why}：继续观察，暂不下单。",
            number(missing)
        ),
    }
}

/// A number of GPUs with one digit behind the point.
fn tenths(gpus: f64) -> String {
    number((gpus * 10.0).round() / 10.0)
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

#[cfg(test)]
mod tests;
