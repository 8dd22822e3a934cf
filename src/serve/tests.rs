//! The door of `loadline collect` as senders and scrapers meet it.

mod copies;
mod crowds;
mod flight;
mod prometheus;
mod ship;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use loadline_ingest::Store;
use loadline_ingest::collect::{CollectSettings, Health, Stop, inbox, run_with};
use loadline_ingest::source::remote_write::{RemoteWrite, RemoteWriteSettings};
use loadline_ingest::wal::{Wal, WalSettings};

use super::*;

/// `DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a"} 80.5` at 2026-03-02T09:00:00Z, as a sender packs
/// it: one literal of snappy.
fn body() -> Vec<u8> {
    let part = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let label = |name: &str, value: &str| {
        part(1, &[part(1, name.as_bytes()), part(2, value.as_bytes())].concat())
    };
    let mut sample = vec![0x09];
    sample.extend_from_slice(&80.5_f64.to_le_bytes());
    sample.push(0x10);
    let mut at = 1_772_442_000_000_u64;
    while at >= 0x80 {
        sample.push((at & 0x7f) as u8 | 0x80);
        at >>= 7;
    }
    sample.push(at as u8);
    let series = [
        label("__name__", "DCGM_FI_DEV_POWER_USAGE"),
        label("gpu", "0"),
        label("UUID", "GPU-a"),
        part(2, &sample),
    ];
    let message = part(1, &series.concat());
    let length = message.len() as u8;
    assert!((61..128).contains(&length));
    [&[length, 60 << 2, length - 1], &message[..]].concat()
}

fn ask(stream: &mut TcpStream, head: &str, body: &[u8]) -> String {
    let head = format!("{head}\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    answer(stream)
}

/// One answer with its body, as far as it has one.
fn answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut byte = [0];
    let length = |text: &str| -> Option<usize> {
        text.lines().find_map(|line| line.strip_prefix("Content-Length: "))?.parse().ok()
    };
    while stream.read(&mut byte).unwrap() == 1 {
        text.push(char::from(byte[0]));
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && length(head).unwrap_or(0) <= body.len()
        {
            break;
        }
    }
    text
}

/// Runs a store with a door, and hands its address over.
fn with_door(wal: WalSettings, token: Option<&str>, test: impl FnOnce(&str, &Store, &Stop)) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    let wal = Wal::open(&folder.path().join("_wal"), "a", wal).unwrap();
    let health = Arc::new(Health::new(Box::new(|_| ())));
    let (stop, (sender, inbox)) = (Stop::default(), inbox());
    let token_file = token.map(|token| {
        let path = folder.path().join("token");
        std::fs::write(&path, token).unwrap();
        path
    });
    let desk = CollectDesk {
        receiver: Some(RemoteWrite::new(&RemoteWriteSettings::default()).unwrap()),
        sender,
        health: Arc::clone(&health),
        bearer_token_file: token_file,
    };
    let settings = DoorSettings {
        listen: "127.0.0.1:0".into(),
        body_bytes_max: BODY_BYTES_MAX,
        ..DoorSettings::default()
    };
    let door = Door::open(&settings).unwrap();
    let address = door.address().to_string();
    let collect = CollectSettings::default();
    thread::scope(|scope| {
        let (of_run, store_of_run, settings) = (&stop, &store, &collect);
        let running = scope.spawn(move || {
            run_with(Vec::new(), inbox, wal, store_of_run, settings, &health, of_run)
        });
        let serving = scope.spawn(|| door.serve(&|request| desk.answer(request), &stop));
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            test(&address, &store, &stop);
        }));
        stop.set();
        serving.join().unwrap();
        running.join().unwrap().unwrap();
        if let Err(panic) = tried {
            std::panic::resume_unwind(panic);
        }
    });
}

const BODY_BYTES_MAX: usize = 65_536;

const POST: &str = "POST /api/v1/write HTTP/1.1\r\nHost: x\r\nContent-Encoding: snappy";

fn rows(store: &Store) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let overlay = runtime.block_on(loadline_ingest::wal::overlay(store)).unwrap();
    let samples = overlay.iter().filter(|table| table.table == loadline_ingest::Table::Samples);
    samples.flat_map(|table| &table.rows).map(|rows| rows.num_rows()).sum()
}

#[test]
fn remote_write_of_another_version_is_refused_and_not_taken_for_empty() {
    // Breaks when a sender of 2.0 hears that its readings are kept, while none is.
    with_door(WalSettings::default(), None, |address, store, _| {
        let mut stream = TcpStream::connect(address).unwrap();
        let kind = "Content-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request";
        let told = ask(&mut stream, &format!("{POST}\r\n{kind}"), &body());
        assert!(told.starts_with("HTTP/1.1 415 "), "{told}");
        let kind = "Content-Type: application/x-protobuf;proto=prometheus.WriteRequest";
        let told = ask(&mut stream, &format!("{POST}\r\n{kind}"), &body());
        assert!(told.starts_with("HTTP/1.1 204 "), "{told}");
        assert_eq!(rows(store), 1);
    });
}

