//! A target over https, as `openssl` serves it where it is installed.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// Ends the server that it holds.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn certificate(folder: &Path) -> bool {
    let made = Command::new("openssl")
        .current_dir(folder)
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-keyout", "key.pem", "-out", "cert.pem", "-days", "3650", "-subj", "/CN=exporter"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .stderr(Stdio::null())
        .status();
    made.is_ok_and(|status| status.success())
}

fn serve(folder: &Path, port: u16) -> Running {
    let server = Command::new("openssl")
        .current_dir(folder)
        .args(["s_server", "-quiet", "-WWW", "-cert", "cert.pem", "-key", "key.pem"])
        .args(["-accept", &format!("127.0.0.1:{port}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let server = Running(server.unwrap());
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "the server does not listen");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    server
}

#[test]
fn a_target_over_https_is_read_where_its_certificate_is_trusted() {
    // Breaks when https cannot be spoken, or anybody's certificate will do.
    let folder = tempfile::tempdir().unwrap();
    if !certificate(folder.path()) {
        println!("skipped: `openssl` is not installed");
        return;
    }
    std::fs::write(folder.path().join("metrics"), PAGE).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _server = serve(folder.path(), port);
    let targets = vec![format!("https://127.0.0.1:{port}")];
    let stranger = ScrapeSettings { targets, ..ScrapeSettings::default() };
    let failed = round(&mut ScrapeCollector::new(&stranger).unwrap(), nine()).1.unwrap();
    assert!(failed.to_lowercase().contains("certificate"), "{failed}");
    let ca_file = Some(folder.path().join("cert.pem"));
    let known = ScrapeSettings { ca_file, ..stranger };
    let (out, failed) = round(&mut ScrapeCollector::new(&known).unwrap(), nine());
    assert_eq!(failed, None);
    assert_eq!(numbers(&out.table(Table::Samples), "power_w"), [Some(80.5)]);
}
