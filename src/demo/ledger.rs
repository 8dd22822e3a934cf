//! What the accounting and the prolog write: `sacct.txt` and `allocations.csv`.

use std::fmt::Write as _;

use chrono::DateTime;

use super::arrivals::{Job, TEAMS};
use super::fleet::POOLS;
use super::queue::{Attempt, State};
use super::{CLUSTER, Scene};

/// Number of the first job.
const JOB_FIRST: usize = 410_001;
/// Uid of the first user.
const UID_FIRST: usize = 5_001;

/// Rows of `sacct --parsable2` for every attempt, with a header, in UTC.
pub(super) fn sacct(scene: &Scene) -> String {
    let mut text = String::from(
        "JobIDRaw|Cluster|Account|User|Partition|QOS|ReqTRES|AllocTRES|Submit|Eligible|Start|End|\
         ElapsedRaw|Suspended|State|Restarts|NodeList|Timelimit|ExitCode|JobName\n",
    );
    for attempt in &scene.attempts {
        let job = &scene.jobs[attempt.job];
        let (team, users) = TEAMS[job.team];
        let (user, pool) = (users[job.user], &POOLS[job.pool]);
        let qos = if job.urgent { "high" } else { "normal" };
        let running_s = |from: i64| attempt.ended.unwrap_or(scene.local.ended) - from;
        let row: [String; 20] = [
            job_id(attempt.job),
            CLUSTER.into(),
            team.into(),
            user.into(),
            pool.name.into(),
            qos.into(),
            tres(job, None),
            attempt.started.map_or(String::new(), |_| tres(job, Some(pool.gres))),
            instant(attempt.submitted),
            instant(attempt.submitted),
            attempt.started.map_or("Unknown".into(), instant),
            attempt.ended.map_or("Unknown".into(), instant),
            attempt.started.map_or(0, running_s).to_string(),
            clock(paused_s(job, attempt)),
            state(job, attempt),
            attempt.restarts.to_string(),
            node_list(scene, attempt),
            job.limit_s.map_or("UNLIMITED".into(), clock),
            if attempt.state == State::Failed { "1:0" } else { "0:0" }.into(),
            job.name.clone(),
        ];
        text.push_str(&row.join("|"));
        text.push('\n');
    }
    text
}

/// Rows of `allocations.csv`: which attempt held which GPU.
pub(super) fn allocations(scene: &Scene) -> String {
    let mut text = String::from(
        "job_id,attempt,cluster,node,gpu,gpu_uuid,gpu_share_ratio,started_at,ended_at\n",
    );
    for attempt in &scene.attempts {
        let Some(started) = attempt.started else { continue };
        let job = &scene.jobs[attempt.job];
        let ended = attempt.ended.map_or(String::new(), instant_z);
        for gpu in &attempt.gpus {
            let device = &scene.fleet.gpus[*gpu];
            writeln!(
                text,
                "{},{},{CLUSTER},{},{},{},{},{},{ended}",
                job_id(attempt.job),
                attempt_number(attempt),
                scene.fleet.nodes[device.node].name,
                device.index,
                device.uuid,
                share(job),
                instant_z(started),
            )
            .expect("a String takes any text");
        }
    }
    text
}

pub(super) fn job_id(job: usize) -> String {
    (JOB_FIRST + job).to_string()
}

/// Attempts are told apart by the restarts before them, as the accounting does.
pub(super) fn attempt_number(attempt: &Attempt) -> u32 {
    attempt.restarts
}

pub(super) fn share(job: &Job) -> f64 {
    if job.sliced { 0.25 } else { 1.0 }
}

/// Seconds of an attempt in which the job was suspended.
pub(super) fn paused_s(job: &Job, attempt: &Attempt) -> i64 {
    match (job.suspended_s, attempt.ended) {
        (Some((_, pause_s)), Some(_)) => pause_s,
        _ => 0,
    }
}

/// Trackable resources; a sliced job asks for a shard and no GPU.
fn tres(job: &Job, gres: Option<&str>) -> String {
    let (gpus, nodes) = (job.gpus, job.gpus.div_ceil(8));
    if job.sliced {
        return format!("billing=4,cpu=4,gres/shard=1,mem=32G,node={nodes}");
    }
    let typed = gres.map_or(String::new(), |model| format!("gres/gpu:{model}={gpus},"));
    let (cpus, mem) = (gpus * 12, gpus * 120);
    format!("billing={cpus},cpu={cpus},{typed}gres/gpu={gpus},mem={mem}G,node={nodes}")
}

fn state(job: &Job, attempt: &Attempt) -> String {
    let text = match attempt.state {
        State::Pending => "PENDING",
        State::Running => "RUNNING",
        State::Completed => "COMPLETED",
        State::Failed => "FAILED",
        State::Timeout => "TIMEOUT",
        State::Preempted => "PREEMPTED",
        State::NodeFail => "NODE_FAIL",
        State::Cancelled => {
            return format!("CANCELLED by {}", UID_FIRST + job.team * 10 + job.user);
        }
    };
    text.to_owned()
}

/// `train-02`, `train-[01,03]` or `None assigned`.
pub(super) fn node_list(scene: &Scene, attempt: &Attempt) -> String {
    let mut nodes: Vec<usize> =
        attempt.gpus.iter().map(|gpu| scene.fleet.gpus[*gpu].node).collect();
    nodes.dedup();
    match nodes.as_slice() {
        [] => "None assigned".to_owned(),
        [node] => scene.fleet.nodes[*node].name.clone(),
        [first, ..] => {
            let number = |node: &usize| {
                scene.fleet.nodes[*node].name.rsplit('-').next().unwrap_or_default().to_owned()
            };
            let numbers: Vec<String> = nodes.iter().map(number).collect();
            let pool = POOLS[scene.fleet.nodes[*first].pool].name;
            format!("{pool}-[{}]", numbers.join(","))
        }
    }
}

/// `1-02:03:04` or `02:03:04`.
fn clock(seconds: i64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let time = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    if days > 0 { format!("{days}-{time}") } else { time }
}

fn instant(at: i64) -> String {
    let at = DateTime::from_timestamp(at, 0).expect("inside the span");
    at.format("%Y-%m-%dT%H:%M:%S").to_string()
}

pub(super) fn instant_z(at: i64) -> String {
    instant(at) + "Z"
}
