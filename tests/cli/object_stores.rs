//! A store in a bucket is what a store in a folder is. The bucket is of a server from PyPI.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use super::clients::python;
use super::fleet::words;

const STORE: &str = "s3://fleet/loadline";

/// A server that ends when it is dropped, since its standard input ends then.
struct Bucket {
    server: Child,
    endpoint: String,
}

impl Bucket {
    fn open(python: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/s3_server.py");
        let mut server = Command::new(python)
            .args([script, "fleet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { server, endpoint: format!("http://127.0.0.1:{}", port.trim()) }
    }

    fn command(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        command
            .args(["--store", STORE])
            .args(args)
            .current_dir(folder)
            .env("AWS_ENDPOINT", &self.endpoint)
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, folder: &Path, args: &str) -> String {
        told(&self.command(folder, &words(args)).output().unwrap())
    }

    fn count(&self, folder: &Path, table: &str) -> u64 {
        let question = format!("SELECT count(DISTINCT sampled_at) AS n FROM {table}");
        let asked = self.command(folder, &["sql", "-f", "csv", &question]).output().unwrap();
        let rows = self.command(folder, &["sql", "-f", "csv", &question.replace("DISTINCT ", "")]);
        let (apart, rows) = (told(&asked), told(&{ rows }.output().unwrap()));
        assert_eq!(apart, rows, "no reading is there twice");
        rows.lines().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        self.server.wait().unwrap();
    }
}

/// What a run printed, that must have succeeded.
fn told(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    stdout
}

/// A file with a reading every half minute from `start_s` of 1 March 2026 on.
fn file(folder: &Path, name: &str, start_s: i64) {
    let mut text = "sampled_at,node,gpu,gpu_uuid,gpu_util_ratio\n".to_owned();
    for row in 0..200 {
        let at = chrono::DateTime::from_timestamp(1_772_323_200 + start_s + row * 30, 0).unwrap();
        writeln!(text, "{},{name},0,GPU-{name},0.5", at.to_rfc3339()).unwrap();
    }
    std::fs::write(folder.join(format!("{name}.csv")), text).unwrap();
}

#[test]
fn a_bucket_takes_imports_at_once_and_is_compacted_and_examined() {
    let Some(python) =
        python("a_bucket_takes_imports_at_once_and_is_compacted_and_examined", "moto.server")
    else {
        return;
    };
    let bucket = Bucket::open(&python);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Three of one day, none at the instant of another, and one of the day after.
    let files = [("a", 0), ("b", 10), ("c", 20), ("d", 90_000)];
    for (name, start_s) in files {
        file(folder, name, start_s);
    }
    // Each commits only upon what it has read: the bucket refuses the one that comes second.
    let imports = files.map(|(name, _)| {
        let file = format!("{name}.csv");
        bucket.command(folder, &["import", "samples", &file]).spawn().unwrap()
    });
    for import in imports {
        told(&import.wait_with_output().unwrap());
    }
    assert_eq!(bucket.count(folder, "samples"), 800);
    let again = bucket.run(folder, "import samples a.csv b.csv --json");
    assert!(again.contains("\"rows_duplicate\": 400"), "{again}");
    assert_eq!(bucket.count(folder, "samples"), 800);

    bucket.run(folder, "compact --files-max 1");
    assert_eq!(bucket.count(folder, "samples"), 800);
    let fine = bucket.run(folder, "doctor");
    assert!(fine.contains("files of "), "{fine}");

    // What a collector keeps lies in a log on its own disk until it is in the bucket.
    bucket.run(folder, "collect --node-samples --interval 1s --for 2s --name n1");
    assert!(bucket.count(folder, "node_samples") >= 1);
    bucket.run(folder, "doctor");
}
