//! What a reader of the outlook must know, one line each, in English and Chinese.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use loadline_engine::calendar::offset_s;
use loadline_forecast::Reason;
use serde::{Serialize, Serializer};

use super::chart::number;
use super::headroom::Headroom;
use super::lack::Lack;
use super::planned::{FleetPlanned, Planned};
use super::tested::Tested;
use super::words::{Language, percent};

/// One line under the outlook. As JSON it is its English text.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// The model and how it did.
    Forecast(Tested),
    /// How the forecast stands against capacity.
    Headroom(Headroom),
    /// What the forecaster says of the series, and the zone of its dates.
    Reason(Reason, Tz),
    /// Why there is no forecast.
    NoForecast(Lack),
    /// The plan of the fleet, or of one of several pools.
    Plan(Planned),
    /// What the plans of several pools come to.
    Plans(FleetPlanned),
    /// Why there is no plan.
    NoPlan {
        /// Pool it is missing for; `None` for the fleet.
        pool: Option<String>,
        /// Why.
        lack: Lack,
    },
    /// What was held while idle lately.
    Idle {
        /// GPU-hours.
        gpu_hours: f64,
        /// GPUs that they are on average.
        gpus: f64,
        /// Days summed over.
        days: f64,
    },
    /// What the expansion rule says of a pool.
    Expansion {
        /// Pool.
        pool: String,
        /// Conclusion in English, which begins with its verdict.
        conclusion: String,
        /// Weeks in a row that the rule asks for.
        weeks_asked: u32,
        /// Share of capacity that it asks for.
        ratio: f64,
        /// Held share of the last week.
        held_ratio: Option<f64>,
        /// GPUs waiting in each of these weeks, on average.
        waiting: Vec<Option<f64>>,
    },
    /// Hours in which every count of a cluster was 0.
    Blind {
        /// Cluster.
        cluster: Option<String>,
        /// First instant.
        first_at: DateTime<Utc>,
        /// Last instant.
        last_at: DateTime<Utc>,
        /// Hours that these counts stand for.
        hours: f64,
        /// Zone of the instants in words.
        zone: Tz,
    },
    /// Pools of which the expansion rule asks for nothing.
    NoExpansion {
        /// Weeks in a row that the rule asks for.
        weeks_asked: u32,
        /// Share of capacity that it asks for.
        ratio: f64,
        /// Pools that are not full that long.
        keep: usize,
        /// Pools of fewer whole weeks than it asks for.
        unknown: usize,
    },
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text(Language::En))
    }
}

impl Note {
    /// The line.
    #[must_use]
    pub fn text(&self, language: Language) -> String {
        match language {
            Language::En => self.english(),
            Language::Zh => self.chinese(),
        }
    }

    fn english(&self) -> String {
        match self {
            Self::Forecast(tested) => tested.text(Language::En),
            Self::Headroom(headroom) => format!("Capacity: {}.", headroom.text(Language::En)),
            Self::Reason(reason, zone) => {
                format!("Forecast: {}.", reason.told(|at_ms| offset_s(*zone, at_ms)))
            }
            Self::NoForecast(lack) => {
                let what =
                    if lack.is_of_demand() { "No forecast and no plan" } else { "No forecast" };
                format!("{what}: {}.", lack.with_remedy(Language::En))
            }
            Self::Plan(planned) => planned.text(Language::En),
            Self::Plans(plans) => plans.text(Language::En),
            Self::NoPlan { pool, lack } => {
                let of = pool.as_ref().map_or_else(String::new, |pool| format!(" for pool {pool}"));
                format!("No plan{of}: {}.", lack.with_remedy(Language::En))
            }
            Self::Idle { gpu_hours, gpus, days } => format!(
                "In the last {days:.0} days jobs held {} GPU-hours while idle: {gpus:.1} GPUs on average.",
                number(*gpu_hours)
            ),
            Self::Blind { cluster, first_at, last_at, hours, zone } => format!(
                "Gap: between {} and {} every count of {} was 0 at once, for {hours:.1} h in all, with GPUs installed before and after: taken as not seen, and not as a demand of 0.",
                minute(*first_at, *zone),
                minute(*last_at, *zone),
                cluster.as_ref().map_or("the fleet".to_owned(), |name| format!("cluster {name}"))
            ),
            Self::Expansion { pool, conclusion, weeks_asked, held_ratio, .. } => format!(
                "Expansion rule for pool {pool}: {conclusion}; {weeks_asked} weeks in a row are \
                 asked for, and {} was held in the last.",
                percent(*held_ratio, Language::En.words())
            ),
            Self::NoExpansion { weeks_asked, ratio, keep, unknown } => {
                let share = percent(Some(*ratio), Language::En.words());
                let kept = (*keep > 0).then(|| {
                    format!("{} not above {share} for {weeks_asked} weeks in a row", were(*keep))
                });
                let young = (*unknown > 0).then(|| {
                    format!("{} seen for fewer than {weeks_asked} whole weeks", were(*unknown))
                });
                let parts: Vec<String> = kept.into_iter().chain(young).collect();
                format!("Expansion rule: {}.", parts.join("; "))
            }
        }
    }

