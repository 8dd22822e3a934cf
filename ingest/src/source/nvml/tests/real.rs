//! On a real GPU: `tests/gpu.sh` runs this.

use super::*;

/// Answers of `nvidia-smi` for each GPU, as numbers; `None` where it has none.
fn nvidia_smi(fields: &str) -> Vec<Vec<Option<f64>>> {
    let query = format!("--query-gpu={fields}");
    let said = Command::new("nvidia-smi").args([&query, "--format=csv,noheader,nounits"]).output();
    let said = String::from_utf8(said.unwrap().stdout).unwrap();
    let cells = |line: &str| line.split(", ").map(|cell| cell.trim().parse().ok()).collect();
    said.lines().map(cells).collect()
}

fn uuids() -> Vec<String> {
    let query = ["--query-gpu=uuid", "--format=csv,noheader"];
    let said = Command::new("nvidia-smi").args(query).output().unwrap();
    String::from_utf8(said.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs a GPU: tests/gpu.sh runs it"]
fn a_real_gpu_says_the_same_to_us_and_to_nvidia_smi() {
    let settings = NvmlSettings { interval: Duration::from_secs(1), ..NvmlSettings::new("here") };
    let mut collector = NvmlCollector::open(settings).unwrap();
    let mut out = Collected::default();
    collector.collect(Utc::now(), &mut out).unwrap();
    // GPM and counters need time between two readings.
    std::thread::sleep(Duration::from_secs(2));
    let mut out = Collected::default();
    let began = std::time::Instant::now();
    collector.collect(Utc::now(), &mut out).unwrap();
    println!("a round took {:?}", began.elapsed());
    let said = nvidia_smi("memory.total,memory.used,temperature.gpu,power.draw,clocks.mem");
    let boards: Vec<_> = (0..rows(&out, Table::Samples))
        .map(|at| row(&out, at))
        .filter(|row| !row.contains_key("mig"))
        .collect();
    assert!(!boards.is_empty());
    let found: Vec<_> = boards.iter().map(|row| row["gpu_uuid"].as_str().unwrap()).collect();
    assert_eq!(found, uuids());
    let mib = f64::from(1 << 20);
    for (row, said) in boards.iter().zip(said) {
        println!("{}", serde_json::to_string_pretty(row).unwrap());
        let near = |column: &str, said: Option<f64>, scale: f64, within: f64| match said {
            Some(said) => {
                let ours = row[column].as_f64().unwrap() * scale;
                assert!((ours - said).abs() <= within, "{column}: {ours}, nvidia-smi says {said}");
            }
            None => assert_eq!(row.get(column), None, "{column}: nvidia-smi has no figure"),
        };
        near("mem_total_bytes", said[0], 1.0 / mib, 1.0);
        near("mem_used_bytes", said[1], 1.0 / mib, 512.0);
        near("temp_c", said[2], 1.0, 5.0);
        near("power_w", said[3], 1.0, 60.0);
        near("mem_clock_mhz", said[4], 1.0, 1.0);
    }
}
