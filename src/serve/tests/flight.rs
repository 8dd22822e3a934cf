//! The door for rows as strangers, other clients and careless ones meet it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch, StringArray};
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::utils::batches_to_flight_data;
use arrow_flight::{Action, Criteria, FlightData, FlightDescriptor, Ticket};
use loadline_ingest::Table;
use loadline_ingest::collect::Gathered;
use loadline_ingest::ship::{CALL_BYTES_MAX, MESSAGE_BYTES_MAX, ShipSettings, descriptor};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::ship::{count, local, node, reading, serving, stored, to, until};
use super::*;

pub(super) fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

async fn client(url: &str) -> FlightServiceClient<Channel> {
    let server = Channel::from_shared(url.replace("grpc://", "http://")).unwrap();
    FlightServiceClient::new(server.connect().await.unwrap())
}

/// The messages of a call, each batch with what stands in `app_metadata`.
pub(super) fn call(to: FlightDescriptor, batches: &[(RecordBatch, &str)]) -> Vec<FlightData> {
    let rows: Vec<_> = batches.iter().map(|(rows, _)| rows.clone()).collect();
    let mut messages = batches_to_flight_data(&rows[0].schema(), rows).unwrap();
    for (message, (_, metadata)) in messages[1..].iter_mut().zip(batches) {
        message.app_metadata = (*metadata).to_owned().into();
    }
    messages[0].flight_descriptor = Some(to);
    messages
}

pub(super) async fn put(url: &str, messages: Vec<FlightData>) -> Result<String, Status> {
    let request = Request::new(futures::stream::iter(messages));
    let mut answer = client(url).await.do_put(request).await?.into_inner();
    let told = answer.message().await?.unwrap();
    Ok(String::from_utf8(told.app_metadata.to_vec()).unwrap())
}

fn one() -> Gathered {
    Gathered { rows: vec![(Table::Samples, reading(0))], ..Gathered::default() }
}

#[test]
fn only_who_has_the_token_sends_rows_and_the_others_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, token: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, token).unwrap();
        path
    };
    let (right, wrong) = (file("token", "abc\n"), file("wrong", "abd\n"));
    let settings = FlightSettings { token_file: Some(right.clone()), ..local() };
    let store = folder.path().join("store");
    let writer = serving(&store, &settings, |url, of_server| {
        let spool = folder.path().join("spool");
        let words = [
            (None, "it asks for a token: give the token of this server".to_owned()),
            (Some(wrong.clone()), format!("it does not know the token in `{}`", wrong.display())),
        ];
        for (token_file, words) in words {
            let ship = ShipSettings { token_file, ..to(url) };
            let ship = node(&spool, &ship, WalSettings::default(), |sender, health| {
                sender.keep(one(), Duration::from_secs(60)).unwrap();
                until("a failure", || {
                    health.ship().is_some_and(|ship| ship.last_failure.is_some())
                });
            });
            let failure = ship.last_failure.unwrap();
            assert!(failure.contains(&words), "{failure}");
            assert!(ship.spool_bytes > 0 && ship.rows_shipped_total == 0);
        }
        // Breaks when whoever knocks sets the state of the door.
        let door = of_server.collectors()["flight"].clone();
        assert_eq!((door.last_failure, door.failures_total), (None, 0));
        assert_eq!(
            door.last_refusal.as_deref(),
            Some("somebody without the token was turned away")
        );
        assert!(door.refused_total >= 2, "{}", door.refused_total);
        // Breaks when a door that lost its token stays down once it has one again.
        let aside = right.with_extension("aside");
        std::fs::rename(&right, &aside).unwrap();
        let status = run(put(url, call(descriptor(Table::Samples, None), &[(reading(0), "")])));
        assert_eq!(status.unwrap_err().message(), "the token of this server cannot be read");
        let down = of_server.collectors()["flight"].last_failure.clone().unwrap();
        assert!(down.contains("which --token-file names: there is no such file"), "{down}");
        std::fs::rename(&aside, &right).unwrap();
        let ship = ShipSettings { token_file: Some(right.clone()), ..to(url) };
        node(&spool, &ship, WalSettings::default(), |_, health| {
            until("rows sent", || health.ship().is_some_and(|ship| ship.rows_shipped_total == 2));
        });
        assert_eq!(of_server.collectors()["flight"].last_failure, None);
    });
    assert_eq!(writer.rows_appended_total, 2, "{writer:?}");
    assert_eq!(count(&store, Table::Samples), 1, "the same reading twice is one");
}

