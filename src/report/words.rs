//! The words of a report, in English and Chinese: one struct of phrases a language, so that a
//! phrase missing in one of them does not compile.

use super::chart::number;
use super::data::{Action, ReportData};

/// Language of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

/// Phrases of one language.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) code: &'static str,
    pub(crate) title: &'static str,
    pub(crate) question_used: &'static str,
    pub(crate) question_by_whom: &'static str,
    pub(crate) question_healthy: &'static str,
    pub(crate) decision: &'static str,
    pub(crate) utilisation: &'static str,
    pub(crate) nodes: &'static str,
    pub(crate) teams: &'static str,
    pub(crate) baselines: &'static str,
    pub(crate) waste: &'static str,
    pub(crate) health: &'static str,
    pub(crate) hardware: &'static str,
    pub(crate) outlook: &'static str,
    pub(crate) coverage: &'static str,
    pub(crate) held: &'static str,
    pub(crate) busy: &'static str,
    pub(crate) idle_held: &'static str,
    pub(crate) seen: &'static str,
    pub(crate) team: &'static str,
    pub(crate) workload: &'static str,
    pub(crate) gpu_model: &'static str,
    pub(crate) hours: &'static str,
    pub(crate) working: &'static str,
    pub(crate) other: &'static str,
    pub(crate) mean: &'static str,
    pub(crate) range: &'static str,
    pub(crate) jobs: &'static str,
    pub(crate) gpu_hours: &'static str,
    pub(crate) job: &'static str,
    pub(crate) verdict: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) node: &'static str,
    pub(crate) finding: &'static str,
    pub(crate) demand: &'static str,
    pub(crate) forecast_p50: &'static str,
    pub(crate) forecast_band: &'static str,
    pub(crate) capacity: &'static str,
    pub(crate) no_samples: &'static str,
    pub(crate) no_forecast: &'static str,
    pub(crate) none_found: &'static str,
    pub(crate) unknown: &'static str,
    pub(crate) buy: &'static str,
    pub(crate) scale: &'static str,
    pub(crate) clean_up: &'static str,
    pub(crate) nothing: &'static str,
    pub(crate) undecided: &'static str,
}

const EN: Words = Words {
    code: "en",
    title: "GPU capacity report",
    question_used: "How much is used?",
    question_by_whom: "By whom?",
    question_healthy: "Is it healthy?",
    decision: "Decision",
    utilisation: "Utilisation over time",
    nodes: "Distribution over nodes",
    teams: "Who used what",
    baselines: "Baselines by workload and working hours",
    waste: "Held while idle",
    health: "Job health",
    hardware: "Hardware",
    outlook: "Demand forecast and capacity",
    coverage: "How much of the time was seen",
    held: "held",
    busy: "busy",
    idle_held: "held while idle",
    seen: "seen",
    team: "team",
    workload: "workload",
    gpu_model: "GPU model",
    hours: "hours",
    working: "working",
    other: "other",
    mean: "mean",
    range: "5 % to 95 %",
    jobs: "jobs",
    gpu_hours: "GPU-hours",
    job: "job",
    verdict: "verdict",
    reason: "reason",
    node: "node",
    finding: "finding",
    demand: "demand",
    forecast_p50: "forecast, median",
    forecast_band: "80 % of outcomes",
    capacity: "capacity",
    no_samples: "No samples were collected in this period: what jobs held is known, what the GPUs did is not.",
    no_forecast: "No forecast could be made.",
    none_found: "Nothing to report.",
    unknown: "unknown",
    buy: "Buy",
    scale: "Scale",
    clean_up: "Clean up",
    nothing: "Nothing to do now",
    undecided: "Not decided",
};

const ZH: Words = Words {
    code: "zh",
    title: "GPU 容量报告",
    question_used: "用了多少？",
    question_by_whom: "谁在用？",
    question_healthy: "是否健康？",
    decision: "决策",
    utilisation: "利用率随时间变化",
    nodes: "各节点分布",
    teams: "各团队用量",
    baselines: "按工作负载与工作时段的基线",
    waste: "占而不用",
    health: "作业健康",
    hardware: "硬件",
    outlook: "需求预测与容量",
    coverage: "数据覆盖情况",
    held: "占用",
    busy: "忙碌",
    idle_held: "占而不用",
    seen: "已观测",
    team: "团队",
    workload: "工作负载",
    gpu_model: "GPU 型号",
    hours: "时段",
    working: "工作时间",
    other: "其他时间",
    mean: "均值",
    range: "5 % 至 95 %",
    jobs: "作业数",
    gpu_hours: "GPU 小时",
    job: "作业",
    verdict: "结论",
    reason: "原因",
    node: "节点",
    finding: "发现",
    demand: "需求",
    forecast_p50: "预测中位数",
    forecast_band: "80 % 区间",
    capacity: "容量",
    no_samples: "本期没有采样数据：只知道作业占用了多少，不知道 GPU 实际做了什么。",
    no_forecast: "无法给出预测。",
    none_found: "没有需要报告的内容。",
    unknown: "未知",
    buy: "采购",
    scale: "弹性伸缩",
    clean_up: "清理",
    nothing: "暂无需行动",
    undecided: "尚无结论",
};

