//! `loadline demo`: a made-up fleet, imported through the same path as a real one, and its report.

use indicatif::{ProgressBar, ProgressStyle};
use loadline_ingest::Store;

use super::{Context, import, print, report};
use crate::cli::{DemoArgs, ImportArgs, ImportFormat, ReportArgs};
use crate::config::Config;
use crate::demo::{Options, write_fleet, write_notebooks_data};
use crate::failure::Failure;
use crate::report::data::ReportData;
use crate::report::{Format, Language};

pub(super) async fn run(args: &DemoArgs) -> Result<(), Failure> {
    let options = Options {
        gpus: args.gpus,
        weeks: args.weeks,
        seed: args.seed,
        interval_s: args.interval,
        ..Options::default()
    };
    if let Some(folder) = &args.notebooks_data {
        write_notebooks_data(folder).map_err(|error| Failure::from_error(&error))?;
        return print::line(&format!("notebooks data  {}", folder.display()));
    }
    let files = args.dir.join("files");
    std::fs::create_dir_all(&files)?;
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("writing readings {bar:30} {human_pos}/{human_len}")
            .expect("a fixed text"),
    );
    let written = write_fleet(&files, &options, &mut |progress| {
        bar.set_length(progress.samples_total);
        bar.set_position(progress.samples_done);
    })
    .map_err(|error| Failure::from_error(&error))?;
    bar.finish_and_clear();
    print::line(&format!("files     {}", files.display()))?;
    if args.files_only {
        return Ok(());
    }
    let config_path = written.config.clone();
    let config = Config::read(Some(&config_path))?;
    let place = args.dir.join("data").to_string_lossy().into_owned();
    let store = Store::open(&place)?;
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let logs = written.nvidia_smi.iter().map(|path| text(path)).collect();
    for (format, paths) in [
        (ImportFormat::Gpus, vec![text(&written.gpus)]),
        (ImportFormat::Sacct, vec![text(&written.sacct)]),
        (ImportFormat::Allocations, vec![text(&written.allocations)]),
        (ImportFormat::NodeSamples, vec![text(&written.node_samples)]),
        (ImportFormat::NvidiaSmi, logs),
    ] {
        let summary = import::import(&store, &config, &import_args(format, paths)).await?;
        print::line(&format!(
            "imported  {}: {} read, {} kept, {} kept aside, {} gaps",
            import::name(format),
            summary.rows_read,
            summary.rows_kept,
            summary.rows_kept_aside,
            summary.gaps
        ))?;
    }
    let context = Context {
        store: place.clone(),
        config: Some(config_path.clone()),
        now: None,
        queries: None,
    };
    let page = ReportArgs {
        from: None,
        to: None,
        lead_time_days: 60,
        lang: Language::En,
        format: Format::Html,
        json: false,
        output: Some(args.report.clone()),
    };
    let session = context.session().await?;
    let data = report::gather(&session, &config, session.span(), page.lead_time_days).await?;
    summary(&data)?;
    report::write(&data, &page)?;
    print::line(&format!(
        "ask       loadline sql --store {place} --config {}",
        config_path.display()
    ))
}

/// One screen: the three answers and the decision.
fn summary(data: &ReportData) -> Result<(), Failure> {
    let text = crate::report::render(data, Format::Md, Language::En)?;
    let opening = text.lines().filter(|line| line.starts_with("- **")).take(4);
    for line in opening {
        print::line(&line.replace("**", ""))?;
    }
    Ok(())
}

fn import_args(format: ImportFormat, paths: Vec<String>) -> ImportArgs {
    ImportArgs {
        format,
        paths,
        dry_run: false,
        cluster: Some(crate::demo::CLUSTER.to_owned()),
        node: None,
        zone: Some(chrono_tz::Tz::UTC),
        time: None,
        interval: None,
        mapping: None,
        columns: Vec::new(),
        delimiter: None,
        shards_per_gpu: None,
        tres_id: Vec::new(),
        json: false,
    }
}
