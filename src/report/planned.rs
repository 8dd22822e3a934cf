//! What a plan comes to, in English and Chinese: of a pool, and of the fleet of several.

mod fleet;
mod load;
mod reason;

use chrono_tz::Tz;
use loadline_forecast::{Advice, Ground, Meets, Plan};

use super::answer::{plural, tenths};
use super::words::Language;
pub use fleet::FleetPlanned;
pub(super) use fleet::{free, named, open};
pub use load::LoadBasis;
use reason::day;
pub(super) use reason::wait_name;
pub use reason::{earliest, ground, wait};

/// A plan in one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Pool it is of; `None` for a fleet that has no several pools.
    pub pool: Option<String>,
    /// GPUs of its idle-held hours that are given back; `None` where nothing is.
    pub gpus_given_back: Option<f64>,
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
            pool: None,
            gpus_given_back: None,
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
                    format!(
                        "the load does not meet capacity within {}",
                        plural(weeks as u64, "week")
                    )
                }
                _ => "the load is at capacity, and no GPU is missing".to_owned(),
            },
            (Advice::Fits, Language::Zh) => match self.meets {
                Meets::NotWithin { weeks } => format!("未来 {weeks} 周内不会达到容量"),
                _ => "负载恰好达到容量，不缺 GPU".to_owned(),
            },
            (Advice::NotYet(why), Language::En) => format!(
                "not yet, since {}: watch; {}; {} would be missing at the largest shortfall within {}",
                wait(why, language),
                earliest(),
                plural(u64::from(gpus), "GPU"),
                plural(weeks as u64, "week")
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
                    "{when}; {gpus} {are} missing at the largest shortfall within {}{order}",
                    plural(weeks as u64, "week")
                )
            }
            Language::Zh => {
                format!("{when}；未来 {weeks} 周内缺口最大时少 {gpus} 块 GPU{order}")
            }
        }
    }

    /// The line. That of one of several pools leaves out what the load is: it is told once.
    #[must_use]
    pub fn text(&self, language: Language) -> String {
        let load = self.load.text(language);
        let trend = ground(&self.ground, self.trend_gpus_per_week, self.zone, language);
        let conclusion = self.conclusion(language);
        let back = given_back(self.gpus_given_back, language);
        match (&self.pool, language) {
            (None, Language::En) => {
                format!("Plan{back}: {conclusion}. It rests on {load}; {LEVEL_EN}. Trend: {trend}.")
            }
            (None, Language::Zh) => {
                format!("规划{back}：{conclusion}。依据为{load}；{LEVEL_ZH}。趋势：{trend}。")
            }
            (Some(pool), Language::En) => {
                format!("Plan for pool {pool}{back}: {conclusion}. Trend: {trend}.")
            }
            (Some(pool), Language::Zh) => {
                format!("分区 {pool} 规划{back}：{conclusion}。趋势：{trend}。")
            }
        }
    }
}

/// That a plan takes back what is held idle, behind its name.
fn given_back(gpus: Option<f64>, language: Language) -> String {
    let gpus = gpus.filter(|gpus| *gpus >= 0.05).map(tenths);
    match (gpus, language) {
        (None, _) => String::new(),
        (Some(gpus), Language::En) => {
            format!(", with {gpus} GPUs that are held while idle given back")
        }
        (Some(gpus), Language::Zh) => format!("（已计入收回占而不用的 {gpus} 块）"),
    }
}

/// What a week counts with.
const LEVEL_EN: &str = "a week counts with the level that nine hours of ten stay below";
const LEVEL_ZH: &str = "每周取十分之九时段不超过的水平";

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
