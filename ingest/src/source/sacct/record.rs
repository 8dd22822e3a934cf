//! From the fields of a line to a job row or a step.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::SacctOptions;
use super::columns::{Column, Layout};
use super::duration::duration_s;
use super::nodelist::nodes;
use super::row::{JobRow, Texts};
use super::state::{base_state, exit_code, unfinished, wait_status};
use crate::source::instant::{Moments, Told, check_run};
use crate::workload::JobFacts;

mod gpus;
mod times;

use gpus::Uncounted;

/// Label of each column that is kept as one.
const LABELS: [(&str, Column); 6] = [
    ("qos", Column::Qos),
    ("group", Column::Group),
    ("wckey", Column::WcKey),
    ("constraints", Column::Constraints),
    ("reservation", Column::Reservation),
    ("job_type", Column::JobType),
];

/// What a line is.
pub(crate) enum Record {
    Job(Box<JobRow>),
    Step(Step),
}

/// What a step can tell of its job.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) job_id: String,
    pub(crate) gpus_allocated: Option<f64>,
    pub(crate) nodes: Option<Arc<str>>,
}

/// Reads records and remembers what it had to assume.
#[derive(Debug)]
pub(crate) struct Reader<'o> {
    options: &'o SacctOptions,
    texts: Texts,
    ended_unknown: u64,
    uncounted: Uncounted,
    /// Values that cannot be, by the column that stays NULL.
    odd: BTreeMap<&'static str, u64>,
}

/// One line with its layout.
struct Fields<'a> {
    layout: &'a Layout,
    values: &'a [Cow<'a, str>],
}

impl<'a> Fields<'a> {
    /// The trimmed text of `column`, if it is there and says something.
    fn get(&self, column: Column) -> Option<&'a str> {
        self.layout.position(column).and_then(|at| self.at(at))
    }

    fn at(&self, at: usize) -> Option<&'a str> {
        let text = self.values[at].trim();
        (!matches!(text, "" | "\\N" | "NULL" | "(null)")).then_some(text)
    }

    fn instant(&self, column: Column, moments: &mut Moments) -> Result<Option<Told>, String> {
        let Some(text) = self.get(column) else { return Ok(None) };
        // The database writes 0 for "not yet".
        Ok(moments.parse_both(text)?.filter(|told| told.at != 0))
    }

    fn elapsed_s(&self) -> Option<f64> {
        let raw = self.get(Column::ElapsedRaw).and_then(duration_s);
        raw.or_else(|| self.get(Column::Elapsed).and_then(duration_s))
    }

    /// While a job is suspended the database keeps the instant instead of the seconds.
    fn suspended_s(&self) -> Option<f64> {
        self.get(Column::Suspended).and_then(duration_s).filter(|seconds| *seconds < 1e9)
    }
}

impl<'o> Reader<'o> {
    pub(crate) fn new(options: &'o SacctOptions) -> Self {
        Self {
            options,
            texts: Texts::default(),
            ended_unknown: 0,
            uncounted: Uncounted::default(),
            odd: BTreeMap::new(),
        }
    }

