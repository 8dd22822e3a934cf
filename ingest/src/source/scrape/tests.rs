//! Scraping exporters that are well, and such as are not.

mod exporter;
mod tls;

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use self::exporter::{Answer, Exporter};
use super::*;
use crate::source::collected::{Collected, millis, numbers, shared, texts};

const PAGE: &str = "\
DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",Hostname=\"n1\"} 50\n\
DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\",Hostname=\"n1\"} 80.5\n";

fn settings(targets: &[&Exporter]) -> ScrapeSettings {
    let targets = targets.iter().map(|target| target.address.clone()).collect();
    ScrapeSettings { timeout_s: 1.0, targets, ..ScrapeSettings::default() }
}

fn nine() -> DateTime<Utc> {
    "2026-03-02T09:00:00Z".parse().unwrap()
}

fn round(collector: &mut ScrapeCollector, now: DateTime<Utc>) -> (Collected, Option<String>) {
    let mut out = Collected::default();
    let failed = collector.collect(now, &mut out).err();
    (out, failed.map(|error| error.to_string()))
}

fn zipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn one_target_that_hangs_or_fails_stops_no_other_and_is_named() {
    // Breaks when a node that is down, slow or mad costs the readings of the others.
    let good = Exporter::page(PAGE);
    let packed = Exporter::new(Answer::Page(zipped(&PAGE.replace("GPU-a", "GPU-b").into_bytes())));
    let cut = zipped(PAGE.as_bytes());
    let bomb = zipped(&vec![b'#'; 4 << 20]);
    let bad = [
        (Exporter::new(Answer::Hangs), "no whole answer within 1 s"),
        (Exporter::new(Answer::Status("503 Service Unavailable")), "503 Service Unavailable"),
        (Exporter::new(Answer::BreaksOff), "end of file before message length reached"),
        (Exporter::new(Answer::Endless), "longer than 65536 bytes (`page_bytes_max`)"),
        (Exporter::new(Answer::Page(bomb)), "longer than 65536 bytes (`page_bytes_max`)"),
        (Exporter::new(Answer::Page(vec![b'#'; 70_000])), "longer than 65536 bytes"),
        (Exporter::new(Answer::Page(cut[..cut.len() - 9].to_vec())), "its page ends early"),
        (Exporter::page("\n"), "the page has no series"),
        (Exporter::page("<html>log in</html>\n"), "line 1 is `<html>log in</html>`"),
    ];
    let all = [&good, &packed].into_iter().chain(bad.iter().map(|(exporter, _)| exporter));
    let all: Vec<&Exporter> = all.collect();
    let settings = ScrapeSettings { page_bytes_max: 65_536, ..settings(&all) };
    let mut collector = ScrapeCollector::new(&settings).unwrap();
    let (out, failed) = round(&mut collector, nine());
    let mut uuids = texts(&out.table(Table::Samples), "gpu_uuid");
    uuids.sort();
    assert_eq!(uuids, [Some("GPU-a".into()), Some("GPU-b".into())]);
    let failed = failed.unwrap();
    assert!(failed.starts_with("could not collect from 9 of 11 targets: `127.0.0.1:"), "{failed}");
    assert!(failed.ends_with("; and 4 more"), "{failed}");
    for (exporter, why) in &bad {
        let alone = super::tests::settings(&[exporter]);
        let alone = ScrapeSettings { page_bytes_max: 65_536, ..alone };
        let (out, failed) = round(&mut ScrapeCollector::new(&alone).unwrap(), nine());
        let failed = failed.unwrap();
        let named = format!("1 of 1 targets: `{}`: ", exporter.address);
        assert!(failed.contains(&named) && failed.contains(why), "{failed}");
        assert!(out.batches.is_empty());
    }
}

#[test]
fn a_target_that_does_not_listen_is_told_and_comes_back() {
    let exporter = Exporter::page(PAGE);
    let mut settings = settings(&[&exporter]);
    settings.targets.push("127.0.0.1:1".into());
    let mut collector = ScrapeCollector::new(&settings).unwrap();
    for _ in 0..2 {
        let (out, failed) = round(&mut collector, nine());
        assert_eq!(out.table(Table::Samples).num_rows(), 1);
        let failed = failed.unwrap();
        assert_eq!(
            failed,
            "could not collect from 1 of 2 targets: `127.0.0.1:1`: Connection refused (os error 111)"
        );
    }
}

