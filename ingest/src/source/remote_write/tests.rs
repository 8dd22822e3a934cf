//! Requests as senders make them, and such as nobody should.

use arrow::array::AsArray;
use proptest::prelude::*;

use super::*;
use crate::source::collected::{millis, numbers, texts};

/// One series: metric, labels, and values with their times.
type Series<'t> = (&'t str, &'t [(&'t str, &'t str)], &'t [(f64, i64)]);

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn part(number: u64, bytes: &[u8], out: &mut Vec<u8>) {
    varint(number << 3 | 2, out);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn request(all: &[Series<'_>]) -> Vec<u8> {
    let mut request = Vec::new();
    for (metric, labels, samples) in all {
        let mut series = Vec::new();
        for (name, value) in [("__name__", *metric)].iter().chain(*labels) {
            let mut label = Vec::new();
            part(1, name.as_bytes(), &mut label);
            part(2, value.as_bytes(), &mut label);
            part(1, &label, &mut series);
        }
        for (value, at_ms) in *samples {
            let mut sample = vec![1 << 3 | 1];
            sample.extend_from_slice(&value.to_bits().to_le_bytes());
            sample.push(2 << 3);
            varint(at_ms.cast_unsigned(), &mut sample);
            part(2, &sample, &mut series);
        }
        part(1, &series, &mut request);
    }
    // Metadata, as a sender adds it now and then.
    part(3, b"\x08\x02", &mut request);
    request
}

fn packed(request: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(request).unwrap()
}

fn receiver(text: &str) -> RemoteWrite {
    RemoteWrite::new(&toml::from_str(text).unwrap()).unwrap()
}

fn samples(gathered: &Gathered) -> RecordBatch {
    let (table, rows) = &gathered.rows[0];
    assert_eq!(*table, Table::Samples);
    rows.clone()
}

const AT: i64 = 1_772_442_000_000;
const GPU: &[(&str, &str)] =
    &[("gpu", "3"), ("UUID", "GPU-a"), ("Hostname", "n1"), ("instance", "10.0.0.4:9400")];

#[test]
fn names_that_somebody_sends_steer_no_terminal_and_have_an_end() {
    // Breaks when a label of a stranger reaches the store, and from there a screen, as it came.
    let long = "x".repeat(5_000);
    let gpu: &[(&str, &str)] = &[("gpu", "3"), ("UUID", &long), ("Hostname", "n\u{1b}[2J")];
    let far = AT + 80 * 366 * 86_400_000;
    let request = request(&[
        ("DCGM_FI_DEV_GPU_UTIL", gpu, &[(50.0, AT)]),
        ("DCGM_FI_DEV_GPU_UTIL", gpu, &[(50.0, far)]),
    ]);
    let gathered = receiver("").receive(&packed(&request)).unwrap();
    let rows = samples(&gathered);
    assert_eq!(texts(&rows, "node"), [Some("n\u{fffd}[2J".into())]);
    let uuid = texts(&rows, "gpu_uuid")[0].clone().unwrap();
    assert_eq!((uuid.chars().count(), uuid.chars().last()), (1_024, Some('…')));
    assert_eq!(gathered.rejects.len(), 1, "{:?}", gathered.rejects);
    assert!(gathered.rejects[0].reason.contains("outside the years"), "{:?}", gathered.rejects);
}

#[test]
fn a_request_makes_a_row_of_each_gpu_and_instant() {
    let request = request(&[
        ("DCGM_FI_DEV_GPU_UTIL", GPU, &[(50.0, AT), (60.0, AT + 15_000)]),
        ("DCGM_FI_DEV_POWER_USAGE", GPU, &[(80.5, AT), (f64::from_bits(STALE), AT + 15_000)]),
        ("node_load1", &[("instance", "n1:9100")], &[(1.0, AT)]),
        ("DCGM_FI_DEV_FB_USED", GPU, &[(1024.0, -5)]),
    ]);
    let gathered = receiver("cluster = \"c\"").receive(&packed(&request)).unwrap();
    let rows = samples(&gathered);
    assert_eq!(millis(&rows, "sampled_at"), [Some(AT), Some(AT + 15_000)]);
    assert_eq!(numbers(&rows, "gpu_util_ratio"), [Some(0.5), Some(0.6)]);
    assert_eq!(numbers(&rows, "power_w"), [Some(80.5), None], "the end of a series is no reading");
    assert_eq!(texts(&rows, "node"), [Some("n1".into()), Some("n1".into())]);
    assert_eq!(texts(&rows, "cluster"), [Some("c".into()), Some("c".into())]);
    assert!(rows.column_by_name("mem_used_bytes").is_none());
    assert_eq!((gathered.nulled, gathered.rejects.len()), (0, 1));
    assert_eq!(
        gathered.rejects[0].reason,
        "its time, -5 ms since 1970, is outside the years 2000 to 2099"
    );
    assert_eq!(gathered.rows[1].0, Table::Gpus);
}

#[test]
fn parts_of_one_reading_do_not_say_what_the_other_part_knows() {
    // Breaks when engine activity stands for utilisation that comes a moment later, or a lost GPU
    // is well again because its Xid is in the other request.
    let receiver = receiver("");
    let sent = |series: &[Series<'_>]| receiver.receive(&packed(&request(series))).unwrap();
    let util = ("DCGM_FI_DEV_GPU_UTIL", GPU, &[(50.0, AT)][..]);
    let xid = ("DCGM_FI_DEV_XID_ERRORS", GPU, &[(79.0, AT)][..]);
    let reserved = ("DCGM_FI_DEV_FB_RESERVED", GPU, &[(600.0, AT)][..]);
    let first = sent(&[util, xid, reserved]);
    assert!(first.rows.iter().any(|(table, _)| *table == Table::Events));
    let second = sent(&[
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", GPU, &[(0.7, AT)]),
        ("DCGM_FI_DEV_POWER_USAGE", GPU, &[(80.5, AT)]),
        ("DCGM_FI_DEV_FB_USED", GPU, &[(1024.0, AT)]),
        ("DCGM_FI_DEV_FB_FREE", GPU, &[(2048.0, AT)]),
    ]);
    let rows = samples(&second);
    assert!(rows.column_by_name("gpu_util_ratio").is_none());
    assert!(rows.column_by_name("mem_total_bytes").is_none());
    assert_eq!(numbers(&rows, "power_w"), [Some(80.5)]);
    assert!(second.rows.iter().all(|(table, _)| *table != Table::Events));
}

#[test]
fn news_of_a_request_that_was_not_kept_go_with_the_next() {
    // Breaks when a GPU is lost while the log is full, and no event tells of it.
    let receiver = receiver("");
    let body = packed(&request(&[("DCGM_FI_DEV_XID_ERRORS", GPU, &[(79.0, AT)])]));
    let tables = |gathered: &Gathered| -> Vec<Table> {
        gathered.rows.iter().map(|(table, _)| *table).collect()
    };
    let first = receiver.receive(&body).unwrap();
    assert_eq!(tables(&first), [Table::Samples, Table::Events, Table::Gpus]);
    receiver.not_kept(first);
    let again = receiver.receive(&body).unwrap();
    assert_eq!(tables(&again), [Table::Samples, Table::Events, Table::Gpus]);
    assert_eq!(tables(&receiver.receive(&body).unwrap()), [Table::Samples]);
}

#[test]
fn any_metric_can_be_mapped() {
    let receiver = receiver(
        "[[map]]\nmetric = \"my_power\"\ncolumn = \"power_w\"\nunit = \"kW\"\n\
         labels = { node = \"instance\", gpu = \"card\" }",
    );
    let labels = [("card", "1"), ("instance", "gpu-017:9100")];
    let body = packed(&request(&[("my_power", &labels, &[(0.5, AT)])]));
    let gathered = receiver.receive(&body).unwrap();
    let rows = samples(&gathered);
    assert_eq!(numbers(&rows, "power_w"), [Some(500.0)]);
    assert_eq!(texts(&rows, "node"), [Some("gpu-017".into())]);
    let gpu = rows["gpu"].as_primitive::<arrow::datatypes::Int16Type>();
    assert_eq!(gpu.value(0), 1);
}

#[test]
fn what_is_no_request_is_refused_with_its_place() {
    // Breaks when a sender is told to send the same rubbish again for ever.
    let told = |body: &[u8]| receiver("").receive(body).unwrap_err().to_string();
    assert!(told(b"").starts_with("the body is no snappy block: "));
    assert!(told(b"hello").starts_with("the body is no snappy block: "));
    let message = |bytes: &[u8]| told(&packed(bytes));
    assert!(message(b"\x0a\x7f").contains("at byte 2 begins something that goes past its end"));
    assert!(message(b"\x0b").contains("begins a field of no kind"));
    assert!(message(b"\x02\x00").contains("number 0"));
    assert!(message(&[0xff; 11]).contains("more than 64 bits"));
    assert!(message(b"\x0a\x00").contains("without `__name__`"));
    let mut not_text = request(&[("up", &[("a", "bcd")], &[])]);
    let at = not_text.windows(3).position(|w| w == b"bcd").unwrap();
    not_text[at] = 0xff;
    assert!(message(&not_text).contains("no UTF-8"));
    // A head that promises 33 MB is refused before anything is unpacked.
    let mut bomb = Vec::new();
    varint(33 << 20, &mut bomb);
    assert!(told(&bomb).contains("34603008 bytes unpacked; at most 33554432"));
    let nothing = receiver("").receive(&packed(b"")).unwrap();
    assert!(nothing.rows.is_empty(), "an empty request is none too many");
}

proptest! {
    #[test]
    fn no_body_panics(bytes in prop::collection::vec(any::<u8>(), 0..60), cut in 0_usize..200) {
        // Breaks when a length or a number in a body is believed.
        let receiver = receiver("");
        let _ = receiver.receive(&bytes);
        let _ = receiver.receive(&packed(&bytes));
        let mut whole = request(&[("DCGM_FI_DEV_GPU_UTIL", GPU, &[(50.0, AT), (1e300, i64::MAX)])]);
        whole.truncate(cut);
        whole.extend(bytes);
        let _ = receiver.receive(&packed(&whole));
    }
}
