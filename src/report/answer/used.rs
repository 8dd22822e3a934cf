//! How much is used: where no ledger tells who held what, only what was read is told.

use super::super::chart::number;
use super::super::data::ReportData;
use super::super::words::{Language, percent};
use super::{Answer, plural, tenths};

/// Below this share of the time seen, how busy the GPUs were is no headline.
const SEEN_ENOUGH_RATIO: f64 = 0.5;

/// From this share of what was held on, what was held beyond the GPUs known is told.
const BEYOND_RATIO: f64 = 0.005;

/// How much is used.
pub(crate) fn used(data: &ReportData, language: Language) -> Answer {
    let (totals, words) = (&data.totals, language.words());
    let busy = percent(totals.busy_ratio(), words);
    let read = match language {
        Language::En => format!(
            "Of what was read, {busy} was busy; {} of the time was seen.",
            percent(totals.coverage_ratio, words)
        ),
        Language::Zh => {
            format!("已观测部分忙碌 {busy}，观测覆盖 {}。", percent(totals.coverage_ratio, words))
        }
    };
    let held = totals.gpu_hours_held.filter(|hours| *hours > 0.0);
    let sentence = match (held, data.sampled(), language) {
        (Some(hours), true, Language::En) => format!("{} {read}", shared(data, hours, language)),
        (Some(hours), true, Language::Zh) => format!("{}{read}", shared(data, hours, language)),
        (Some(hours), false, Language::En) => {
            format!("{} No readings tell how busy they were.", shared(data, hours, language))
        }
        (Some(hours), false, Language::Zh) => {
            format!("{}没有采样，忙碌程度未知。", shared(data, hours, language))
        }
        (None, true, Language::En) => format!("{read} {}", nothing_held(data, language)),
        (None, true, Language::Zh) => format!("{read}{}", nothing_held(data, language)),
        (None, false, Language::En) => {
            format!("{} No readings tell what the GPUs did.", nothing_held(data, language))
        }
        (None, false, Language::Zh) => {
            format!("{}没有采样，不知道 GPU 做了什么。", nothing_held(data, language))
        }
    };
    let enough = totals.coverage_ratio.is_some_and(|ratio| ratio >= SEEN_ENOUGH_RATIO);
    let ledger = totals.held_ratio().is_some() && data.lack_of_demand.is_none();
    let figure = match data.sampled() && (enough || !ledger) {
        true => busy,
        false => percent(totals.held_ratio().filter(|_| ledger), words),
    };
    Answer { figure, sentence }
}

/// What jobs held of what is installed, and what they held besides.
fn shared(data: &ReportData, hours: f64, language: Language) -> String {
    let told = of_installed(data, hours, language);
    let beyond = data.totals.gpu_hours_excess.filter(|beyond| *beyond >= BEYOND_RATIO * hours);
    match (beyond, language) {
        (None, _) => told,
        (Some(beyond), Language::En) => format!(
            "{told} {} of these were held beyond the GPUs that are known, and are not in the share.",
            number(beyond)
        ),
        (Some(beyond), Language::Zh) => {
            format!("{told}其中 {} GPU 小时超出已知的 GPU，不计入占比；", number(beyond))
        }
    }
}

fn of_installed(data: &ReportData, hours: f64, language: Language) -> String {
    let (totals, words) = (&data.totals, language.words());
    let ratio = totals.held_ratio().map(|ratio| percent(Some(ratio), words));
    let floor = words.floor_of(totals.capacity_is_floor());
    let hours = number(hours);
    match (totals.gpus_installed.zip(ratio), language) {
        (Some((gpus, ratio)), Language::En) => format!(
            "Of {}{floor}, jobs held {ratio} of the time ({hours} GPU-hours).",
            gpus_of(gpus, language)
        ),
        (Some((gpus, ratio)), Language::Zh) => format!(
            "{}{floor} 中，作业占用了 {ratio} 的时间（{hours} GPU 小时）；",
            gpus_of(gpus, language)
        ),
        (None, Language::En) => {
            format!("Jobs held {hours} GPU-hours; of how many that could be is not known.")
        }
        (None, Language::Zh) => format!("作业占用 {hours} GPU 小时，装机数未知；"),
    }
}

/// Why no GPU-hour is known to be held.
fn nothing_held(data: &ReportData, language: Language) -> String {
    let totals = &data.totals;
    if let Some(lack) = &data.lack_of_demand {
        let (cause, remedy) = (lack.cause(language), lack.remedy(language).unwrap_or_default());
        let installed = totals.gpus_installed.filter(|_| !totals.capacity_is_floor());
        let fleet = installed.map(|gpus| gpus_of(gpus, language));
        return match (language, fleet) {
            (Language::En, None) => {
                format!("What jobs held is not known, since {cause}: {remedy}.")
            }
            (Language::En, Some(gpus)) => {
                format!("What jobs held of {gpus} is not known, since {cause}: {remedy}.")
            }
            (Language::Zh, None) => format!("作业占用未知：{cause}；{remedy}。"),
            (Language::Zh, Some(gpus)) => {
                format!("共 {gpus}，作业占用未知：{cause}；{remedy}。")
            }
        };
    }
    let submitted = totals.jobs_submitted.filter(|jobs| *jobs > 0);
    let waiting = totals.jobs_waiting.unwrap_or(0);
    let installed = totals.gpus_installed.filter(|_| !totals.capacity_is_floor());
    let of = installed.map(|gpus| gpus_of(gpus, language));
    match (submitted, language) {
        (Some(jobs), Language::En) => {
            let of = of.map_or_else(String::new, |gpus| format!(" of {gpus}"));
            let jobs = plural(jobs, "job");
            format!(
                "No job held a GPU{of} in this period: {jobs} asked for one, {waiting} still waiting."
            )
        }
        (Some(jobs), Language::Zh) => {
            let of = of.map_or_else(String::new, |gpus| format!("{gpus} 中，"));
            format!("{of}本期没有作业占用 GPU：{jobs} 个作业申请，其中 {waiting} 个仍在排队。")
        }
        (None, Language::En) => {
            let of = of.map_or_else(String::new, |gpus| format!(" of {gpus}"));
            format!("No job held a GPU{of} in this period.")
        }
        (None, Language::Zh) => {
            let of = of.map_or_else(String::new, |gpus| format!("{gpus} 中，"));
            format!("{of}本期没有作业占用 GPU。")
        }
    }
}

/// A number of GPUs.
fn gpus_of(gpus: f64, language: Language) -> String {
    match language {
        Language::En if tenths(gpus) == "1" => "1 GPU".to_owned(),
        Language::En => format!("{} GPUs", tenths(gpus)),
        Language::Zh => format!("{} 块 GPU", tenths(gpus)),
    }
}
