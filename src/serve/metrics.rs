//! How collecting goes, as a Prometheus page.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use loadline_ingest::collect::{CollectorHealth, Health, ShipHealth, WriterHealth};

use super::request::Response;

/// A figure of each collector: name, kind, what it is, and where it stands. One that is not known
/// is left out.
type OfCollector = (&'static str, &'static str, &'static str, fn(&CollectorHealth) -> Option<f64>);

const OF_COLLECTOR: [OfCollector; 10] = [
    ("up", "gauge", "Whether the last round did not fail.", |c| {
        Some(if c.last_failure.is_none() { 1.0 } else { 0.0 })
    }),
    ("rounds_total", "counter", "Rounds that were read.", |c| Some(c.rounds_total as f64)),
    ("failures_total", "counter", "Rounds that failed, wholly or in part.", |c| {
        Some(c.failures_total as f64)
    }),
    ("refused_total", "counter", "Calls of strangers, or not understood.", |c| {
        Some(c.refused_total as f64)
    }),
    ("missed_total", "counter", "Rounds left out because the one before took too long.", |c| {
        Some(c.missed_total as f64)
    }),
    ("rows_total", "counter", "Rows read.", |c| Some(c.rows_total as f64)),
    ("values_nulled_total", "counter", "Measurements that could not be true.", |c| {
        Some(c.nulled_total as f64)
    }),
    ("lines_rejected_total", "counter", "Lines kept aside.", |c| Some(c.rejects_total as f64)),
    ("last_round_seconds", "gauge", "Time that the last round took.", |c| Some(c.last_round_s)),
    ("last_success_timestamp_seconds", "gauge", "When the last good round was read.", |c| {
        c.last_success_at.map(seconds)
    }),
];

/// A figure of the writer.
type OfWriter = (&'static str, &'static str, &'static str, fn(&WriterHealth) -> Option<f64>);

const OF_WRITER: [OfWriter; 12] = [
    ("writer_rows_appended_total", "counter", "Rows in the log for good.", |w| {
        Some(w.rows_appended_total as f64)
    }),
    ("writer_rows_repeated_total", "counter", "Rows that a sender repeated.", |w| {
        Some(w.rows_repeated_total as f64)
    }),
    (
        "writer_rows_dropped_total",
        "counter",
        "Rows that neither log nor memory had room for.",
        |w| Some(w.rows_dropped_total as f64),
    ),
    ("writer_append_failures_total", "counter", "Appends that failed.", |w| {
        Some(w.append_failures_total as f64)
    }),
    ("writer_rows_waiting", "gauge", "Rows in memory at the last append.", |w| {
        Some(w.rows_waiting as f64)
    }),
    ("wal_bytes", "gauge", "Bytes in the write-ahead log.", |w| Some(w.wal_bytes as f64)),
    ("flushes_total", "counter", "Moves into the tables.", |w| Some(w.flushes_total as f64)),
    ("flush_failures_total", "counter", "Moves that failed; the rows stay in the log.", |w| {
        Some(w.flush_failures_total as f64)
    }),
    ("last_flush_timestamp_seconds", "gauge", "When rows were last moved.", |w| {
        w.last_flush_at.map(seconds)
    }),
    ("wal_segments_damaged_total", "counter", "Segments that could not be read whole.", |w| {
        Some(w.segments_damaged_total as f64)
    }),
    ("wal_bytes_lost_total", "counter", "Bytes of the log that somebody removed.", |w| {
        Some(w.wal_bytes_lost_total as f64)
    }),
    ("days_compacted_total", "counter", "Days compacted.", |w| Some(w.days_compacted_total as f64)),
];

/// A figure of sending to a server.
type OfShip = (&'static str, &'static str, &'static str, fn(&ShipHealth) -> Option<f64>);

const OF_SHIP: [OfShip; 7] = [
    ("ship_up", "gauge", "Whether the server took what was last sent.", |s| {
        Some(if s.last_failure.is_none() { 1.0 } else { 0.0 })
    }),
    ("ship_rows_total", "counter", "Rows that the server has.", |s| {
        Some(s.rows_shipped_total as f64)
    }),
    ("ship_failures_total", "counter", "Calls of the server that failed.", |s| {
        Some(s.failures_total as f64)
    }),
    ("ship_rows_lost_total", "counter", "Rows that the full spool lost.", |s| {
        Some(s.rows_lost_total as f64)
    }),
    ("ship_spool_bytes", "gauge", "Bytes that wait in the spool.", |s| Some(s.spool_bytes as f64)),
    (
        "ship_segments_damaged_total",
        "counter",
        "Segments of the spool that could not be read whole.",
        |s| Some(s.segments_damaged_total as f64),
    ),
    ("ship_last_success_timestamp_seconds", "gauge", "When the server last took rows.", |s| {
        s.last_success_at.map(seconds)
    }),
];

/// The page.
#[must_use]
pub fn page(health: &Health) -> Response {
    let mut text = String::new();
    family(&mut text, "build_info", "gauge", "Version of the program.");
    let _ = writeln!(text, "loadline_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    let collectors = health.collectors();
    for (name, kind, words, figure) in OF_COLLECTOR {
        let name = format!("collector_{name}");
        let known = collectors.iter().filter_map(|(of, health)| Some((of, figure(health)?)));
        for (place, (of, value)) in known.enumerate() {
            if place == 0 {
                family(&mut text, &name, kind, words);
            }
            let of = escaped(of);
            let _ = writeln!(text, "loadline_{name}{{collector=\"{of}\"}} {value}");
        }
    }
    let writer = health.writer();
    for (name, kind, words, figure) in OF_WRITER {
        if let Some(value) = figure(&writer) {
            family(&mut text, name, kind, words);
            let _ = writeln!(text, "loadline_{name} {value}");
        }
    }
    let ship = health.ship();
    for (name, kind, words, figure) in OF_SHIP {
        if let Some(value) = ship.as_ref().and_then(figure) {
            family(&mut text, name, kind, words);
            let _ = writeln!(text, "loadline_{name} {value}");
        }
    }
    let headers = vec![("Content-Type", "text/plain; version=0.0.4; charset=utf-8".to_owned())];
    Response { status: "200 OK", headers, body: text }
}

fn family(text: &mut String, name: &str, kind: &str, words: &str) {
    let _ = writeln!(text, "# HELP loadline_{name} {words}\n# TYPE loadline_{name} {kind}");
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn seconds(at: DateTime<Utc>) -> f64 {
    at.timestamp_millis() as f64 / 1000.0
}
