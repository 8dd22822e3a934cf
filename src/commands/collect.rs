//! `loadline collect`: sources from the configuration and the command line, read until it is stopped.

mod install;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loadline_ingest::collect::{Collector, Health, Stop, inbox, run_shipping, run_with};
use loadline_ingest::retain::RetainSettings;
use loadline_ingest::ship::Shipper;
use loadline_ingest::source::folder::{FolderCollector, FolderSettings};
use loadline_ingest::source::node::{NodeCollector, NodeSettings};
use loadline_ingest::source::nvml::{NvmlCollector, NvmlSettings};
use loadline_ingest::source::remote_write::RemoteWrite;
use loadline_ingest::source::sacct::SacctOptions;
use loadline_ingest::source::scrape::ScrapeCollector;
use loadline_ingest::source::slurm::SlurmCollector;
use loadline_ingest::wal::{WAL_FOLDER, Wal, check_name};
use loadline_ingest::{IngestError, Store};

use super::{Context, print};
use crate::cli::{CollectArgs, CollectTask};
use crate::config::{CollectConfig, Config};
use crate::failure::Failure;
use crate::report::plural;
use crate::serve::{BEARER_TOKEN_FILE, CollectDesk, Door, Token};

/// Where the host's name stands.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";

pub(super) async fn run(context: &Context, args: &CollectArgs) -> Result<(), Failure> {
    if let Some(CollectTask::Install(task)) = &args.task {
        return install::run(context, args, task);
    }
    let (store, config) = (context.store()?, context.config()?);
    let asked = asked(&config.collect, args)?;
    let (node, shipper) = checked(&asked)?;
    let collectors = collectors(&config, &asked, &node)?;
    let folder = asked.ship.as_ref().map_or_else(|| wal_folder(&store), |ship| ship.spool.clone());
    let wal = Wal::open(&folder, &node, asked.wal_settings())?;
    let health = Arc::new(Health::new(Box::new(print::aside)));
    let stop = Stop::default();
    let (sender, work) = inbox();
    let door = asked.door.as_ref().map(Door::open).transpose()?;
    for collector in &collectors {
        print::aside(&format!("{} every {:?}", collector.name(), collector.interval()));
    }
    if let Some(ship) = &asked.ship {
        print::aside(&format!("sending to {}", ship.to));
        if ship.in_the_open() {
            print::aside("rows and token are not encrypted: give `grpc+tls://HOST:PORT`");
        }
    }
    let desk = match (&asked.door, &door) {
        (Some(settings), Some(door)) => {
            print::aside(&format!("listening on http://{}", door.address()));
            let guarded = door.address().ip().is_loopback() || settings.bearer_token_file.is_some();
            if asked.remote_write.is_some() && !guarded {
                print::aside(
                    "only the health page is served: beyond this machine rows are taken with a \
                     token alone; name its file, `door.bearer_token_file` under [collect]",
                );
            }
            let receiver = asked
                .remote_write
                .as_ref()
                .filter(|_| guarded)
                .map(RemoteWrite::new)
                .transpose()?;
            let (health, bearer_token_file) =
                (Arc::clone(&health), settings.bearer_token_file.clone());
            Some(CollectDesk { receiver, sender, health, bearer_token_file })
        }
        _ => None,
    };
    stop_on_signal(&stop, args.lasting)?;
    let mut settings = asked.settings();
    if config.retention.collector {
        let retention = config.retention.settings().map_err(Failure::usage)?;
        settings.retention = Some(RetainSettings { apply: true, ..retention });
    }
    let work = {
        let (health, stop) = (Arc::clone(&health), stop.clone());
        tokio::task::spawn_blocking(move || {
            std::thread::scope(|scope| {
                if let (Some(door), Some(desk)) = (&door, &desk) {
                    let stop = &stop;
                    scope.spawn(move || door.serve(&|request| desk.answer(request), stop));
                }
                let done = match shipper {
                    Some(shipper) => {
                        run_shipping(collectors, work, wal, shipper, &settings, &health, &stop)
                    }
                    None => run_with(collectors, work, wal, &store, &settings, &health, &stop),
                };
                stop.set();
                done
            })
        })
    };
    let done = work.await.map_err(|error| Failure::from_error(&error))?;
    print::aside(&told(&health));
    Ok(done?)
}

/// What became of the rows.
fn told(health: &Health) -> String {
    let writer = health.writer();
    let (kept, dropped) = (writer.rows_appended_total, writer.rows_dropped_total);
    let kept = match (kept, dropped) {
        (0, 0) => "no rows came".to_owned(),
        _ => format!("{} kept, {dropped} dropped", plural(kept, "row")),
    };
    match health.ship() {
        Some(ship) => format!(
            "{kept}, {} sent, {} lost, {} in the spool",
            ship.rows_shipped_total,
            ship.rows_lost_total,
            plural(ship.spool_bytes, "byte")
        ),
        None => format!("{kept}, {}", moves(writer.flushes_total)),
    }
}

/// How often rows were moved.
pub(super) fn moves(flushes: u64) -> String {
    match flushes {
        0 => "none had to be moved into the tables".to_owned(),
        _ => format!("{} into the tables", plural(flushes, "move")),
    }
}

