//! What the plans of several pools come to, in English and Chinese.

use chrono_tz::Tz;
use loadline_forecast::{Advice, Together};

use super::super::answer::plural;
use super::super::chart::number;
use super::super::words::Language;
use super::{LEVEL_EN, LEVEL_ZH, LoadBasis, day, given_back, wait};

/// Pools that are named in one sentence at most.
const NAMED_MAX: usize = 6;

/// What the plans of several pools come to.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetPlanned {
    /// What the loads are.
    pub load: LoadBasis,
    /// GPUs of idle-held hours that are given back; `None` where nothing is.
    pub gpus_given_back: Option<f64>,
    /// The sum.
    pub told: Together,
    /// Pools there are.
    pub pools: usize,
    /// Those of them that ask for GPUs and have no plan.
    pub open: Vec<String>,
    /// GPUs that pools leave free, each in its fullest week: those that have a plan, and those
    /// that have none.
    pub free: (f64, f64),
    /// Pools to buy for, with the GPUs.
    pub to_buy: Vec<(String, u32)>,
    /// Pools that may come to lack GPUs and give no ground to buy yet, with the GPUs.
    pub to_watch: Vec<(String, u32)>,
    /// Zone of its dates.
    pub zone: Tz,
}

impl FleetPlanned {
    /// What is missing and what to do about it, as clauses.
    #[must_use]
    pub fn conclusion(&self, language: Language) -> String {
        let (told, all) = (&self.told, self.pools);
        let (gpus, missing) = (told.gpus_to_buy, told.gpus_needed);
        let (buy, watch) = (named(&self.to_buy, language), named(&self.to_watch, language));
        let (pools, watched) = (self.to_buy.len(), self.to_watch.len());
        let mut text = match (told.advice, language) {
            (Advice::Buy, Language::En) => format!(
                "{pools} of {} {} more than {} own: {} at the largest shortfall of each ({buy}){}",
                plural(all as u64, "pool"),
                if pools == 1 { "needs" } else { "need" },
                if pools == 1 { "its" } else { "their" },
                plural(u64::from(gpus), "GPU"),
                self.order(language)
            ),
            (Advice::Buy, Language::Zh) => format!(
                "{all} 个分区中有 {pools} 个缺 GPU：各自缺口最大时共缺 {gpus} 块（{buy}）{}",
                self.order(language)
            ),
            (Advice::NotYet(why), Language::En) => format!(
                "not yet, since {}: watch {watched} of {}, which would lack {} at the largest \
                 shortfall of each ({watch})",
                wait(why, language),
                plural(all as u64, "pool"),
                plural(u64::from(missing), "GPU")
            ),
            (Advice::NotYet(why), Language::Zh) => format!(
                "暂不采购（{}），继续观察 {all} 个分区中的 {watched} 个，各自缺口最大时共缺 {missing} 块 GPU（{watch}）",
                wait(why, language)
            ),
            (Advice::Fits, _) => self.fits(language),
        };
        if told.advice == Advice::Buy && watched > 0 {
            text.push_str(&match language {
                Language::En => format!("; watch what gives no ground to buy yet ({watch})"),
                Language::Zh => format!("；尚无采购依据、需继续观察的缺口：{watch}"),
            });
        }
        if told.advice != Advice::Fits
            && let Some(free) = free(self.free, language)
        {
            text.push_str(if language == Language::En { "; " } else { "；" });
            text.push_str(&free);
        }
        if let Some(open) = open(&self.open, language) {
            text.push_str(if language == Language::En { "; " } else { "；" });
            text.push_str(&open);
        }
        text
    }

    fn fits(&self, language: Language) -> String {
        let planned = self.pools - self.open.len();
        match (planned, language) {
            (0, Language::En) => "the load of all pools together stays within capacity".to_owned(),
            (0, Language::Zh) => "所有分区的总负载不超过容量".to_owned(),
            (1, Language::En) => {
                "the load of the one pool that has a plan stays within capacity".to_owned()
            }
            (_, Language::En) => {
                format!("the load of each of {planned} pools stays within its capacity")
            }
            (_, Language::Zh) => format!("{planned} 个分区的负载均不超过各自容量"),
        }
    }

