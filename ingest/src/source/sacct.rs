//! Slurm's accounting as `sacct --parsable2` prints it.
//!
//! GPUs are read from `AllocTRES` first, then `ReqTRES`; a typed and an untyped entry of the same
//! GPUs count once. Times without zone are UTC, as `TZ=UTC sacct` prints them, unless a zone is
//! given. Steps (`123.batch`) are no jobs.

use chrono::{NaiveDateTime, TimeZone};
use chrono_tz::Tz;

use super::columns::Columns;
use super::input::Input;
use crate::batch::{Output, Reject};
use crate::error::IngestError;
use crate::schema::Table;

const BATCH_ROWS: usize = 65_536;
const TEXT_CHARS_MAX: usize = 200;

/// How to read it.
#[derive(Debug, Clone)]
pub struct SacctSettings {
    /// Names of the columns of a file without header.
    pub columns: Vec<String>,
    /// Delimiter.
    pub delimiter: char,
    /// Zone of the times.
    pub zone: Tz,
    /// Which job names mean which workload; the first match wins.
    pub workloads: Vec<WorkloadRule>,
}

/// A workload type told by the name of the job.
#[derive(Debug, Clone)]
pub struct WorkloadRule {
    /// Glob over the job's name.
    pub name: glob::Pattern,
    /// Workload type.
    pub workload: String,
}

impl WorkloadRule {
    /// Reads a glob.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn pattern(text: &str) -> Result<glob::Pattern, String> {
        glob::Pattern::new(text).map_err(|error| error.msg.to_owned())
    }
}

impl Default for SacctSettings {
    fn default() -> Self {
        Self { columns: Vec::new(), delimiter: '|', zone: Tz::UTC, workloads: Vec::new() }
    }
}

/// Reads files into `jobs`.
///
/// # Errors
/// A file that cannot be read, or that has no `JobID` column.
pub fn read(
    paths: &[String],
    settings: &SacctSettings,
    out: &mut dyn Output,
) -> Result<(), IngestError> {
    for input in Input::expand(paths)? {
        read_one(&input, settings, out)?;
    }
    Ok(())
}

fn read_one(
    input: &Input,
    settings: &SacctSettings,
    out: &mut dyn Output,
) -> Result<(), IngestError> {
    let mut names = settings.columns.clone();
    let mut rows = Columns::default();
    for (position, line) in std::io::BufRead::lines(input.open()?).enumerate() {
        let line = line.map_err(|source| input.unreadable(source))?;
        let line = line.trim_start_matches('\u{feff}').trim_end_matches('\r');
        if line.is_empty() {
            continue;
        }
        if names.is_empty() {
            names = line.split(settings.delimiter).map(str::to_owned).collect();
            if !names.iter().any(|name| name == "JobID" || name == "JobIDRaw") {
                return Err(IngestError::Format {
                    path: input.name().to_owned(),
                    format: "sacct",
                    reason: format!(
                        "the first line names no `JobID` or `JobIDRaw`: `{}`",
                        cut(line)
                    ),
                    hint: Some("give the names with --columns JobID,User,...".into()),
                });
            }
            continue;
        }
        out.read(1);
        let cells: Vec<&str> = line.splitn(names.len(), settings.delimiter).collect();
        let row = Row { names: &names, cells: &cells };
        if let Err(reason) = row.keep(settings, &mut rows) {
            out.reject(Reject {
                file: input.name().to_owned(),
                line: Some(position as u64 + 1),
                reason,
                text: cut(line),
            });
        }
        if rows.rows() >= BATCH_ROWS {
            out.rows(Table::Jobs, rows.take()?)?;
        }
    }
    if rows.rows() > 0 {
        out.rows(Table::Jobs, rows.take()?)?;
    }
    Ok(())
}

fn cut(line: &str) -> String {
    line.chars().take(TEXT_CHARS_MAX).collect()
}

struct Row<'a> {
    names: &'a [String],
    cells: &'a [&'a str],
}

