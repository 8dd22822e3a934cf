//! Whether it is healthy: the judged GPU-hours of healthy jobs, or why none is judged.

use std::collections::BTreeSet;

use super::super::chart::number;
use super::super::data::{HardwareFinding, ReportData, VerdictUse};
use super::super::words::{Language, duration, percent};
use super::{Answer, plural, tenths};

/// Whether it is healthy.
pub(crate) fn healthy(data: &ReportData, language: Language) -> Answer {
    let words = language.words();
    let judged = |row: &&VerdictUse| row.verdict != "not-enough-data";
    let all: f64 = data.health.iter().filter(judged).map(|row| row.gpu_hours).sum();
    if all <= 0.0 {
        let (figure, sick) = match sick(data, language) {
            Some(sick) if language == Language::En => (sick.short, format!("{} ", sick.sentence)),
            Some(sick) => (sick.short, sick.sentence),
            None => (words.unknown.to_owned(), String::new()),
        };
        return Answer { figure, sentence: format!("{sick}{}", unjudged(data, language)) };
    }
    let well: f64 =
        data.health.iter().filter(|row| row.verdict == "healthy").map(|row| row.gpu_hours).sum();
    let share = percent(Some(well / all), words);
    let idle = data.totals.gpu_hours_idle_held.map_or_else(|| words.unknown.into(), number);
    let sick = sick(data, language).map(|sick| sick.sentence);
    let sentence = match language {
        Language::En => format!(
            "{share} of the judged GPU-hours belong to healthy jobs; {idle} GPU-hours were held while idle. {}",
            sick.unwrap_or_else(|| "No GPU needs a look.".to_owned())
        ),
        Language::Zh => format!(
            "已评判的 GPU 小时中 {share} 属于健康作业；{idle} GPU 小时占而不用。{}",
            sick.unwrap_or_else(|| "没有需要检查的 GPU。".to_owned())
        ),
    };
    Answer { figure: share, sentence }
}

/// GPUs that are lost or need a look, as a figure and as a sentence.
struct Sick {
    short: String,
    sentence: String,
}

/// Of how many GPUs how many are lost and how many others need a look; `None` where none is.
fn sick(data: &ReportData, language: Language) -> Option<Sick> {
    let gpus = |lost: bool| -> BTreeSet<_> {
        let of = data.hardware.iter().filter(|gpu| (gpu.problem == "lost") == lost);
        of.map(|gpu: &HardwareFinding| (&gpu.node, gpu.gpu)).collect()
    };
    let lost = gpus(true);
    let others = gpus(false).difference(&lost).count();
    let known = data.totals.gpus_installed.filter(|_| !data.totals.capacity_is_floor());
    let of = match (known.map(tenths), language) {
        (None, _) => String::new(),
        (Some(gpus), Language::En) => format!(" of {gpus}"),
        (Some(gpus), Language::Zh) => format!("{gpus} 块中"),
    };
    let need = if others == 1 { "needs" } else { "need" };
    let more = plural(others as u64, "GPU");
    Some(match (lost.len(), others, language) {
        (0, 0, _) => return None,
        (0, _, Language::En) => Sick {
            short: format!("{more} to look at"),
            sentence: format!("{more}{of} {need} a look."),
        },
        (lost, _, Language::En) => {
            let (gone, is) = (plural(lost as u64, "GPU"), if lost == 1 { "is" } else { "are" });
            let besides = match others {
                0 => String::new(),
                others => format!(", and {others} more {need} a look"),
            };
            Sick {
                short: format!("{gone} lost"),
                sentence: format!("{gone}{of} {is} lost{besides}."),
            }
        }
        (0, _, Language::Zh) => Sick {
            short: format!("{others} 块待检查"),
            sentence: format!("{of}有 {others} 块 GPU 需要检查。"),
        },
        (lost, _, Language::Zh) => {
            let besides = match others {
                0 => String::new(),
                others => format!("，另有 {others} 块需要检查"),
            };
            Sick {
                short: format!("{lost} 块失联"),
                sentence: format!("{of}有 {lost} 块 GPU 失联{besides}。"),
            }
        }
    })
}

/// Why no job is judged, and how long jobs waited, which is known without readings.
fn unjudged(data: &ReportData, language: Language) -> String {
    let (totals, zh) = (&data.totals, language == Language::Zh);
    let read: u64 = data.health.iter().map(|row| row.jobs).sum();
    let jobs = totals.jobs.or(totals.jobs_submitted).unwrap_or(0);
    let why = match (zh, read, jobs, data.sampled()) {
        (false, 1.., _, _) => format!(
            "No job can be judged: too little was read of each of {}.",
            plural(read, "job")
        ),
        (true, 1.., _, _) => format!("无法评判：{read} 个作业的采样都太少。"),
        (false, 0, 0, _) => {
            "No job can be judged: no job that holds a GPU is known in this period.".to_owned()
        }
        (true, 0, 0, _) => "无法评判：本期没有已知的占用 GPU 的作业。".to_owned(),
        (false, 0, _, false) => "No job can be judged: there are no readings of GPUs (loadline import nvidia-smi, or dcgm).".to_owned(),
        (true, 0, _, false) => {
            "无法评判：没有 GPU 采样（可用 loadline import nvidia-smi 或 dcgm 导入）。".to_owned()
        }
        (false, 0, _, true) => "No job can be judged: no reading of this period belongs to one; the nodes or GPUs of each job would tell which (loadline import allocations).".to_owned(),
        (true, 0, _, true) => "无法评判：本期没有属于作业的采样；需要知道每个作业在哪些节点或 GPU 上（可用 loadline import allocations 导入）。".to_owned(),
    };
    let waited = match (zh, totals.queue_time_s_p50) {
        (_, None) => String::new(),
        (false, Some(wait)) if wait < 1.0 => {
            " At least half of the jobs started at once.".to_owned()
        }
        (true, Some(wait)) if wait < 1.0 => "至少半数作业无需排队。".to_owned(),
        (false, Some(wait)) => {
            format!(
                " Half of the jobs that started waited no longer than {}.",
                duration(wait, language)
            )
        }
        (true, Some(wait)) => format!("已开始的作业半数排队不超过 {}。", duration(wait, language)),
    };
    format!("{why}{waited}")
}