    fn order(&self, language: Language) -> String {
        match (self.told.order_by_ms, language) {
            (Some(_), Language::En) if self.told.order_late => {
                "; to be ordered now: the lead time is longer than what is left".to_owned()
            }
            (Some(_), Language::Zh) if self.told.order_late => "，应立即下单".to_owned(),
            (Some(ms), Language::En) => {
                format!("; the first to be ordered by {}", day(ms, self.zone))
            }
            (Some(ms), Language::Zh) => format!("，最早一批最迟 {} 下单", day(ms, self.zone)),
            (None, _) => String::new(),
        }
    }

    /// The line.
    #[must_use]
    pub fn text(&self, language: Language) -> String {
        let (conclusion, load) = (self.conclusion(language), self.load.text(language));
        let back = given_back(self.gpus_given_back, language);
        match language {
            Language::En => format!(
                "Plan{back}: {conclusion}. GPUs of one pool do not serve another, so this is the \
                 sum of the pools. It rests on {load}; {LEVEL_EN}."
            ),
            Language::Zh => format!(
                "规划{back}：{conclusion}。各分区的 GPU 不互通，故按分区分别规划后相加。依据为{load}；{LEVEL_ZH}。"
            ),
        }
    }
}

/// The GPUs that other pools leave free: where they can change pools, they come before any that
/// are bought. `None` where there are none.
pub(in crate::report) fn free(
    (planned, unplanned): (f64, f64),
    language: Language,
) -> Option<String> {
    let (all, young) = (number(planned + unplanned), number(unplanned));
    let of = match (planned > 0.0, unplanned > 0.0, language) {
        (false, false, _) => return None,
        (_, false, _) => String::new(),
        (false, true, Language::En) => {
            ", which rests on the fullest week so far, since they have no plan".to_owned()
        }
        (true, true, Language::En) => format!(
            ", {young} of them in pools without a plan, which rests on their fullest week so far"
        ),
        (false, true, Language::Zh) => "（这些分区尚无法规划，按其迄今最忙的一周计）".to_owned(),
        (true, true, Language::Zh) => {
            format!("（其中 {young} 块在尚无法规划的分区，按其迄今最忙的一周计）")
        }
    };
    Some(match language {
        Language::En => format!(
            "the other pools leave {all} free in their fullest weeks{of}: where GPUs can change \
             pools, move those first"
        ),
        Language::Zh => {
            format!("其他分区在最忙的一周仍空闲 {all} 块{of}：若可跨分区调配，应先调配")
        }
    })
}

/// The pools that ask for GPUs and have no plan; `None` where each has one.
pub(in crate::report) fn open(pools: &[String], language: Language) -> Option<String> {
    let mut names: Vec<&str> = pools.iter().take(NAMED_MAX).map(String::as_str).collect();
    if pools.len() > NAMED_MAX {
        names.push("…");
    }
    let (count, has) = (pools.len(), if pools.len() == 1 { "has" } else { "have" });
    Some(match (count, language) {
        (0, _) => return None,
        (_, Language::En) => {
            format!("{} {has} no plan ({})", plural(count as u64, "pool"), names.join(", "))
        }
        (_, Language::Zh) => format!("{count} 个分区无法规划（{}）", names.join("、")),
    })
}

/// Pools with their GPUs, those that miss the most first.
pub(in crate::report) fn named(short: &[(String, u32)], language: Language) -> String {
    let mut short: Vec<&(String, u32)> = short.iter().collect();
    short.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let rest = short.len().saturating_sub(NAMED_MAX);
    short.truncate(NAMED_MAX);
    let mut parts: Vec<String> = short
        .into_iter()
        .map(|(pool, gpus)| match language {
            Language::En => format!("{gpus} in {pool}"),
            Language::Zh => format!("{pool} {gpus} 块"),
        })
        .collect();
    match (rest, language) {
        (0, _) => {}
        (rest, Language::En) => parts.push(format!("and {rest} more")),
        (rest, Language::Zh) => parts.push(format!("另有 {rest} 个分区")),
    }
    parts.join(if language == Language::Zh { "、" } else { ", " })
}

