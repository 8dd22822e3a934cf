//! What ships beside the program for a cluster: the files are taken as they are.

use std::path::Path;
use std::process::Command;

use super::fleet::{run_in, words};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");

/// Runs one of Slurm's scripts for a job with three GPUs.
fn slurm(script: &str, folder: &Path, restarts: &str) {
    let done = Command::new("/bin/sh")
        .arg(format!("{EXAMPLES}/slurm/{script}.sh"))
        .env_clear()
        .env("LOADLINE_ALLOCATIONS", folder.join("allocations"))
        .env("SLURM_JOB_ID", "71")
        .env("SLURM_JOB_GPUS", "0,2-3")
        .env("SLURM_JOB_RESTART_COUNT", restarts)
        .env("SLURM_CLUSTER_NAME", "main")
        .env("SLURMD_NODENAME", "gpu-017")
        .output()
        .unwrap();
    assert!(done.status.success() && done.stdout.is_empty(), "{done:?}");
}

fn held(folder: &Path) -> String {
    let question = "SELECT job_id, attempt, cluster, node, gpu, started_at IS NOT NULL AS begun,
        ended_at >= started_at AS ended FROM allocations ORDER BY attempt, gpu";
    let run = run_in(folder, &["sql", "-f", "csv", question], "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.stdout
}

#[test]
fn prolog_and_epilog_tell_which_gpus_a_job_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let import = || {
        let run = run_in(folder, &["import", "allocations", "allocations/*.csv"], "");
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    };
    slurm("prolog", folder, "0");
    import();
    let begun = "job_id,attempt,cluster,node,gpu,begun,ended\n\
        71,0,main,gpu-017,0,true,\n71,0,main,gpu-017,2,true,\n71,0,main,gpu-017,3,true,\n";
    assert_eq!(held(folder), begun);
    slurm("epilog", folder, "0");
    import();
    assert_eq!(held(folder), begun.replace("true,\n", "true,true\n"), "the same, with their end");
    // A requeued job is another attempt; a job without a GPU is none of ours.
    slurm("prolog", folder, "1");
    import();
    assert_eq!(held(folder).matches("\n71,1,").count(), 3);
    let none = Command::new("/bin/sh")
        .arg(format!("{EXAMPLES}/slurm/prolog.sh"))
        .env_clear()
        .env("LOADLINE_ALLOCATIONS", folder.join("allocations"))
        .env("SLURM_JOB_ID", "72")
        .status();
    assert!(none.unwrap().success());
    assert_eq!(std::fs::read_dir(folder.join("allocations")).unwrap().count(), 2);
}

#[test]
fn the_daemon_set_asks_for_nothing_that_collect_does_not_know() {
    let text = std::fs::read_to_string(format!("{EXAMPLES}/kubernetes/daemonset.yaml")).unwrap();
    let args = text.lines().skip_while(|line| line.trim() != "args:").skip(1);
    let args = args.map_while(|line| line.trim().strip_prefix("- "));
    let args: Vec<String> = args.map(|arg| arg.replace("$(NODE_NAME)", "gpu-017")).collect();
    assert_eq!(args.first().map(String::as_str), Some("collect"), "{args:?}");
    let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
    args.push("--help");
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path(), &args, "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run_in(folder.path(), &words("collect --no-such --help"), "").code != Some(0));
}

#[test]
fn a_unit_is_shown_and_written_only_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("loadline.toml"), "[collect]\nflush_s = 60\n").unwrap();
    let asked = "collect --slurm --interval 100ms --watch jobs --to grpc://store:7047";
    let shown = run_in(folder, &words(&format!("{asked} install --unit-dir .")), "");
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let place = folder.canonicalize().unwrap();
    let place = place.display();
    let command = shown.stdout.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    let wanted = format!(
        "ExecStart={} --config {place}/loadline.toml collect --slurm --watch {place}/jobs \
         --interval 100ms --to grpc://store:7047",
        env!("CARGO_BIN_EXE_loadline")
    );
    assert_eq!(command, wanted);
    assert!(!folder.join("loadline-collect.service").exists());
    // Breaks when the unit is given a `/tmp` of its own, in which its store is not.
    let store = run_in(folder, &words("--store /tmp/x collect --slurm install --unit-dir ."), "");
    assert!(!store.stdout.contains("PrivateTmp"), "{}", store.stdout);
    assert!(store.stdout.contains("ReadWritePaths=-/tmp/x\n"), "{}", store.stdout);
    assert!(store.stderr.contains("is in a folder for temporary files"), "{}", store.stderr);

    let written = run_in(folder, &words(&format!("{asked} install --unit-dir . --write")), "");
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    assert!(written.stdout.contains("systemctl enable --now loadline-collect.service"));
    let unit = std::fs::read_to_string(folder.join("loadline-collect.service")).unwrap();
    assert_eq!(unit, shown.stdout);
    let other = run_in(folder, &words("collect install --unit-dir . --write"), "");
    assert_eq!(other.code, Some(1), "{}", other.stdout);
    assert!(other.stderr.contains("--force"), "{}", other.stderr);
    assert_eq!(std::fs::read_to_string(folder.join("loadline-collect.service")).unwrap(), unit);
}
