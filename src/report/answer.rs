//! The three answers and the decision: one figure and one sentence each.

use std::collections::BTreeSet;

use super::chart::number;
use super::data::{Action, ReportData};
use super::words::{Language, duration, percent};

/// One number and one sentence.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) figure: String,
    pub(crate) sentence: String,
}

/// Below this share of the time seen, how busy the GPUs were is no headline.
const SEEN_ENOUGH_RATIO: f64 = 0.5;

/// How much is used. Where no ledger tells who held what, only what was read is told.
pub(crate) fn used(data: &ReportData, language: Language) -> Answer {
    let (totals, words) = (&data.totals, language.words());
    let held = percent(totals.held_ratio(), words);
    let busy = percent(totals.busy_ratio(), words);
    let seen = percent(totals.coverage_ratio, words);
    let hours = number(totals.gpu_hours_held);
    let gpus = match (totals.gpus_installed, language) {
        (None, _) => words.unknown.to_owned(),
        (Some(gpus), Language::En) => {
            format!("{}{}", tenths(gpus), words.floor_of(totals.capacity_is_floor()))
        }
        (Some(gpus), Language::Zh) => {
            format!("{} 块 GPU{}", tenths(gpus), words.floor_of(totals.capacity_is_floor()))
        }
    };
    let ledger = totals.held_ratio().is_some();
    let sentence = match (language, data.sampled(), ledger) {
        (Language::En, true, true) => format!(
            "Of {gpus} GPUs, jobs held {held} of the time ({hours} GPU-hours). Of what was read, {busy} was busy; {seen} of the time was seen."
        ),
        (Language::En, true, false) => format!(
            "Of what was read, {busy} was busy; {seen} of the time was seen. No ledger tells what jobs held."
        ),
        (Language::En, false, _) => format!(
            "Jobs held {hours} GPU-hours, {held} of {gpus} GPUs; no samples tell how busy they were."
        ),
        (Language::Zh, true, true) => format!(
            "{gpus} 中，作业占用了 {held} 的时间（{hours} GPU 小时）；已观测部分忙碌 {busy}，观测覆盖 {seen}。"
        ),
        (Language::Zh, true, false) => {
            format!("已观测部分忙碌 {busy}，观测覆盖 {seen}；没有作业账目，不知道作业占用了多少。")
        }
        (Language::Zh, false, _) => {
            format!("作业占用 {hours} GPU 小时，为 {gpus} 的 {held}；没有采样，忙碌程度未知。")
        }
    };
    let enough = totals.coverage_ratio.is_some_and(|ratio| ratio >= SEEN_ENOUGH_RATIO);
    let figure = if data.sampled() && (enough || !ledger) { busy } else { held };
    Answer { figure, sentence }
}

/// By whom: by team, or by user where no job names a team.
pub(crate) fn by_whom(data: &ReportData, language: Language) -> Answer {
    let words = language.words();
    let Some(first) = data.teams.first() else {
        return Answer { figure: words.unknown.into(), sentence: words.no_ledger.into() };
    };
    let all: f64 = data.teams.iter().map(|team| team.gpu_hours_held).sum();
    let share = percent((all > 0.0).then(|| first.gpu_hours_held / all), words);
    let name = &first.team;
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
                "{name} held most, {hours} GPU-hours or {share} of all, among {holders}{jobs}.{unnamed}"
            )
        }
        Language::Zh => {
            let holders = match data.teams_by.as_str() {
                "user" => format!("作业没有标明团队；{} 个用户", data.teams.len()),
                _ => format!("{} 个团队", data.teams.len()),
            };
            let jobs =
                jobs.map_or_else(String::new, |jobs| format!("、{} 个作业", number(jobs as f64)));
            format!("{holders}{jobs}中，{name} 占用最多：{hours} GPU 小时，占全部的 {share}。")
        }
    };
    Answer { figure: share, sentence }
}

/// A number of things in English.
pub(crate) fn plural(count: u64, thing: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {thing}{s}", number(count as f64))
}

