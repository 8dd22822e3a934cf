//! The real Prometheus, where it is installed: it scrapes an exporter and our own page, and sends
//! what it has.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// Time that Prometheus has for all of it.
const WITHIN: Duration = Duration::from_secs(60);

/// Ends the program that it holds.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PAGE: &str = "\
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",Hostname=\"n1\"} 50
DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-b\",Hostname=\"n1\"} 60
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\",Hostname=\"n1\"} 80.5
DCGM_FI_DEV_POWER_USAGE{gpu=\"1\",UUID=\"GPU-b\",Hostname=\"n1\"} 81.5
";

/// An exporter with one page.
fn exporter() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let length = PAGE.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n\
                 Content-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all(format!("{head}{PAGE}").as_bytes());
        }
    });
    address
}

fn start(folder: &Path, door: &str) -> Option<(Running, String)> {
    let (exporter, port) = (exporter(), TcpListener::bind("127.0.0.1:0").unwrap());
    let own = port.local_addr().unwrap().to_string();
    drop(port);
    let config = format!(
        "global:\n  scrape_interval: 1s\n  external_labels: {{cluster: c}}\nscrape_configs:\n\
         - job_name: dcgm\n  honor_labels: true\n  static_configs: [{{targets: [\"{exporter}\"]}}]\n\
         - job_name: loadline\n  static_configs: [{{targets: [\"{door}\"]}}]\n\
         remote_write:\n- url: http://{door}/api/v1/write\n"
    );
    let file = folder.join("prometheus.yml");
    std::fs::write(&file, config).unwrap();
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()))
        .arg(format!("--web.listen-address={own}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Some((Running(child.ok()?), own))
}

#[test]
fn the_real_prometheus_is_understood_and_understands() {
    with_door(WalSettings::default(), None, |door, store, _| {
        let folder = tempfile::tempdir().unwrap();
        let Some((_running, own)) = start(folder.path(), door) else {
            println!("skipped: `prometheus` is not installed");
            return;
        };
        let began = Instant::now();
        // Two GPUs, several scrapes.
        while rows(store) < 8 {
            assert!(began.elapsed() < WITHIN, "{} rows", rows(store));
            thread::park_timeout(Duration::from_millis(200));
        }
        let ask_it = || {
            let mut stream = TcpStream::connect(&own).unwrap();
            let query = "loadline_collector_up%7Bcollector%3D%22remote-write%22%7D";
            let head = format!("GET /api/v1/query?query={query} HTTP/1.1\r\nHost: x");
            ask(&mut stream, &head, b"")
        };
        while !ask_it().contains(",\"1\"]") {
            assert!(began.elapsed() < WITHIN, "{}", ask_it());
            thread::park_timeout(Duration::from_millis(200));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let overlay = runtime.block_on(loadline_ingest::wal::overlay(store)).unwrap();
        let samples = overlay.iter().find(|table| table.table == loadline_ingest::Table::Samples);
        for rows in &samples.unwrap().rows {
            for column in ["gpu_util_ratio", "power_w", "node", "cluster", "gpu_uuid"] {
                assert_eq!(rows[column].null_count(), 0, "{column}");
            }
        }
    });
}
