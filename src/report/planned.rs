//! What a plan rests on and what it comes to, in English and Chinese.

use chrono::DateTime;
use chrono_tz::Tz;
use loadline_forecast::{Advice, Ground, Meets, Plan, Wait};
use serde::{Serialize, Serializer};

use super::answer::plural;
use super::chart::number;
use super::words::{Language, percent};

/// What the load of a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadBasis {
    /// Of jobs: what would be held if each started when it could.
    Offered,
    /// Of counts, which tell no durations: what is held and what is waited for.
    HeldAndWaiting,
    /// Of both, in different pools or times.
    Both,
}

impl LoadBasis {
    /// What it is, as one clause.
    #[must_use]
    pub const fn text(self, language: Language) -> &'static str {
        match (self, language) {
            (Self::Offered, Language::En) => "load offered: GPUs held if every job started at once",
            (Self::HeldAndWaiting, Language::En) => {
                "GPUs held plus GPUs waited for, not the load offered: counts do not tell how long jobs run, so a backlog counts in full as long as it waits"
            }
            (Self::Both, Language::En) => {
                "load offered where jobs tell it (GPUs held if every job started at once); where there are only counts, GPUs held plus GPUs waited for, so a backlog counts in full as long as it waits"
            }
            (Self::Offered, Language::Zh) => "作业负载：按作业可开始时即开始计",
            (Self::HeldAndWaiting, Language::Zh) => {
                "占用与排队的 GPU 数之和，并非作业负载：计数不含运行时长，积压在排队期间全部计入"
            }
            (Self::Both, Language::Zh) => {
                "有作业账目处为作业负载（按作业可开始时即开始计），只有计数处为占用与排队的 GPU 数之和，积压在排队期间全部计入"
            }
        }
    }

    /// The load as the subject of a sentence.
    pub(crate) const fn subject(self, language: Language) -> &'static str {
        match (self, language) {
            (Self::Offered, Language::En) => "The load that jobs offer",
            (Self::Offered, Language::Zh) => "作业负载",
            (_, Language::En) => "The load (GPUs held and waited for)",
            (_, Language::Zh) => "负载（占用与排队的 GPU 数）",
        }
    }
}

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
            format!("capacity is not met within {weeks} weeks")
        }
        (Meets::NotWithin { weeks }, _, Language::Zh) => format!("{weeks} 周内不会达到容量"),
    }
}

/// A plan in one line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Planned {
    /// What the load is.
    pub load: LoadBasis,
    /// What to do.
    pub advice: Advice,
    /// When the load meets capacity.
    pub meets: Meets,
    /// What the weeks ahead rest on.
    pub ground: Ground,
    /// Trend of the load in GPUs a week; 0 without one.
    pub trend_gpus_per_week: f64,
    /// GPUs missing at the largest shortfall.
    pub gpus_needed: u32,
    /// When to order them, milliseconds UTC.
    pub order_by_ms: Option<i64>,
    /// That has passed.
    pub order_late: bool,
    /// Weeks looked ahead.
    pub weeks: usize,
    /// Share of weeks that the plan's quantile leaves above it.
    pub high_ratio: f64,
    /// Zone of its dates.
    pub zone: Tz,
}

impl Planned {
    /// What `plan` of a load at a quantile comes to.
    #[must_use]
    pub fn new(plan: &Plan, load: LoadBasis, advice: Advice, level: f64, zone: Tz) -> Self {
        Self {
            load,
            advice,
            meets: plan.meets,
            ground: plan.ground,
            trend_gpus_per_week: plan.trend_gpus_per_week,
            gpus_needed: plan.gpus_needed,
            order_by_ms: plan.order_by_ms,
            order_late: plan.order_late,
            weeks: plan.weeks.len(),
            high_ratio: 1.0 - level,
            zone,
        }
    }

    /// When the load meets capacity and what to do about it.
    #[must_use]
    pub fn conclusion(&self, language: Language) -> String {
        let (gpus, weeks) = (self.gpus_needed, self.weeks);
        let earliest =
            || earliest(self.meets, self.ground.is_trend(), self.high_ratio, self.zone, language);
        match (self.advice, language) {
            (Advice::Fits, Language::En) => match self.meets {
                Meets::NotWithin { weeks } => {
                    format!("the load does not meet capacity within {weeks} weeks")
                }
                _ => "the load is at capacity, and no GPU is missing".to_owned(),
            },
            (Advice::Fits, Language::Zh) => match self.meets {
                Meets::NotWithin { weeks } => format!("未来 {weeks} 周内不会达到容量"),
                _ => "负载恰好达到容量，不缺 GPU".to_owned(),
            },
            (Advice::NotYet(why), Language::En) => format!(
                "not yet, since {}: watch; {}; {} would be missing at the largest shortfall within {weeks} weeks",
                wait(why, language),
                earliest(),
                plural(u64::from(gpus), "GPU")
            ),
            (Advice::NotYet(why), Language::Zh) => format!(
                "暂不采购（{}），继续观察；{}；未来 {weeks} 周内缺口最大时将少 {gpus} 块 GPU",
                wait(why, language),
                earliest()
            ),
            (Advice::Buy, _) => self.buy(language),
        }
    }

