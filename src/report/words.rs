//! The words of a report, in English and Chinese: one struct of phrases a language, so that a
//! phrase missing in one of them does not compile.

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
    pub(crate) money: &'static str,
    pub(crate) what: &'static str,
    pub(crate) amount: &'static str,
    pub(crate) cost_held: &'static str,
    pub(crate) cost_idle: &'static str,
    pub(crate) unpriced: &'static str,
    pub(crate) energy: &'static str,
    pub(crate) energy_site: &'static str,
    pub(crate) whole_days: &'static str,
    pub(crate) nodes_mean: &'static str,
    pub(crate) carbon: &'static str,
    pub(crate) no_ledger: &'static str,
    pub(crate) floor: &'static str,
    pub(crate) capacity_floor: &'static str,
    pub(crate) idle_means: &'static str,
    pub(crate) users: &'static str,
    pub(crate) user: &'static str,
    pub(crate) no_samples: &'static str,
    pub(crate) no_forecast: &'static str,
    pub(crate) pool: &'static str,
    pub(crate) available: &'static str,
    pub(crate) full_from: &'static str,
    pub(crate) missing: &'static str,
    pub(crate) missing_after: &'static str,
    pub(crate) free_in_fullest: &'static str,
    pub(crate) to_order: &'static str,
    pub(crate) order_by: &'static str,
    pub(crate) now: &'static str,
    pub(crate) advice: &'static str,
    pub(crate) pool_buys: &'static str,
    pub(crate) pool_cleans: &'static str,
    pub(crate) pool_cleans_and_watches: &'static str,
    pub(crate) pool_watches: &'static str,
    pub(crate) pool_fits: &'static str,
    pub(crate) pool_just_fits: &'static str,
    pub(crate) no_plan: &'static str,
    pub(crate) none_found: &'static str,
    pub(crate) unknown: &'static str,
    pub(crate) buy: &'static str,
    pub(crate) scale: &'static str,
    pub(crate) clean_up: &'static str,
    pub(crate) watch: &'static str,
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
    demand: "demand, GPUs",
    forecast_p50: "forecast, median",
    forecast_band: "80 % interval",
    capacity: "capacity",
    money: "Money and energy",
    what: "what",
    amount: "amount",
    cost_held: "cost of what was held",
    cost_idle: "of it, held while idle",
    unpriced: "GPU-hours without a price",
    energy: "energy of the GPU boards, while their power was read",
    energy_site: "the same with the overhead of the site, PUE",
    whole_days: "Means of whole local days; what the period holds of other days is in the sums, not in this chart.",
    nodes_mean: "Mean utilisation of the node's GPUs over the time that was read, and the share of the time that was.",
    carbon: "carbon of that energy",
    no_ledger: "No ledger tells who held the GPUs.",
    floor: " (the most ever held at once: how many are installed is not known)",
    capacity_floor: "capacity, at least",
    idle_means: "Idle is activity below 5 % for ten minutes or more at a stretch, whatever the verdict on the job.",
    users: "Who used what (no job names a team)",
    user: "user",
    no_samples: "No readings of GPUs are in this period: what the GPUs did is not known (loadline import nvidia-smi, or dcgm, would tell).",
    no_forecast: "No forecast could be made.",
    pool: "Pool",
    available: "GPUs available",
    full_from: "Full in the week of",
    missing: "GPUs missing",
    missing_after: "Missing after clean-up",
    free_in_fullest: "Free in the fullest week",
    to_order: "To order",
    order_by: "Order by",
    now: "now",
    advice: "What to do",
    pool_buys: "buy",
    pool_cleans: "clean up: that is enough",
    pool_cleans_and_watches: "clean up first, then watch",
    pool_watches: "watch",
    pool_fits: "fits",
    pool_just_fits: "full, and no GPU is missing: fits",
    no_plan: "no plan",
    none_found: "Nothing to report.",
    unknown: "unknown",
    buy: "Buy",
    scale: "Scale",
    clean_up: "Clean up",
    watch: "Not yet: watch",
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
    demand: "需求（GPU 数）",
    forecast_p50: "预测中位数",
    forecast_band: "80 % 区间",
    capacity: "容量",
    money: "费用与能耗",
    what: "项目",
    amount: "数量",
    cost_held: "占用的费用",
    cost_idle: "其中占而不用",
    unpriced: "没有价格的 GPU 小时",
    energy: "GPU 板卡能耗（仅计读到功率的时间）",
    energy_site: "计入机房开销的能耗，PUE 为",
    whole_days: "每点为一个完整自然日的均值；首尾不完整的日子计入合计，但不画在图中。",
    nodes_mean: "各节点 GPU 在已观测时间内的平均利用率，以及已观测时间的占比。",
    carbon: "相应的碳排放",
    no_ledger: "没有作业账目，不知道谁占用了 GPU。",
    floor: "（同时占用的历史峰值，装机数未知）",
    capacity_floor: "容量下限",
    idle_means: "占而不用指连续十分钟以上活动低于 5 %，与作业结论无关。",
    users: "各用户用量（作业没有标明团队）",
    user: "用户",
    no_samples: "本期没有 GPU 采样，不知道 GPU 实际做了什么（可用 loadline import nvidia-smi 或 dcgm 导入）。",
    no_forecast: "无法给出预测。",
    pool: "分区",
    available: "可用 GPU",
    full_from: "达到容量的一周",
    missing: "缺口",
    missing_after: "清理后缺口",
    free_in_fullest: "最忙一周的空闲",
    to_order: "应采购",
    order_by: "最迟下单",
    now: "现在",
    advice: "建议",
    pool_buys: "采购",
    pool_cleans: "清理即可",
    pool_cleans_and_watches: "先清理，再观察",
    pool_watches: "观察",
    pool_fits: "容量足够",
    pool_just_fits: "已满，但不缺 GPU：容量足够",
    no_plan: "无法规划",
    none_found: "没有需要报告的内容。",
    unknown: "未知",
    buy: "采购",
    scale: "弹性伸缩",
    clean_up: "清理",
    watch: "暂不采购，继续观察",
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

