//! Proposals in words, and as a table for other programs.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use loadline_engine::Answer;
use loadline_forecast::{
    DividedBy, MEASUREMENTS, PARTS, ProposalReason, Proposer, Resemblance, USERS_MIN,
};

use super::{Verdict, Waiting, most_first};
use crate::failure::Failure;

/// Sureness above which what was told right is told apart.
const SURE: f64 = 0.8;

fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

/// What the proposals rest on and how good they are, in two lines.
pub(super) fn trust(proposer: &Proposer) -> Vec<String> {
    let held_out = proposer.held_out();
    let divided = match proposer.divided_by() {
        DividedBy::User => format!("in {PARTS} parts by user"),
        DividedBy::Job => {
            format!("in {PARTS} parts by job (fewer than {USERS_MIN} users: likely told too well)")
        }
    };
    let sure: Vec<_> = held_out.iter().filter(|job| job.sure_ratio > SURE).collect();
    let right = sure.iter().filter(|job| job.is_right).count();
    let of_sure = match sure.len() {
        0 => format!("none was said to be surer than {}", percent(SURE)),
        jobs => format!(
            "of the {jobs} said to be surer than {}, {}",
            percent(SURE),
            percent(right as f64 / jobs as f64)
        ),
    };
    vec![
        format!(
            "learned from {} labelled {} with enough readings, of {} workloads: {}",
            held_out.len(),
            if held_out.len() == 1 { "job" } else { "jobs" },
            proposer.workloads().len(),
            proposer.workloads().join(", ")
        ),
        format!(
            "of {} labelled jobs held out ({divided}), {} were told right ({} by always saying the \
             most frequent); {of_sure}",
            held_out.len(),
            percent(proposer.right_ratio()),
            percent(proposer.most_frequent_ratio())
        ),
    ]
}

/// How often held-out jobs were told right, by how sure it was said to be.
pub(super) fn reliability(proposer: &Proposer) -> Vec<String> {
    let mut lines =
        vec![format!("{:<14} {:>6} {:>10} {:>11}", "sureness", "jobs", "said", "told right")];
    for band in proposer.reliability().iter().filter(|band| band.jobs > 0) {
        let from_to = format!("{:.0} to {}", band.from_ratio * 100.0, percent(band.until_ratio));
        lines.push(format!(
            "{from_to:<14} {:>6} {:>10} {:>11}",
            band.jobs,
            percent(band.sure_mean_ratio.unwrap_or_default()),
            percent(band.right as f64 / band.jobs as f64)
        ));
    }
    lines
}

/// The jobs that wait: how many of each verdict, then a line each.
pub(super) fn jobs(waiting: &[Waiting], limit: usize) -> Vec<String> {
    let key = |job: &Waiting| match job.proposal() {
        Some(resembles) => format!("proposed as {}", resembles.workload),
        None => job.verdict.name().to_owned(),
    };
    let mut lines = Vec::new();
    for (verdict, jobs) in most_first(waiting.iter().map(key)) {
        let of_it = waiting.iter().filter(|job| key(job) == verdict);
        let hours: f64 = of_it.map(|job| job.gpu_hours).sum();
        lines.push(format!("{verdict:<26} {jobs:>8} jobs {hours:>12.1} GPU-hours"));
    }
    lines.push(String::new());
    lines.extend(waiting.iter().take(limit).map(line));
    if waiting.len() > limit {
        lines.push(format!(
            "... and {} more: --limit shows more, --format csv all",
            waiting.len() - limit
        ));
    }
    lines
}

fn line(job: &Waiting) -> String {
    let told = match job.proposal() {
        Some(resembles) => format!("{} {}", resembles.workload, percent(resembles.sure_ratio)),
        None => job.verdict.name().to_owned(),
    };
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let text = format!(
        "{told:<18} job {} ({}, {}, {}, {:.1} GPU-hours): {}",
        job.job,
        known(&job.name),
        known(&job.user),
        known(&job.partition),
        job.gpu_hours,
        job.reason
    );
    // Names come from users; what would steer a terminal is shown as a mark.
    text.replace(char::is_control, "\u{fffd}")
}

