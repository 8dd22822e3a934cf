//! What a forecast was made by and how that did in a backtest, in English and Chinese.

use loadline_forecast::{Backtest, Basis, Forecast, NoSkill, Reason};

use super::words::{Language, percent, signed_percent};

/// Below this share of outcomes an 80 % interval is no ground to switch GPUs by.
const COVERED_RATIO_MIN: f64 = 0.7;

/// The model behind a forecast and how it did.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// Model that was used.
    pub basis: Basis,
    /// Model that was judged, did worse than the seasonal naive and made way for it.
    pub lost: Option<Basis>,
    /// Why no model was fitted; `None` where one was.
    pub plain: Option<Plain>,
    /// Origins of the backtest; `None` without one.
    pub origins: Option<usize>,
    /// Skill against seasonal naive.
    pub skill_ratio: Option<f64>,
    /// Why none is stated; `None` where one is, and without a backtest.
    pub no_skill: Option<NoSkill>,
    /// Share of outcomes inside the 80 % interval.
    pub coverage_80_ratio: Option<f64>,
}

/// Why there is no more to say than a plain rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    /// The history is too short to fit a model.
    Short,
    /// Demand never changed: there is no pattern to learn.
    Flat,
    /// Under half of the steps were seen.
    Gaps,
}

impl Tested {
    /// How `forecast` was made and did in the backtest behind it.
    #[must_use]
    pub fn new(forecast: &Forecast, tested: Option<&Backtest>, lost: Option<Basis>) -> Self {
        let has = |kind: fn(&Reason) -> bool| forecast.reasons.iter().any(kind);
        let plain = if has(|reason| matches!(reason, Reason::TooLittleHistory { .. })) {
            Some(Plain::Short)
        } else if has(|reason| matches!(reason, Reason::Constant { .. } | Reason::AllZero)) {
            Some(Plain::Flat)
        } else {
            let tried = lost.unwrap_or(forecast.basis);
            (tried != Basis::WeeklyElasticNet).then_some(Plain::Gaps)
        };
        Self {
            basis: forecast.basis,
            lost,
            plain,
            origins: tested.map(|tested| tested.origins.len()),
            skill_ratio: tested.and_then(|tested| tested.overall.skill().ok()),
            no_skill: tested.and_then(|tested| tested.overall.skill().err()),
            coverage_80_ratio: tested.map(|tested| tested.coverage_80_ratio(forecast.basis)),
        }
    }

    /// Why no skill is stated; `None` where one is.
    #[must_use]
    pub fn skill_reason(&self) -> Option<String> {
        match (self.skill_ratio, self.no_skill) {
            (Some(_), _) => None,
            (None, Some(why)) => Some(why.to_string()),
            (None, None) => Some("the history is too short for a backtest".to_owned()),
        }
    }

    /// Why GPUs are not to be switched by the forecast alone, as clauses; `None` where they can be.
    #[must_use]
    pub fn warning(&self, language: Language) -> Option<String> {
        let covered = self.coverage_80_ratio.filter(|ratio| *ratio < COVERED_RATIO_MIN);
        let covered = covered.map(|ratio| percent(Some(ratio), language.words()));
        let covered = match (covered, language) {
            (None, _) => None,
            (Some(share), Language::En) => {
                Some(format!("{share} of outcomes lay inside the 80 % interval"))
            }
            (Some(share), Language::Zh) => Some(format!("80 % 区间只覆盖 {share} 的结果")),
        };
        let worse = self.skill_ratio.filter(|skill| self.lost.is_some() || *skill < 0.0);
        let worse = match (worse.map(|skill| told(skill, language)), self.origins, language) {
            (Some(skill), _, Language::En) => {
                Some(format!("the model does worse than the seasonal naive ({skill})"))
            }
            (Some(skill), _, Language::Zh) => Some(format!("模型不如季节性朴素预测（{skill}）")),
            (None, None, Language::En) => Some("no backtest tells what it is worth".to_owned()),
            (None, None, Language::Zh) => Some("没有回测，不知道它的可信程度".to_owned()),
            (None, Some(_), _) => None,
        };
        let parts: Vec<String> = worse.into_iter().chain(covered).collect();
        let and = if language == Language::Zh { "，" } else { ", and " };
        (!parts.is_empty()).then(|| parts.join(and))
    }

    /// The line.
    #[must_use]
    pub fn text(&self, language: Language) -> String {
        let model = self.model(language);
        match language {
            Language::En => format!("Forecast by {model}: {}.", self.english()),
            Language::Zh => format!("预测方法为{model}：{}。", self.chinese()),
        }
    }