#[test]
fn a_door_to_other_machines_needs_a_token() {
    let open = FlightSettings { listen: "0.0.0.0:0".into(), ..FlightSettings::default() };
    let refused = Flight::open(&open).unwrap_err();
    assert_eq!(refused.code(), 2);
    let told = refused.to_string();
    assert!(told.contains("anybody who reaches `0.0.0.0:0` could write to the store"), "{told}");
    assert!(told.contains("--token-file FILE, or --insecure"), "{told}");
    assert!(Flight::open(&FlightSettings { insecure: true, ..open }).unwrap().in_the_open());
}

#[test]
fn any_client_puts_rows_and_what_is_repeated_is_kept_once() {
    let folder = tempfile::tempdir().unwrap();
    let writer = serving(folder.path(), &local(), |url, _| {
        run(async {
            let plain = call(descriptor(Table::Samples, None), &[(reading(0), "")]);
            assert_eq!(put(url, plain).await.unwrap(), "");
            let log = descriptor(Table::Samples, Some("loadline-wal/n1/00ff"));
            let two = [(reading(1), "1.52.0.1"), (reading(2), "1.52.1.1")];
            for _ in 0..3 {
                assert_eq!(put(url, call(log.clone(), &two)).await.unwrap(), "1.52.1.1");
            }
        });
    });
    assert_eq!((writer.rows_appended_total, writer.rows_repeated_total), (3, 4));
    assert_eq!(count(folder.path(), Table::Samples), 3);
}

#[test]
fn what_cannot_be_kept_is_refused_with_its_reason_and_spoils_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let text = |words: &str| {
        let column: ArrayRef = Arc::new(StringArray::from(vec![words]));
        RecordBatch::try_from_iter([("job_id", column)]).unwrap()
    };
    let log = |table| descriptor(table, Some("a"));
    let large = "x".repeat(MESSAGE_BYTES_MAX);
    let half = "x".repeat(MESSAGE_BYTES_MAX / 4 * 3);
    serving(folder.path(), &local(), |url, _| {
        run(async {
            let refused = [
                (call(log(Table::Samples), &[(text("7"), "1.52.0.1")]), "without `sampled_at`"),
                (call(log(Table::Jobs), &[(text("7"), "")]), "is no place in a log"),
                (call(log(Table::Jobs), &[(text("7"), "1.52.0.0")]), "cannot be where it is"),
                (
                    call(log(Table::Jobs), &[(text("7"), "1.52.1.1"), (text("8"), "1.52.0.1")]),
                    "cannot be where it is",
                ),
                (call(FlightDescriptor::new_path(vec!["x".into()]), &[(text("7"), "")]), "`x`"),
                (call(FlightDescriptor::default(), &[(text("7"), "")]), "is a table"),
                (
                    vec![FlightData {
                        data_header: vec![1, 2, 3].into(),
                        ..call(log(Table::Jobs), &[(text("7"), "")])[0].clone()
                    }],
                    "",
                ),
            ];
            for (messages, words) in refused {
                let status = put(url, messages).await.unwrap_err();
                assert_eq!(status.code(), Code::InvalidArgument, "{words}: {status:?}");
                assert!(status.message().contains(words), "{words}: {status:?}");
            }
            let status = put(url, call(log(Table::Jobs), &[(text(&large), "1.52.0.1")])).await;
            assert_eq!(status.unwrap_err().code(), Code::OutOfRange);
            let many =
                [(text(&half), "1.52.0.1"), (text(&half), "1.52.1.1"), (text(&half), "1.52.2.1")];
            let status = put(url, call(log(Table::Jobs), &many)).await.unwrap_err();
            assert_eq!(status.code(), Code::ResourceExhausted);
            assert!(status.message().contains(&CALL_BYTES_MAX.to_string()), "{status:?}");
            // It takes the next ones.
            let sound = call(log(Table::Jobs), &[(text("7"), "1.52.0.1")]);
            assert_eq!(put(url, sound).await.unwrap(), "1.52.0.1");
        });
    });
    assert_eq!(count(folder.path(), Table::Jobs), 1);
}

