//! The rules that would label the largest groups of jobs that wait: the way out of waiting.

use std::collections::{BTreeMap, BTreeSet};

use super::{Verdict, Waiting, most_first};

/// Rules shown at most.
const RULES_MAX: usize = 5;
/// Proposals of one workload that make a group.
const PROPOSED_MIN: usize = 3;
/// Part of a group's judged jobs that must be proposed as that workload.
const AGREED_MIN: f64 = 0.8;

/// What a rule goes by, the narrowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    Name,
    User,
    Partition,
}

impl Fact {
    const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::User => "user",
            Self::Partition => "partition",
        }
    }
}

/// A rule and what it would label.
#[derive(Debug, PartialEq)]
struct Rule {
    fact: Fact,
    pattern: String,
    workload: String,
    jobs: Vec<usize>,
    proposed: usize,
    judged: usize,
    gpu_hours: f64,
    sure_mean: f64,
}

/// Lines of TOML to paste, with what each rule would label; none where no group is of one workload.
pub(super) fn snippet(waiting: &[Waiting]) -> Vec<String> {
    let rules = rules(waiting);
    if rules.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        String::new(),
        "# To label the largest groups, paste what is right after the other rules of loadline.toml"
            .to_owned(),
        "# (they label only what no rule before them does) and import the ledger again.".to_owned(),
    ];
    for rule in &rules {
        lines.push(String::new());
        lines.push(format!(
            "# {} jobs, {:.1} GPU-hours: {} of {} with enough readings proposed as {}, {:.0} % sure \
             on average",
            rule.jobs.len(),
            rule.gpu_hours,
            rule.proposed,
            rule.judged,
            rule.workload,
            rule.sure_mean * 100.0
        ));
        let quoted = |text: &str| toml::Value::from(text).to_string();
        lines.push("[[workload]]".to_owned());
        lines.push(format!("match = {{ {} = {} }}", rule.fact.name(), quoted(&rule.pattern)));
        lines.push(format!("workload = {}", quoted(&rule.workload)));
    }
    lines
}

/// Rules by the GPU-hours that each labels beyond those before it.
fn rules(waiting: &[Waiting]) -> Vec<Rule> {
    let mut groups: BTreeMap<(Fact, String), Vec<usize>> = BTreeMap::new();
    for (at, job) in waiting.iter().enumerate() {
        let mut add = |fact, pattern: Option<String>| {
            // A glob between slashes would be read as a regular expression.
            if let Some(pattern) = pattern.filter(|p| !p.is_empty() && !p.starts_with('/')) {
                groups.entry((fact, pattern)).or_default().push(at);
            }
        };
        add(Fact::Name, job.name.as_deref().and_then(prefix));
        add(Fact::Name, job.name.clone());
        add(Fact::User, job.user.clone());
        add(Fact::Partition, job.partition.clone());
    }
    let mut labelled = BTreeSet::new();
    let mut chosen = Vec::new();
    while chosen.len() < RULES_MAX {
        let left = |jobs: &[usize]| -> Vec<usize> {
            jobs.iter().copied().filter(|job| !labelled.contains(job)).collect()
        };
        let open = groups.iter().filter_map(|((fact, pattern), jobs)| {
            let workload = agreed(jobs, waiting)?;
            rule((*fact, pattern), &workload, left(jobs), waiting)
        });
        // The first of those that label as much is the narrowest.
        let larger = |best: Option<Rule>, rule: Rule| match best {
            Some(best) if best.gpu_hours >= rule.gpu_hours => Some(best),
            _ => Some(rule),
        };
        let Some(best) = open.fold(None, larger) else { break };
        labelled.extend(best.jobs.iter().copied());
        chosen.push(best);
    }
    chosen
}

/// The workload that nearly all of a group that could be judged are proposed as.
fn agreed(jobs: &[usize], waiting: &[Waiting]) -> Option<String> {
    let proposals = jobs.iter().filter_map(|job| waiting[*job].proposal());
    let counts = most_first(proposals.map(|resembles| resembles.workload.clone()));
    let (workload, proposed) = counts.into_iter().next()?;
    let judged = judged(jobs, waiting);
    (proposed as f64 >= AGREED_MIN * judged as f64).then_some(workload)
}

/// Jobs of a group with enough readings.
fn judged(jobs: &[usize], waiting: &[Waiting]) -> usize {
    jobs.iter().filter(|job| waiting[**job].verdict != Verdict::NotEnoughData).count()
}

