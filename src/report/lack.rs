//! What a store lacks to tell something, and what would tell it, in English and Chinese.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde::{Serialize, Serializer};

use super::answer::plural;
use super::chart::number;
use super::words::Language;

/// Why something is not known. As JSON it is its English text.
#[derive(Debug, Clone, PartialEq)]
pub enum Lack {
    /// No job, no allocation and no count.
    Ledger,
    /// Jobs, none of which asks for a GPU.
    GpuJobs {
        /// Jobs there are.
        jobs: u64,
    },
    /// Counts that leave out what is held or what is waited for.
    Counts,
    /// No whole hour since the first job or count.
    WholeHour,
    /// How many GPUs there are.
    Capacity {
        /// Those that are known, of some pools; 0 where none is.
        gpus_known: f64,
        /// The most that jobs of the others ever held at once, a floor; 0 where none held one.
        gpus_held_most: f64,
    },
    /// Anything in the period: the store holds another.
    Outside {
        /// First and last instant that it holds.
        held: (DateTime<Utc>, DateTime<Utc>),
        /// Zone of these instants in words.
        zone: Tz,
    },
    /// Anything of the days before now.
    Stale {
        /// Last instant that the store holds.
        last_at: DateTime<Utc>,
        /// Days from there to now.
        days: f64,
        /// Zone of the instant in words.
        zone: Tz,
    },
    /// Weeks of history to plan from.
    Weeks {
        /// Days there are, in whole weeks.
        have_days: u32,
        /// Days that a plan needs.
        need_days: u32,
        /// When a GPU was first asked for, and the zone of its date.
        since: (DateTime<Utc>, Tz),
    },
    /// Any GPU that a job or a count asks for.
    Load,
    /// How many GPUs a pool has, of which others are known.
    PoolCapacity,
    /// What somebody else says in words of their own.
    Told(String),
}

impl Serialize for Lack {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text(Language::En))
    }
}

impl Lack {
    /// Nothing tells how many GPUs there are, and no job held one.
    pub const CAPACITY: Self = Self::Capacity { gpus_known: 0.0, gpus_held_most: 0.0 };

    /// What is not known and why.
    #[must_use]
    pub fn text(&self, language: Language) -> String {
        match (language, self.is_of_demand()) {
            (Language::En, true) => format!("no demand is known, since {}", self.cause(language)),
            (Language::Zh, true) => format!("需求未知：{}", self.cause(language)),
            (_, false) => self.cause(language),
        }
    }

    /// Why, without what is not known for it.
    #[must_use]
    pub fn cause(&self, language: Language) -> String {
        match language {
            Language::En => self.english(),
            Language::Zh => self.chinese(),
        }
    }

    /// What is not known, and what would tell it, as one clause.
    #[must_use]
    pub fn with_remedy(&self, language: Language) -> String {
        let mut text = self.text(language);
        if let Some(remedy) = self.remedy(language) {
            text.push_str(if language == Language::Zh { "；" } else { ": " });
            text.push_str(remedy);
        }
        text
    }

    /// Whether it is the demand for GPUs that nothing tells.
    #[must_use]
    pub const fn is_of_demand(&self) -> bool {
        matches!(
            self,
            Self::Ledger
                | Self::GpuJobs { .. }
                | Self::Counts
                | Self::WholeHour
                | Self::Outside { .. }
                | Self::Stale { .. }
        )
    }

    fn english(&self) -> String {
        match self {
            Self::Ledger => "the store holds no job and no count of GPUs".to_owned(),
            Self::GpuJobs { jobs: 1 } => "the one job in the store asks for no GPU".to_owned(),
            Self::GpuJobs { jobs } => {
                format!("none of {} asks for a GPU", plural(*jobs, "job"))
            }
            Self::Counts => "no count tells both the GPUs held and those \
                waited for"
                .to_owned(),
            Self::WholeHour => "no whole hour has passed since the first job or count".to_owned(),
            Self::Capacity { gpus_known, gpus_held_most } if *gpus_known > 0.0 => format!(
                "{} are known, and of the pools that nothing tells the most that jobs ever held \
                 at once, {}, is only a floor",
                plural(gpus_known.round() as u64, "GPU"),
                number(*gpus_held_most)
            ),
            Self::Capacity { gpus_held_most, .. } if *gpus_held_most > 0.0 => format!(
                "how many GPUs are installed is not known, and the most that jobs ever held \
                 at once, {}, is only a floor",
                number(*gpus_held_most)
            ),
            Self::Capacity { .. } => "how many GPUs are installed is not known, and no job ever \
                held one"
                .to_owned(),
            Self::Outside { held: (first, last), zone } => format!(
                "the store holds nothing of this period: it holds {} to {}",
                local(*first, *zone),
                local(*last, *zone)
            ),
            Self::Stale { last_at, days, zone } => {
                format!("the store ends at {}, {days:.1} days before now", local(*last_at, *zone))
            }
            Self::Weeks { have_days, need_days, since: (first, zone) } => format!(
                "{} of weeks that were seen are in the store since the first GPU was asked for on \
                 {}, and a plan needs {need_days}",
                plural(u64::from(*have_days), "day"),
                date(*first, *zone)
            ),
            Self::Load => "no job and no count asks for a GPU".to_owned(),
            Self::PoolCapacity => {
                "how many GPUs it has is not known: no inventory, count or [[capacity]] names it"
                    .to_owned()
            }
            Self::Told(text) => text.clone(),
        }
    }