    fn chinese(&self) -> String {
        match self {
            Self::Forecast(tested) => tested.text(Language::Zh),
            Self::Headroom(headroom) => format!("容量：{}。", headroom.text(Language::Zh)),
            Self::Reason(reason, zone) => format!("预测说明：{}。", reason_zh(reason, *zone)),
            Self::NoForecast(lack) => {
                let what =
                    if lack.is_of_demand() { "无法预测与规划" } else { "无法预测" };
                format!("{what}：{}。", lack.with_remedy(Language::Zh))
            }
            Self::Plan(planned) => planned.text(Language::Zh),
            Self::Plans(plans) => plans.text(Language::Zh),
            Self::NoPlan { pool, lack } => {
                let of = pool.as_ref().map_or_else(String::new, |pool| format!("分区 {pool} "));
                format!("{of}无法规划：{}。", lack.with_remedy(Language::Zh))
            }
            Self::Idle { gpu_hours, gpus, days } => format!(
                "最近 {days:.0} 天作业占而不用 {} GPU 小时，平均相当于 {gpus:.1} 块 GPU。",
                number(*gpu_hours)
            ),
            Self::Blind { cluster, first_at, last_at, hours, zone } => format!(
                "缺口：{} 至 {} 之间{}的全部计数同时为 0，共 {hours:.1} 小时，而前后都有 GPU 在册：视为未观测，不计为零需求。",
                minute(*first_at, *zone),
                minute(*last_at, *zone),
                cluster.as_ref().map_or("机群".to_owned(), |name| format!("集群 {name}"))
            ),
            Self::Expansion { pool, conclusion, weeks_asked, ratio, held_ratio, waiting } => {
                let words = Language::Zh.words();
                let verdict = match conclusion.split(':').next().unwrap_or_default() {
                    "expand" => "建议扩容",
                    "watch" => "占用已持续偏高，但排队没有增长，继续观察",
                    "keep" => "暂不扩容",
                    _ => "历史太短，无法判断",
                };
                let gpus = |gpus: &Option<f64>| match gpus {
                    Some(gpus) => format!("{gpus:.1}"),
                    None => words.unknown.to_owned(),
                };
                let queue: Vec<String> = waiting.iter().map(gpus).collect();
                let queue = queue.join("、");
                // The conclusion begins with its verdict and how many weeks in a row there were.
                let run = conclusion.split_whitespace().nth(1).unwrap_or_default();
                format!(
                    "扩容规则（分区 {pool}）：{verdict}。已连续 {run} 周占用高于 {}，规则要求连续 {weeks_asked} 周且排队增长；最近一周占用 {}，最近 {} 周平均排队 {queue} 块 GPU。",
                    percent(Some(*ratio), words),
                    percent(*held_ratio, words),
                    waiting.len()
                )
            }
            Self::NoExpansion { weeks_asked, ratio, keep, unknown } => {
                let share = percent(Some(*ratio), Language::Zh.words());
                let kept = (*keep > 0)
                    .then(|| format!("{keep} 个分区未连续 {weeks_asked} 周高于 {share}"));
                let young = (*unknown > 0)
                    .then(|| format!("{unknown} 个分区的历史不足 {weeks_asked} 个整周"));
                let parts: Vec<String> = kept.into_iter().chain(young).collect();
                format!("扩容规则：{}。", parts.join("；"))
            }
        }
    }
}

fn minute(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%Y-%m-%d %H:%M %:z").to_string()
}

fn were(pools: usize) -> String {
    if pools == 1 { "1 pool was".to_owned() } else { format!("{pools} pools were") }
}

fn day(ms: i64, zone: Tz) -> String {
    DateTime::from_timestamp_millis(ms)
        .map_or_else(String::new, |at| at.with_timezone(&zone).format("%Y-%m-%d").to_string())
}

fn reason_zh(reason: &Reason, zone: Tz) -> String {
    let day = |ms: i64| day(ms, zone);
    match reason {
        Reason::TooLittleHistory { have_days, need_days } => {
            format!("历史只有 {have_days:.1} 天，学习周规律需要 {need_days:.0} 天")
        }
        Reason::Constant { gpus } => {
            format!("需求始终为 {} 块 GPU", number((gpus * 10.0).round() / 10.0))
        }
        Reason::AllZero => "需求始终为 0".to_owned(),
        Reason::Gaps { missing, steps } => {
            format!("{steps} 个时段中有 {missing} 个没有数据，未计入")
        }
        Reason::Late { since_ms } => format!("{} 之后没有数据", day(*since_ms)),
        Reason::LevelShift { at_ms, before_gpus, after_gpus } => {
            format!("{} 起水平由 {before_gpus:.1} 变为 {after_gpus:.1} 块 GPU", day(*at_ms))
        }
        Reason::NewSeries { first_ms } => format!("新序列：首次需求在 {}", day(*first_ms)),
        other => other.to_string(),
    }
}