impl Language {
    pub(crate) fn words(self) -> &'static Words {
        match self {
            Self::En => &EN,
            Self::Zh => &ZH,
        }
    }
}

/// A share in print.
pub(crate) fn percent(ratio: Option<f64>, words: &Words) -> String {
    ratio.map_or_else(|| words.unknown.to_owned(), |ratio| format!("{:.0} %", ratio * 100.0))
}

/// One number and one sentence.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) figure: String,
    pub(crate) sentence: String,
}

/// How much is used.
pub(crate) fn used(data: &ReportData, language: Language) -> Answer {
    let (totals, words) = (&data.totals, language.words());
    let held = percent(totals.held_ratio(), words);
    let busy = percent(totals.busy_ratio(), words);
    let seen = percent(totals.coverage_ratio, words);
    let gpus = totals.gpus_installed.map_or_else(|| words.unknown.to_owned(), number);
    let hours = number(totals.gpu_hours_held);
    let floor = totals.capacity_source.as_deref() == Some("peak-held");
    let sentence = match (language, data.sampled()) {
        (Language::En, true) => format!(
            "Of {gpus} GPUs, jobs held {held} of the time ({hours} GPU-hours) and {busy} was busy; {seen} of the time was seen."
        ),
        (Language::En, false) => format!(
            "Jobs held {hours} GPU-hours, {held} of {gpus} GPUs{}; no samples tell how busy they were.",
            if floor {
                " (the most ever held at once: the number installed is not known)"
            } else {
                ""
            }
        ),
        (Language::Zh, true) => format!(
            "{gpus} 块 GPU 中，作业占用了 {held} 的时间（{hours} GPU 小时），实际忙碌 {busy}；观测覆盖 {seen}。"
        ),
        (Language::Zh, false) => format!(
            "作业占用 {hours} GPU 小时，为 {gpus} 块 GPU{}的 {held}；没有采样，忙碌程度未知。",
            if floor { "（历史同时占用峰值，装机数未知）" } else { "" }
        ),
    };
    Answer { figure: if data.sampled() { busy } else { held }, sentence }
}

/// By whom.
pub(crate) fn by_whom(data: &ReportData, language: Language) -> Answer {
    let words = language.words();
    let Some(first) = data.teams.first() else {
        return Answer { figure: words.unknown.into(), sentence: words.none_found.into() };
    };
    let all: f64 = data.teams.iter().map(|team| team.gpu_hours_held).sum();
    let share = percent((all > 0.0).then(|| first.gpu_hours_held / all), words);
    let (name, teams, jobs) = (&first.team, data.teams.len(), data.totals.jobs);
    let hours = number(first.gpu_hours_held);
    let sentence = match language {
        Language::En => format!(
            "{name} held most, {hours} GPU-hours or {share} of all, among {teams} teams and {} jobs.",
            number(jobs as f64)
        ),
        Language::Zh => format!(
            "{teams} 个团队、{} 个作业中，{name} 占用最多：{hours} GPU 小时，占全部的 {share}。",
            number(jobs as f64)
        ),
    };
    Answer { figure: share, sentence }
}

