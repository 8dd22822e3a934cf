//! `squeue --json`: what waits now, as lines that the reader of the ledger knows.
//!
//! # Source
//! The OpenAPI data parsers of Slurm 21.08 to 24.11: figures are plain numbers, or
//! `{"set": true, "infinite": false, "number": 5}` since 23.02; states are a word or a list.

use serde::Deserialize;
use serde_json::Value;

use super::command::failure;
use crate::error::IngestError;

/// Columns of the lines.
const HEADER: &str = "JobID|JobIDRaw|Cluster|Account|User|Partition|ReqTRES|TresPerNode|NNodes|\
    Submit|Eligible|Start|End|Suspended|State|Restarts|TimelimitRaw|Priority|JobName";

#[derive(Debug, Deserialize)]
struct Queue {
    jobs: Vec<Value>,
}

/// The jobs that wait, with a header.
///
/// # Errors
/// [`IngestError::Collect`] for what is no answer of `squeue --json`.
pub(super) fn waiting(json: &str) -> Result<String, IngestError> {
    let queue: Queue = serde_json::from_str(json)
        .map_err(|error| failure("squeue", format!("no answer of `--json`: {error}"), None))?;
    let mut lines = format!("{HEADER}\n");
    for job in queue.jobs.iter().filter(|job| waits(&job["job_state"])) {
        let text = |name: &str| {
            let text = job[name].as_str().unwrap_or_default();
            text.replace(['|', '\n', '\r'], " ")
        };
        let number = |name: &str| figure(&job[name]).map_or_else(String::new, |n| n.to_string());
        // A job that may not start yet has no time of eligibility: 0.
        let time = |name: &str| figure(&job[name]).filter(|at| *at > 0).map(|at| at.to_string());
        // Tasks of an array that wait share one row.
        let shown = match (number("array_job_id"), text("array_task_string")) {
            (array, tasks) if !tasks.is_empty() => format!("{array}_[{tasks}]"),
            _ => number("job_id"),
        };
        let none = String::new;
        let fields = [
            shown,
            number("job_id"),
            text("cluster"),
            text("account"),
            text("user_name"),
            text("partition"),
            text("tres_req_str"),
            text("tres_per_node"),
            number("node_count"),
            time("submit_time").unwrap_or_default(),
            time("eligible_time").unwrap_or_default(),
            none(),
            none(),
            none(),
            "PENDING".into(),
            number("restart_cnt"),
            number("time_limit"),
            number("priority"),
            text("name"),
        ];
        lines += &fields.join("|");
        lines.push('\n');
    }
    Ok(lines)
}

fn waits(state: &Value) -> bool {
    match state {
        Value::String(state) => state == "PENDING",
        Value::Array(states) => states.iter().any(|state| state == "PENDING"),
        _ => false,
    }
}

/// A figure that is set; none where it is infinite.
fn figure(value: &Value) -> Option<i64> {
    match value {
        Value::Object(told) => {
            let set = told.get("set").and_then(Value::as_bool).unwrap_or(true);
            let infinite = told.get("infinite").and_then(Value::as_bool).unwrap_or(false);
            told.get("number").and_then(Value::as_i64).filter(|_| set && !infinite)
        }
        value => value.as_i64(),
    }
}
