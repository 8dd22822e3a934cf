//! Imports as a user sees them: summaries, repeats, dry runs, what is kept aside.

use std::io::Write as _;

use super::fleet::{run_in, words};

const LOG: &str = "timestamp, name, uuid, index, utilization.gpu [%], memory.used [MiB], power.draw [W]\n\
    2026/03/02 09:00:00.000, NVIDIA H100 80GB HBM3, GPU-0a, 0, 95 %, 40000 MiB, 610.00 W\n\
    2026/03/02 09:00:30.000, NVIDIA H100 80GB HBM3, GPU-0a, 0, 97 %, 40000 MiB, [N/A]\n\
    a line that nobody can read\n\
    2026/03/02 09:01:00.000, NVIDIA H100 80GB HBM3, GPU-0a, 0, 96 %, 40000 MiB, 620.00 W\n";

#[test]
fn a_log_is_told_imported_once_and_what_cannot_be_read_is_kept_aside() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("gpu-017.csv"), LOG).unwrap();
    let import = "import nvidia-smi gpu-017.csv --zone Asia/Shanghai";
    let dry = run_in(folder.path(), &words(&format!("{import} --dry-run")), "");
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    assert!(!folder.path().join("loadline-data").exists(), "a dry run wrote");
    insta::with_settings!({filters => vec![(r"aside-[^ ]*\.csv", "FILE")]}, {
        insta::assert_snapshot!(dry.stdout);
        let first = run_in(folder.path(), &words(import), "");
        insta::assert_snapshot!(first.stdout.replace(folder.path().to_str().unwrap(), "DIR"));
    });
    let again = run_in(folder.path(), &words(import), "");
    assert!(
        again.stdout.contains("3 duplicates") && again.stdout.contains("unchanged"),
        "{}",
        again.stdout
    );
    // 09:00 in Shanghai is 01:00 UTC, wherever the program runs.
    let sql = "SELECT min(sampled_at) AS at, count(*) AS n, count(power_w) AS told FROM samples";
    let asked = run_in(folder.path(), &["sql", sql, "--format", "csv"], "");
    assert_eq!(asked.stdout, "at,n,told\n2026-03-02T01:00:00Z,3,2\n");
}

#[test]
fn standard_input_is_a_file_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = "JobIDRaw|User|Account|Partition|Submit|Start|End|State|AllocTRES\n\
        7|ann|nlp|gpu|2026-03-02T08:00:00|2026-03-02T09:00:00|2026-03-02T19:00:00|COMPLETED|cpu=8,gres/gpu=8\n";
    let run = run_in(folder.path(), &words("import sacct - --zone UTC --json"), ledger);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let told: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((told["rows_read"].as_u64(), told["rows_kept"].as_u64()), (Some(1), Some(1)));
    let hours = run_in(folder.path(), &words("query gpu_hours_total --format csv"), "");
    // Eight GPUs for ten hours are 80.
    assert!(hours.stdout.lines().nth(1).unwrap().starts_with("nlp,80.0,"), "{}", hours.stdout);
}

#[test]
fn a_file_that_cannot_be_read_leaves_the_others_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("good.csv", LOG.as_bytes());
    write("bad.csv", b"once upon a time\n");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let more: String = (0..2_000)
        .map(|n| {
            format!(
                "2026/03/03 {:02}:{:02}:{:02}.000, H100, GPU-0b, 1, {} %, 1 MiB, {n}.00 W\n",
                n / 3_600,
                n / 60 % 60,
                n % 60,
                n % 100
            )
        })
        .collect();
    packed.write_all(LOG.lines().next().unwrap().as_bytes()).unwrap();
    packed.write_all(b"\n").unwrap();
    packed.write_all(more.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    write("torn.csv.gz", &packed[..packed.len() * 3 / 4]);
    let args = words("import nvidia-smi good.csv bad.csv torn.csv.gz --zone UTC");
    let run = run_in(folder.path(), &args, "");
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stderr.contains("2 files could not be read"), "{}", run.stderr);
    assert!(run.stdout.contains("bad.csv: as nvidia-smi: no header"), "{}", run.stdout);
    let sql = "SELECT gpu_uuid, count(*) AS n FROM samples GROUP BY 1 ORDER BY 1";
    let kept = run_in(folder.path(), &["sql", sql, "--format", "csv"], "").stdout;
    let counts: Vec<usize> =
        kept.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert_eq!(counts[0], 3);
    assert!(counts[1] > 500 && counts[1] < 2_000, "{kept}");
    // Alone, it is an error and makes no store.
    let alone = tempfile::tempdir().unwrap();
    std::fs::write(alone.path().join("bad.csv"), "once upon a time\n").unwrap();
    let run = run_in(alone.path(), &words("import nvidia-smi bad.csv --zone UTC"), "");
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.starts_with("error: cannot read `bad.csv`"), "{}", run.stderr);
    assert!(!alone.path().join("loadline-data").exists());
}
