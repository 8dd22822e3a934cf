//! Slurm's ledger and queue, asked at intervals.
//!
//! `sacct` is asked for all that ran or waited since a while before the last good answer, so that
//! nothing falls between two answers; what it has told before in the same words is passed over.
//! `squeue --json` tells what waits now, where there is such a command. Both are asked in UTC.

mod command;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::Deserialize;

use self::command::{Asked, ask};
use super::input::Input;
use super::once::Once;
use super::sacct::{self, ASKED, SacctOptions};
use crate::batch::Output;
use crate::collect::Collector;
use crate::error::IngestError;

/// Time after which everything is handed on again, told before or not.
const WHOLE_EVERY: TimeDelta = TimeDelta::hours(1);

/// Settings of asking Slurm.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlurmSettings {
    /// Seconds between two rounds, from 1 to 86400.
    pub interval_s: f64,
    /// Seconds in which a command must answer, from 1 to 3600.
    pub timeout_s: f64,
    /// The command that tells the ledger, with arguments before ours.
    pub sacct: Vec<String>,
    /// The command that tells the queue; none is asked where it is empty.
    pub squeue: Vec<String>,
    /// Hours of the ledger that the first round asks for.
    pub lookback_h: f64,
    /// Seconds before the last good answer from which the next one is asked.
    pub overlap_s: f64,
    /// Longest answer in bytes.
    pub answer_bytes_max: u64,
}

impl Default for SlurmSettings {
    fn default() -> Self {
        Self {
            interval_s: 60.0,
            timeout_s: 50.0,
            sacct: vec!["sacct".into()],
            squeue: vec!["squeue".into()],
            lookback_h: 48.0,
            overlap_s: 3_600.0,
            answer_bytes_max: 256 << 20,
        }
    }
}

impl SlurmSettings {
    fn check(&self) -> Result<(), IngestError> {
        for (what, value, (least, most)) in [
            ("interval_s", self.interval_s, (1.0, 86_400.0)),
            ("timeout_s", self.timeout_s, (1.0, 3_600.0)),
            ("lookback_h", self.lookback_h, (0.0, 87_600.0)),
            ("overlap_s", self.overlap_s, (0.0, 864_000.0)),
            ("answer_bytes_max", self.answer_bytes_max as f64, (1_024.0, 4_294_967_296.0)),
        ] {
            if !(least..=most).contains(&value) {
                return Err(IngestError::Setting {
                    what: format!("collect.slurm.{what}"),
                    value: value.to_string(),
                    reason: format!("must be from {least} to {most}"),
                });
            }
        }
        if self.sacct.is_empty() {
            return Err(IngestError::Setting {
                what: "collect.slurm.sacct".into(),
                value: String::new(),
                reason: "must name a command".into(),
            });
        }
        Ok(())
    }
}

/// Asks Slurm.
#[derive(Debug)]
pub struct SlurmCollector {
    settings: SlurmSettings,
    options: SacctOptions,
    /// Columns that this release's ledger has, of those that are wanted.
    columns: Option<String>,
    /// From when on the next round asks.
    since: Option<DateTime<Utc>>,
    /// Lines of the last answers, by their hash.
    told: HashSet<u64>,
    hasher: RandomState,
    /// When everything was handed on last.
    whole_at: Option<DateTime<Utc>>,
    said: Once,
    runtime: Option<tokio::runtime::Runtime>,
}

impl SlurmCollector {
    /// A collector that reads answers as `options` say, the rules for workloads among them. Times
    /// are those of UTC, in which it asks.
    ///
    /// # Errors
    /// [`IngestError::Setting`] for a setting out of range.
    pub fn new(settings: SlurmSettings, options: SacctOptions) -> Result<Self, IngestError> {
        settings.check()?;
        Ok(Self {
            settings,
            options: SacctOptions { zone: Some(Tz::UTC), ..options },
            columns: None,
            since: None,
            told: HashSet::new(),
            hasher: RandomState::new(),
            whole_at: None,
            said: Once::default(),
            runtime: None,
        })
    }

