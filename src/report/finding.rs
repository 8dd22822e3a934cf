//! Verdicts on jobs and problems of GPUs, as a reader of a language reads them.

mod job;

use super::answer::plural;
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

/// What was seen of a GPU, how often and for how long: the same in each language.
pub(crate) fn hardware(gpu: &HardwareFinding, language: Language) -> String {
    // That it is lost, or said to be down, is told once and not so many times.
    let counted = !matches!(gpu.problem.as_str(), "lost" | "state");
    let times = gpu.occurrences.filter(|_| counted);
    let hours = gpu.hours.map(|hours| number((hours * 10.0).round() / 10.0));
    match language {
        Language::En => {
            let times = times.map_or_else(String::new, |t| format!(", {}", plural(t, "time")));
            let hours = hours.map_or_else(String::new, |hours| format!(", {hours} h"));
            format!("{}: {}{times}{hours}", gpu.problem, gpu.reason)
        }
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
            let times = times.map(|times| number(times as f64));
            let times = times.map_or_else(String::new, |times| format!("，{times} 次"));
            let hours = hours.map_or_else(String::new, |hours| format!("，{hours} 小时"));
            format!("{problem}：{}{times}{hours}", reason_zh(&gpu.reason))
        }
    }
}

/// The reason of a problem, which the question words in English, in Chinese.
fn reason_zh(reason: &str) -> String {
    let told = [
        ("at or above ", "不低于 "),
        ("driver told Xid ", "驱动报告 Xid "),
        ("inventory says ", "资产清单标为 "),
        ("silent while other GPUs of its node report", "同节点的其他 GPU 仍在报告"),
        ("the whole node is silent", "整个节点没有报告"),
        ("clocks lowered by heat", "因过热降低频率"),
        (
            "clocks lowered by the hardware (power brake or slowdown)",
            "硬件降低频率（供电或降速信号）",
        ),
        ("memory errors that could not be corrected", "未能纠正的内存错误"),
        ("memory errors that were corrected", "已纠正的内存错误"),
    ];
    let found = told.iter().find_map(|(en, zh)| Some((zh, reason.strip_prefix(en)?)));
    found.map_or_else(|| reason.to_owned(), |(zh, rest)| format!("{zh}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_is_told_with_the_same_facts_in_both_languages() {
        // Breaks if one language tells counts and hours and the other does not, or leaves English.
        let told = |problem: &str, reason: &str, occurrences| {
            let gpu = HardwareFinding {
                node: "n".to_owned(),
                gpu: Some(1),
                gpu_uuid: None,
                problem: problem.to_owned(),
                occurrences: Some(occurrences),
                hours: Some(2.25),
                last_seen_at: None,
                reason: reason.to_owned(),
            };
            [Language::En, Language::Zh].map(|language| hardware(&gpu, language))
        };
        assert_eq!(
            told("hot", "at or above 85.0 °C", 1),
            ["hot: at or above 85.0 °C, 1 time, 2.3 h", "过热：不低于 85.0 °C，1 次，2.3 小时"]
        );
        assert_eq!(
            told("lost", "the whole node is silent", 1),
            ["lost: the whole node is silent, 2.3 h", "失联：整个节点没有报告，2.3 小时"]
        );
        // As `queries/hardware.sql` words them.
        let question = include_str!("../../queries/hardware.sql");
        for reason in [
            "silent while other GPUs of its node report",
            "the whole node is silent",
            "clocks lowered by heat",
            "clocks lowered by the hardware (power brake or slowdown)",
            "memory errors that could not be corrected",
            "memory errors that were corrected",
            "at or above ",
            "driver told Xid ",
            "inventory says ",
        ] {
            assert!(question.contains(reason), "{reason}");
            let [_, zh] = told("xid", reason, 3);
            let letters = zh.replace("Xid", "").replace("GPU", "");
            assert!(!letters.contains(|c: char| c.is_ascii_alphabetic()), "{zh}");
        }
    }
}