#[cfg(test)]
mod tests {
    use loadline_forecast::{Meets, Wait};

    use super::*;

    fn told(advice: Advice, order_late: bool, free: (f64, f64)) -> FleetPlanned {
        let short = vec![("a100".to_owned(), 8), ("h100".to_owned(), 24)];
        let (to_buy, to_watch) = match advice {
            Advice::Buy => (short, vec![("l4".to_owned(), 3)]),
            Advice::NotYet(_) => (Vec::new(), short),
            Advice::Fits => (Vec::new(), Vec::new()),
        };
        FleetPlanned {
            load: LoadBasis::Offered,
            told: Together {
                advice,
                gpus_needed: 35,
                gpus_to_buy: 32,
                order_by_ms: Some(0),
                order_late,
                meets: Meets::Already,
                trend: false,
            },
            gpus_given_back: None,
            pools: 6,
            open: vec!["new".to_owned()],
            free,
            to_buy,
            to_watch,
            zone: Tz::UTC,
        }
    }

    #[test]
    fn the_pools_that_lack_gpus_are_named_with_them() {
        let en = told(Advice::Buy, false, (40.0, 0.0)).conclusion(Language::En);
        assert_eq!(
            en,
            "2 of 6 pools need more than their own: 32 GPUs at the largest shortfall of each (24 in \
             h100, 8 in a100); the first to be ordered by 1970-01-01; watch what gives no ground to \
             buy yet (3 in l4); the other pools leave 40 free in their fullest weeks: where GPUs \
             can change pools, move those first; 1 pool has no plan (new)"
        );
        let zh = told(Advice::Buy, true, (0.0, 0.0)).conclusion(Language::Zh);
        assert_eq!(
            zh,
            "6 个分区中有 2 个缺 GPU：各自缺口最大时共缺 32 块（h100 24 块、a100 8 块），应立即下单；尚无采购依据、需继续观察的缺口：l4 3 块；1 个分区无法规划（new）"
        );
        let en = told(Advice::NotYet(Wait::NoTrend), false, (0.0, 0.0)).conclusion(Language::En);
        assert!(en.starts_with("not yet, since no trend leads there"), "{en}");
        assert!(en.contains("watch 2 of 6 pools") && !en.contains("ordered"), "{en}");
        let fits = told(Advice::Fits, false, (40.0, 0.0)).conclusion(Language::En);
        assert_eq!(
            fits,
            "the load of each of 5 pools stays within its capacity; 1 pool has no plan (new)"
        );
    }

    #[test]
    fn what_pools_without_a_plan_leave_free_is_told_with_what_it_rests_on() {
        // Breaks if 31 GPUs that stand idle in young pools are left out, or called planned.
        let en = told(Advice::Buy, false, (3.0, 31.0)).conclusion(Language::En);
        let free = "the other pools leave 34 free in their fullest weeks, 31 of them in pools \
                    without a plan, which rests on their fullest week so far: where";
        assert!(en.contains(free), "{en}");
        let zh = told(Advice::Buy, false, (0.0, 31.0)).conclusion(Language::Zh);
        assert!(zh.contains("空闲 31 块（这些分区尚无法规划，按其迄今最忙的一周计）"), "{zh}");
    }

    #[test]
    fn what_is_given_back_stands_in_front() {
        let back = |gpus| FleetPlanned {
            gpus_given_back: Some(gpus),
            ..told(Advice::Buy, false, (0.0, 0.0))
        };
        let en = back(6.2).text(Language::En);
        assert!(
            en.starts_with("Plan, with 6.2 GPUs that are held while idle given back: 2"),
            "{en}"
        );
        assert!(back(6.2).text(Language::Zh).starts_with("规划（已计入收回占而不用的 6.2 块）：6"));
        assert!(back(0.01).text(Language::En).starts_with("Plan: 2"));
    }

    #[test]
    fn many_pools_are_not_all_named() {
        let short: Vec<(String, u32)> = (1..=8).map(|n| (format!("p{n}"), n)).collect();
        let en = named(&short, Language::En);
        assert_eq!(en, "8 in p8, 7 in p7, 6 in p6, 5 in p5, 4 in p4, 3 in p3, and 2 more");
    }
}
