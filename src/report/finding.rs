//! Verdicts on jobs and problems of GPUs, as a reader of a language reads them.

use super::chart::number;
use super::data::{HardwareFinding, JobFinding};
use super::words::{Language, percent};

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

/// Why a job has its verdict: the measurement, the limit and the hours behind it.
pub(crate) fn job_reason(job: &JobFinding, language: Language) -> String {
    if language == Language::En {
        return job.reason.clone();
    }
    let measurement = match job.measurement.as_str() {
        "gpu_util_ratio" => "GPU 利用率",
        "mem_used_ratio" => "显存占用",
        "cpu_util_ratio" => "CPU 利用率",
        "coverage_ratio" => "观测覆盖",
        "idle_hours" => "连续空闲小时",
        "gpus_idle" => "空闲 GPU 数",
        "hours_observed" => "每块 GPU 已观测小时",
        "hot_ratio" => "过热时间占比",
        "hardware_slowdown_ratio" => "硬件降频时间占比",
        "ecc_uncorrected" => "新增不可纠正内存错误",
        "xid" => "Xid",
        other => other,
    };
    let ratio = job.measurement.ends_with("_ratio");
    let value = |level: Option<f64>| match level {
        Some(_) if ratio => percent(level, Language::Zh.words()),
        Some(level) => number((level * 10.0).round() / 10.0),
        None => "未知".to_owned(),
    };
    format!(
        "{measurement} {}，阈值 {}；已观测 {} GPU 小时",
        value(job.level),
        value(job.limit_level),
        number(job.gpu_hours)
    )
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