/// The name of this node, and what sends its rows to a server; whatever can be seen to be wrong
/// before anything is read is told here.
fn checked(asked: &CollectConfig) -> Result<(String, Option<Shipper>), Failure> {
    let node = asked.name.clone().unwrap_or_else(host);
    check_name(&node).map_err(|error| match error {
        IngestError::Setting { value, reason, .. } => {
            Failure::usage(format!("cannot use the name `{value}` for this node: {reason}"))
                .hint("give --name, or `name` under [collect]")
        }
        other => other.into(),
    })?;
    let shipper = asked.ship.as_ref();
    let shipper = shipper.map(|ship| Shipper::new(ship, &node, asked.cluster.as_deref()));
    let token = asked.door.as_ref().and_then(|door| door.bearer_token_file.as_deref());
    token.map(|path| Token::open(path, BEARER_TOKEN_FILE)).transpose()?;
    Ok((node, shipper.transpose()?))
}

/// The configuration with what the command line says.
fn asked(config: &CollectConfig, args: &CollectArgs) -> Result<CollectConfig, Failure> {
    let mut asked = config.clone();
    asked.interval_s = args.interval.unwrap_or(asked.interval_s);
    asked.name = args.name.clone().or(asked.name);
    asked.cluster = args.cluster.clone().or(asked.cluster);
    asked.node |= args.node_samples;
    if !args.scrape.is_empty() {
        let pages = asked.scrape.get_or_insert_default();
        pages.targets.extend(args.scrape.iter().cloned());
    }
    if let (Some(pages), Some(interval_s)) = (&mut asked.scrape, args.interval) {
        pages.interval_s = interval_s;
    }
    if args.slurm {
        asked.slurm.get_or_insert_default();
    }
    if let Some(path) = &args.watch {
        let format = "sacct".to_owned();
        asked.folder.push(FolderSettings {
            path: path.clone(),
            format,
            ..FolderSettings::default()
        });
    }
    if let Some(listen) = &args.listen {
        asked.door.get_or_insert_default().listen.clone_from(listen);
        asked.remote_write.get_or_insert_default();
    }
    if let Some(to) = &args.to {
        asked.ship.get_or_insert_default().to.clone_from(to);
    }
    match &mut asked.ship {
        Some(ship) => {
            ship.token_file = args.token_file.clone().or(ship.token_file.take());
            ship.ca_file = args.ca_file.clone().or(ship.ca_file.take());
            ship.spool = args.spool.clone().unwrap_or(std::mem::take(&mut ship.spool));
        }
        None if args.token_file.is_some() || args.ca_file.is_some() || args.spool.is_some() => {
            return Err(Failure::usage("--token-file, --ca-file and --spool are for a server")
                .hint("name it with --to, or with `ship` under [collect]"));
        }
        None => {}
    }
    let other = asked.node
        || asked.scrape.is_some()
        || asked.slurm.is_some()
        || !asked.folder.is_empty()
        || asked.remote_write.is_some();
    asked.nvml = Some(args.nvml || asked.nvml.unwrap_or(!other));
    Ok(asked)
}

fn collectors(
    config: &Config,
    asked: &CollectConfig,
    node: &str,
) -> Result<Vec<Box<dyn Collector>>, Failure> {
    let ledger = SacctOptions {
        tres_ids: config.slurm.ids().map_err(Failure::usage)?,
        shards_per_gpu: config.slurm.shards_per_gpu,
        rules: config.workloads()?,
        ..SacctOptions::default()
    };
    let mut collectors: Vec<Box<dyn Collector>> = Vec::new();
    if asked.nvml == Some(true) {
        collectors.push(Box::new(NvmlCollector::open(NvmlSettings {
            cluster: asked.cluster.clone(),
            interval: asked.interval(),
            library: asked.nvml_library.clone(),
            ..NvmlSettings::new(node)
        })?));
    }
    if asked.node {
        collectors.push(Box::new(NodeCollector::new(NodeSettings {
            cluster: asked.cluster.clone(),
            interval: asked.interval(),
            ..NodeSettings::new(node)
        })));
    }
    if let Some(pages) = &asked.scrape {
        collectors.push(Box::new(ScrapeCollector::new(pages)?));
    }
    if let Some(slurm) = &asked.slurm {
        collectors.push(Box::new(SlurmCollector::new(slurm.clone(), ledger.clone())?));
    }
    for folder in &asked.folder {
        collectors.push(Box::new(FolderCollector::new(folder.clone(), &ledger)?));
    }
    Ok(collectors)
}

/// Sets `stop` when the program is told to end, or after `lasting` seconds.
pub(super) fn stop_on_signal(stop: &Stop, lasting: Option<i64>) -> Result<(), Failure> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let stop = stop.clone();
    let lasting = lasting.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    tokio::spawn(async move {
        let over = async {
            match lasting {
                Some(lasting) => tokio::time::sleep(lasting).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
            () = over => {}
        }
        stop.set();
    });
    Ok(())
}

/// Where the write-ahead logs of a store are: beside its tables, or, of an object store, in a
/// folder here that bears its name, so that rows never get into another.
pub(super) fn wal_folder(store: &Store) -> PathBuf {
    match store.folder() {
        Some(folder) => folder.join(WAL_FOLDER),
        None => {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let name: String = store.url().as_str().chars().map(plain).collect();
            PathBuf::from("loadline-wal").join(name.trim_matches('-'))
        }
    }
}

fn host() -> String {
    let name = std::fs::read_to_string(HOSTNAME).unwrap_or_default();
    match name.trim() {
        "" => "node".to_owned(),
        name => name.to_owned(),
    }
}