/// A rule for the jobs of a group that no rule before it labels; `None` where they are too few.
fn rule(
    (fact, pattern): (Fact, &str),
    workload: &str,
    jobs: Vec<usize>,
    waiting: &[Waiting],
) -> Option<Rule> {
    let proposals = jobs.iter().filter_map(|job| waiting[*job].proposal());
    let sure: Vec<f64> = proposals
        .filter(|resembles| resembles.workload == workload)
        .map(|resembles| resembles.sure_ratio)
        .collect();
    (sure.len() >= PROPOSED_MIN).then(|| Rule {
        fact,
        pattern: pattern.to_owned(),
        workload: workload.to_owned(),
        proposed: sure.len(),
        judged: judged(&jobs, waiting),
        gpu_hours: jobs.iter().map(|job| waiting[*job].gpu_hours).sum(),
        sure_mean: sure.iter().sum::<f64>() / sure.len() as f64,
        jobs,
    })
}

/// What names of one kind begin with, as a glob: letters up to the first number or dash.
fn prefix(name: &str) -> Option<String> {
    let parts = |letter: char| letter.is_ascii_digit() || letter == '-' || letter == '_';
    let at = name.find(parts).filter(|at| *at >= 2)?;
    let until = if name.as_bytes()[at].is_ascii_digit() { at } else { at + 1 };
    Some(format!("{}*", &name[..until]))
}

#[cfg(test)]
mod tests {
    use loadline_forecast::Resemblance;

    use super::*;

    fn job(name: &str, user: &str, gpu_hours: f64, proposal: Option<&str>) -> Waiting {
        let resembles = |workload: &str| Resemblance {
            workload: workload.to_owned(),
            sure_ratio: 0.9,
            runner_up: "other".to_owned(),
            runner_up_ratio: 0.1,
            reasons: Vec::new(),
            distance_ratio: 0.5,
        };
        Waiting {
            cluster: None,
            job: name.to_owned(),
            attempt: None,
            name: Some(name.to_owned()),
            user: Some(user.to_owned()),
            team: None,
            partition: Some("batch".to_owned()),
            gpu_hours,
            verdict: proposal.map_or(Verdict::NotEnoughData, |_| Verdict::Proposed),
            resembles: proposal.map(resembles),
            reason: String::new(),
        }
    }

    #[test]
    fn names_of_one_kind_share_what_they_begin_with() {
        // Breaks if a rule is as wide as a letter, or names one job only.
        assert_eq!(prefix("exp_42").as_deref(), Some("exp_*"));
        assert_eq!(prefix("sweep-lr-7").as_deref(), Some("sweep-*"));
        assert_eq!(prefix("run12").as_deref(), Some("run*"));
        assert_eq!((prefix("run.sh"), prefix("a-1"), prefix("7b")), (None, None, None));
    }

    #[test]
    fn the_largest_group_of_one_workload_comes_first_and_a_mixed_one_never() {
        // Breaks if a rule labels jobs against their proposals, or counts a job twice.
        let mut waiting: Vec<Waiting> =
            (0..3).map(|n| job(&format!("exp_{n}"), "ann", 10.0, Some("train"))).collect();
        waiting.push(job("exp_9", "bob", 5.0, None));
        waiting.extend((0..3).map(|n| job(&format!("svc-{n}"), "bob", 8.0, Some("inference"))));
        let found: Vec<(String, String, f64, usize)> = rules(&waiting)
            .into_iter()
            .map(|rule| (rule.pattern, rule.workload, rule.gpu_hours, rule.jobs.len()))
            .collect();
        // By name: 35 GPU-hours, the job without readings among them; then bob's three, by name.
        let of = |pattern: &str, workload: &str, hours, jobs| {
            (pattern.to_owned(), workload.to_owned(), hours, jobs)
        };
        assert_eq!(found, [of("exp_*", "train", 35.0, 4), of("svc-*", "inference", 24.0, 3)]);
        let text = snippet(&waiting).join("\n");
        assert!(text.contains("match = { name = \"exp_*\" }\nworkload = \"train\""), "{text}");
        assert!(toml::from_str::<toml::Table>(&text).unwrap()["workload"].is_array());
        // Two of three agree: below 80 %.
        let mixed = [
            job("mix-1", "eve", 1.0, Some("train")),
            job("mix-2", "eve", 1.0, Some("train")),
            job("mix-3", "eve", 1.0, Some("inference")),
        ];
        assert!(snippet(&mixed).is_empty());
    }
}