#[test]
fn a_series_that_is_no_longer_on_the_page_is_not_known() {
    // Breaks when the last value goes on, or a zero is made of it.
    let exporter = Exporter::page(PAGE);
    let mut collector = ScrapeCollector::new(&settings(&[&exporter])).unwrap();
    let (first, failed) = round(&mut collector, nine());
    assert_eq!(failed, None);
    let rows = first.table(Table::Samples);
    assert_eq!(numbers(&rows, "power_w"), [Some(80.5)]);
    assert_eq!(texts(&rows, "node"), [Some("n1".into())]);
    assert_eq!(millis(&rows, "sampled_at"), [Some(nine().timestamp_millis())]);
    let less = PAGE.lines().next().unwrap().to_owned() + "\n";
    exporter.now_answers(Answer::Page(less.into_bytes()));
    let later = nine() + TimeDelta::seconds(15);
    let (second, _) = round(&mut collector, later);
    let rows = second.table(Table::Samples);
    assert_eq!(numbers(&rows, "gpu_util_ratio"), [Some(0.5)]);
    assert!(rows.column_by_name("power_w").is_none());
    assert_eq!(millis(&rows, "sampled_at"), [Some(later.timestamp_millis())]);
    // The device is told once, not at every round.
    assert!(second.batches.iter().all(|(table, _)| *table == Table::Samples));
    let (third, _) = round(&mut collector, nine() + TimeDelta::minutes(6));
    assert_eq!(third.table(Table::Gpus).num_rows(), 1);
}

#[test]
fn times_on_a_page_count_and_old_ones_are_a_failure() {
    // Breaks when a hung exporter looks alive.
    let at = nine() - TimeDelta::minutes(7);
    let line = PAGE.lines().next().unwrap();
    let exporter = Exporter::page(&format!("{line} {}\n", at.timestamp_millis()));
    let mut collector = ScrapeCollector::new(&settings(&[&exporter])).unwrap();
    let (out, failed) = round(&mut collector, nine());
    assert_eq!(millis(&out.table(Table::Samples), "sampled_at"), [Some(at.timestamp_millis())]);
    let failed = failed.unwrap();
    assert!(
        failed.ends_with("its latest reading is of 2026-03-02T08:53:00Z, 420 s before the scrape"),
        "{failed}"
    );
    assert_eq!(round(&mut collector, at).1, None);
}

#[test]
fn a_time_that_cannot_be_is_kept_aside_and_told() {
    // Breaks when one slip of an exporter stretches every answer over a century.
    let line = |gpu: &str, at: DateTime<Utc>| {
        let line = PAGE.lines().next().unwrap().replace("GPU-a", gpu);
        format!("{line} {}\n", at.timestamp_millis())
    };
    let ahead = nine() + TimeDelta::days(366);
    let page = [
        line("GPU-a", nine()),
        line("GPU-b", ahead),
        line("GPU-c", ahead + TimeDelta::milliseconds(1)),
        line("GPU-d", "2199-01-01T00:00:00Z".parse().unwrap()),
    ];
    let exporter = Exporter::page(&page.concat());
    let mut collector = ScrapeCollector::new(&settings(&[&exporter])).unwrap();
    let (out, _) = round(&mut collector, nine());
    assert_eq!(out.table(Table::Samples).num_rows(), 2);
    let why: Vec<_> = out.rejects.iter().map(|reject| reject.reason.as_str()).collect();
    assert_eq!(why.len(), 2, "{why:?}");
    assert!(why.iter().any(|why| why.ends_with("more than 366 days ahead of the clock here")));
    assert!(why.iter().any(|why| why.ends_with("outside the years 2000 to 2099")));
}

#[test]
fn tokens_and_passwords_come_from_files_that_may_change() {
    // Breaks when a token that was renewed is not taken, or one target gets that of another.
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let page = || PAGE.as_bytes().to_vec();
    let token = Exporter::new(Answer::PageIf("authorization: Bearer abc\r\n".into(), page()));
    // `me:open` in base64.
    let basic = Answer::PageIf("authorization: Basic bWU6b3Blbg==\r\n".into(), page());
    let basic = Exporter::new(basic);
    let settings = ScrapeSettings {
        bearer_token_file: Some(path("token", "abc\n")),
        target: vec![ScrapeTarget {
            url: basic.address.clone(),
            basic_auth: Some(BasicAuth {
                user: "me".into(),
                password_file: path("password", "open\n"),
            }),
            ..ScrapeTarget::default()
        }],
        ..settings(&[&token])
    };
    let mut collector = ScrapeCollector::new(&settings).unwrap();
    assert_eq!(round(&mut collector, nine()).1, None);
    path("token", "def\n");
    let failed = round(&mut collector, nine()).1.unwrap();
    assert!(failed.contains("1 of 2 targets") && failed.contains("401 Unauthorized"), "{failed}");
    token.now_answers(Answer::PageIf("authorization: Bearer def\r\n".into(), page()));
    assert_eq!(round(&mut collector, nine()).1, None);
    std::fs::remove_file(folder.path().join("token")).unwrap();
    let failed = round(&mut collector, nine()).1.unwrap();
    assert!(failed.contains("could not read `") && failed.contains("No such file"), "{failed}");
}

