//! `loadline propose`: which workload each unlabelled job resembles, how sure that is, and the rule
//! that would say so.

mod rules;
mod told;

use std::cmp::Reverse;

use loadline_engine::{Params, Session, query};
use loadline_forecast::{
    ForecastError, LabelledJob, MEASUREMENTS, Proposer, Resemblance, Signature,
};

use super::row::{Row, rows};
use super::{Context, print};
use crate::cli::{OutputFormat, ProposeArgs};
use crate::failure::Failure;

/// What is said of a job that waits for a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Proposed,
    ResemblesNone,
    NotEnoughData,
}

impl Verdict {
    const fn name(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::ResemblesNone => "resembles-none",
            Self::NotEnoughData => "not-enough-data",
        }
    }
}

/// A job that waits for a label.
#[derive(Debug)]
struct Waiting {
    cluster: Option<String>,
    job: String,
    attempt: Option<u64>,
    name: Option<String>,
    user: Option<String>,
    team: Option<String>,
    partition: Option<String>,
    gpu_hours: f64,
    verdict: Verdict,
    /// What it resembles most, also where that is not near enough to be proposed.
    resembles: Option<Resemblance>,
    reason: String,
}

impl Waiting {
    /// The workload proposed.
    fn proposal(&self) -> Option<&Resemblance> {
        self.resembles.as_ref().filter(|_| self.verdict == Verdict::Proposed)
    }
}

pub(super) async fn run(context: &Context, args: &ProposeArgs) -> Result<(), Failure> {
    let session = context.session().await?;
    let found = signatures(&session).await?;
    let known = |row: &&Row| row.text("waits").is_none() && row.number("enough") == Some(1.0);
    let labelled: Vec<LabelledJob> = found.iter().filter(known).map(labelled).collect();
    let waits = found.iter().filter(|row| row.text("waits").is_some());
    let asked = |row: &&Row| args.job.is_none() || row.text("job_id") == args.job;
    let asked: Vec<&Row> = waits.filter(asked).collect();
    if asked.is_empty() && args.job.is_some() {
        return Err(none_waits(&found, args.job.as_deref().unwrap_or_default()));
    }
    let is_table = args.table.form() == OutputFormat::Table && args.table.output.is_none();
    if asked.is_empty() {
        return match is_table {
            true => print::line("no job that held GPUs waits for a workload"),
            false => print::answer(&told::answer(&[])?, &args.table),
        };
    }
    let proposer = Proposer::learn(&labelled).map_err(refused)?;
    let mut waiting: Vec<Waiting> =
        asked.into_iter().map(|row| judged(row, &proposer, args.min_sure)).collect();
    waiting.sort_by(|a, b| {
        b.gpu_hours
            .total_cmp(&a.gpu_hours)
            .then_with(|| (&a.job, a.attempt).cmp(&(&b.job, b.attempt)))
    });
    if !is_table {
        for line in told::trust(&proposer) {
            print::aside(&line);
        }
        return print::answer(&told::answer(&waiting)?, &args.table);
    }
    for line in told::trust(&proposer) {
        print::line(&line)?;
    }
    for line in told::reliability(&proposer) {
        print::line(&line)?;
    }
    print::line("")?;
    for line in told::jobs(&waiting, args.limit) {
        print::line(&line)?;
    }
    if args.job.is_none() {
        for line in rules::snippet(&waiting) {
            print::line(&line)?;
        }
    }
    Ok(())
}

/// Signatures of all jobs, beside the jobs that wait for a label and held GPUs: `waits` is the job
/// of those.
async fn signatures(session: &Session) -> Result<Vec<Row>, Failure> {
    let text = "SELECT u.job_id AS waits, coalesce(u.cluster, s.cluster) AS cluster, \
        coalesce(u.job_id, s.job_id) AS job_id, coalesce(u.attempt, s.attempt) AS attempt, \
        coalesce(u.name, s.name) AS name, coalesce(u.\"user\", s.\"user\") AS \"user\", \
        coalesce(u.team, s.team) AS team, coalesce(u.\"partition\", s.\"partition\") \
        AS \"partition\", u.gpu_hours, s.workload, CAST(s.enough AS INT) AS enough, \
        s.coverage_ratio, s.hours_read";
    let measured: Vec<String> = MEASUREMENTS.iter().map(|m| format!("s.{}", m.name)).collect();
    let text = format!(
        "{text}, {} FROM job_signatures s FULL JOIN (SELECT a.* FROM answer a WHERE a.gpu_hours > 0) u \
         ON u.job_id = s.job_id AND coalesce(u.attempt, 0) = coalesce(s.attempt, 0) \
         AND coalesce(u.cluster, '') = coalesce(s.cluster, '') \
         WHERE u.job_id IS NOT NULL OR s.workload <> 'unlabelled' ORDER BY 2, 3, 4",
        measured.join(", ")
    );
    let question = query::find("unlabelled_jobs")?;
    Ok(rows(&session.query_over(&question, &Params::new(), &text).await?))
}