    /// How many values of each column could not be since the last call.
    pub(crate) fn odd(&mut self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.odd)
    }

    /// Counts a text of digits that is no value of `column`.
    fn judge(&mut self, column: &'static str, text: Option<&str>, read: bool) {
        let number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b':');
        if !read && text.is_some_and(|text| text.bytes().all(number)) {
            *self.odd.entry(column).or_default() += 1;
        }
    }

    /// What had to be assumed since the last call, in words.
    pub(crate) fn notices(&mut self) -> Vec<String> {
        let mut told = self.uncounted.told();
        let count = std::mem::take(&mut self.ended_unknown);
        if count > 0 {
            told.push(format!(
                "{count} finished jobs have neither an end nor an elapsed time; they count as \
                 ended when they started"
            ));
        }
        told
    }

    pub(crate) fn record(
        &mut self,
        layout: &Layout,
        values: &[Cow<'_, str>],
        moments: &mut Moments,
    ) -> Result<Record, String> {
        let fields = Fields { layout, values };
        let raw = fields.get(Column::JobIdRaw).or(fields.get(Column::JobId));
        let id = job_id(raw.ok_or("the row has no job id")?, layout.slurmdb);
        match id.split_once('.').filter(|_| !layout.slurmdb) {
            Some((job, _)) => Ok(Record::Step(self.step(job, &fields))),
            None => self.job(id, &fields, moments).map(|row| Record::Job(Box::new(row))),
        }
    }

    fn step(&mut self, job: &str, fields: &Fields<'_>) -> Step {
        Step {
            job_id: job.to_owned(),
            gpus_allocated: self.step_gpus(fields),
            nodes: self.nodes(fields),
        }
    }

    fn job(
        &mut self,
        job_id: String,
        fields: &Fields<'_>,
        moments: &mut Moments,
    ) -> Result<JobRow, String> {
        let mut row = JobRow { job_id, ..JobRow::default() };
        self.describe(&mut row, fields);
        read_times(&mut row, fields, moments)?;
        row.nodes = self.nodes(fields);
        self.settle_times(&mut row, fields)?;
        self.count_gpus(&mut row, fields);
        // Each task has a row of its own once it runs; until then one row waits for all.
        let tasks = fields.get(Column::JobId).and_then(super::array::tasks);
        if let (None, Some(tasks)) = (row.started_at, tasks) {
            row.gpus_requested = row.gpus_requested.map(|gpus| gpus * tasks as f64);
        }
        self.label(&mut row, fields);
        Ok(row)
    }

    fn describe(&mut self, row: &mut JobRow, fields: &Fields<'_>) {
        let slurmdb = fields.layout.slurmdb;
        row.state = fields.get(Column::State).and_then(base_state).map(|s| self.texts.share(&s));
        row.cluster = self.text(fields.get(Column::Cluster));
        row.name = fields.get(Column::Name).map(Arc::from);
        row.team = self.text(fields.get(Column::Account));
        row.partition = self.text(fields.get(Column::Partition));
        let user = fields.get(Column::User).or(fields.get(Column::UserId));
        row.user = user.map(|user| self.texts.share(&job_id(user, slurmdb)));
        row.priority = fields.get(Column::Priority).and_then(finite);
        let restarts = fields.get(Column::Restarts);
        row.attempt = restarts.and_then(|text| text.parse().ok()).filter(|told| *told >= 0);
        self.judge("attempt", restarts, row.attempt.is_some());
        row.time_limit_s = time_limit_s(fields);
        row.exit_code = fields
            .get(Column::ExitCode)
            .and_then(exit_code)
            .or_else(|| fields.get(Column::WaitStatus).and_then(wait_status));
        let told = fields.get(Column::ExitCode).or(fields.get(Column::WaitStatus));
        self.judge("exit_code", told, row.exit_code.is_some());
        let project = self.options.project.as_deref();
        let project = project.and_then(|name| fields.layout.position_named(name));
        row.project = self.text(project.and_then(|at| fields.at(at)));
    }

    /// Makes start, end and suspension agree with the state.
    fn settle_times(&mut self, row: &mut JobRow, fields: &Fields<'_>) -> Result<(), String> {
        let elapsed_s = fields.elapsed_s();
        if never_started(row, fields, elapsed_s) {
            row.started_at = None;
        }
        row.suspended_s = fields.suspended_s();
        let Some(started_at) = row.started_at else { return Ok(()) };
        if row.ended_at.is_none() && !unfinished(row.state.as_deref()) {
            let held_s = elapsed_s.map(|elapsed_s| elapsed_s + row.suspended_s.unwrap_or(0.0));
            self.ended_unknown += u64::from(held_s.is_none());
            row.ended_at = Some(started_at.saturating_add(millis(held_s.unwrap_or(0.0))));
        }
        let Some(ended_at) = row.ended_at else { return Ok(()) };
        check_run(started_at, ended_at)?;
        #[expect(clippy::cast_precision_loss, reason = "milliseconds lie below 2^53")]
        let held_s = (ended_at - started_at) as f64 / 1000.0;
        if fields.get(Column::Suspended).and_then(duration_s).is_none() {
            // Slurm's elapsed time leaves suspension out.
            row.suspended_s = elapsed_s.map(|elapsed_s| (held_s - elapsed_s).max(0.0));
        }
        row.suspended_s = row.suspended_s.map(|seconds| seconds.min(held_s));
        Ok(())
    }

    fn nodes(&mut self, fields: &Fields<'_>) -> Option<Arc<str>> {
        fields.get(Column::NodeList).and_then(nodes).map(|nodes| self.texts.share(&nodes))
    }

    fn label(&mut self, row: &mut JobRow, fields: &Fields<'_>) {
        for (key, column) in LABELS {
            if let Some(text) = self.text(fields.get(column)) {
                row.labels.push((key, text));
            }
        }
        let shown = fields.get(Column::JobId).filter(|id| *id != row.job_id);
        if let Some(id) = shown.filter(|_| !fields.layout.slurmdb) {
            row.labels.push(("array_task", Arc::from(id)));
        }
        let labels: Vec<(&str, &str)> = row.labels.iter().map(|(k, v)| (*k, &**v)).collect();
        let workload = self.options.rules.workload(&JobFacts {
            partition: row.partition.as_deref(),
            name: row.name.as_deref(),
            user: row.user.as_deref(),
            team: row.team.as_deref(),
            project: row.project.as_deref(),
            labels: &labels,
        });
        row.workload = Some(self.texts.share(workload));
    }

    fn text(&mut self, text: Option<&str>) -> Option<Arc<str>> {
        text.map(|text| self.texts.share(text))
    }
}

