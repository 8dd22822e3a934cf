//! What a plan rests on, why nothing is bought yet, and when the load meets capacity: clauses in
//! English and Chinese.

use chrono::DateTime;
use chrono_tz::Tz;
use loadline_forecast::{Ground, Meets, Wait};
use serde::{Serialize, Serializer};

use super::super::answer::plural;
use super::super::chart::number;
use super::super::words::{Language, percent};

/// What the weeks ahead rest on, as one clause without an end.
#[must_use]
pub fn ground(ground: &Ground, gpus_per_week: f64, zone: Tz, language: Language) -> String {
    let gpus = |gpus: f64| number((gpus * 10.0).round() / 10.0);
    match (*ground, language) {
        (Ground::Trend { weeks, .. }, Language::En) => {
            format!("{gpus_per_week:+.2} GPUs a week over {weeks} whole weeks")
        }
        (Ground::FewWeeks { have, need }, Language::En) => format!(
            "none can be told from {}, {need} are needed: the level of the last weeks is held",
            plural(have as u64, "whole week")
        ),
        (Ground::LevelShift { week_ms, before_gpus, after_gpus }, Language::En) => format!(
            "none, but one step from {} to {} GPUs in the week of {}: the new level is held",
            gpus(before_gpus),
            gpus(after_gpus),
            day(week_ms, zone)
        ),
        (Ground::Steady { weeks }, Language::En) => {
            format!("none beyond chance in {weeks} whole weeks: their level is held")
        }
        (Ground::Trend { weeks, .. }, Language::Zh) => {
            format!("{weeks} 个整周内每周变化 {gpus_per_week:+.2} 块 GPU")
        }
        (Ground::FewWeeks { have, need }, Language::Zh) => {
            format!("只有 {have} 个整周，看出趋势需要 {need} 个，按最近几周的水平计")
        }
        (Ground::LevelShift { week_ms, before_gpus, after_gpus }, Language::Zh) => format!(
            "没有趋势，只在 {} 当周由 {} 变为 {} 块 GPU，按新水平计",
            day(week_ms, zone),
            gpus(before_gpus),
            gpus(after_gpus)
        ),
        (Ground::Steady { weeks }, Language::Zh) => {
            format!("{weeks} 个整周内没有超出偶然的趋势，按其水平计")
        }
    }
}

/// Why nothing is bought yet, as one clause.
#[must_use]
pub const fn wait(wait: Wait, language: Language) -> &'static str {
    match (wait, language) {
        (Wait::Rule, Language::En) => "the expansion rule says no",
        (Wait::RuleUnknown, Language::En) => "the expansion rule has too few weeks to say",
        (Wait::NoTrend, Language::En) => {
            "no trend leads there and the last four weeks were not full"
        }
        (Wait::Rule, Language::Zh) => "扩容规则未满足",
        (Wait::RuleUnknown, Language::Zh) => "扩容规则的周数不足，无法判断",
        (Wait::NoTrend, Language::Zh) => "没有趋势指向缺口，最近四周也未持续满载",
    }
}

/// When the load meets capacity at the earliest, as one clause. `high_ratio` is the share of weeks
/// that the plan's quantile leaves above it.
#[must_use]
pub fn earliest(
    meets: Meets,
    trend: bool,
    high_ratio: f64,
    zone: Tz,
    language: Language,
) -> String {
    let share = percent(Some(high_ratio), language.words());
    match (meets, trend, language) {
        (Meets::Already, _, Language::En) => "the last two weeks were at capacity".to_owned(),
        (Meets::Already, _, Language::Zh) => "最近两周已达到容量".to_owned(),
        (Meets::At { week_ms }, true, Language::En) => {
            format!("full in the week of {} at the earliest if the trend holds", day(week_ms, zone))
        }
        (Meets::At { week_ms }, true, Language::Zh) => {
            format!("若趋势持续，最早在 {} 当周达到容量", day(week_ms, zone))
        }
        (Meets::At { week_ms }, false, Language::En) => format!(
            "from the week of {} on, the highest {share} of weeks are above capacity if nothing else changes",
            day(week_ms, zone)
        ),
        (Meets::At { week_ms }, false, Language::Zh) => {
            format!("若无其他变化，{} 当周起有 {share} 的周高于容量", day(week_ms, zone))
        }
        (Meets::NotWithin { weeks }, _, Language::En) => {
            format!("capacity is not met within {}", plural(weeks as u64, "week"))
        }
        (Meets::NotWithin { weeks }, _, Language::Zh) => format!("{weeks} 周内不会达到容量"),
    }
}

/// Name of a reason to wait, in JSON.
pub(in crate::report) fn wait_name<S: Serializer>(
    wait: &Option<Wait>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    wait.map(|wait| match wait {
        Wait::Rule => "rule-says-no",
        Wait::RuleUnknown => "rule-not-known",
        Wait::NoTrend => "no-trend",
    })
    .serialize(serializer)
}

/// The local date of an instant.
pub(super) fn day(ms: i64, zone: Tz) -> String {
    DateTime::from_timestamp_millis(ms)
        .map_or_else(String::new, |at| at.with_timezone(&zone).format("%Y-%m-%d").to_string())
}