/// The measurements that speak for a proposal, and what comes next.
pub(super) fn reasons(resembles: &Resemblance) -> String {
    let told = |reason: &ProposalReason| {
        let measurement = &MEASUREMENTS[reason.measurement];
        let range = |(low, high): (f64, f64)| {
            let (low, high) = (measurement.told(low), measurement.told(high));
            if low == high { low } else { format!("{low} to {high}") }
        };
        format!(
            "{} {} (half of {}: {}; of {}: {})",
            measurement.words(),
            measurement.told(reason.value),
            resembles.workload,
            range(reason.usual),
            resembles.runner_up,
            range(reason.usual_of_other)
        )
    };
    let mut parts: Vec<String> = resembles.reasons.iter().map(told).collect();
    if parts.is_empty() {
        parts.push("many measurements together, none by itself".to_owned());
    }
    parts.push(format!("next {} {}", resembles.runner_up, percent(resembles.runner_up_ratio)));
    parts.join(", ")
}

/// Why a job that lies far from all labelled jobs resembles none.
pub(super) fn far(resembles: &Resemblance) -> String {
    format!(
        "unlike all labelled jobs: {:.1} times as far from them as 99 in 100 of them are from each \
         other; {} comes nearest",
        resembles.distance_ratio, resembles.workload
    )
}

/// Why the likeliest workload is not proposed.
pub(super) fn unsure(resembles: &Resemblance, min_sure: f64) -> String {
    format!(
        "{} is {} sure, {} is asked for; next {} {}",
        resembles.workload,
        percent(resembles.sure_ratio),
        percent(min_sure),
        resembles.runner_up,
        percent(resembles.runner_up_ratio)
    )
}

/// What is missing of a job's readings.
pub(super) fn not_enough(hours_read: Option<f64>, coverage_ratio: Option<f64>) -> String {
    match (hours_read, coverage_ratio) {
        (None, _) => "nothing was read while it held a GPU by itself".to_owned(),
        (Some(_), Some(seen)) if seen < 0.5 => {
            format!("only {} of the hours held were read, 50 % needed", percent(seen))
        }
        (Some(hours), _) => {
            format!("only {:.0} minutes were read of each GPU, 10 needed", (hours * 60.0).floor())
        }
    }
}

/// All jobs that wait, as a table.
pub(super) fn answer(waiting: &[Waiting]) -> Result<Answer, Failure> {
    let text = |of: &dyn Fn(&Waiting) -> Option<String>| -> ArrayRef {
        Arc::new(waiting.iter().map(of).collect::<StringArray>())
    };
    let number = |of: &dyn Fn(&Waiting) -> Option<f64>| -> ArrayRef {
        Arc::new(waiting.iter().map(of).collect::<Float64Array>())
    };
    let attempts = waiting.iter().map(|job| job.attempt.and_then(|n| i32::try_from(n).ok()));
    let attempts: ArrayRef = Arc::new(attempts.collect::<Int32Array>());
    let resembles =
        |of: fn(&Resemblance) -> String| text(&move |job: &Waiting| job.resembles.as_ref().map(of));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("cluster", text(&|job| job.cluster.clone()), true),
        ("job_id", text(&|job| Some(job.job.clone())), true),
        ("attempt", attempts, true),
        ("name", text(&|job| job.name.clone()), true),
        ("user", text(&|job| job.user.clone()), true),
        ("team", text(&|job| job.team.clone()), true),
        ("partition", text(&|job| job.partition.clone()), true),
        ("gpu_hours", number(&|job| Some(job.gpu_hours)), true),
        ("verdict", text(&|job: &Waiting| Some(Verdict::name(job.verdict).to_owned())), true),
        ("proposal", text(&|job| Some(job.proposal()?.workload.clone())), true),
        ("resembles", resembles(|found| found.workload.clone()), true),
        ("sure_ratio", number(&|job| Some(job.resembles.as_ref()?.sure_ratio)), true),
        ("runner_up", resembles(|found| found.runner_up.clone()), true),
        ("runner_up_ratio", number(&|job| Some(job.resembles.as_ref()?.runner_up_ratio)), true),
        ("reason", text(&|job| Some(job.reason.clone())), true),
    ])?;
    Ok(Answer { schema: batch.schema(), batches: vec![batch] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_its_limit() {
        // Breaks if a job without readings and one with too few are told alike.
        assert_eq!(not_enough(None, None), "nothing was read while it held a GPU by itself");
        assert_eq!(
            not_enough(Some(4.0), Some(0.49)),
            "only 49 % of the hours held were read, 50 % needed"
        );
        assert_eq!(
            not_enough(Some(0.166), Some(0.5)),
            "only 9 minutes were read of each GPU, 10 needed"
        );
    }
}
