//! A load that meets capacity: where, how many GPUs are missing, and what of them to order.

use loadline_forecast::{Meets, PlanSettings};

use super::super::super::chart::number;
use super::super::super::data::{Local, ReportData};
use super::super::super::planned::{self, LoadBasis, free, named, open};
use super::super::super::words::Language;
use super::super::{plural, tenths};

/// How the load stands against capacity, as one clause: in so many of the pools as their table
/// says.
pub(super) fn stand(data: &ReportData, language: Language) -> String {
    let choice = &data.decision;
    let load = data.outlook.load_basis.unwrap_or(LoadBasis::Offered).subject(language);
    let all = choice.pools.len();
    if all == 0 {
        let missing = choice.gpus_missing.unwrap_or(0.0) > 0.0;
        return match (choice.full_already, choice.full_at, language) {
            (true, _, Language::En) if missing => format!("{load} is at capacity already"),
            (true, _, Language::Zh) if missing => format!("{load}已达到容量"),
            (true, _, Language::En) => format!("{load} is at capacity, and no GPU is missing"),
            (true, _, Language::Zh) => format!("{load}恰好达到容量，不缺 GPU"),
            (_, Some(at), Language::En) => {
                format!("{load} meets capacity in the week of {}", day(data, at))
            }
            (_, Some(at), Language::Zh) => format!("{load}将在 {} 当周达到容量", day(data, at)),
            (_, None, Language::En) => format!("{load} stays below capacity within the horizon"),
            (_, None, Language::Zh) => format!("规划期内{load}低于容量"),
        };
    }
    let first = choice.pools.iter().filter_map(|pool| pool.full_at).min();
    let first = first.map_or_else(String::new, |at| day(data, at));
    match (choice.full(), language) {
        ((0, 0), Language::En) => match choice.open().len() {
            0 => format!("{load} stays below capacity in each of {all} pools within the horizon"),
            _ => format!("{load} stays below capacity within the horizon where a plan is made"),
        },
        ((0, 0), Language::Zh) => match choice.open().len() {
            0 => format!("规划期内 {all} 个分区的{load}均低于容量"),
            _ => format!("规划期内，能规划的分区的{load}均低于容量"),
        },
        ((0, later), Language::En) => {
            format!("{load} meets capacity in {later} of {all} pools, first in the week of {first}")
        }
        ((0, later), Language::Zh) => {
            format!("{all} 个分区中有 {later} 个的{load}将达到容量，最早在 {first} 当周")
        }
        ((now, 0), Language::En) => {
            format!("{load} is at capacity already in {now} of {all} pools")
        }
        ((now, 0), Language::Zh) => format!("{all} 个分区中有 {now} 个的{load}已达到容量"),
        ((now, later), Language::En) => format!(
            "{load} is at capacity already in {now} of {all} pools, and from the week of {first} \
             on in {later} more"
        ),
        ((now, later), Language::Zh) => format!(
            "{all} 个分区中有 {now} 个的{load}已达到容量，另有 {later} 个最早在 {first} 当周达到"
        ),
    }
}

/// How many GPUs, for which pools, by when, and what comes first.
pub(super) fn buy(data: &ReportData, language: Language) -> String {
    let choice = &data.decision;
    let (stand, missing) = (stand(data, language), missing(data, language));
    let (of, more) = (choice.to_buy(), number(choice.gpus_to_add.unwrap_or(0.0).ceil()));
    let order = match (choice.order_by.filter(|_| !choice.order_late), language) {
        (Some(at), Language::En) => format!("order them by {}", day(data, at)),
        (Some(at), Language::Zh) => format!("最迟 {} 下单", day(data, at)),
        (None, Language::En) => {
            "order them now, the lead time is longer than what is left".to_owned()
        }
        (None, Language::Zh) => "剩余时间已短于采购周期，应立即下单".to_owned(),
    };
    let told = match (of.is_empty(), language) {
        (true, Language::En) => format!(
            "{stand}: {missing}. {more} more would let jobs start at once in nine hours of ten: \
             {order}."
        ),
        (true, Language::Zh) => format!(
            "{stand}：{missing}。再增加 {more} 块，可使十分之九的时段作业无需排队：{order}。"
        ),
        (false, Language::En) => format!(
            "{stand}: {missing}. {more} more ({}) would let jobs start at once there in nine hours \
             of ten: {order}.",
            named(&of, language)
        ),
        (false, Language::Zh) => format!(
            "{stand}：{missing}。再增加 {more} 块（{}），可使这些分区十分之九的时段作业无需排队：{order}。",
            named(&of, language)
        ),
    };
    let others = choice.to_watch();
    let gpus = others.iter().map(|(_, gpus)| f64::from(*gpus)).sum::<f64>();
    let watched = match (others.is_empty(), language) {
        (true, _) => String::new(),
        (false, Language::En) => format!(
            " The other {} ({}) {} no ground to buy yet: watch.",
            number(gpus),
            named(&others, language),
            if gpus == 1.0 { "is" } else { "are" }
        ),
        (false, Language::Zh) => {
            format!(
                "其余 {} 块（{}）尚不足以采购：继续观察。",
                number(gpus),
                named(&others, language)
            )
        }
    };
    format!("{told}{watched}{}", besides(data, language))
}