#[test]
fn a_page_of_any_exporter_is_read_by_the_maps() {
    let exporter = Exporter::page(
        "my_gpu_power_milliwatts{card=\"3\",serial=\"S\"} 81500\nmy_gpu_fans{card=\"3\"} 2\n",
    );
    let map = |text: &str| toml::from_str(text).unwrap();
    let mut settings = ScrapeSettings {
        map: vec![map(
            "metric = \"my_gpu_power_milliwatts\"\ncolumn = \"power_w\"\nunit = \"mW\"\n\
                       labels = { gpu = \"card\", gpu_uuid = \"serial\" }",
        )],
        ..settings(&[])
    };
    let url = exporter.address.clone();
    let (node, cluster) = (Some("n7".into()), Some("c".into()));
    settings.target = vec![ScrapeTarget { url, node, cluster, ..ScrapeTarget::default() }];
    let (out, failed) = round(&mut ScrapeCollector::new(&settings).unwrap(), nine());
    assert_eq!(failed, None);
    let rows = out.table(Table::Samples);
    assert_eq!(numbers(&rows, "power_w"), [Some(81.5)]);
    for (column, text) in [("node", "n7"), ("cluster", "c"), ("gpu_uuid", "S")] {
        assert_eq!(texts(&rows, column), [Some(text.to_owned())], "{column}");
    }
}

#[test]
fn a_gpu_off_the_bus_is_told_once_over_all_rounds() {
    // Breaks when every scrape of a lost GPU is another event.
    let xid = |xid: u32| {
        let line =
            format!("DCGM_FI_DEV_XID_ERRORS{{gpu=\"0\",UUID=\"GPU-a\",Hostname=\"n1\"}} {xid}\n");
        Answer::Page((PAGE.to_owned() + &line).into_bytes())
    };
    let exporter = Exporter::new(xid(79));
    let mut collector = ScrapeCollector::new(&settings(&[&exporter])).unwrap();
    let events = |out: &Collected| -> Vec<Option<String>> {
        let told = out.batches.iter().filter(|(table, _)| *table == Table::Events);
        told.flat_map(|(_, rows)| texts(rows, "kind")).collect()
    };
    assert_eq!(events(&round(&mut collector, nine()).0), [Some("lost".into())]);
    let (out, _) = round(&mut collector, nine() + TimeDelta::seconds(15));
    assert!(events(&out).is_empty() && out.notices.is_empty());
    exporter.now_answers(xid(0));
    let (out, _) = round(&mut collector, nine() + TimeDelta::seconds(30));
    assert_eq!(events(&out), [Some("recovered".into())]);
}

#[test]
fn a_captured_page_gives_what_its_file_gives() {
    let Some(path) = shared("captures/dcgm/aicr-h100x8-k8s-1.prom") else { return };
    let page = std::fs::read(&path).unwrap();
    let exporter = Exporter::new(Answer::Page(zipped(&page)));
    let (out, failed) = round(&mut ScrapeCollector::new(&settings(&[&exporter])).unwrap(), nine());
    assert_eq!(failed, None);
    let mut of_file = Collected::default();
    let options = Options { time: Some(nine()), ..Options::default() };
    super::super::dcgm::read(&crate::source::collected::inputs(&path), &options, &mut of_file)
        .unwrap();
    assert_eq!(out.table(Table::Samples).num_rows(), 8);
    assert_eq!(out.table(Table::Samples), of_file.table(Table::Samples));
    assert_eq!(out.table(Table::Gpus), of_file.table(Table::Gpus));
}

#[test]
fn settings_that_make_no_sense_are_refused_with_the_legal_values() {
    let told = |text: &str| {
        let settings: ScrapeSettings = toml::from_str(text).unwrap();
        ScrapeCollector::new(&settings).unwrap_err().to_string()
    };
    assert!(told("").contains("at least one"));
    assert!(told("targets = [\"a:1\"]\ninterval_s = 0").contains("0.1 to 86400"));
    assert!(told("targets = [\"a:1\"]\ntimeout_s = 60").contains("or the interval"));
    assert!(told("targets = [\"a:1\"]\npage_bytes_max = 1").contains("1024"));
    assert!(told("targets = [\"ftp://a\"]").contains("`http://` or `https://`"));
    assert!(told("targets = [\"http://a b\"]").contains("no URL"));
    assert!(told("targets = [\"http://me:open@a\"]").contains("name files"));
    let ca = told("targets = [\"a:1\"]\nca_file = \"/no/such.pem\"");
    assert_eq!(ca, "could not read `/no/such.pem`");
    assert!(toml::from_str::<ScrapeSettings>("target = [{ uri = \"a\" }]").is_err());
}

#[test]
fn the_node_of_a_target_is_its_host_where_that_is_a_name() {
    let names = ["gpu-017:9400", "http://gpu-017:9400/metrics", "10.0.0.4:9400", "localhost:9"];
    let targets = names.map(str::to_owned).to_vec();
    let settings = ScrapeSettings { targets, ..ScrapeSettings::default() };
    let targets = Target::all(&settings).unwrap();
    let told: Vec<_> = targets.iter().map(|t| (t.name.as_str(), t.node.as_deref())).collect();
    assert_eq!(
        told,
        [("gpu-017:9400", Some("gpu-017")), ("10.0.0.4:9400", None), ("localhost:9", None)]
    );
    assert_eq!(targets[0].url.as_str(), "http://gpu-017:9400/metrics");
}
