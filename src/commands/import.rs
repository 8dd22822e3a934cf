//! `loadline import`: reads, merges, commits, and tells what it did.

use chrono::{DateTime, Utc};
use indicatif::{ProgressBar, ProgressStyle};
use loadline_engine::calendar::Calendar;
use loadline_ingest::batch::{Notice, Output as _};
use loadline_ingest::source::dcgm;
use loadline_ingest::source::input::Input;
use loadline_ingest::source::mapped::{self, MappedOptions, Mapping};
use loadline_ingest::source::nvidia_smi;
use loadline_ingest::source::sacct::{self, SacctOptions};
use loadline_ingest::{Import, ImportSettings, ImportSummary, Store, Table};

use super::{Context, print};
use crate::cli::{ImportArgs, ImportFormat};
use crate::config::Config;
use crate::failure::Failure;
use crate::report::plural;

pub(super) async fn run(context: &Context, args: &ImportArgs) -> Result<(), Failure> {
    let config = context.config()?;
    let summary = import(&context.store()?, &config, args).await?;
    match args.json {
        true => print::line(&serde_json::to_string_pretty(&json(&summary, &config.calendar)?)?)?,
        false => tell(&summary, &config.calendar)?,
    }
    match summary.files_unread {
        0 => Ok(()),
        files => Err(Failure::new(format!(
            "{files} file{} could not be read, or not to the end; the rest is imported",
            if files == 1 { "" } else { "s" }
        ))),
    }
}

/// Imports as the arguments say.
pub(super) async fn import(
    store: &Store,
    config: &Config,
    args: &ImportArgs,
) -> Result<ImportSummary, Failure> {
    let settings = ImportSettings {
        format: name(args.format),
        cluster: args.cluster.clone(),
        interval_s: args.interval,
        dry_run: args.dry_run,
    };
    let bar = ProgressBar::new_spinner().with_style(
        ProgressStyle::with_template("{spinner} {human_pos} records read").expect("a fixed text"),
    );
    let shown = bar.clone();
    let mut import = Import::new(settings, Box::new(move |rows| shown.set_position(rows)));
    read(config, args, &mut import)?;
    bar.finish_and_clear();
    Ok(import.finish(store).await?)
}

/// Name of a format, as on the command line.
pub(super) fn name(format: ImportFormat) -> String {
    use clap::ValueEnum as _;
    format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn read(config: &Config, args: &ImportArgs, import: &mut Import) -> Result<(), Failure> {
    let table = match args.format {
        ImportFormat::NvidiaSmi => return nvidia_smi_logs(args, import),
        ImportFormat::Dcgm => {
            let options = dcgm::Options {
                node: args.node.clone(),
                cluster: args.cluster.clone(),
                time: args.time,
                zone: args.zone,
                ..dcgm::Options::default()
            };
            return Ok(dcgm::read(&Input::expand(&args.paths)?, &options, import)?);
        }
        ImportFormat::Sacct => {
            let mut tres_ids = config.slurm.ids().map_err(Failure::usage)?;
            tres_ids.extend(args.tres_id.iter().cloned());
            let options = SacctOptions {
                tres_ids,
                shards_per_gpu: args.shards_per_gpu.or(config.slurm.shards_per_gpu),
                columns: args.columns.clone(),
                delimiter: args.delimiter.map(String::from),
                zone: args.zone,
                rules: config.workloads()?,
                ..SacctOptions::default()
            };
            return Ok(sacct::read(&Input::expand(&args.paths)?, &options, import)?);
        }
        ImportFormat::Jobs => Table::Jobs,
        ImportFormat::Samples => Table::Samples,
        ImportFormat::NodeSamples => Table::NodeSamples,
        ImportFormat::Gpus => Table::Gpus,
        ImportFormat::Nodes => Table::Nodes,
        ImportFormat::Allocations => Table::Allocations,
        ImportFormat::GpuCounts => Table::GpuCounts,
        ImportFormat::Events => Table::Events,
    };
    let options =
        MappedOptions { mapping: mapping(args)?, zone: args.zone, rules: config.workloads()? };
    Ok(mapped::read(&Input::expand(&args.paths)?, table, &options, import)?)
}

/// The mapping that the arguments name, or the one that takes columns by their names.
fn mapping(args: &ImportArgs) -> Result<Mapping, Failure> {
    let Some(path) = &args.mapping else { return Ok(Mapping::default()) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("could not read `{}`: {error}", path.display())))?;
    Ok(Mapping::parse(&path.to_string_lossy(), &text)?)
}

