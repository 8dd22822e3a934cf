//! Which workload a job is: the first rule of the configuration that matches.
//!
//! A pattern is a glob over the whole value (`train-*`, `?` for one character), or a regular
//! expression between slashes (`/^(train|sft)[-_]/`). Neither minds upper or lower case. A job
//! that no rule knows is [`UNLABELLED`].

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use crate::error::IngestError;

/// Workload of a job that no rule knows.
pub const UNLABELLED: &str = "unlabelled";

/// One rule as written in `loadline.toml`: every pattern must match.
///
/// # Example
/// ```
/// use loadline_ingest::workload::{JobFacts, WorkloadRule, WorkloadRules};
///
/// let rule: WorkloadRule = toml::from_str(
///     "match = { partition = \"gpu*\", name = \"/^(train|sft)/\" }\nworkload = \"train\"",
/// )?;
/// let rules = WorkloadRules::new(&[rule])?;
/// let job = JobFacts { partition: Some("gpu-a"), name: Some("SFT-7"), ..JobFacts::default() };
/// assert_eq!(rules.workload(&job), "train");
/// assert_eq!(rules.workload(&JobFacts::default()), "unlabelled");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadRule {
    /// Patterns by what they are held against: `partition`, `name`, `user`, `team`, `project` or
    /// `label.KEY`.
    #[serde(rename = "match")]
    pub matches: BTreeMap<String, String>,
    /// Workload of the jobs that match; kept in lower case.
    pub workload: String,
}

/// What a rule can look at.
#[derive(Debug, Clone, Copy, Default)]
pub struct JobFacts<'a> {
    /// Partition (pool).
    pub partition: Option<&'a str>,
    /// Job name.
    pub name: Option<&'a str>,
    /// User.
    pub user: Option<&'a str>,
    /// Team.
    pub team: Option<&'a str>,
    /// Project.
    pub project: Option<&'a str>,
    /// Labels, as key and value.
    pub labels: &'a [(&'a str, &'a str)],
}

impl<'a> JobFacts<'a> {
    fn get(&self, key: &str) -> Option<&'a str> {
        match key {
            "partition" => self.partition,
            "name" => self.name,
            "user" => self.user,
            "team" => self.team,
            "project" => self.project,
            _ => {
                let label = key.strip_prefix("label.")?;
                self.labels.iter().find(|(key, _)| *key == label).map(|(_, value)| *value)
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Rule {
    patterns: Vec<(String, Regex)>,
    workload: String,
}

/// Rules ready to be asked, in order.
#[derive(Debug, Clone, Default)]
pub struct WorkloadRules {
    rules: Vec<Rule>,
}

impl WorkloadRules {
    /// Compiles `rules`; without any, every job is [`UNLABELLED`].
    ///
    /// # Errors
    /// [`IngestError::Setting`] where a rule matches nothing in particular, names an unknown fact
    /// or holds a pattern that cannot be parsed.
    pub fn new(rules: &[WorkloadRule]) -> Result<Self, IngestError> {
        Ok(Self { rules: rules.iter().map(compile).collect::<Result<_, _>>()? })
    }

    /// The workload of `job`: that of the first rule whose patterns all match.
    #[must_use]
    pub fn workload(&self, job: &JobFacts<'_>) -> &str {
        let matches = |rule: &&Rule| {
            rule.patterns
                .iter()
                .all(|(key, pattern)| job.get(key).is_some_and(|text| pattern.is_match(text)))
        };
        self.rules.iter().find(matches).map_or(UNLABELLED, |rule| &rule.workload)
    }
}

fn compile(rule: &WorkloadRule) -> Result<Rule, IngestError> {
    let refuse = |what: &str, value: &str, reason: String| IngestError::Setting {
        what: format!("workload rule {what}"),
        value: value.to_owned(),
        reason,
    };
    if rule.matches.is_empty() || rule.workload.trim().is_empty() {
        let reason = "a rule needs at least one pattern in `match` and a `workload`".into();
        return Err(refuse("for", &rule.workload, reason));
    }
    let mut patterns = Vec::with_capacity(rule.matches.len());
    for (key, pattern) in &rule.matches {
        let known = ["partition", "name", "user", "team", "project"].contains(&key.as_str());
        if !known && !key.starts_with("label.") {
            let reason = "must be one of partition, name, user, team, project, label.KEY".into();
            return Err(refuse("key", key, reason));
        }
        let regex = pattern_regex(pattern).map_err(|e| refuse(key, pattern, e.to_string()))?;
        patterns.push((key.clone(), regex));
    }
    Ok(Rule { patterns, workload: rule.workload.trim().to_lowercase() })
}

/// A glob (whole value) or `/regex/` (anywhere), blind to case.
fn pattern_regex(pattern: &str) -> Result<Regex, regex::Error> {
    let source = match pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        Some(source) => source.to_owned(),
        None => glob_source(pattern),
    };
    RegexBuilder::new(&source).case_insensitive(true).build()
}

fn glob_source(glob: &str) -> String {
    let mut source = String::from(r"(?s)\A");
    for letter in glob.chars() {
        match letter {
            '*' => source.push_str(".*"),
            '?' => source.push('.'),
            other => source.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    source.push_str(r"\z");
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(matches: &[(&str, &str)], workload: &str) -> WorkloadRule {
        let matches = matches.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        WorkloadRule { matches, workload: workload.into() }
    }

    #[test]
    fn the_first_rule_whose_patterns_all_match_decides() {
        // Breaks when a later rule wins, or one pattern of two is enough.
        let rules = WorkloadRules::new(&[
            rule(&[("partition", "infer*"), ("user", "svc-?")], "Inference"),
            rule(&[("name", "/sft|lora/")], "finetune"),
            rule(&[("label.app", "notebook")], "interactive"),
            rule(&[("name", "*")], "train"),
        ])
        .unwrap();
        let named = |name| JobFacts { name: Some(name), ..JobFacts::default() };
        let served = JobFacts { partition: Some("Infer-a"), user: Some("svc-1"), ..named("lora") };
        assert_eq!(rules.workload(&served), "inference");
        assert_eq!(rules.workload(&JobFacts { user: Some("eve"), ..served }), "finetune");
        let labels = [("app", "notebook")];
        assert_eq!(rules.workload(&JobFacts { labels: &labels, ..named("x") }), "interactive");
        assert_eq!(rules.workload(&named("x.y")), "train");
        assert_eq!(rules.workload(&JobFacts::default()), UNLABELLED);
    }

    #[test]
    fn a_glob_covers_the_whole_value_and_dots_are_dots() {
        // Breaks when `a.b` matches `axb`, or `train` matches `pretrain`.
        let rules = WorkloadRules::new(&[rule(&[("name", "a.b")], "train")]).unwrap();
        let of = |name| JobFacts { name: Some(name), ..JobFacts::default() };
        assert_eq!(rules.workload(&of("A.B")), "train");
        assert_eq!(rules.workload(&of("axb")), UNLABELLED);
        assert_eq!(rules.workload(&of("xa.b")), UNLABELLED);
    }

    #[test]
    fn rules_that_mean_nothing_are_refused_with_the_legal_keys() {
        // Breaks when a typo in a key silently labels nothing.
        let text = |rule| WorkloadRules::new(&[rule]).unwrap_err().to_string();
        assert!(text(rule(&[("queue", "x")], "train")).contains("must be one of partition"));
        assert!(text(rule(&[], "train")).contains("at least one pattern"));
        assert!(text(rule(&[("name", "/(/")], "train")).contains("`/(/`"));
    }
}