/// The times of a row, as far as its state lets them be known.
fn read_times(row: &mut JobRow, fields: &Fields<'_>, moments: &mut Moments) -> Result<(), String> {
    let mut told = [None; 4];
    let columns = [Column::Submit, Column::Eligible, Column::Start, Column::End];
    for (told, column) in told.iter_mut().zip(columns) {
        *told = fields.instant(column, moments)?;
    }
    match row.state.as_deref() {
        Some("PENDING") => (told[2], told[3]) = (None, None),
        // `squeue` and `sacct --truncate` tell when such a job would end.
        Some("RUNNING" | "SUSPENDED" | "CONFIGURING") => told[3] = None,
        _ => {}
    }
    let held_s = fields.elapsed_s().map(|s| s + fields.suspended_s().unwrap_or(0.0));
    [row.submitted_at, row.eligible_at, row.started_at, row.ended_at] = times::settle(told, held_s);
    Ok(())
}

/// Whether the row is of a job that left before it began: Slurm then writes its end as its start.
fn never_started(row: &JobRow, fields: &Fields<'_>, elapsed_s: Option<f64>) -> bool {
    let Some(started_at) = row.started_at else { return true };
    if unfinished(row.state.as_deref()) || row.nodes.is_some() {
        return false;
    }
    let no_time = row.ended_at.is_none_or(|ended_at| ended_at <= started_at);
    let no_elapsed = elapsed_s.is_none_or(|seconds| seconds == 0.0);
    fields.layout.position(Column::NodeList).is_some() && no_time && no_elapsed
}

/// The limit in seconds: a span, or minutes in the database and in `TimelimitRaw`.
fn time_limit_s(fields: &Fields<'_>) -> Option<f64> {
    // 2^32-1 is "unlimited" and 2^32-2 "not set" in the database.
    let minutes = |text: &str| finite(text).filter(|minutes| *minutes < 4e9).map(|m| m * 60.0);
    match fields.get(Column::TimeLimit) {
        Some(text) if fields.layout.slurmdb => minutes(text),
        Some(text) => duration_s(text),
        None => fields.get(Column::TimeLimitMinutes).and_then(minutes),
    }
}

fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// Milliseconds of a span; spans are far below the limit of an `i64`.
#[expect(clippy::cast_possible_truncation, reason = "a float saturates when it is cast")]
fn millis(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

/// An id as whole digits: exports of the database turn 16051200000000 into `16051200000000.0`.
fn job_id(text: &str, slurmdb: bool) -> String {
    let whole = text.strip_suffix(".0").filter(|_| slurmdb);
    whole.unwrap_or(text).to_owned()
}