/// A log that does not name its node is of the node that its file is named after.
fn nvidia_smi_logs(args: &ImportArgs, import: &mut Import) -> Result<(), Failure> {
    for input in Input::expand(&args.paths)? {
        let stem = input.path().and_then(|path| path.file_name()).map(|name| {
            let mut name = name.to_string_lossy().into_owned();
            for end in [".gz", ".csv", ".log", ".txt", ".xml", ".out"] {
                name.truncate(name.strip_suffix(end).map_or(name.len(), str::len));
            }
            name
        });
        if args.node.is_none()
            && let Some(stem) = &stem
        {
            let text = format!(
                "readings that name no node are taken for node `{stem}`, after the file; --node names another"
            );
            import.notice(Notice { file: input.name().to_owned(), line: None, text });
        }
        let options = nvidia_smi::Options {
            node: args.node.clone().or(stem),
            cluster: args.cluster.clone(),
            zone: args.zone,
            time: args.time,
            columns: (!args.columns.is_empty()).then(|| args.columns.clone()),
        };
        nvidia_smi::read(&[input], &options, import)?;
    }
    Ok(())
}

/// The summary as JSON, with instants as local time with its offset.
fn json(summary: &ImportSummary, calendar: &Calendar) -> Result<serde_json::Value, Failure> {
    let mut told = serde_json::to_value(summary)?;
    let local = |at: Option<DateTime<Utc>>| at.map(|at| calendar.told(at));
    let gap = summary.longest_gap.as_ref();
    for (place, at) in [
        ("/first_at", summary.first_at),
        ("/last_at", summary.last_at),
        ("/longest_gap/from", gap.map(|gap| gap.from)),
        ("/longest_gap/until", gap.map(|gap| gap.until)),
    ] {
        if let Some(value) = told.pointer_mut(place) {
            *value = serde_json::json!(local(at));
        }
    }
    Ok(told)
}

/// Prints the summary, with instants as local time.
fn tell(summary: &ImportSummary, calendar: &Calendar) -> Result<(), Failure> {
    let wrote = if summary.dry_run { "dry run, nothing was written" } else { "imported" };
    print::line(&format!(
        "{wrote}: {} read, {} kept, {} duplicates, {} kept aside",
        summary.rows_read, summary.rows_kept, summary.rows_duplicate, summary.rows_kept_aside
    ))?;
    if summary.rows_read == 0 {
        print::line("  note    no row was found in the input: is it of this format?")?;
    }
    if let (Some(first), Some(last)) = (summary.first_at, summary.last_at) {
        print::line(&format!(
            "  time    {} to {} ({})",
            calendar.told(first),
            calendar.told(last),
            calendar.zone()
        ))?;
    }
    print::line(&format!(
        "  named   {}, {}, {}",
        plural(summary.gpus, "GPU"),
        plural(summary.nodes, "node"),
        plural(summary.jobs, "job")
    ))?;
    if let Some(gap) = &summary.longest_gap {
        print::line(&format!(
            "  gaps    {}, {:.1} GPU-hours not seen; the longest {:.1} h from {} to {}: {} on {}",
            summary.gaps,
            summary.gap_gpu_hours,
            gap.hours,
            calendar.told(gap.from),
            calendar.told(gap.until),
            gap.gpu_uuid.as_deref().unwrap_or("an unnamed GPU"),
            gap.node.as_deref().unwrap_or("an unnamed node")
        ))?;
    }
    for (column, values) in &summary.values_nulled {
        print::line(&format!("  NULL    {values} values of {column} out of range"))?;
    }
    for (table, told) in &summary.tables {
        let version = match (told.unchanged, told.version) {
            (true, _) => "unchanged".to_owned(),
            (false, Some(version)) => format!("version {version}"),
            (false, None) => "would change".to_owned(),
        };
        let updated = match told.rows_updated {
            0 => String::new(),
            rows => format!("{rows} brought up to date, "),
        };
        let added = told.rows_added;
        print::line(&format!("  table   {table}: {added} new rows, {updated}{version}"))?;
    }
    for notice in &summary.notice_texts {
        print::line(&format!("  note    {notice}"))?;
    }
    for reject in &summary.first_rejects {
        let line = reject.line.map_or_else(String::new, |line| format!(":{line}"));
        print::line(&format!("  aside   {}{line}: {}", reject.file, reject.reason))?;
    }
    match &summary.rejects_file {
        Some(path) => print::line(&format!("  aside   all of them in {path}")),
        None => Ok(()),
    }
}