/// What lies ahead, and why that is no ground to buy yet.
pub(super) fn watch(data: &ReportData, language: Language) -> String {
    let choice = &data.decision;
    let load = data.outlook.load_basis.unwrap_or(LoadBasis::Offered).subject(language);
    let pools = choice.to_watch();
    let why = match pools.is_empty() {
        true => choice.wait.map_or("", |wait| planned::wait(wait, language)).to_owned(),
        false => {
            let each: Vec<&str> =
                choice.waits().into_iter().map(|wait| planned::wait(wait, language)).collect();
            each.join(if language == Language::Zh { "，或" } else { ", or " })
        }
    };
    let missing = missing(data, language);
    let (stand, of) = match pools.is_empty() {
        true => (String::new(), String::new()),
        false => (stand(data, language), named(&pools, language)),
    };
    let told = match (pools.is_empty(), language) {
        (true, Language::En) => format!(
            "{load} may come to lack GPUs ({}): {missing}, but {why}: watch, and do not order yet.",
            earliest(data, language)
        ),
        (true, Language::Zh) => format!(
            "{load}可能缺少 GPU（{}）：{missing}，但{why}：继续观察，暂不下单。",
            earliest(data, language)
        ),
        (false, Language::En) => {
            format!("{stand}: {missing} ({of}), but {why}: watch, and do not order yet.")
        }
        (false, Language::Zh) => {
            format!("{stand}：{missing}（{of}），但{why}：继续观察，暂不下单。")
        }
    };
    format!("{told}{}", besides(data, language))
}

/// What giving back what is held idle leaves of a shortfall.
pub(super) fn cleaned(data: &ReportData, language: Language) -> String {
    let choice = &data.decision;
    let (stand, missing) = (stand(data, language), missing(data, language));
    let rest = choice.gpus_left().is_some_and(|gpus| gpus > 0.0);
    let told = match (rest, language) {
        (false, Language::En) => format!("{stand}: {missing}. Nothing needs to be bought."),
        (false, Language::Zh) => format!("{stand}：{missing}，无需采购。"),
        (true, Language::En) => {
            format!("{stand}: {missing}. That is no ground to buy yet: take back first, and watch.")
        }
        (true, Language::Zh) => {
            format!("{stand}：{missing}，尚不足以作为采购依据：应先收回，继续观察。")
        }
    };
    format!("{told}{}", besides(data, language))
}

/// GPUs that a clean-up leaves missing.
fn left(gpus: f64, language: Language) -> String {
    match (gpus > 0.0, language) {
        (false, Language::En) => "none".to_owned(),
        (true, Language::En) => number(gpus),
        (false, Language::Zh) => "不再缺".to_owned(),
        (true, Language::Zh) => format!("仍缺 {} 块", number(gpus)),
    }
}

/// When a fleet without several pools meets capacity at the earliest.
fn earliest(data: &ReportData, language: Language) -> String {
    let choice = &data.decision;
    let meets = match choice.full_at {
        Some(at) if !choice.full_already => Meets::At { week_ms: at.timestamp_millis() },
        _ => Meets::Already,
    };
    let high_ratio = 1.0 - PlanSettings::default().level.ratio();
    planned::earliest(meets, choice.trend, high_ratio, zone(data), language)
}

/// How many GPUs are missing before and after what is held idle is given back.
fn missing(data: &ReportData, language: Language) -> String {
    let choice = &data.decision;
    let gpus = choice.gpus_missing.unwrap_or(0.0);
    let each = match (choice.pools.is_empty(), language) {
        (true, _) => "",
        (false, Language::En) => " of each",
        (false, Language::Zh) => "各自",
    };
    let first = match (choice.cleans().map(tenths), language) {
        (None, _) => String::new(),
        (Some(back), Language::En) => format!(
            ", and {} after what jobs hold while idle, {back} GPUs on average, is given back, which \
             comes first",
            left(choice.gpus_left().unwrap_or(0.0), language)
        ),
        (Some(back), Language::Zh) => format!(
            "，先收回占而不用的部分（平均 {back} 块）后{}",
            left(choice.gpus_left().unwrap_or(0.0), language)
        ),
    };
    match language {
        Language::En => {
            let are = if gpus == 1.0 { "is" } else { "are" };
            let gpus = plural(gpus as u64, "GPU");
            format!("{gpus} {are} missing at the largest shortfall{each}{first}")
        }
        Language::Zh => format!("{each}缺口最大时共缺 {} 块 GPU{first}", number(gpus)),
    }
}

/// What other pools leave free, and which have no plan.
fn besides(data: &ReportData, language: Language) -> String {
    let choice = &data.decision;
    let told = [free(choice.free(), language), open(&choice.open(), language)];
    let sentence = |clause: String| match language {
        Language::Zh => format!("{clause}。"),
        Language::En => {
            let mut letters = clause.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase()).unwrap_or_default();
            format!(" {first}{}.", letters.as_str())
        }
    };
    told.into_iter().flatten().map(sentence).collect()
}

fn zone(data: &ReportData) -> chrono_tz::Tz {
    data.timezone.parse().unwrap_or(chrono_tz::Tz::UTC)
}

/// The local date of an instant.
fn day(data: &ReportData, at: Local) -> String {
    at.with_timezone(&zone(data)).format("%Y-%m-%d").to_string()
}