fn signature(row: &Row) -> Signature {
    Signature::new(std::array::from_fn(|m| row.number(MEASUREMENTS[m].name)))
}

fn labelled(row: &Row) -> LabelledJob {
    let text = |column: &str| row.text(column).unwrap_or_default();
    LabelledJob {
        job: format!("{}/{}", text("cluster"), text("job_id")),
        user: format!("{}/{}", text("cluster"), text("user")),
        workload: text("workload"),
        signature: signature(row),
    }
}

fn judged(row: &Row, proposer: &Proposer, min_sure: f64) -> Waiting {
    let mut waiting = Waiting {
        cluster: row.text("cluster"),
        job: row.text("job_id").unwrap_or_default(),
        attempt: row.count("attempt"),
        name: row.text("name"),
        user: row.text("user"),
        team: row.text("team"),
        partition: row.text("partition"),
        gpu_hours: row.number("gpu_hours").unwrap_or(0.0),
        verdict: Verdict::NotEnoughData,
        resembles: None,
        reason: String::new(),
    };
    if row.number("enough") != Some(1.0) {
        waiting.reason = told::not_enough(row.number("hours_read"), row.number("coverage_ratio"));
        return waiting;
    }
    let resembles = proposer.propose(&signature(row));
    waiting.verdict = verdict(&resembles, min_sure);
    waiting.reason = match waiting.verdict {
        Verdict::Proposed => told::reasons(&resembles),
        _ if is_near(&resembles) => told::unsure(&resembles, min_sure),
        _ => told::far(&resembles),
    };
    waiting.resembles = Some(resembles);
    waiting
}

/// Whether labelled jobs lie as near as they do to each other.
fn is_near(resembles: &Resemblance) -> bool {
    resembles.distance_ratio <= 1.0
}

fn verdict(resembles: &Resemblance, min_sure: f64) -> Verdict {
    match is_near(resembles) && resembles.sure_ratio >= min_sure {
        true => Verdict::Proposed,
        false => Verdict::ResemblesNone,
    }
}

/// Why a job that was named is not among those that wait.
fn none_waits(found: &[Row], job: &str) -> Failure {
    let labelled = found.iter().find(|row| row.text("job_id").as_deref() == Some(job));
    match labelled.and_then(|row| row.text("workload")) {
        Some(workload) => Failure::new(format!("job `{job}` has a workload already: `{workload}`"))
            .hint("`loadline propose` without --job lists the jobs that wait for one"),
        None => Failure::new(format!("no job `{job}` that held GPUs waits for a workload"))
            .hint("`loadline query unlabelled_jobs` lists those that do"),
    }
}

fn refused(error: ForecastError) -> Failure {
    let failure = Failure::from_error(&error);
    let failure = match error.detail() {
        Some(detail) => failure.detail(detail),
        None => failure,
    };
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Names with how much they hold, the most first.
fn most_first<T: Ord + Clone>(counted: impl Iterator<Item = T>) -> Vec<(T, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    for name in counted {
        *counts.entry(name).or_insert(0) += 1;
    }
    let mut counts: Vec<(T, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_proposed_from_both_limits_on() {
        // Breaks if a job as sure as is asked, or as far as labelled jobs lie, is not proposed.
        let of = |sure_ratio, distance_ratio| Resemblance {
            workload: "train".to_owned(),
            sure_ratio,
            runner_up: "finetune".to_owned(),
            runner_up_ratio: 0.2,
            reasons: Vec::new(),
            distance_ratio,
        };
        assert_eq!(verdict(&of(0.6, 1.0), 0.6), Verdict::Proposed);
        assert_eq!(verdict(&of(0.599, 1.0), 0.6), Verdict::ResemblesNone);
        assert_eq!(verdict(&of(0.6, 1.001), 0.6), Verdict::ResemblesNone);
    }
}