#[test]
fn what_is_accepted_is_in_the_log_and_what_is_wrong_is_told() {
    // Breaks when a sender is told 204 before its rows are safe, or repeats what nobody can read.
    with_door(WalSettings::default(), None, |address, store, _| {
        let mut stream = TcpStream::connect(address).unwrap();
        let answer = ask(&mut stream, POST, &body());
        assert!(answer.starts_with("HTTP/1.1 204 No Content\r\n"), "{answer}");
        assert_eq!(rows(store), 1);
        // The same again, on the same connection, is the same reading.
        assert!(ask(&mut stream, POST, &body()).starts_with("HTTP/1.1 204"));
        assert_eq!(rows(store), 1);
        let answer = ask(&mut stream, POST, b"hello");
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert!(answer.contains("the body is no snappy block"), "{answer}");
        let page = ask(&mut stream, "GET /metrics HTTP/1.1\r\nHost: x", b"");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        for line in [
            "# TYPE loadline_collector_rounds_total counter",
            "loadline_collector_rounds_total{collector=\"remote-write\"} 3",
            "loadline_collector_failures_total{collector=\"remote-write\"} 1",
            "loadline_collector_up{collector=\"remote-write\"} 0",
        ] {
            assert!(page.lines().any(|told| told == line), "{line}\n{page}");
        }
        assert!(!page.contains("last_flush"), "what is not known is left out");
        for (head, status) in [
            ("GET /api/v1/write HTTP/1.1\r\nHost: x", "405"),
            ("GET / HTTP/1.1\r\nHost: x", "404"),
            ("GET /metrics?x=1 HTTP/1.1\r\nHost: x", "200"),
        ] {
            let answer = ask(&mut stream, head, b"");
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
        }
    });
}

#[test]
fn a_full_log_asks_the_sender_to_come_again() {
    let full = WalSettings { segment_bytes: 1_000, bytes_max: 1 };
    with_door(full, None, |address, store, _| {
        let answer = ask(&mut TcpStream::connect(address).unwrap(), POST, &body());
        assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
        assert!(
            answer.contains("Retry-After: 5") && answer.contains("wait to be moved"),
            "{answer}"
        );
        assert_eq!(rows(store), 0);
    });
}

#[test]
fn requests_that_are_too_long_or_none_at_all_end_the_connection() {
    with_door(WalSettings::default(), None, |address, _, _| {
        let long = "x".repeat(20_000);
        let get = "GET /metrics HTTP/1.1\r\n";
        for (request, status) in [
            (format!("{POST}\r\nContent-Length: 65537\r\n\r\n"), "413"),
            (format!("{POST}\r\nTransfer-Encoding: chunked\r\n\r\n"), "411"),
            (format!("{POST}\r\nContent-Length: many\r\n\r\n"), "400"),
            (format!("{get}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), "400"),
            (format!("{get}A: {long}"), "431"),
            ("\u{1}\u{2}\r\n\r\n".to_owned(), "400"),
            (format!("{get}Connection: close\r\n\r\n"), "200"),
        ] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let told = answer(&mut stream);
            assert!(told.starts_with(&format!("HTTP/1.1 {status}")), "{told}");
            // An error here says the same as the end: nobody listens.
            assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "{status}");
        }
        // A sender that asks first is told to go on.
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body().len();
        let head = format!("{POST}\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        assert_eq!(answer(&mut stream), "HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(&body()).unwrap();
        assert!(answer(&mut stream).starts_with("HTTP/1.1 204"));
    });
}

#[test]
fn who_sends_too_much_reads_the_answer_and_no_reset() {
    // Breaks when a connection is closed while its sender still speaks: the answer is lost then.
    with_door(WalSettings::default(), None, |address, _, _| {
        let much = vec![b'x'; 8 << 20];
        let get = "GET /metrics HTTP/1.1\r\n";
        for (head, status) in [
            (format!("{POST}\r\nContent-Length: {}\r\n\r\n", much.len()), "413"),
            (format!("{get}A: "), "431"),
            (format!("{POST}\r\nTransfer-Encoding: chunked\r\n\r\n"), "411"),
        ] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&[head.as_bytes(), &much].concat()).unwrap();
            let told = answer(&mut stream);
            assert!(told.starts_with(&format!("HTTP/1.1 {status}")), "{told}");
            assert_eq!(stream.read(&mut [0]).unwrap(), 0, "{status}: it ends in good order");
        }
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00]).unwrap();
        assert!(answer(&mut stream).contains("this door speaks no TLS"));
    });
}

#[test]
fn connections_that_say_nothing_keep_nobody_out() {
    // Breaks when as many silent connections as there is room for shut the door.
    with_door(WalSettings::default(), None, |address, _, _| {
        let get = "GET /metrics HTTP/1.1\r\nHost: x";
        let mut silent: Vec<TcpStream> = Vec::new();
        for _ in 0..300 {
            silent.push(TcpStream::connect(address).unwrap());
        }
        let told = ask(&mut TcpStream::connect(address).unwrap(), get, b"");
        assert!(told.starts_with("HTTP/1.1 200"), "{told}");
        // Those that waited longest made room.
        assert_eq!(silent[0].read(&mut [0]).unwrap_or(0), 0);
    });
}

#[test]
fn only_who_has_the_token_sends_rows_and_a_stop_ends_idle_connections() {
    with_door(WalSettings::default(), Some("abc\n"), |address, store, stop| {
        let mut stream = TcpStream::connect(address).unwrap();
        for wrong in ["", "\r\nAuthorization: Bearer abd", "\r\nAuthorization: Basic abc"] {
            let answer = ask(&mut stream, &format!("{POST}{wrong}"), &body());
            assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        }
        assert_eq!(rows(store), 0);
        let right = format!("{POST}\r\nAuthorization: Bearer abc");
        assert!(ask(&mut stream, &right, &body()).starts_with("HTTP/1.1 204"));
        stop.set();
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    });
}
