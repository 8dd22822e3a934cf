//! Why a job has its verdict: the measurement, the limit and the hours behind it.

use super::super::chart::number;
use super::super::data::JobFinding;
use super::super::words::Language;

/// The reason in a language. The English one is the question's own; the Chinese one tells the same
/// from the columns beside it.
pub(crate) fn job_reason(job: &JobFinding, language: Language) -> String {
    if language == Language::En {
        return job.reason.clone();
    }
    let measured = measured(job);
    let usual = match job.verdict.as_str() {
        "failing-hardware" | "hot" | "not-enough-data" | "unbalanced" => String::new(),
        _ => usual(job),
    };
    format!("{measured}{usual}；已读 {} GPU 小时", tenths(Some(job.gpu_hours)))
}

/// What was measured and the limit.
fn measured(job: &JobFinding) -> String {
    let seen = &job.evidence;
    let (level, limit) = (job.level, job.limit_level);
    match (job.verdict.as_str(), job.measurement.as_str()) {
        (_, "ecc_uncorrected") => {
            format!("新增 {} 个不可纠正的内存错误，上限 0", whole(level))
        }
        (_, "xid") => format!("驱动报告 Xid {}，本不应有", whole(level)),
        (_, "hardware_slowdown_ratio") => {
            format!("硬件降频占 {} 的时间，上限 {}", share(level), share(limit))
        }
        ("hot", _) => format!(
            "过热或因热降频占 {} 的时间，上限 {}；最高 {} °C",
            share(level),
            share(limit),
            whole(seen.temp_max_c)
        ),
        ("not-enough-data", _) if seen.util_mean_ratio.is_none() => "从未读到利用率".to_owned(),
        (_, "coverage_ratio") => {
            format!("占用的时间只读到 {}，需要 {}", share(level), share(limit))
        }
        (_, "hours_observed") => {
            let minutes = |hours: Option<f64>| whole(hours.map(|hours| hours * 60.0));
            format!("每块 GPU 只读到 {} 分钟，需要 {} 分钟", minutes(level), minutes(limit))
        }
        ("unbalanced", _) => format!(
            "{} 块 GPU 中有 {} 块低于 5 %，而最忙的一块为 {}（界限 30 %）",
            whole(seen.gpus.map(|gpus| gpus as f64)),
            whole(level),
            share(seen.util_best_ratio)
        ),
        ("idle-held", _) if seen.idle_tail_hours.is_none() => {
            format!("始终低于 5 %，已 {} 小时，上限 {} 小时", tenths(level), whole(limit))
        }
        ("idle-held", _) => format!(
            "全部 {} 小时中最近 {} 小时低于 5 %，上限 {} 小时且过半；此前忙碌过",
            tenths(seen.span_hours),
            tenths(level),
            whole(limit)
        ),
        ("memory-only", _) => format!(
            "显存占用 {}（界限 {}），而 GPU 在 {} 小时内始终低于 5 %（上限 1 小时）",
            share(level),
            share(limit),
            tenths(seen.hours_read)
        ),
        ("starved-of-data", _) => format!(
            "GPU 利用率均值 {}（界限 50 %），而 CPU 利用率 {}（界限 {}）",
            share(seen.util_mean_ratio),
            share(level),
            share(limit)
        ),
        _ if seen.baseline_p25_ratio.is_none() => {
            format!("GPU 利用率均值 {}，下限 {}", share(level), share(limit))
        }
        _ => format!(
            "GPU 利用率均值 {}、中位数 {}，两者的下限 {}",
            share(level),
            share(seen.util_p50_ratio),
            share(limit)
        ),
    }
}

/// The baseline that the job is held against.
fn usual(job: &JobFinding) -> String {
    let seen = &job.evidence;
    match seen.baseline_p25_ratio {
        None => "；没有可用的基线，按固定界限".to_owned(),
        Some(p25) => format!(
            "；{} 上 {} 在作业运行的工作与其他时段的下四分位为 {}（{} 个作业，{} GPU 小时）",
            job.gpu_model,
            job.workload,
            share(Some(p25)),
            whole(seen.baseline_jobs.map(|jobs| jobs as f64)),
            whole(seen.baseline_gpu_hours)
        ),
    }
}

fn known(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| Language::Zh.words().unknown.to_owned(), text)
}

fn share(ratio: Option<f64>) -> String {
    known(ratio, |ratio| format!("{:.0} %", ratio * 100.0))
}

fn whole(value: Option<f64>) -> String {
    known(value, |value| number(value.round()))
}

fn tenths(value: Option<f64>) -> String {
    known(value, |value| format!("{value:.1}"))
}

