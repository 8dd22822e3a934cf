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

#[test]
fn a_gpu_that_was_lost_and_replaced_is_a_question_away() {
    // Breaks when an event reaches the store and no answer.
    let folder = tempfile::tempdir().unwrap();
    let head = "timestamp, index, uuid, pci.bus_id, power.draw [W]\n";
    let row = |time: &str, uuid: &str, power: &str| {
        format!("2026/03/02 {time}:00.000, 3, {uuid}, 00000000:02:00.0, {power}\n")
    };
    let lost = "Unable to determine the device handle for GPU0000:02:00.0: Unknown Error\n";
    let monday = [head, &row("09:00", "GPU-old", "80.10 W"), lost, lost].concat();
    let tuesday = [head, &row("19:00", "GPU-new", "81.20 W")].concat();
    for (name, log) in [("monday.csv", &monday), ("tuesday.csv", &tuesday)] {
        std::fs::write(folder.path().join(name), log).unwrap();
        let import = format!("import nvidia-smi {name} --node gpu-017 --zone UTC");
        let run = run_in(folder.path(), &words(&import), "");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stdout.contains("events: 1 new rows"), "{}", run.stdout);
    }
    let asked = "query events --param from=2026-03-02 --param until=2026-03-03 --format csv";
    let told = run_in(folder.path(), &words(asked), "").stdout;
    let told: Vec<&str> = told.lines().skip(1).collect();
    assert_eq!(
        told,
        [
            "2026-03-02T09:00:00Z,lost,,gpu-017,3,GPU-old,,Unable to determine the device handle for \
         GPU0000:02:00.0: Unknown Error,,",
            "2026-03-02T19:00:00Z,uuid-changed,,gpu-017,3,GPU-new,,GPU-old sat there until \
         2026-03-02T09:00:00Z,,",
        ]
    );
}

#[test]
fn shards_and_numbered_resources_count_by_option_or_configuration() {
    // Breaks when the number is asked for and cannot be given.
    let folder = tempfile::tempdir().unwrap();
    let ledger = "JobIDRaw|Submit|Start|End|State|AllocTRES\n\
        7|2026-03-02T08:00:00|2026-03-02T09:00:00|2026-03-02T19:00:00|COMPLETED|gres/shard=2\n\
        8|2026-03-02T08:00:00|2026-03-02T09:00:00|2026-03-02T19:00:00|COMPLETED|1=4,1005=3\n";
    let gpus = || {
        let sql = "SELECT gpus_allocated AS gpus FROM jobs ORDER BY job_id";
        run_in(folder.path(), &["sql", sql, "--format", "csv"], "").stdout
    };
    let plain = run_in(folder.path(), &words("import sacct - --zone UTC"), ledger);
    assert!(plain.stdout.contains("--shards-per-gpu"), "{}", plain.stdout);
    assert!(plain.stdout.contains("1005 (1 jobs)"), "{}", plain.stdout);
    assert_eq!(gpus(), "gpus\n\"\"\n0.0\n");
    let options = "import sacct - --zone UTC --shards-per-gpu 4 --tres-id 1005=gres/gpu:h100";
    run_in(folder.path(), &words(options), ledger);
    assert_eq!(gpus(), "gpus\n0.5\n3.0\n");
    let config = "[slurm]\nshards_per_gpu = 8\ntres_ids = { 1005 = \"gres/gpu:h100\" }\n";
    std::fs::write(folder.path().join("loadline.toml"), config).unwrap();
    run_in(folder.path(), &words("import sacct - --zone UTC"), ledger);
    assert_eq!(gpus(), "gpus\n0.25\n3.0\n");
}

#[test]
fn a_damaged_store_names_the_file_and_the_way_out() {
    // Breaks when a torn commit or a cut file is answered with the words of a library alone.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("gpu-017.csv"), LOG).unwrap();
    let import = words("import nvidia-smi gpu-017.csv --zone Asia/Shanghai");
    run_in(folder.path(), &import, "");
    let samples = folder.path().join("loadline-data/samples");
    let commit = samples.join("_delta_log/00000000000000000000.json");
    let whole = std::fs::read(&commit).unwrap();
    for cut in [0, whole.len() / 2] {
        std::fs::write(&commit, &whole[..cut]).unwrap();
        for args in ["sql SELECT~1", "query gpu_hours", "report"] {
            let args: Vec<String> = words(args).iter().map(|a| a.replace('~', " ")).collect();
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let run = run_in(folder.path(), &args, "");
            assert_eq!(run.code, Some(1), "{args:?}: {}", run.stdout);
            for part in ["`_delta_log/00000000000000000000.json`", "hint: it is the newest commit"]
            {
                assert!(run.stderr.contains(part), "{args:?}: {}", run.stderr);
            }
        }
    }
    std::fs::write(&commit, &whole).unwrap();
    let day = std::fs::read_dir(&samples).unwrap().map(|entry| entry.unwrap().path());
    let mut day = day.filter(|path| path.to_string_lossy().contains("date="));
    let day = day.next().unwrap();
    let file = std::fs::read_dir(day).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let again = run_in(folder.path(), &import, "");
    assert!(again.stderr.contains(name) && again.stderr.contains("hint: "), "{}", again.stderr);
    let told =
        |stderr: &str| stderr.contains(name) && stderr.contains("hint: that file of the store");
    let ask = || run_in(folder.path(), &["sql", "SELECT sum(power_w) FROM samples"], "").stderr;
    assert!(told(&ask()), "{}", ask());
    std::fs::remove_file(&file).unwrap();
    assert!(told(&ask()), "{}", ask());
}
