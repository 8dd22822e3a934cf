//! The fleet is the same everywhere, its ledger adds up, and each finding has something to find.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::arrivals::{Conduct, Workload};
use super::queue::State;
use super::{DemoError, Options, Progress, Scene, write_fleet};

fn small() -> Options {
    Options { gpus: 16, weeks: 2, interval_s: 1800, ..Options::default() }
}

/// FNV-1a over names and bytes of every file, in order of name.
fn fingerprint(dir: &Path) -> u64 {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_str().unwrap().replace('\\', "/");
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    assert_eq!(files.len(), 6 + 2, "six files and a log for each of two nodes: {:?}", files.keys());
    let bytes = files.iter().flat_map(|(name, bytes)| name.bytes().chain(bytes.iter().copied()));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A changed draw, order or format anywhere would change what everybody sees for a seed.
#[test]
fn a_seed_gives_the_same_bytes() {
    let (one, two, other) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_fleet(one.path(), &small(), &mut |_| {}).unwrap();
    write_fleet(two.path(), &small(), &mut |_| {}).unwrap();
    write_fleet(other.path(), &Options { seed: 8, ..small() }, &mut |_| {}).unwrap();
    assert_eq!(fingerprint(one.path()), fingerprint(two.path()));
    assert_ne!(fingerprint(one.path()), fingerprint(other.path()));
    assert_eq!(format!("{:016x}", fingerprint(one.path())), "75e65168edcce353");
}

/// A GPU handed out twice would make the ledger exceed what is installed.
#[test]
fn no_gpu_is_held_twice() {
    let scene = Scene::new(&Options::default()).unwrap();
    assert!(scene.attempts.len() > 5_000, "{} attempts", scene.attempts.len());
    let mut edges: BTreeMap<usize, Vec<(i64, i64)>> = BTreeMap::new();
    for attempt in &scene.attempts {
        let Some(started) = attempt.started else { continue };
        let ended = attempt.ended.unwrap_or(scene.local.ended);
        assert!(attempt.submitted <= started && started <= ended && ended <= scene.local.ended);
        let quarters = if scene.jobs[attempt.job].sliced { 1 } else { 4 };
        for gpu in &attempt.gpus {
            edges.entry(*gpu).or_default().extend([(started, quarters), (ended, -quarters)]);
        }
    }
    assert_eq!(edges.len(), 64, "every GPU is held at some time");
    for (gpu, mut edges) in edges {
        edges.sort_unstable();
        let mut held = 0;
        for (at, quarters) in edges {
            held += quarters;
            assert!((0..=4).contains(&held), "GPU {gpu} at {at}: {held} quarters");
        }
    }
}

/// Demand that did not rise, or a fleet full from the first day, would leave nothing to plan.
#[test]
fn occupancy_and_queue_grow() {
    let scene = Scene::new(&Options::default()).unwrap();
    let week = |week: i64| {
        let (from, until) =
            (scene.local.started + week * 604_800, scene.local.started + (week + 1) * 604_800);
        let overlap = |a: &super::queue::Attempt| {
            let ended = a.ended.unwrap_or(scene.local.ended).min(until);
            let started = a.started.unwrap_or(until).max(from);
            (ended - started).max(0) as f64
        };
        let share = |a: &super::queue::Attempt| {
            a.gpus.len() as f64 * super::ledger::share(&scene.jobs[a.job])
        };
        let held: f64 = scene.attempts.iter().map(|a| overlap(a) * share(a)).sum();
        let mut waits: Vec<i64> = scene
            .attempts
            .iter()
            .filter(|a| (from..until).contains(&a.submitted))
            .filter_map(|a| Some(a.started? - a.submitted))
            .collect();
        waits.sort_unstable();
        (held / 604_800.0 / 64.0, waits[waits.len() * 9 / 10])
    };
    let (first, last) = (week(0), week(7));
    assert!((0.55..0.70).contains(&first.0), "occupancy in the first week: {}", first.0);
    assert!((0.80..0.96).contains(&last.0), "occupancy in the last week: {}", last.0);
    assert!(last.1 > 2 * first.1, "90 % wait {} s at first, {} s at last", first.1, last.1);
}

/// A report about a fleet where nothing is wrong shows nothing.
#[test]
fn each_finding_has_something_to_find() {
    for options in [Options::default(), super::notebooks::options()] {
        let scene = Scene::new(&options).unwrap();
        let started = |conduct: fn(Conduct) -> bool| {
            let runs = |a: &&super::queue::Attempt| {
                a.started.is_some() && conduct(scene.jobs[a.job].conduct)
            };
            scene.attempts.iter().filter(runs).count()
        };
        assert!(started(|c| matches!(c, Conduct::IdleAfter(_))) > 0);
        assert!(started(|c| c == Conduct::MemoryOnly) > 0);
        assert!(started(|c| c == Conduct::Starved) > 0);
        assert!(started(|c| c == Conduct::Unbalanced) > 0);
        let states: BTreeSet<String> =
            scene.attempts.iter().map(|a| format!("{:?}", a.state)).collect();
        let wanted =
            ["Cancelled", "Completed", "Failed", "NodeFail", "Preempted", "Running", "Timeout"];
        for state in wanted {
            assert!(states.contains(state), "no attempt is {state}: {states:?}");
        }
        let never_began =
            |a: &&super::queue::Attempt| a.state == State::Cancelled && a.started.is_none();
        assert!(scene.attempts.iter().any(|a| never_began(&a)));
        assert!(scene.attempts.iter().any(|a| a.restarts == 1));
        assert!(scene.jobs.iter().any(|job| job.suspended_s.is_some()));
        let sliced = scene.attempts.iter().filter(|a| scene.jobs[a.job].sliced).count();
        assert!(sliced >= 4, "{sliced} notebooks on the shared GPU");
        let workloads: BTreeSet<_> =
            scene.jobs.iter().map(|job| format!("{:?}", job.workload)).collect();
        assert_eq!(workloads.len(), 6, "{workloads:?}");
        assert!(scene.jobs.iter().any(|job| job.workload == Workload::Unlabelled));
    }
}

/// What a log shows: a lost GPU, two gaps, ECC counts that rise, a hot GPU.
#[test]
fn logs_show_gaps_and_troubles() {
    let dir = tempfile::tempdir().unwrap();
    let mut last = None;
    let written = write_fleet(dir.path(), &small(), &mut |at: Progress| last = Some(at)).unwrap();
    let last = last.unwrap();
    assert_eq!(last.samples_total, 16 * 14 * 48);
    assert_eq!(last.samples_done, last.samples_total);
    let lost_steps = (last.samples_total as f64 / 16.0 * 0.17) as u64;
    // Nine hours of eight GPUs, one hour of all, and what the lost GPU would have read.
    let missing = last.samples_total - written.samples;
    let gaps = 18 * 8 + 2 * 16;
    assert!((gaps + lost_steps - 3..=gaps + lost_steps + 3).contains(&missing), "{missing}");
    let logs: Vec<String> =
        written.nvidia_smi.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(logs.iter().any(|log| log.contains("Unable to determine the device handle")));
    assert!(logs.iter().any(|log| log.contains(", 0x0000000000000040\n")));
    let cells = |log: &str, column: usize| -> Vec<u32> {
        log.lines()
            .filter_map(|line| line.split(", ").nth(column)?.parse().ok())
            .collect::<Vec<u32>>()
    };
    assert!(logs.iter().any(|log| cells(log, 12).iter().any(|count| *count > 100)));
    assert!(logs.iter().any(|log| cells(log, 9).iter().any(|temp_c| *temp_c > 84)));
    let xids = fs::read_to_string(&written.xid_events).unwrap();
    for xid in [",94\n", ",48\n", ",79\n"] {
        assert!(xids.contains(xid), "{xids}");
    }
}

/// An option that cannot be met is refused by name and range.
#[test]
fn options_outside_their_range_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |options| write_fleet(dir.path(), &options, &mut |_| {}).unwrap_err();
    let error: DemoError = refused(Options { gpus: 12, ..small() });
    assert_eq!(
        error.to_string(),
        "cannot make a fleet with gpus = 12: must be a multiple of 8 from 8 to 4096"
    );
    assert!(matches!(refused(Options { weeks: 0, ..small() }), DemoError::Option { .. }));
    assert!(matches!(refused(Options { interval_s: 5, ..small() }), DemoError::Option { .. }));
}

/// The checked-in data set is what the generator writes.
#[test]
fn the_notebooks_data_is_what_the_generator_writes() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks-data");
    let dir = tempfile::tempdir().unwrap();
    super::write_notebooks_data(dir.path()).unwrap();
    for table in ["gpus", "jobs", "allocations", "samples", "node_samples"] {
        let name = format!("{table}.parquet");
        let (made, kept) = (rows(&dir.path().join(&name)), rows(&kept.join(&name)));
        assert!(made.iter().map(|batch| batch.num_rows()).sum::<usize>() >= 16);
        assert!(made == kept, "{name} differs: write the data set anew");
    }
}

fn rows(path: &Path) -> Vec<arrow::array::RecordBatch> {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let file = fs::File::open(path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    reader.map(|batch| batch.unwrap()).collect()
}

/// Writes the data set anew; run it by name after a change to the generator.
#[test]
#[ignore = "writes into the repository"]
fn write_the_notebooks_data() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks-data");
    super::write_notebooks_data(&kept).unwrap();
}
