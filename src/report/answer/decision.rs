//! What to do and why, in one figure and one sentence or two.

use loadline_forecast::{Meets, PlanSettings};

use super::super::chart::number;
use super::super::data::{Action, Local, ReportData};
use super::super::planned::{self, LoadBasis, named};
use super::super::words::Language;
use super::{Answer, plural, tenths};

/// What to do and why.
pub(crate) fn decision(data: &ReportData, language: Language) -> Answer {
    let (words, choice) = (language.words(), &data.decision);
    let back = choice.gpus_reclaimable.filter(|gpus| *gpus >= 0.05).map(tenths);
    let load = data.outlook.load_basis.unwrap_or(LoadBasis::Offered).subject(language);
    let left = choice.gpus_missing_after_clean_up.filter(|gpus| *gpus > 0.0);
    let idle = number(data.totals.gpu_hours_idle_held.unwrap_or(0.0));
    let (figure, sentence) = match (choice.action, language) {
        (Action::Buy, _) => (words.buy, buy(data, language)),
        (Action::CleanUp, Language::En) => {
            let frees = back.map_or_else(String::new, |back| {
                format!(" Given back, they are {back} GPUs on average over the last weeks")
            });
            let then = match (choice.planned, choice.gpus_missing.filter(|gpus| *gpus > 0.0)) {
                (false, _) => " (no plan could be made: the reason stands below).".to_owned(),
                (true, Some(missing)) => match left {
                    None => format!(
                        ", which covers the shortfall of {} ahead: nothing needs to be bought.",
                        plural(missing as u64, "GPU")
                    ),
                    Some(left) => format!(
                        ": {} of the {} that may come to lack ahead would still be missing. That is no ground to buy yet: take back first, and watch.",
                        number(left),
                        plural(missing as u64, "GPU")
                    ),
                },
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
                (true, Some(missing)) => match left {
                    None => format!("，足以弥补未来 {} 块的缺口，无需采购。", number(missing)),
                    Some(left) => format!(
                        "，未来 {} 块的缺口仍余 {} 块，尚不足以作为采购依据：应先收回，继续观察。",
                        number(missing),
                        number(left)
                    ),
                },
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

/// How many GPUs, for which pools, by when, and what comes first.
fn buy(data: &ReportData, language: Language) -> String {
    let choice = &data.decision;
    let load = data.outlook.load_basis.unwrap_or(LoadBasis::Offered).subject(language);
    let gpus = choice.gpus_to_add.unwrap_or(0.0).ceil();
    let pools: Vec<(String, u32)> =
        choice.pools_to_buy().map(|(pool, gpus)| (pool.pool.clone(), gpus as u32)).collect();
    let planned = choice.pools.iter().filter(|pool| pool.advice.is_some());
    let (all, of) = (planned.count(), named(&pools, language));
    let when = match (choice.full_at, language) {
        _ if choice.full_already && language == Language::En => "is at capacity already".to_owned(),
        _ if choice.full_already => "已达到容量".to_owned(),
        (Some(at), Language::En) => format!("meets capacity in the week of {}", day(data, at)),
        (Some(at), Language::Zh) => format!("将在 {} 当周达到容量", day(data, at)),
        (None, Language::En) => "meets capacity".to_owned(),
        (None, Language::Zh) => "将达到容量".to_owned(),
    };
    let order = match (choice.order_by.filter(|_| !choice.order_late), language) {
        (Some(at), Language::En) => format!("order them by {}", day(data, at)),
        (Some(at), Language::Zh) => format!("最迟 {} 下单", day(data, at)),
        (None, Language::En) => {
            "order them now, the lead time is longer than what is left".to_owned()
        }
        (None, Language::Zh) => "剩余时间已短于采购周期，应立即下单".to_owned(),
    };
    let back = choice.gpus_reclaimable.filter(|gpus| *gpus >= 0.05).map(tenths);
    let first = match (back, language) {
        (None, _) => String::new(),
        (Some(back), Language::En) => format!(
            " Take back first what jobs hold while idle, {back} GPUs on average: that is counted here."
        ),
        (Some(back), Language::Zh) => {
            format!("应先收回占而不用的部分（平均 {back} 块 GPU），此处已计入。")
        }
    };
    let spare = choice.gpus_spare.filter(|gpus| *gpus >= 1.0).map(|gpus| number(gpus.floor()));
    let spare = match (spare, language) {
        (None, _) => String::new(),
        (Some(spare), Language::En) => format!(
            " The other pools leave {spare} free in their fullest weeks: where GPUs can change pools, move those first."
        ),
        (Some(spare), Language::Zh) => {
            format!("其他分区在最忙的一周仍空闲 {spare} 块：若可跨分区调配，应先调配。")
        }
    };
    let more = number(gpus);
    match (pools.is_empty(), language) {
        (true, Language::En) => format!(
            "{load} {when}; {more} more GPUs would let jobs start at once in nine hours of ten: {order}.{first}"
        ),
        (true, Language::Zh) => format!(
            "{load}{when}；再增加 {more} 块 GPU，可使十分之九的时段作业无需排队：{order}。{first}"
        ),
        (false, Language::En) => format!(
            "{load} {when} in {} of {all} pools; {more} more GPUs ({of}) would let jobs start at once there in nine hours of ten: {order}.{first}{spare}",
            pools.len()
        ),
        (false, Language::Zh) => format!(
            "{all} 个分区中有 {} 个的{load}{when}；再增加 {more} 块 GPU（{of}），可使这些分区十分之九的时段作业无需排队：{order}。{first}{spare}",
            pools.len()
        ),
    }
}

/// The local date of an instant.
fn day(data: &ReportData, at: Local) -> String {
    let zone: chrono_tz::Tz = data.timezone.parse().unwrap_or(chrono_tz::Tz::UTC);
    at.with_timezone(&zone).format("%Y-%m-%d").to_string()
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
    let short = choice.pools.iter().filter(|pool| pool.wait.is_some());
    let short: Vec<(String, u32)> =
        short.map(|pool| (pool.pool.clone(), pool.gpus_missing.unwrap_or(0.0) as u32)).collect();
    let of = match (short.is_empty(), language) {
        (true, _) => String::new(),
        (false, Language::En) => format!(", {}", named(&short, language)),
        (false, Language::Zh) => format!("，{}", named(&short, language)),
    };
    match language {
        Language::En => format!(
            "{load} may come to lack {} ({earliest}{of}), but {why}: watch, and do not order yet.",
            plural(missing as u64, "GPU")
        ),
        Language::Zh => format!(
            "{load}可能缺少 {} 块 GPU（{earliest}{of}），但{why}：继续观察，暂不下单。",
            number(missing)
        ),
    }
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