impl Words {
    /// What to say behind a number of GPUs that is only a floor.
    pub(crate) fn floor_of(&self, floor: bool) -> &'static str {
        if floor { self.floor } else { "" }
    }
}

/// Per cents by which a share may miss 0 or 100 and still be that.
const WHOLE_WITHIN: f64 = 1e-4;

/// A share in print. What is not all never reads 100 %, and what is not nothing never 0 %.
pub(crate) fn percent(ratio: Option<f64>, words: &Words) -> String {
    match ratio.map(|ratio| ratio * 100.0) {
        None => words.unknown.to_owned(),
        // Sums of hours miss the whole by the last digits of their parts.
        Some(share) if (share - 100.0).abs() < WHOLE_WITHIN => "100 %".to_owned(),
        Some(share) if share.abs() < WHOLE_WITHIN => "0 %".to_owned(),
        Some(share) if (99.5..100.0).contains(&share) => {
            format!("{:.2} %", (share * 100.0).floor() / 100.0)
        }
        Some(share) if share > 0.0 && share < 0.5 => "< 0.5 %".to_owned(),
        Some(share) => format!("{share:.0} %"),
    }
}

/// A share with its sign, in print; what rounds to 0 has none.
pub(crate) fn signed_percent(ratio: f64) -> String {
    let rounded = (ratio * 100.0).round();
    if rounded == 0.0 { "0 %".to_owned() } else { format!("{rounded:+.0} %") }
}

/// Elapsed seconds in the largest unit that keeps two digits.
pub(crate) fn duration(seconds: f64, language: Language) -> String {
    let (digits, value, unit) = match seconds {
        s if s < 90.0 => (0, s, ["s", "秒"]),
        s if s < 5_400.0 => (0, s / 60.0, ["min", "分钟"]),
        s if s < 172_800.0 => (1, s / 3_600.0, ["h", "小时"]),
        s => (1, s / 86_400.0, ["d", "天"]),
    };
    format!("{value:.digits$} {}", unit[usize::from(language == Language::Zh)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_that_are_whole_but_for_rounding_are_whole() {
        // Breaks if "-0 %" is printed, or 24 of 24 hours are 99.99 %.
        let told = |ratio| percent(Some(ratio), &EN);
        assert_eq!([-0.0, -1e-9, 1e-9].map(told), ["0 %", "0 %", "0 %"]);
        assert_eq!([0.999_999_9, 1.0, 1.000_000_1].map(told), ["100 %", "100 %", "100 %"]);
        assert_eq!([0.999_98, 0.996, 0.001].map(told), ["99.99 %", "99.60 %", "< 0.5 %"]);
    }
}
