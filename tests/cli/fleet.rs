//! A small fleet, made and imported once, and a way to run the program on it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// What a run of the program said.
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

/// The fleet's folder and what `demo` printed.
pub(crate) struct Fleet {
    pub(crate) folder: PathBuf,
    pub(crate) demo: String,
    _kept: tempfile::TempDir,
}

/// 16 GPUs over five weeks, a reading every half hour.
pub(crate) fn fleet() -> &'static Fleet {
    static FLEET: OnceLock<Fleet> = OnceLock::new();
    FLEET.get_or_init(|| {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path().to_path_buf();
        let args = "demo --gpus 16 --weeks 5 --interval 1800 --dir fleet --report demo.html";
        let demo = run_in(&folder, &words(args), "");
        assert_eq!(demo.code, Some(0), "{}", demo.stderr);
        Fleet { folder, demo: demo.stdout, _kept: kept }
    })
}

/// Arguments that are parted by blanks.
pub(crate) fn words(args: &str) -> Vec<&str> {
    args.split_whitespace().collect()
}

/// Runs the program in `folder`, in a zone and with a home that must not matter.
pub(crate) fn run_in(folder: &Path, args: &[&str], input: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("TZ", "America/New_York")
        .env("HOME", folder)
        .env("COLUMNS", "100")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    Run {
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
        code: status.code(),
    }
}

/// Runs the program on the fleet's store, and demands that it succeeds.
pub(crate) fn ask(args: &[&str]) -> Run {
    let run = try_ask(args, "");
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
    run
}

/// The same, whatever comes of it.
pub(crate) fn try_ask(args: &[&str], input: &str) -> Run {
    let fleet = fleet();
    let place = ["--store", "fleet/data", "--config", "fleet/files/loadline.toml"];
    let all: Vec<&str> = place.iter().chain(args).copied().collect();
    run_in(&fleet.folder, &all, input)
}