impl Row<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let position = self.names.iter().position(|known| known == name)?;
        let cell = self.cells.get(position)?.trim();
        let nothing = ["", "Unknown", "None", "N/A", "None assigned", "(null)"];
        (!nothing.contains(&cell)).then_some(cell)
    }

    fn keep(&self, settings: &SacctSettings, rows: &mut Columns) -> Result<(), String> {
        if self.cells.len() < self.names.len() {
            return Err(format!("{} fields, {} expected", self.cells.len(), self.names.len()));
        }
        let job = self.get("JobIDRaw").or_else(|| self.get("JobID")).ok_or("no job id")?;
        if job.contains('.') {
            return Err("a step of a job, which the job itself counts".to_owned());
        }
        let at = |name: &str| self.get(name).map(|text| instant(text, settings.zone)).transpose();
        let (submitted, eligible) = (at("Submit")?, at("Eligible")?);
        let (started, ended) = (at("Start")?, at("End")?);
        let state = self.get("State").map(|state| {
            state.split_whitespace().next().unwrap_or_default().trim_end_matches('+').to_uppercase()
        });
        // A job cancelled before it began has a start in some versions, equal to its end.
        let never = state.as_deref() == Some("CANCELLED") && started == ended;
        let pending = state.as_deref() == Some("PENDING");
        let allocated = self.get("AllocTRES").and_then(gpus);
        rows.text("job_id", Some(job.to_owned()));
        rows.number("attempt", Some(self.number("Restarts").unwrap_or(0.0)));
        for (column, name) in [
            ("cluster", "Cluster"),
            ("name", "JobName"),
            ("user", "User"),
            ("team", "Account"),
            ("partition", "Partition"),
            ("nodes", "NodeList"),
        ] {
            rows.text(column, self.get(name).map(str::to_owned));
        }
        let name = self.get("JobName").unwrap_or_default();
        let rule = settings.workloads.iter().find(|rule| rule.name.matches(name));
        let workload = rule.map_or("unlabelled", |rule| rule.workload.as_str());
        rows.text("workload", Some(workload.to_owned()));
        rows.text("state", state);
        rows.instant("submitted_at", submitted);
        rows.instant("eligible_at", eligible);
        rows.instant("started_at", started.filter(|_| !never && !pending));
        rows.instant("ended_at", ended);
        rows.number("suspended_s", self.get("Suspended").and_then(elapsed_s));
        rows.number("gpus_allocated", allocated);
        rows.number("gpus_requested", self.get("ReqTRES").and_then(gpus).or(allocated));
        rows.number("time_limit_s", self.get("Timelimit").and_then(elapsed_s));
        let code = self.get("ExitCode").and_then(|text| text.split(':').next()?.parse().ok());
        rows.number("exit_code", code);
        rows.end_row();
        Ok(())
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.parse().ok()
    }
}

/// GPUs in a TRES list: the untyped count, else the sum of the typed ones, else the site's numeric
/// ids from 1001.
fn gpus(tres: &str) -> Option<f64> {
    let (mut untyped, mut typed, mut numbered) = (None, None, None);
    for (name, count) in tres.split(',').filter_map(|part| part.trim().split_once('=')) {
        let Ok(count) = count.parse::<f64>() else { continue };
        if name == "gres/gpu" {
            untyped = Some(count);
        } else if name.starts_with("gres/gpu:") {
            *typed.get_or_insert(0.0) += count;
        } else if name == "1001" || name == "1002" {
            *numbered.get_or_insert(0.0) += count;
        }
    }
    untyped.or(typed).or(numbered)
}

/// Seconds of `[days-]hours:minutes:seconds`; `None` for `UNLIMITED` and `Partition_Limit`.
fn elapsed_s(text: &str) -> Option<f64> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Some(seconds);
    }
    let (days, clock) = text.split_once('-').map_or(("0", text), |(days, clock)| (days, clock));
    let days: f64 = days.parse().ok()?;
    let parts: Option<Vec<f64>> = clock.split(':').map(|part| part.parse().ok()).collect();
    let seconds = parts?.iter().fold(0.0, |sum, part| sum * 60.0 + part);
    Some(days * 86_400.0 + seconds)
}

/// Milliseconds since 1970 of an ISO time in `zone`, or of epoch seconds.
fn instant(text: &str, zone: Tz) -> Result<i64, String> {
    if let Ok(seconds) = text.parse::<i64>() {
        return Ok(seconds * 1000);
    }
    let local: NaiveDateTime =
        text.parse().map_err(|_| format!("`{text}` is no time such as 2026-01-31T09:00:00"))?;
    match zone.from_local_datetime(&local) {
        chrono::LocalResult::Single(at) => Ok(at.timestamp_millis()),
        chrono::LocalResult::Ambiguous(first, _) => {
            Err(format!("`{text}` happens twice in {zone}, first at {first}"))
        }
        chrono::LocalResult::None => Err(format!("`{text}` never happens in {zone}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_and_untyped_gpus_count_once() {
        assert_eq!(gpus("billing=12,cpu=12,gres/gpu:a100=1,gres/gpu=1"), Some(1.0));
        assert_eq!(gpus("gres/gpu:a100=2,gres/gpu:v100=1"), Some(3.0));
        assert_eq!(gpus("1=20,2=170000,4=1,1001=2"), Some(2.0));
        assert_eq!(gpus("cpu=64,mem=62.50G,node=8"), None);
    }

    #[test]
    fn elapsed_time_reads_days_and_refuses_words() {
        assert_eq!(elapsed_s("10-13:27:06"), Some(912_426.0));
        assert_eq!(elapsed_s("00:00:24"), Some(24.0));
        assert_eq!(elapsed_s("UNLIMITED"), None);
        assert_eq!(elapsed_s("Partition_Limit"), None);
    }

    #[test]
    fn an_hour_that_happens_twice_is_said() {
        let zone = Tz::America__Los_Angeles;
        assert!(instant("2017-11-05T01:30:00", zone).unwrap_err().contains("twice"));
        assert!(instant("2017-03-12T02:30:00", zone).unwrap_err().contains("never"));
        assert_eq!(instant("2017-11-05T03:30:00", zone), Ok(1_509_881_400_000));
    }
}
