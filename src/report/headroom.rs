//! How a forecast stands against the GPUs that are available: what lies above is said, never cut.

use chrono_tz::Tz;
use serde::Serialize;

use super::chart::number;
use super::data::Local;
use super::words::Language;

/// When and how often a quantile lies above the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Passing {
    /// Start of the first step above it.
    pub first_at: Local,
    /// Steps above it.
    pub steps: usize,
}

/// A forecast against the capacity known now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Headroom {
    /// GPUs available.
    pub gpus_available: f64,
    /// GPUs installed besides and down, mean over the last hour.
    pub gpus_down: f64,
    /// How that is known: config, inventory, counts or peak-held, which is a floor.
    pub source: String,
    /// Steps ahead.
    pub steps: usize,
    /// Where the median is above it; `None` where it never is.
    pub p50: Option<Passing>,
    /// Where the 90 % quantile is above it; `None` where it never is.
    pub p90: Option<Passing>,
    /// Zone of the instants in words.
    #[serde(skip)]
    pub zone: Tz,
}

impl Headroom {
    /// The number of GPUs is only known from below.
    #[must_use]
    pub fn is_floor(&self) -> bool {
        self.source == "peak-held"
    }

    /// What a reader must know, as one clause.
    #[must_use]
    pub fn text(&self, language: Language) -> String {
        let gpus = number(self.gpus_available);
        let passes = self.passes(language);
        match language {
            Language::En if self.is_floor() => format!(
                "how many GPUs are available is not known, and the most that jobs ever held \
                 at once, {gpus}, is only a floor: {passes}"
            ),
            Language::En => {
                let waits = if self.p90.is_some() { "; what is asked above it waits" } else { "" };
                let are = if gpus == "1" { "GPU is" } else { "GPUs are" };
                let down = self.down(language);
                format!("{gpus} {are} available{down}, known from {}: {passes}{waits}", self.source)
            }
            Language::Zh if self.is_floor() => {
                format!("可用 GPU 数未知，同时占用的历史峰值 {gpus} 块只是下限：{passes}")
            }
            Language::Zh => {
                let source = match self.source.as_str() {
                    "config" => "配置",
                    "inventory" => "资产清单",
                    "counts" => "计数",
                    other => other,
                };
                let waits = if self.p90.is_some() { "；超出部分将排队" } else { "" };
                let down = self.down(language);
                format!("可用 {gpus} 块 GPU（来自{source}{down}）：{passes}{waits}")
            }
        }
    }

    /// What ties the number to that of the GPUs installed.
    fn down(&self, language: Language) -> String {
        let gpus = number((self.gpus_down * 10.0).round() / 10.0);
        match language {
            _ if gpus == "0" => String::new(),
            Language::En => format!(" and {gpus} more down"),
            Language::Zh => format!("，另有 {gpus} 块停机"),
        }
    }

    fn passes(&self, language: Language) -> String {
        let Self { steps, .. } = self;
        match (language, self.p50, self.p90) {
            (Language::En, None, None) => {
                format!("neither the median nor the 90 % quantile is above it in {steps} steps")
            }
            (Language::En, None, Some(p90)) => format!(
                "the median stays within it, the 90 % quantile is above it in {} of {steps} steps, \
                 first at {}",
                p90.steps,
                self.local(p90.first_at)
            ),
            (Language::En, Some(p50), Some(p90)) if p50 == p90 => format!(
                "the median and the 90 % quantile are above it in {} of {steps} steps, first at {}",
                p50.steps,
                self.local(p50.first_at)
            ),
            (Language::En, Some(p50), p90) => {
                // Quantiles never cross: where the median is above, so is the 90 % quantile.
                let p90 = p90.unwrap_or(p50);
                format!(
                    "the median is above it in {} of {steps} steps, first at {}, the 90 % quantile \
                     in {}, first at {}",
                    p50.steps,
                    self.local(p50.first_at),
                    p90.steps,
                    self.local(p90.first_at)
                )
            }
            (Language::Zh, None, None) => {
                format!("未来 {steps} 个时段内中位数与 90 % 分位均不超过它")
            }
            (Language::Zh, None, Some(p90)) => format!(
                "中位数不超过它，90 % 分位在 {steps} 个时段中有 {} 个超过，最早在 {}",
                p90.steps,
                self.local(p90.first_at)
            ),
            (Language::Zh, Some(p50), Some(p90)) if p50 == p90 => format!(
                "{steps} 个时段中，中位数与 90 % 分位有 {} 个超过它，最早在 {}",
                p50.steps,
                self.local(p50.first_at)
            ),
            (Language::Zh, Some(p50), p90) => {
                let p90 = p90.unwrap_or(p50);
                format!(
                    "{steps} 个时段中，中位数有 {} 个超过它，最早在 {}；90 % 分位有 {} 个，最早在 {}",
                    p50.steps,
                    self.local(p50.first_at),
                    p90.steps,
                    self.local(p90.first_at)
                )
            }
        }
    }

    /// An instant on the local clock, with its distance from UTC.
    fn local(&self, at: Local) -> String {
        at.with_timezone(&self.zone).format("%Y-%m-%d %H:%M %:z").to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headroom(source: &str, p50: Option<usize>, p90: Option<usize>) -> Headroom {
        let first_at = "2026-03-30T01:00:00Z".parse::<Local>().unwrap();
        let passing = |steps: Option<usize>| steps.map(|steps| Passing { first_at, steps });
        Headroom {
            gpus_available: 15.0,
            gpus_down: 0.0,
            source: source.to_owned(),
            steps: 168,
            p50: passing(p50),
            p90: passing(p90),
            zone: Tz::Asia__Shanghai,
        }
    }

    #[test]
    fn what_lies_above_capacity_is_said_with_its_hours() {
        assert_eq!(
            headroom("inventory", Some(40), Some(120)).text(Language::En),
            "15 GPUs are available, known from inventory: the median is above it in 40 of 168 \
             steps, first at 2026-03-30 09:00 +08:00, the 90 % quantile in 120, first at \
             2026-03-30 09:00 +08:00; what is asked above it waits"
        );
        assert_eq!(
            headroom("inventory", Some(168), Some(168)).text(Language::En),
            "15 GPUs are available, known from inventory: the median and the 90 % quantile are \
             above it in 168 of 168 steps, first at 2026-03-30 09:00 +08:00; what is asked above \
             it waits"
        );
        assert_eq!(
            headroom("counts", None, None).text(Language::En),
            "15 GPUs are available, known from counts: neither the median nor the 90 % quantile is \
             above it in 168 steps"
        );
        assert!(headroom("inventory", None, Some(2)).text(Language::Zh).contains("有 2 个超过"));
        let down = Headroom { gpus_down: 1.0, ..headroom("inventory", None, None) };
        let told = down.text(Language::En);
        assert!(told.starts_with("15 GPUs are available and 1 more down, known from"), "{told}");
        assert!(down.text(Language::Zh).contains("（来自资产清单，另有 1 块停机）"));
    }

    #[test]
    fn a_floor_is_not_called_a_capacity() {
        let told = headroom("peak-held", None, Some(3)).text(Language::En);
        assert!(told.contains("not known") && told.contains("only a floor"), "{told}");
        assert!(!told.contains("waits"), "{told}");
    }
}