/// Whether it is healthy.
pub(crate) fn healthy(data: &ReportData, language: Language) -> Answer {
    let words = language.words();
    let judged = |row: &&super::data::VerdictUse| row.verdict != "not-enough-data";
    let all: f64 = data.health.iter().filter(judged).map(|row| row.gpu_hours).sum();
    let well: f64 =
        data.health.iter().filter(|row| row.verdict == "healthy").map(|row| row.gpu_hours).sum();
    let idle = data.totals.gpu_hours_idle_held;
    if all <= 0.0 {
        let wait = data.totals.queue_time_s_p50.map(duration);
        let sentence = match (language, wait) {
            (Language::En, Some(wait)) => format!(
                "No job can be judged: no reading of this period belongs to one. Half of the jobs waited no longer than {wait}."
            ),
            (Language::Zh, Some(wait)) => {
                format!("本期没有属于作业的采样，无法评判；半数作业排队不超过 {wait}。")
            }
            (Language::En, None) => {
                "No job can be judged: none is known in this period.".to_owned()
            }
            (Language::Zh, None) => "本期没有作业可供评判。".to_owned(),
        };
        return Answer { figure: words.unknown.into(), sentence };
    }
    let share = percent(Some(well / all), words);
    let idle = idle.map_or_else(|| words.unknown.into(), number);
    let sick: BTreeSet<_> = data.hardware.iter().map(|gpu| (&gpu.node, gpu.gpu)).collect();
    let gpus = sick.len();
    let sentence = match language {
        Language::En => format!(
            "{share} of the judged GPU-hours belong to healthy jobs; {idle} GPU-hours were held while idle, and {} a look.",
            match gpus {
                1 => "1 GPU needs".to_owned(),
                gpus => format!("{gpus} GPUs need"),
            }
        ),
        Language::Zh => format!(
            "已评判的 GPU 小时中 {share} 属于健康作业；{idle} GPU 小时占而不用，{gpus} 块 GPU 需要检查。"
        ),
    };
    Answer { figure: share, sentence }
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
    let day =
        |at: chrono::DateTime<chrono::Utc>| at.with_timezone(&zone).format("%Y-%m-%d").to_string();
    let gpus = number(choice.gpus_to_add.unwrap_or(0.0).ceil());
    let back = choice.gpus_reclaimable.filter(|gpus| *gpus >= 0.05).map(tenths);
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
                format!("The load that jobs offer {when}; {gpus} more GPUs would let them start at once in nine hours of ten: {order}.{first}"),
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
                format!("作业负载{when}；再增加 {gpus} 块 GPU，可使十分之九的时段作业无需排队：{order}。{first}"),
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
            "The load that jobs offer stays below capacity within the horizon.".into(),
        ),
        (Action::Nothing, Language::Zh) => {
            (words.nothing, "规划期内作业负载低于容量。".into())
        }
    };
    Answer { figure: figure.to_owned(), sentence }
}

/// A number of GPUs with one digit behind the point.
fn tenths(gpus: f64) -> String {
    number((gpus * 10.0).round() / 10.0)
}

/// Why there is no decision, and how demand stands against capacity today.
fn undecided(data: &ReportData, language: Language) -> String {
    let stand = data.decision.demand_gpus_last_day.zip(data.outlook.capacity_gpus);
    match (language, stand) {
        (Language::En, Some((demand, capacity))) => format!(
            "No plan could be made (the reason stands below). Demand over the last day was {} GPUs against {}{}.",
            number(demand),
            number(capacity),
            Language::En.words().floor_of(data.totals.capacity_is_floor())
        ),
        (Language::Zh, Some((demand, capacity))) => format!(
            "无法给出规划（原因见下）。最近一天需求为 {} 块 GPU，容量为 {} 块{}。",
            number(demand),
            number(capacity),
            Language::Zh.words().floor_of(data.totals.capacity_is_floor())
        ),
        (Language::En, None) => "No plan could be made (the reason stands below).".to_owned(),
        (Language::Zh, None) => "无法给出规划（原因见下）。".to_owned(),
    }
}
