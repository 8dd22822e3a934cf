//! Slurm's ledger: `sacct --parsable2`, and exports of the accounting database.
//!
//! Columns are found by name in the header, or named by [`SacctOptions::columns`]. Times are read
//! as UTC (ask with `TZ=UTC sacct ...`) unless a zone is given, which is told. Job steps are no jobs: they only
//! fill in what the job's own row lacks, so a call holds its rows in memory: about 0.4 KB each.
//! Which attempt a row is, the import tells by submission and start, and by the ledger's count of
//! restarts where there is one. A local time of a doubled hour is told by the row's other times.
//!
//! # Source
//! `sacct(1)` and `slurm.conf(5)` of Slurm; the columns of slurmdb's job table.

mod array;
mod columns;
mod command;
mod duration;
mod nodelist;
mod record;
pub(crate) mod row;
mod state;
mod tres;
mod untold;

use std::collections::{HashMap, HashSet};

use chrono_tz::Tz;

use crate::batch::{Notice, Output, Reject};
use crate::error::IngestError;
use crate::schema::Table;
use crate::source::input::{Input, Line};
use crate::source::instant::{Ambiguous, Moments};
use crate::workload::WorkloadRules;
use columns::Layout;
use record::{Reader, Record, Step};
use row::JobRow;

pub use duration::{SlurmSeconds, duration_s};
pub use nodelist::nodes;
pub(crate) use state::upper_state;
pub use tres::{TresIds, default_tres_ids};
pub(crate) use untold::ASKED;

/// Rows handed on at a time.
const BATCH_ROWS: usize = 65_536;

/// How to read a ledger.
#[derive(Debug, Clone)]
pub struct SacctOptions {
    /// Column names of a file without header, in order; a header that is there wins.
    pub columns: Vec<String>,
    /// Delimiter; told from the header, or `|`, without one.
    pub delimiter: Option<String>,
    /// Zone of the times; UTC without one.
    pub zone: Option<Tz>,
    /// What numeric TRES ids stand for.
    pub tres_ids: TresIds,
    /// Shards (`gres/shard`) that a GPU is cut into; without it the GPUs of jobs with shards are
    /// NULL.
    pub shards_per_gpu: Option<f64>,
    /// Column that names the project, such as `WCKey`; no project without one.
    pub project: Option<String>,
    /// Rules that give jobs their workload.
    pub rules: WorkloadRules,
}

impl Default for SacctOptions {
    fn default() -> Self {
        Self {
            columns: Vec::new(),
            delimiter: None,
            zone: None,
            tres_ids: default_tres_ids(),
            shards_per_gpu: None,
            project: None,
            rules: WorkloadRules::default(),
        }
    }
}

/// Reads `inputs` into rows of `jobs`.
///
/// Every line becomes a row, is counted as a step, or is kept aside with its reason.
///
/// # Errors
/// [`IngestError::Read`] where a file cannot be read, [`IngestError::Format`] where a file has no
/// header and no columns were named; whatever `out` answers.
pub fn read(
    inputs: &[Input],
    options: &SacctOptions,
    out: &mut dyn Output,
) -> Result<(), IngestError> {
    let mut ledger = Ledger::default();
    let mut reader = Reader::new(options);
    for input in inputs {
        if let Err(error) = ledger.read_file(input, options, &mut reader, out) {
            out.unread(error)?;
        }
    }
    for rows in ledger.rows.chunks(BATCH_ROWS) {
        out.rows(Table::Jobs, row::batch(rows)?)?;
    }
    Ok(())
}

/// Rows of one import, with the place of each job's latest row.
#[derive(Debug, Default)]
struct Ledger {
    rows: Vec<JobRow>,
    latest: HashMap<String, usize>,
    /// Rows whose GPUs only their steps tell.
    of_steps: HashSet<usize>,
    zone_told: bool,
}

/// What one file held beside job rows.
#[derive(Debug, Default)]
struct Counts {
    steps: u64,
    orphans: u64,
}

impl Ledger {
    fn read_file(
        &mut self,
        input: &Input,
        options: &SacctOptions,
        reader: &mut Reader<'_>,
        out: &mut dyn Output,
    ) -> Result<(), IngestError> {
        let mut lines = input.lines()?;
        let mut layout: Option<Layout> = None;
        let mut counts = Counts::default();
        let mut moments = Moments::new(options.zone.unwrap_or(Tz::UTC), Ambiguous::Earlier);
        while let Some(line) = lines.next_line().map_err(|error| input.unreadable(error))? {
            if line.text.trim().is_empty() {
                continue;
            }
            let Some(known) = &layout else {
                layout = Some(self.first_line(input, options, &line, out, reader, &mut moments)?);
                continue;
            };
            if known.repeated_by(&line.text) {
                continue;
            }
            self.take_line(input, known, &line, reader, &mut moments, &mut counts, out);
        }
        let mut notice =
            |text: String| out.notice(Notice { file: input.name().to_owned(), line: None, text });
        if let Some(text) = layout.as_ref().and_then(untold::untold) {
            notice(text);
        }
        if options.zone.is_none() && moments.unzoned() > 0 && !self.zone_told {
            self.zone_told = true;
            notice(
                "times carry no zone and were read as UTC; where sacct ran without `TZ=UTC`, name \
                 its zone with `--zone`"
                    .into(),
            );
        }
        tell(input, &counts, reader, &mut moments, out);
        Ok(())
    }

