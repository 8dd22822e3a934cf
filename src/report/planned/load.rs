//! What the load of a plan is, in English and Chinese.

use serde::Serialize;

use super::super::words::Language;

/// What the load of a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadBasis {
    /// Of jobs: what would be held if each started when it could.
    Offered,
    /// Of counts, which tell no durations: what is held and what is waited for.
    HeldAndWaiting,
    /// Of both, in different pools or times.
    Both,
}

impl LoadBasis {
    /// What it is, as one clause.
    #[must_use]
    pub const fn text(self, language: Language) -> &'static str {
        match (self, language) {
            (Self::Offered, Language::En) => "load offered: GPUs held if every job started at once",
            (Self::HeldAndWaiting, Language::En) => {
                "GPUs held plus GPUs waited for, not the load offered: counts do not tell how long jobs run, so a backlog counts in full as long as it waits"
            }
            (Self::Both, Language::En) => {
                "load offered where jobs tell it (GPUs held if every job started at once); where there are only counts, GPUs held plus GPUs waited for, so a backlog counts in full as long as it waits"
            }
            (Self::Offered, Language::Zh) => "作业负载：按作业可开始时即开始计",
            (Self::HeldAndWaiting, Language::Zh) => {
                "占用与排队的 GPU 数之和，并非作业负载：计数不含运行时长，积压在排队期间全部计入"
            }
            (Self::Both, Language::Zh) => {
                "有作业账目处为作业负载（按作业可开始时即开始计），只有计数处为占用与排队的 GPU 数之和，积压在排队期间全部计入"
            }
        }
    }

    /// The load as the subject of a sentence.
    pub(crate) const fn subject(self, language: Language) -> &'static str {
        match (self, language) {
            (Self::Offered, Language::En) => "The load that jobs offer",
            (Self::Offered, Language::Zh) => "作业负载",
            (_, Language::En) => "The load (GPUs held and waited for)",
            (_, Language::Zh) => "负载（占用与排队的 GPU 数）",
        }
    }
}