    fn chinese(&self) -> String {
        match self {
            Self::Ledger => "没有作业账目，也没有 GPU 计数".to_owned(),
            Self::GpuJobs { jobs } => {
                format!("{} 个作业都没有申请 GPU", number(*jobs as f64))
            }
            Self::Counts => "计数没有同时给出占用与排队的 GPU 数".to_owned(),
            Self::WholeHour => "从最早的作业或计数起还不满一个整小时".to_owned(),
            Self::Capacity { gpus_known, gpus_held_most } if *gpus_known > 0.0 => format!(
                "已知 {} 块 GPU，其余分区装机数未知；同时占用的历史峰值 {} 块只是下限",
                number(*gpus_known),
                number(*gpus_held_most)
            ),
            Self::Capacity { gpus_held_most, .. } if *gpus_held_most > 0.0 => {
                format!("装机数未知；同时占用的历史峰值 {} 块只是下限", number(*gpus_held_most))
            }
            Self::Capacity { .. } => "装机数未知，也没有作业占用过 GPU".to_owned(),
            Self::Outside { held: (first, last), zone } => format!(
                "数据中没有本期的内容，数据范围为 {} 至 {}",
                local(*first, *zone),
                local(*last, *zone)
            ),
            Self::Stale { last_at, days, zone } => {
                format!("数据止于 {}，距今 {days:.1} 天", local(*last_at, *zone))
            }
            Self::Weeks { have_days, need_days, since: (first, zone) } => format!(
                "自 {} 首次申请 GPU 以来只有 {have_days} 天的有效周，规划需要 {need_days} 天",
                date(*first, *zone)
            ),
            Self::Load => "没有作业或计数申请 GPU".to_owned(),
            Self::PoolCapacity => {
                "其 GPU 数未知：资产清单、计数与 [[capacity]] 都没有提到它".to_owned()
            }
            Self::Told(text) => text.clone(),
        }
    }

    /// What would tell it.
    #[must_use]
    pub const fn remedy(&self, language: Language) -> Option<&'static str> {
        Some(match (self, language) {
            (Self::Ledger, Language::En) => {
                "import a ledger (loadline import sacct, or jobs) or counts (gpu-counts)"
            }
            (Self::Ledger, Language::Zh) => {
                "可导入作业账目（loadline import sacct 或 jobs）或计数（gpu-counts）"
            }
            (Self::GpuJobs { .. }, Language::En) => {
                "import the ledger with what it tells of GPUs (AllocTRES, or gpus_requested)"
            }
            (Self::GpuJobs { .. }, Language::Zh) => {
                "可导入带有 GPU 数的账目（AllocTRES 或 gpus_requested）"
            }
            (Self::Counts, Language::En) => {
                "import counts with gpus_held and gpus_waiting, or a ledger of jobs"
            }
            (Self::Counts, Language::Zh) => {
                "可导入带有 gpus_held 与 gpus_waiting 的计数，或作业账目"
            }
            (Self::WholeHour, Language::En) => "import what came later, or name a later --now",
            (Self::WholeHour, Language::Zh) => "可导入之后的数据，或用 --now 指定更晚的时刻",
            (Self::Capacity { .. }, Language::En) => {
                "import the inventory (loadline import gpus) or state [[capacity]] in loadline.toml"
            }
            (Self::Capacity { .. }, Language::Zh) => {
                "可导入资产清单（loadline import gpus），或在 loadline.toml 中写明 [[capacity]]"
            }
            (Self::Outside { .. }, Language::En) => {
                "import what is missing, or name a period inside it (--from, --to)"
            }
            (Self::Outside { .. }, Language::Zh) => {
                "可导入缺少的数据，或用 --from、--to 指定其中的时段"
            }
            (Self::Stale { .. }, Language::En) => {
                "import what came since, or name an earlier --now"
            }
            (Self::Stale { .. }, Language::Zh) => "可导入之后的数据，或用 --now 指定更早的时刻",
            (Self::Weeks { .. } | Self::Load | Self::PoolCapacity | Self::Told(_), _) => {
                return None;
            }
        })
    }
}

fn local(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%Y-%m-%d %H:%M %:z").to_string()
}

fn date(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lack_is_told_in_both_languages_with_what_would_tell_it() {
        let lacks = [
            Lack::Ledger,
            Lack::GpuJobs { jobs: 20 },
            Lack::Counts,
            Lack::WholeHour,
            Lack::Capacity { gpus_known: 0.0, gpus_held_most: 0.0 },
            Lack::Capacity { gpus_known: 0.0, gpus_held_most: 8.0 },
            Lack::Capacity { gpus_known: 24.0, gpus_held_most: 8.0 },
            Lack::Outside { held: Default::default(), zone: Tz::UTC },
            Lack::Stale { last_at: DateTime::default(), days: 2.0, zone: Tz::UTC },
        ];
        for lack in lacks {
            let (en, zh) = (lack.with_remedy(Language::En), lack.with_remedy(Language::Zh));
            assert!(en.contains(": import ") && en.contains("known"), "{en}");
            assert!(zh.contains("未知") && zh.contains("；可导入"), "{zh}");
            assert!(!zh.contains("known"), "{zh}");
        }
        let since = (DateTime::default(), Tz::UTC);
        let weeks = Lack::Weeks { have_days: 21, need_days: 28, since };
        let told = "21 days of weeks that were seen are in the store since the first GPU was asked \
            for on 1970-01-01, and a plan needs 28";
        assert_eq!(weeks.with_remedy(Language::En), told);
        assert!(weeks.with_remedy(Language::Zh).contains("21 天"));
    }
}