    /// Takes the header, or the first row of a file without one.
    fn first_line(
        &mut self,
        input: &Input,
        options: &SacctOptions,
        line: &Line<'_>,
        out: &mut dyn Output,
        reader: &mut Reader<'_>,
        moments: &mut Moments,
    ) -> Result<Layout, IngestError> {
        if let Some(layout) = Layout::of_header(&line.text, options.delimiter.as_deref()) {
            return Ok(layout);
        }
        let layout = Layout::of_columns(&options.columns, options.delimiter.as_deref());
        if !layout.has_job_and_time() {
            return Err(no_header(input, options));
        }
        let mut counts = Counts::default();
        self.take_line(input, &layout, line, reader, moments, &mut counts, out);
        Ok(layout)
    }

    #[expect(clippy::too_many_arguments, reason = "one line with all that it changes")]
    fn take_line(
        &mut self,
        input: &Input,
        layout: &Layout,
        line: &Line<'_>,
        reader: &mut Reader<'_>,
        moments: &mut Moments,
        counts: &mut Counts,
        out: &mut dyn Output,
    ) {
        out.read(1);
        let record =
            layout.fields(&line.text).and_then(|fields| reader.record(layout, &fields, moments));
        match record {
            Ok(Record::Job(row)) => {
                self.latest.insert(row.job_id.clone(), self.rows.len());
                self.rows.push(*row);
            }
            Ok(Record::Step(step)) => {
                counts.steps += 1;
                if !self.fill(&step) {
                    counts.orphans += 1;
                }
            }
            Err(reason) => {
                let torn = if line.ended { "" } else { "; the line has no end" };
                out.reject(Reject {
                    file: input.name().to_owned(),
                    line: Some(line.number),
                    reason: format!("{reason}{torn}"),
                    text: line.text.chars().take(200).collect(),
                });
            }
        }
    }

    /// Gives the job of `step` what its row lacks; `false` where there is no such job.
    fn fill(&mut self, step: &Step) -> bool {
        let Some(at) = self.latest.get(&step.job_id) else { return false };
        let row = &mut self.rows[*at];
        if row.started_at.is_some() {
            if row.gpus_allocated.is_none() {
                self.of_steps.insert(*at);
            }
            // The batch step runs on the first node alone: the step with most GPUs tells best.
            if self.of_steps.contains(at) && row.gpus_allocated < step.gpus_allocated {
                row.gpus_allocated = step.gpus_allocated;
            }
            if row.gpus_requested.is_none() || self.of_steps.contains(at) {
                row.gpus_requested = row.gpus_allocated;
            }
            if row.nodes.is_none() {
                row.nodes.clone_from(&step.nodes);
            }
        }
        true
    }
}

fn no_header(input: &Input, options: &SacctOptions) -> IngestError {
    let reason = if options.columns.is_empty() {
        "the first line names no JobID with State, Submit or Start, and no columns were given"
            .to_owned()
    } else {
        format!("the columns `{}` hold no JobID with a time or State", options.columns.join(","))
    };
    IngestError::Format {
        path: input.name().to_owned(),
        format: "sacct",
        reason,
        hint: Some(
            "name the columns in order: `--columns JobIDRaw,User,State,Start,End,AllocTRES,...`"
                .into(),
        ),
    }
}

fn tell(
    input: &Input,
    counts: &Counts,
    reader: &mut Reader<'_>,
    moments: &mut Moments,
    out: &mut dyn Output,
) {
    let mut notice =
        |text: String| out.notice(Notice { file: input.name().to_owned(), line: None, text });
    if counts.steps > 0 {
        notice(format!("{} job steps were read; a step is no job", counts.steps));
    }
    if counts.orphans > 0 {
        notice(format!("{} job steps have no job before them in this import", counts.orphans));
    }
    if let Some(text) = moments.doubts() {
        notice(text);
    }
    reader.notices().into_iter().for_each(notice);
    for (column, values) in reader.odd() {
        out.nulled(column, values);
    }
}

#[cfg(test)]
mod tests;