/// Whether it is healthy.
pub(crate) fn healthy(data: &ReportData, language: Language) -> Answer {
    let words = language.words();
    let judged = |row: &&super::data::VerdictUse| row.verdict != "not-enough-data";
    let all: f64 = data.health.iter().filter(judged).map(|row| row.gpu_hours).sum();
    let well: f64 =
        data.health.iter().filter(|row| row.verdict == "healthy").map(|row| row.gpu_hours).sum();
    let idle = data.totals.gpu_hours_idle_held;
    if all <= 0.0 {
        let wait = data.totals.queue_time_s_p50.map(duration);
        let sentence = match (language, wait) {
            (Language::En, Some(wait)) => format!(
                "No job was judged in this period; half of the jobs waited no longer than {wait}."
            ),
            (Language::Zh, Some(wait)) => {
                format!("本期没有评判作业；半数作业排队不超过 {wait}。")
            }
            _ => words.no_samples.to_owned(),
        };
        return Answer { figure: words.unknown.into(), sentence };
    }
    let share = percent(Some(well / all), words);
    let (idle, gpus) = (idle.map_or_else(|| words.unknown.into(), number), data.hardware.len());
    let sentence = match language {
        Language::En => format!(
            "{share} of the judged GPU-hours belong to healthy jobs; {idle} GPU-hours were held while idle, and {gpus} GPUs need a look."
        ),
        Language::Zh => format!(
            "已评判的 GPU 小时中 {share} 属于健康作业；{idle} GPU 小时占而不用，{gpus} 块 GPU 需要检查。"
        ),
    };
    Answer { figure: share, sentence }
}

/// What to do and why.
pub(crate) fn decision(data: &ReportData, language: Language) -> Answer {
    let (words, choice) = (language.words(), &data.decision);
    let day = |at: chrono::DateTime<chrono::Utc>| at.format("%Y-%m-%d").to_string();
    let gpus = number(choice.gpus_to_add.unwrap_or(0.0).ceil());
    let back = number(choice.gpus_reclaimable.unwrap_or(0.0));
    let idle = number(data.totals.gpu_hours_idle_held.unwrap_or(0.0));
    let full = choice.full_at.map(day);
    let (figure, sentence) = match (choice.action, language) {
        (Action::Buy, Language::En) => (
            words.buy,
            format!(
                "The load offered meets capacity {}; {gpus} more GPUs, ordered by {}, would let jobs start at once in nine hours of ten.",
                full.map_or_else(|| "within the lead time".into(), |day| format!("on {day}")),
                choice.order_by.map_or_else(|| "now".into(), day)
            ),
        ),
        (Action::Buy, Language::Zh) => (
            words.buy,
            format!(
                "作业负载将于 {} 达到容量；增加 {gpus} 块 GPU（最迟 {} 下单）可使十分之九的时段作业无需排队。",
                full.unwrap_or_else(|| "采购周期内".into()),
                choice.order_by.map_or_else(|| "现在".into(), day)
            ),
        ),
        (Action::CleanUp, Language::En) => (
            words.clean_up,
            format!("{idle} GPU-hours were held while idle; taking them back frees {back} GPUs on average before anything is bought."),
        ),
        (Action::CleanUp, Language::Zh) => (
            words.clean_up,
            format!("{idle} GPU 小时占而不用；先收回，平均可释放 {back} 块 GPU，再谈采购。"),
        ),
        (Action::Scale, Language::En) => (
            words.scale,
            "The load stays below capacity and swings with the hours: switch GPUs on and off with the forecast.".into(),
        ),
        (Action::Scale, Language::Zh) => {
            (words.scale, "需求低于容量且随时段起伏：按预测开关 GPU。".into())
        }
        (Action::Undecided, _) => (words.undecided, undecided(data, language)),
        (Action::Nothing, Language::En) => (
            words.nothing,
            "The load that jobs offer stays below capacity within the horizon.".into(),
        ),
        (Action::Nothing, Language::Zh) => {
            (words.nothing, "规划期内作业负载低于容量。".into())
        }
    };
    Answer { figure: figure.to_owned(), sentence }
}

/// Why there is no decision, and how demand stands against capacity today.
fn undecided(data: &ReportData, language: Language) -> String {
    let stand = data.decision.demand_gpus_last_day.zip(data.outlook.capacity_gpus);
    match (language, stand) {
        (Language::En, Some((demand, capacity))) => format!(
            "No plan could be made (the reason stands below). Demand over the last day was {} GPUs against a capacity of {}.",
            number(demand),
            number(capacity)
        ),
        (Language::Zh, Some((demand, capacity))) => format!(
            "无法给出规划（原因见下）。最近一天需求为 {} 块 GPU，容量为 {} 块。",
            number(demand),
            number(capacity)
        ),
        (Language::En, None) => "No plan could be made (the reason stands below).".to_owned(),
        (Language::Zh, None) => "无法给出规划（原因见下）。".to_owned(),
    }
}

/// Elapsed seconds in the largest unit that keeps two digits.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5_400.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3_600.0),
        s => format!("{:.1} d", s / 86_400.0),
    }
}
