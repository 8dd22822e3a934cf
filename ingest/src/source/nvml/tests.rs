//! The collector through the real wrapper, with a library of our own that answers from a script.

mod boards;
mod owned;
mod readings;
mod real;
mod stored;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int16Type, Int64Type};
use serde_json::{Value, json};

use super::*;
use crate::schema::Table;
use crate::source::collected::{Collected, texts};

/// 2026-07-14T09:00:00Z.
const START_S: i64 = 1_784_019_600;

const GIB: u64 = 1 << 30;

/// A node with a driver of its own.
struct Node {
    folder: tempfile::TempDir,
    settings: NvmlSettings,
    collector: Option<NvmlCollector>,
}

/// The stand-in. `cargo test` builds it beside the tests, but not where it is asked for the library
/// alone: where it is missing it is built here.
fn stand_in() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let tests = std::env::current_exe().unwrap();
        let built = tests.ancestors().nth(2).unwrap().join("examples/libnvml_stand_in.so");
        if built.exists() {
            return built;
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--workspace", "--locked", "--example", "nvml_stand_in"]);
        cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success(), "the stand-in does not build");
        built
    });
    assert!(built.exists(), "{} is missing", built.display());
    built.clone()
}

impl Node {
    fn new(script: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libnvidia-ml.so.1");
        std::fs::copy(stand_in(), &library).unwrap();
        let settings = NvmlSettings {
            cluster: Some("c1".into()),
            library: Some(library),
            proc_root: folder.path().join("proc"),
            passwd: folder.path().join("passwd"),
            answer_within: Duration::from_secs(20),
            ..NvmlSettings::new("n1")
        };
        let node = Self { folder, settings, collector: None };
        node.write("proc/2/comm", "kthreadd\n");
        node.says(script);
        node
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// From now on the driver answers from `script`; a call that is under way sees it whole.
    fn says(&self, script: &Value) {
        self.write("new.json", &script.to_string());
        let to = self.folder.path().join("libnvidia-ml.so.1.json");
        std::fs::rename(self.folder.path().join("new.json"), to).unwrap();
    }

    fn process(&self, pid: u32, cgroup: &str, uid: u32) {
        self.write(&format!("proc/{pid}/cgroup"), cgroup);
        self.write(&format!("proc/{pid}/status"), &format!("Name:\tx\nUid:\t{uid}\t{uid}\t0\t0\n"));
    }

    /// One round `at_s` seconds after the start: what it gave, and its failure in words.
    fn round(&mut self, at_s: i64) -> (Collected, Option<String>) {
        let mut out = Collected::default();
        let failure = self.round_into(at_s, &mut out).err();
        (out, failure.map(|error| error.to_string()))
    }

    fn round_into(&mut self, at_s: i64, out: &mut dyn Output) -> Result<(), IngestError> {
        let now = DateTime::from_timestamp(START_S + at_s, 0).unwrap();
        let collector = match &mut self.collector {
            Some(collector) => collector,
            None => self.collector.insert(NvmlCollector::open(self.settings.clone())?),
        };
        collector.collect(now, out)
    }

    /// A round that must not fail.
    fn well(&mut self, at_s: i64) -> Collected {
        let (out, failure) = self.round(at_s);
        assert_eq!(failure, None);
        out
    }

    fn restart(&mut self) {
        self.collector = None;
    }
}

/// A driver with `gpus`.
fn driver(gpus: &[Value]) -> Value {
    json!({ "driver": "580.95.05", "cuda": 13000, "gpus": gpus })
}

/// A GPU that tells little.
fn plain(uuid: &str) -> Value {
    json!({
        "uuid": uuid, "name": "NVIDIA A10", "vbios": "94.02",
        "util": [80, 40], "memory": [8 * GIB, 24 * GIB], "power_mw": 120_000, "temp": 55,
    })
}

/// `with` is laid over `base`.
fn over(mut base: Value, with: &Value) -> Value {
    for (key, value) in with.as_object().unwrap() {
        base[key] = value.clone();
    }
    base
}

/// Row `row` of the samples as one object; NULLs are left out.
fn row(out: &Collected, row: usize) -> serde_json::Map<String, Value> {
    let samples = out.table(Table::Samples);
    let mut found = serde_json::Map::new();
    for (field, column) in samples.schema().fields().iter().zip(samples.columns()) {
        if column.is_null(row) || field.name() == "sampled_at" {
            continue;
        }
        let value = if let Some(column) = column.as_string_opt::<i32>() {
            json!(column.value(row))
        } else if let Some(column) = column.as_primitive_opt::<arrow::datatypes::Float64Type>() {
            json!(column.value(row))
        } else if let Some(column) = column.as_primitive_opt::<Int64Type>() {
            json!(column.value(row))
        } else if let Some(column) = column.as_primitive_opt::<Int16Type>() {
            json!(column.value(row))
        } else {
            json!(column.as_primitive::<arrow::datatypes::Int32Type>().value(row))
        };
        found.insert(field.name().clone(), value);
    }
    found
}

fn rows(out: &Collected, table: Table) -> usize {
    out.batches.iter().filter(|(of, _)| *of == table).map(|(_, rows)| rows.num_rows()).sum()
}

/// Events as `uuid mig kind: detail`.
fn events(out: &Collected) -> Vec<String> {
    if rows(out, Table::Events) == 0 {
        return Vec::new();
    }
    let events = out.table(Table::Events);
    let mig = events["mig"].as_primitive::<Int16Type>();
    let (uuid, kind, detail) =
        (texts(&events, "gpu_uuid"), texts(&events, "kind"), texts(&events, "detail"));
    (0..events.num_rows())
        .map(|row| {
            let slice =
                if mig.is_valid(row) { format!("/{}", mig.value(row)) } else { String::new() };
            let uuid = uuid[row].as_deref().unwrap_or("-");
            let (kind, detail) = (kind[row].as_deref().unwrap(), detail[row].as_deref().unwrap());
            format!("{uuid}{slice} {kind}: {detail}")
        })
        .collect()
}
