//! `loadline compact`, `rollup`, `retain` and `doctor`: keeping a store in good order.

use chrono::Utc;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use loadline_ingest::compact::{CompactSettings, SweepSettings, compact as compact_days, sweep};
use loadline_ingest::doctor::{Examined, examine, mend};
use loadline_ingest::retain::{RetainSettings, Retained, retain as take_out};
use loadline_ingest::rollup::{RollupSettings, roll_up};

use super::{Context, print};
use crate::cli::{CompactArgs, DoctorArgs, RetainArgs, RollupArgs};
use crate::failure::Failure;
use crate::report::plural;

pub(super) async fn compact(context: &Context, args: &CompactArgs) -> Result<(), Failure> {
    let store = context.filled_store().await?;
    let bar = spinner("{spinner} {human_pos} days compacted");
    let settings = CompactSettings {
        files_max: args.files_max.max(1),
        dry_run: args.dry_run,
        ..CompactSettings::default()
    };
    let days = compact_days(&store, &settings, |_| bar.inc(1)).await?;
    bar.finish_and_clear();
    let settings = SweepSettings { grace: args.grace, dry_run: args.dry_run };
    let swept = sweep(&store, &settings, Utc::now()).await?;
    if args.json {
        let told = serde_json::json!({ "dry_run": args.dry_run, "days": days, "swept": swept });
        return print::line(&serde_json::to_string_pretty(&told)?);
    }
    let (did, freed) = match args.dry_run {
        true => ("would be compacted", "would be deleted"),
        false => ("compacted", "deleted"),
    };
    for day in &days {
        let to = day.bytes_after.map_or_else(String::new, |bytes| {
            format!(", {} to {}", HumanBytes(day.bytes_before), HumanBytes(bytes))
        });
        print::line(&format!(
            "{:12} {}  {} files to {}{to}",
            day.table, day.date, day.files_before, day.files_after
        ))?;
    }
    print::line(&format!("{} {did}", plural(days.len() as u64, "day")))?;
    print::line(&format!(
        "{} that no version needs {freed} ({})",
        plural(swept.files, "file"),
        HumanBytes(swept.bytes)
    ))
}

pub(super) async fn rollup(context: &Context, args: &RollupArgs) -> Result<(), Failure> {
    let store = context.filled_store().await?;
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} days rolled up, {eta} left");
    let bar = ProgressBar::no_length().with_style(style.expect("a fixed text"));
    let (rebuild, dry_run) = (args.rebuild, args.dry_run);
    let settings = RollupSettings { rebuild, dry_run, before: None };
    let begun = |days: usize| bar.set_length(days as u64);
    let days = roll_up(&store, &settings, begun, |_| bar.inc(1)).await?;
    bar.finish_and_clear();
    if args.json {
        let told = serde_json::json!({ "dry_run": dry_run, "days": days });
        return print::line(&serde_json::to_string_pretty(&told)?);
    }
    for day in &days {
        let made = match (day.rows_5m, day.rows_1h) {
            (Some(five), Some(hour)) => format!(" to {five} of gpu_5m and {hour} of gpu_1h"),
            _ => String::new(),
        };
        let readings = plural(day.readings, "reading");
        print::line(&format!("{}  {:8} {readings}{made}", day.date, day.reason))?;
    }
    let did = if dry_run { "would be rolled up" } else { "rolled up" };
    print::line(&format!("{} {did}", plural(days.len() as u64, "day")))
}

pub(super) async fn retain(context: &Context, args: &RetainArgs) -> Result<(), Failure> {
    let (store, config) = (context.store()?, context.config()?);
    let settings = config.retention.settings().map_err(Failure::usage)?;
    let settings = RetainSettings { apply: args.apply, ..settings };
    let bar = spinner("{spinner} looking for days that are too old");
    let now = context.session().await?.as_of();
    let tables = take_out(&store, &settings, now).await?;
    bar.finish_and_clear();
    if args.json {
        let told = serde_json::json!({ "applied": args.apply, "tables": tables });
        return print::line(&serde_json::to_string_pretty(&told)?);
    }
    for table in &tables {
        tell_retained(table, args.apply)?;
    }
    let days: u64 = tables.iter().map(|table| table.days).sum();
    match (days, args.apply) {
        (0, _) => print::line("no day goes"),
        (_, true) => print::line(&format!(
            "{} dropped; `loadline compact` deletes the files after the time of grace",
            plural(days, "day")
        )),
        (_, false) => print::line(&format!(
            "{} would be dropped: do so with `loadline retain --apply`",
            plural(days, "day")
        )),
    }
}

fn tell_retained(table: &Retained, applied: bool) -> Result<(), Failure> {
    if let Some((first, last)) = table.dropped {
        print::line(&format!(
            "{:12} {first} to {last}  {} of {}, {} {}",
            table.table,
            plural(table.rows, "row"),
            plural(table.days, "day"),
            HumanBytes(table.bytes),
            if applied { "dropped" } else { "would go" },
        ))?;
        if table.rows_late > 0 {
            let late = plural(table.rows_late, "row");
            print::line(&format!("{:12} {late} of these came after their day was dropped", ""))?;
        }
    }
    for kept in &table.kept {
        let (date, days) = (kept.date, plural(kept.days, "day"));
        print::line(&format!("{:12} {days} from {date} on kept: {}", table.table, kept.reason))?;
    }
    Ok(())
}

pub(super) async fn doctor(context: &Context, args: &DoctorArgs) -> Result<(), Failure> {
    let store = context.filled_store().await?;
    let bar = spinner("{spinner} {msg}");
    let look = async || {
        let told = |table, done, of| bar.set_message(format!("{table}: file {done} of {of}"));
        examine(&store, args.grace, Utc::now(), told).await
    };
    let mut examined = look().await?;
    let mut mended = Vec::new();
    if args.repair {
        for finding in examined.findings.iter().filter(|finding| finding.mendable) {
            bar.set_message(format!("mending {}", finding.place));
            if mend(&store, finding).await? {
                mended.push(finding.clone());
            }
        }
        if !mended.is_empty() {
            examined = look().await?;
        }
    }
    bar.finish_and_clear();
    if args.json {
        let told = serde_json::json!({ "examined": examined, "mended": mended });
        print::line(&serde_json::to_string_pretty(&told)?)?;
    } else {
        for finding in &mended {
            print::line(&format!("mended  {}: {}", finding.place, finding.what))?;
        }
        tell(&examined)?;
    }
    match examined.findings.len() as u64 {
        0 => Ok(()),
        found => {
            let failure = Failure::new(format!("{} in the store", plural(found, "fault")));
            let mendable = examined.findings.iter().any(|finding| finding.mendable);
            Err(match mendable && !args.repair {
                true => failure.hint("mend what can be mended with `loadline doctor --repair`"),
                false => failure,
            })
        }
    }
}

fn tell(examined: &Examined) -> Result<(), Failure> {
    for finding in &examined.findings {
        print::line(&format!("{}  {}", finding.kind, finding.place))?;
        print::line(&format!("        {}", finding.what))?;
        print::line(&format!("        {}", finding.way_out))?;
    }
    print::line(&format!(
        "{} of {} in {} read, {} of them held against a checksum",
        plural(examined.files, "file"),
        HumanBytes(examined.bytes),
        plural(examined.tables, "table"),
        examined.files_with_checksum
    ))
}

fn spinner(template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("a fixed text");
    ProgressBar::new_spinner().with_style(style)
}