    /// The ledger since the last good answer, and the queue, or why it is not known.
    fn ask(
        &mut self,
        now: DateTime<Utc>,
    ) -> Result<(String, Result<Option<String>, IngestError>), IngestError> {
        let runtime = match self.runtime.take() {
            Some(runtime) => runtime,
            None => command::runtime()?,
        };
        let limits =
            (Duration::from_secs_f64(self.settings.timeout_s), self.settings.answer_bytes_max);
        if self.columns.is_none() {
            let told = runtime.block_on(ask(&self.settings.sacct, &["--helpformat"], limits));
            match told {
                Ok(Asked::Answer(told)) => self.columns = Some(columns(&told)),
                Ok(Asked::Absent) => return Err(command::absent(&self.settings.sacct)),
                Err(error) => return Err(error),
            }
        }
        let columns = self.columns.as_deref().unwrap_or(ASKED);
        let since = self.since.unwrap_or_else(|| now - hours(self.settings.lookback_h));
        let time = |at: DateTime<Utc>| at.format("%Y-%m-%dT%H:%M:%S").to_string();
        let until = time(now + TimeDelta::seconds(1));
        let arguments = [
            "--allusers",
            "--allocations",
            "--duplicates",
            "--parsable2",
            "-S",
            &time(since),
            "-E",
            &until,
            "-o",
            columns,
        ];
        let ledger = runtime.block_on(ask(&self.settings.sacct, &arguments, limits));
        let queue = match self.settings.squeue.is_empty() {
            true => Ok(Asked::Absent),
            false => runtime.block_on(ask(&self.settings.squeue, &["--json"], limits)),
        };
        self.runtime = Some(runtime);
        let ledger = match ledger? {
            Asked::Answer(ledger) => ledger,
            Asked::Absent => return Err(command::absent(&self.settings.sacct)),
        };
        let waiting = match queue {
            Ok(Asked::Answer(queue)) => queue::waiting(&queue).map(Some),
            Ok(Asked::Absent) => Ok(None),
            Err(error) => Err(error),
        };
        Ok((ledger, waiting))
    }

    /// The header and the lines that were not told in the last answer.
    fn news(&mut self, answer: &str, told: &mut HashSet<u64>) -> String {
        let mut news = String::new();
        for (place, line) in answer.lines().enumerate() {
            let hash = self.hasher.hash_one(line);
            if place == 0 || !self.told.contains(&hash) {
                news += line;
                news.push('\n');
            }
            told.insert(hash);
        }
        news
    }
}

impl Collector for SlurmCollector {
    fn name(&self) -> String {
        "slurm".to_owned()
    }

    fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.settings.interval_s)
    }

    fn collect(&mut self, now: DateTime<Utc>, out: &mut dyn Output) -> Result<(), IngestError> {
        let (ledger, waiting) = self.ask(now)?;
        if self.whole_at.is_none_or(|at| now - at >= WHOLE_EVERY || now < at) {
            self.told.clear();
            self.whole_at = Some(now);
        }
        let mut told = HashSet::new();
        let mut inputs = Vec::new();
        // The queue first: where both tell of a job, the ledger has the last word.
        let waits = waiting.as_ref().ok().and_then(Option::as_ref);
        for (name, answer) in [("squeue", waits), ("sacct", Some(&ledger))] {
            if let Some(answer) = answer {
                let news = self.news(answer, &mut told);
                inputs.push(Input::text(name, news));
            }
        }
        sacct::read(&inputs, &self.options, &mut self.said.over(out))?;
        self.told = told;
        self.since = Some(now - TimeDelta::milliseconds((self.settings.overlap_s * 1e3) as i64));
        // What the ledger told is kept though the queue did not answer.
        waiting.map(drop)
    }
}

/// Of the columns that are wanted those that `sacct --helpformat` tells of: `Restarts` is only in
/// newer releases, and a ledger that does not know a column answers nothing at all.
fn columns(told: &str) -> String {
    let known: HashSet<String> = told
        .split(|c: char| c.is_whitespace() || c == '|')
        .map(|name| name.to_ascii_lowercase())
        .collect();
    let kept = ASKED.split(',').filter(|name| known.contains(&name.to_ascii_lowercase()));
    let kept: Vec<&str> = kept.collect();
    match kept.is_empty() {
        true => ASKED.to_owned(),
        false => kept.join(","),
    }
}

fn hours(hours: f64) -> TimeDelta {
    TimeDelta::milliseconds((hours * 3.6e6) as i64)
}
