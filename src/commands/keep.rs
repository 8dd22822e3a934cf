//! `loadline compact` and `loadline doctor`: keeping a store in good order.

use chrono::Utc;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use loadline_ingest::compact::{CompactSettings, SweepSettings, compact as compact_days, sweep};
use loadline_ingest::doctor::{Examined, examine, mend};

use super::{Context, print};
use crate::cli::{CompactArgs, DoctorArgs};
use crate::failure::Failure;
use crate::report::plural;

pub(super) async fn compact(context: &Context, args: &CompactArgs) -> Result<(), Failure> {
    let store = context.store()?;
    let bar = spinner("{spinner} {human_pos} days compacted");
    let settings = CompactSettings { files_max: args.files_max.max(1), dry_run: args.dry_run };
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

pub(super) async fn doctor(context: &Context, args: &DoctorArgs) -> Result<(), Failure> {
    let store = context.store()?;
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
