//! Verdicts on jobs and problems of GPUs, as a reader of a language reads them.

mod job;

use super::chart::number;
use super::data::HardwareFinding;
use super::words::Language;
pub(crate) use job::job_reason;

/// A verdict as printed.
pub(crate) fn verdict(name: &str, language: Language) -> &str {
    match (language, name) {
        (Language::En, name) => name,
        (Language::Zh, "healthy") => "健康",
        (Language::Zh, "under-used") => "利用不足",
        (Language::Zh, "idle-held") => "占而不用",
        (Language::Zh, "memory-only") => "只占显存",
        (Language::Zh, "starved-of-data") => "等待数据",
        (Language::Zh, "unbalanced") => "负载不均",
        (Language::Zh, "hot") => "过热",
        (Language::Zh, "failing-hardware") => "硬件故障",
        (Language::Zh, "not-enough-data") => "数据不足",
        (Language::Zh, name) => name,
    }
}

/// What was seen of a GPU.
pub(crate) fn hardware(gpu: &HardwareFinding, language: Language) -> String {
    let hours = gpu.hours.map(|hours| number((hours * 10.0).round() / 10.0));
    let times = gpu.occurrences.map(|times| number(times as f64));
    match language {
        Language::En => format!("{}: {}", gpu.problem, gpu.reason),
        Language::Zh => {
            let problem = match gpu.problem.as_str() {
                "lost" => "失联",
                "ecc-uncorrected" => "不可纠正内存错误",
                "ecc-corrected" => "可纠正内存错误",
                "xid" => "驱动报告 Xid",
                "hardware-slowdown" => "硬件降频",
                "thermal-throttle" => "过热降频",
                "hot" => "过热",
                "state" => "资产状态异常",
                other => other,
            };
            let times = times.map_or_else(String::new, |times| format!("，{times} 次"));
            let hours = hours.map_or_else(String::new, |hours| format!("，{hours} 小时"));
            format!("{problem}{times}{hours}")
        }
    }
}