    fn model(&self, language: Language) -> &'static str {
        match (self.basis, language) {
            (Basis::WeeklyElasticNet, Language::En) => "an elastic net on the weekly pattern",
            (Basis::SeasonalNaive, Language::En) => {
                "the seasonal naive, each hour as in the cycle before"
            }
            (Basis::Level, Language::En) => "one level for every hour",
            (Basis::WeeklyElasticNet, Language::Zh) => "每周规律的弹性网络",
            (Basis::SeasonalNaive, Language::Zh) => "季节性朴素预测（沿用上一周期的同一时段）",
            (Basis::Level, Language::Zh) => "单一水平（各时段相同）",
        }
    }

    fn english(&self) -> String {
        let covered = percent(self.coverage_80_ratio, Language::En.words());
        match (self.origins, self.skill_ratio) {
            _ if self.plain.is_some() => match self.plain {
                Some(Plain::Flat) => "demand never changed, so there is no pattern to learn",
                Some(Plain::Gaps) => "too few of the hours were seen to learn a pattern",
                Some(Plain::Short) | None => "the history is too short to learn a pattern",
            }
            .to_owned(),
            (Some(origins), Some(skill)) if self.lost.is_some() => {
                format!(
                    "used because the model does worse than it in a backtest over {origins} \
                     origins ({}); {covered} of outcomes lay inside its 80 % interval",
                    told(skill, Language::En)
                )
            }
            (Some(origins), Some(skill)) => {
                let than = match skill {
                    skill if skill >= 0.005 => "better than",
                    skill if skill > -0.005 => "as good as",
                    _ => "not better than",
                };
                format!(
                    "{than} seasonal naive in a backtest over {origins} origins ({}), with \
                     {covered} of outcomes inside the 80 % interval",
                    told(skill, Language::En)
                )
            }
            (Some(origins), None) => format!(
                "no skill stated after a backtest over {origins} origins: {}",
                self.no_skill.unwrap_or(NoSkill::NothingScored)
            ),
            (None, _) => "the history is too short for a backtest".to_owned(),
        }
    }

    fn chinese(&self) -> String {
        let covered = percent(self.coverage_80_ratio, Language::Zh.words());
        match (self.origins, self.skill_ratio) {
            _ if self.plain.is_some() => match self.plain {
                Some(Plain::Flat) => "需求从未变化，没有规律可学",
                Some(Plain::Gaps) => "有数据的时段太少，学不到规律",
                Some(Plain::Short) | None => "历史太短，学不到规律",
            }
            .to_owned(),
            (Some(origins), Some(skill)) if self.lost.is_some() => {
                format!(
                    "采用它是因为在 {origins} 个起点的回测中模型不如它（{}），其 80 % 区间实际覆盖 \
                     {covered}",
                    told(skill, Language::Zh)
                )
            }
            (Some(origins), Some(skill)) => format!(
                "在 {origins} 个起点的回测中{}季节性朴素预测（{}），80 % 区间实际覆盖 {covered}",
                match skill {
                    skill if skill >= 0.005 => "优于",
                    skill if skill > -0.005 => "相当于",
                    _ => "不优于",
                },
                told(skill, Language::Zh)
            ),
            (Some(origins), None) => {
                let why = match self.no_skill {
                    Some(NoSkill::BenchmarkExact) => "季节性朴素预测毫无误差",
                    Some(NoSkill::NothingScored) | None => "没有可对照的结果",
                };
                format!("{origins} 个起点的回测中{why}，无法给出技巧")
            }
            (None, _) => "历史太短，无法回测".to_owned(),
        }
    }
}

/// A skill in words: one far below 0 as how many times the benchmark's score the model's is.
fn told(skill: f64, language: Language) -> String {
    match language {
        Language::En if skill < -1.0 => {
            format!("a score {:.0} times as large, where less is better", 1.0 - skill)
        }
        Language::Zh if skill < -1.0 => format!("误差为其 {:.0} 倍", 1.0 - skill),
        Language::En => format!("skill {}", signed_percent(skill)),
        Language::Zh => format!("技巧 {}", signed_percent(skill)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_forecast::{ForecastSettings, Series, forecast};

    fn told(values: Vec<Option<f64>>) -> [String; 2] {
        let series = Series::new("fleet", 0, 3_600, values).unwrap();
        let made = forecast(&series, &[], &ForecastSettings::default()).unwrap();
        [Language::En, Language::Zh].map(|language| Tested::new(&made, None, None).text(language))
    }

    #[test]
    fn a_flat_history_is_not_called_short() {
        let [en, zh] = told(vec![Some(8.0); 40 * 24]);
        assert!(en.contains("never changed") && zh.contains("从未变化"), "{en}\n{zh}");
        let [en, zh] = told((0..60).map(|hour| Some(f64::from(hour % 7))).collect());
        assert!(en.contains("too short") && zh.contains("太短"), "{en}\n{zh}");
    }

    #[test]
    fn a_history_full_of_gaps_is_not_called_short() {
        let hour = |hour: usize| hour.is_multiple_of(3).then_some((hour % 24) as f64);
        let [en, _] = told((0..40 * 24).map(hour).collect());
        assert!(en.contains("too few of the hours"), "{en}");
    }
}