#[test]
fn everything_but_putting_rows_is_told_to_be_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    serving(folder.path(), &local(), |url, _| {
        run(async {
            let mut client = client(url).await;
            let statuses = [
                client.list_flights(Criteria::default()).await.unwrap_err(),
                client.do_get(Ticket::default()).await.unwrap_err(),
                client.get_schema(FlightDescriptor::default()).await.unwrap_err(),
                client.do_action(Action::default()).await.unwrap_err(),
            ];
            for status in statuses {
                assert_eq!(status.code(), Code::Unimplemented);
                assert!(status.message().contains("takes rows by DoPut"), "{status:?}");
            }
        });
    });
}

#[test]
fn what_any_client_puts_is_held_to_what_an_import_takes() {
    // Breaks when a client spoils the means of a fleet with what cannot be true.
    let folder = tempfile::tempdir().unwrap();
    let at = |second: i64, power: f64, share: f64, node: &str| {
        let base = reading(second);
        let schema = base.schema();
        let columns = schema.fields().iter().map(|field| field.name().clone());
        let mut columns: Vec<(String, ArrayRef)> =
            columns.zip(base.columns().iter().cloned()).collect();
        columns[1].1 = Arc::new(StringArray::from(vec![node]));
        columns.push(("power_w".into(), Arc::new(Float64Array::from(vec![power]))));
        columns.push(("gpu_util_ratio".into(), Arc::new(Float64Array::from(vec![share]))));
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let year_2099 = (4_070_908_800_000 - 1_767_225_600_000) / 1_000;
    serving(folder.path(), &local(), |url, health| {
        let batches = [
            (at(0, 90.5, 0.5, "n1"), "1.52.0.1"),
            (at(1, f64::NAN, 50.0, "n\u{1b}[2J"), "1.52.1.1"),
            (at(2, -90.5, f64::INFINITY, "n1"), "1.52.2.1"),
            (at(year_2099, 90.5, 0.5, "n1"), "1.52.3.1"),
        ];
        let log = descriptor(Table::Samples, Some("loadline-wal/n1/00ff"));
        // What is kept aside is answered for: it would be no better the next time.
        assert_eq!(run(put(url, call(log, &batches))).unwrap(), "1.52.3.1");
        let known = health.collectors()["flight n1"].clone();
        assert_eq!((known.rows_total, known.nulled_total, known.rejects_total), (3, 4, 1));
        assert_eq!(known.last_failure, None);
    });
    assert_eq!(count(folder.path(), Table::Samples), 3);
    let nodes: Vec<String> = stored(folder.path(), Table::Samples)
        .iter()
        .flat_map(|rows| {
            let nodes = rows.column_by_name("node").unwrap();
            let nodes = arrow::compute::cast(nodes, &arrow::datatypes::DataType::Utf8).unwrap();
            nodes.as_string::<i32>().iter().flatten().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    assert!(nodes.contains(&"n\u{fffd}[2J".to_owned()), "{nodes:?}");
}

fn certificate(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let made = std::process::Command::new("openssl")
        .current_dir(folder)
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-keyout", "key.pem", "-out", "cert.pem", "-days", "3650", "-subj", "/CN=store"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .stderr(std::process::Stdio::null())
        .status();
    let made = made.is_ok_and(|status| status.success());
    made.then(|| (folder.join("cert.pem"), folder.join("key.pem")))
}

#[test]
fn rows_pass_encrypted_to_a_server_that_is_known_and_to_no_other() {
    // Breaks when TLS cannot be spoken, or anybody's certificate will do.
    let folder = tempfile::tempdir().unwrap();
    let Some((cert, key)) = certificate(folder.path()) else {
        println!("skipped: `openssl` is not installed");
        return;
    };
    let store = folder.path().join("store");
    let settings = FlightSettings { tls: Some((cert.clone(), key)), ..local() };
    serving(&store, &settings, |url, _| {
        assert!(url.starts_with("grpc+tls://127.0.0.1:"), "{url}");
        let spool = folder.path().join("spool");
        let other = tempfile::tempdir().unwrap();
        let (stranger, stranger_key) = certificate(other.path()).unwrap();
        // A key that belongs to another certificate is told before anybody is let in.
        let mixed = FlightSettings { tls: Some((cert.clone(), stranger_key.clone())), ..local() };
        let told = Flight::open(&mixed).unwrap_err().to_string();
        let wanted = format!(
            "the key in `{}` is not that of the first certificate in `{}`",
            stranger_key.display(),
            cert.display()
        );
        assert!(told.contains(&wanted), "{told}");
        for (tls, wanted) in [
            ((cert.clone(), cert.clone()), "--tls-key names: it holds no key"),
            ((stranger_key.clone(), stranger_key.clone()), "--tls-cert names: it holds no certif"),
            ((other.path().join("none"), stranger_key.clone()), "which --tls-cert names: "),
        ] {
            let wrong = FlightSettings { tls: Some(tls), ..local() };
            let told = Flight::open(&wrong).unwrap_err().to_string();
            assert!(told.contains(wanted), "{told}");
        }
        let ship = ShipSettings { ca_file: Some(stranger_key.clone()), ..to(url) };
        let told = loadline_ingest::ship::Shipper::new(&ship, "n1", None).unwrap_err().to_string();
        assert!(told.contains(&stranger_key.display().to_string()), "{told}");
        assert!(told.contains("it holds no certificate"), "{told}");
        for ca_file in [None, Some(stranger)] {
            let ship = ShipSettings { ca_file, ..to(url) };
            // A system without any certificates says so at once.
            let Ok(_) = loadline_ingest::ship::Shipper::new(&ship, "n1", None) else { continue };
            let ship = node(&spool, &ship, WalSettings::default(), |sender, health| {
                sender.keep(one(), Duration::from_secs(60)).unwrap();
                until("a failure", || {
                    health.ship().is_some_and(|ship| ship.last_failure.is_some())
                });
            });
            let failure = ship.last_failure.unwrap();
            assert!(failure.contains("its certificate is not trusted"), "{failure}");
            assert!(failure.contains("--ca-file"), "{failure}");
        }
        let fails = |ship: &ShipSettings, wanted: &str| {
            let ship = node(&spool, ship, WalSettings::default(), |sender, health| {
                sender.keep(one(), Duration::from_secs(60)).unwrap();
                until("a failure", || {
                    health.ship().is_some_and(|ship| ship.last_failure.is_some())
                });
            });
            let failure = ship.last_failure.unwrap();
            assert!(failure.contains(wanted), "{failure}");
            for ours in ["transport::", "Kind", "code:", "{", "Error("] {
                assert!(!failure.contains(ours), "{ours} is for programmers: {failure}");
            }
        };
        // Nor is one without TLS answered, or one that asks for another name.
        fails(&to(&url.replace("grpc+tls", "grpc")), "if it speaks TLS, send to `grpc+tls://");
        let named = url.replace("127.0.0.1", "localhost");
        let named = ShipSettings { ca_file: Some(cert.clone()), ..to(&named) };
        fails(&named, "its certificate is for another name than `localhost`");
        assert_eq!(count(&store, Table::Samples), 0);
        let ship = ShipSettings { ca_file: Some(cert.clone()), ..to(url) };
        node(&spool, &ship, WalSettings::default(), |_, health| {
            until("rows sent", || health.ship().is_some_and(|ship| ship.rows_shipped_total > 0));
        });
        // TLS is spoken to a door that has none.
        serving(&folder.path().join("plain"), &local(), |url, _| {
            let ship = ShipSettings {
                ca_file: Some(cert.clone()),
                ..to(&url.replace("grpc://", "grpc+tls://"))
            };
            fails(&ship, "if it speaks no TLS, send to `grpc://");
        });
    });
    assert_eq!(count(&store, Table::Samples), 1);
}