    fn buy(&self, language: Language) -> String {
        let (gpus, weeks, zone) = (self.gpus_needed, self.weeks, self.zone);
        let (when, order) = match language {
            Language::En => (
                match self.meets {
                    Meets::At { week_ms } => {
                        format!("the load meets capacity in the week of {}", day(week_ms, zone))
                    }
                    _ => "the load is at capacity already".to_owned(),
                },
                match self.order_by_ms {
                    Some(_) if self.order_late => {
                        "; to be ordered now: the lead time is longer than what is left".to_owned()
                    }
                    Some(ms) => format!(", to be ordered by {}", day(ms, zone)),
                    None => String::new(),
                },
            ),
            Language::Zh => (
                match self.meets {
                    Meets::At { week_ms } => format!("将在 {} 当周达到容量", day(week_ms, zone)),
                    _ => "已达到容量".to_owned(),
                },
                match self.order_by_ms {
                    Some(_) if self.order_late => "，应立即下单".to_owned(),
                    Some(ms) => format!("，最迟 {} 下单", day(ms, zone)),
                    None => String::new(),
                },
            ),
        };
        match language {
            Language::En => {
                let are = if gpus == 1 { "GPU is" } else { "GPUs are" };
                format!(
                    "{when}; {gpus} {are} missing at the largest shortfall within {weeks} weeks{order}"
                )
            }
            Language::Zh => {
                format!("{when}；未来 {weeks} 周内缺口最大时少 {gpus} 块 GPU{order}")
            }
        }
    }

    /// The line.
    #[must_use]
    pub fn text(&self, language: Language) -> String {
        let load = self.load.text(language);
        let trend = ground(&self.ground, self.trend_gpus_per_week, self.zone, language);
        let conclusion = self.conclusion(language);
        match language {
            Language::En => format!(
                "Plan: {conclusion}. It rests on {load}; a week counts with the level that nine hours of ten stay below. Trend: {trend}."
            ),
            Language::Zh => format!(
                "规划：{conclusion}。依据为{load}；每周取十分之九时段不超过的水平。趋势：{trend}。"
            ),
        }
    }
}

/// Name of a reason to wait, in JSON.
pub(super) fn wait_name<S: Serializer>(
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

fn day(ms: i64, zone: Tz) -> String {
    DateTime::from_timestamp_millis(ms)
        .map_or_else(String::new, |at| at.with_timezone(&zone).format("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use loadline_forecast::{PlanSettings, Rule, Series, advise, plan};

    use super::*;

    fn told(levels: &[f64], rule: Rule, load: LoadBasis) -> [String; 2] {
        let values = levels.iter().flat_map(|level| vec![Some(*level); 168]).collect();
        let series = Series::new("fleet", 0, 3_600, values).unwrap();
        let made = plan(&series, 100.0, &PlanSettings::default()).unwrap();
        let advice = advise(&made, rule);
        let planned = Planned::new(&made, load, advice, 0.9, Tz::UTC);
        [Language::En, Language::Zh].map(|language| planned.text(language))
    }

    #[test]
    fn what_speaks_against_buying_is_said_with_the_earliest_day() {
        let rise: Vec<f64> = (0..10).map(|week| 50.0 + 4.0 * f64::from(week)).collect();
        let [en, zh] = told(&rise, Rule::No, LoadBasis::Offered);
        assert!(en.contains("not yet, since the expansion rule says no: watch; full in"), "{en}");
        assert!(en.contains("at the earliest if the trend holds"), "{en}");
        assert!(zh.contains("暂不采购（扩容规则未满足）"), "{zh}");
        let [en, zh] = told(&rise, Rule::Expand, LoadBasis::Offered);
        assert!(en.contains("to be ordered") && !en.contains("not yet"), "{en}");
        assert!(zh.contains("下单"), "{zh}");
        let [en, _] = told(&[60.0, 60.0, 60.0, 120.0, 121.0], Rule::Expand, LoadBasis::Offered);
        assert!(en.contains("one step from 60 to 120 GPUs in the week of 1970-01-22"), "{en}");
        assert!(en.contains("no trend leads there") && !en.contains("ordered"), "{en}");
        let [en, _] = told(&[60.0; 9], Rule::No, LoadBasis::Offered);
        assert!(en.contains("does not meet capacity within 9 weeks"), "{en}");
    }

    #[test]
    fn what_is_only_counted_is_not_called_load_offered() {
        for load in [LoadBasis::HeldAndWaiting, LoadBasis::Both] {
            let [en, zh] = told(&[60.0; 9], Rule::No, load);
            assert!(en.contains("GPUs held plus GPUs waited for"), "{en}");
            assert!(zh.contains("占用与排队的 GPU 数之和"), "{zh}");
        }
    }
}