#[cfg(test)]
mod tests {
    use super::super::super::data::JobEvidence;
    use super::*;

    /// Numbers of a text, in order.
    fn numbers(text: &str) -> Vec<String> {
        let digit = |letter: char| letter.is_ascii_digit() || letter == '.';
        let mut found: Vec<String> = text
            .split(|letter: char| !digit(letter))
            .map(|number| number.trim_matches('.').to_owned())
            .filter(|number| !number.is_empty())
            .collect();
        found.sort();
        found
    }

    #[test]
    fn the_chinese_reason_tells_every_number_of_the_english_one() {
        let job = |verdict: &str, measurement: &str, level, limit, reason: &str| JobFinding {
            verdict: verdict.to_owned(),
            measurement: measurement.to_owned(),
            level: Some(level),
            limit_level: Some(limit),
            reason: reason.to_owned(),
            workload: "train".to_owned(),
            gpu_model: "H".to_owned(),
            gpu_hours: 10.0,
            evidence: JobEvidence {
                gpus: Some(2),
                util_mean_ratio: Some(0.3),
                util_p50_ratio: Some(0.28),
                util_best_ratio: Some(0.9),
                temp_max_c: Some(90.0),
                idle_tail_hours: Some(9.0),
                span_hours: Some(10.0),
                hours_read: Some(10.0),
                baseline_p25_ratio: Some(0.8),
                baseline_jobs: Some(9),
                baseline_gpu_hours: Some(297.0),
            },
            ..JobFinding::default()
        };
        let usual = "; the lower quartile of train on H in the working and other hours that it ran is 80 % (9 jobs, 297 GPU-hours)";
        // As the question words them.
        for (verdict, measurement, level, limit, reason) in [
            (
                "failing-hardware",
                "ecc_uncorrected",
                1.0,
                0.0,
                "1 new memory errors that could not be corrected, limit 0",
            ),
            ("failing-hardware", "xid", 79.0, 0.0, "driver told Xid 79, limit none"),
            (
                "failing-hardware",
                "hardware_slowdown_ratio",
                0.17,
                0.1,
                "clocks lowered by the hardware for 17 % of the time, limit 10 %",
            ),
            (
                "hot",
                "hot_ratio",
                0.2,
                0.1,
                "hot or throttled by heat for 20 % of the time, limit 10 %; up to 90 °C",
            ),
            (
                "not-enough-data",
                "coverage_ratio",
                0.1,
                0.5,
                "only 10 % of the hours held were read, 50 % needed",
            ),
            (
                "not-enough-data",
                "hours_observed",
                5.0 / 60.0,
                1.0 / 6.0,
                "only 5 minutes were read of each GPU, 10 needed",
            ),
            (
                "unbalanced",
                "gpus_idle",
                1.0,
                0.0,
                "1 of 2 GPUs stays below 5 % while the busiest is at 90 %, limit 30 %",
            ),
            (
                "idle-held",
                "idle_hours",
                9.0,
                1.0,
                "below 5 % for the last 9.0 h of 10.0 h, limit 1 h and half; busy before",
            ),
            (
                "memory-only",
                "mem_used_ratio",
                0.88,
                0.1,
                "88 % of memory is loaded, limit 10 %, and the GPU stays below 5 % for 10.0 h, limit 1 h",
            ),
            (
                "starved-of-data",
                "cpu_util_ratio",
                1.0,
                0.9,
                "GPU at a mean of 30 %, limit 50 %, while the CPUs are at 100 %, limit 90 %",
            ),
            (
                "under-used",
                "gpu_util_ratio",
                0.3,
                0.8,
                "GPU at a mean of 30 % and a median of 28 %, limit of both 80 %",
            ),
        ] {
            let usual = match verdict {
                "failing-hardware" | "hot" | "not-enough-data" | "unbalanced" => "",
                _ => usual,
            };
            let english = format!("{reason}{usual}; 10.0 GPU-hours read");
            let chinese =
                job_reason(&job(verdict, measurement, level, limit, &english), Language::Zh);
            assert_eq!(numbers(&chinese), numbers(&english), "{english}\n{chinese}");
        }
        let mut never = job("idle-held", "idle_hours", 10.0, 1.0, "");
        never.evidence.idle_tail_hours = None;
        never.evidence.baseline_p25_ratio = None;
        assert_eq!(
            job_reason(&never, Language::Zh),
            "始终低于 5 %，已 10.0 小时，上限 1 小时；没有可用的基线，按固定界限；已读 10.0 GPU 小时"
        );
    }
}
