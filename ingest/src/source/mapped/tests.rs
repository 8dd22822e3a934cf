mod zones;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    Float32Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt8Array,
};
use chrono::DateTime;
use parquet::arrow::ArrowWriter;
use proptest::prelude::*;

use super::*;
use crate::source::collected::{
    Collected, gpu_hours, inputs, integers, millis, numbers, shared, texts,
};
use crate::workload::WorkloadRule;

fn written(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn try_import(table: Table, mapping: &str, text: &str) -> Result<Collected, IngestError> {
    let file = written(text);
    let mapping = Mapping::parse("m.toml", mapping)?;
    let options = MappedOptions { mapping, ..MappedOptions::default() };
    let mut out = Collected::default();
    read(&inputs(file.path()), table, &options, &mut out)?;
    Ok(out)
}

fn import(table: Table, mapping: &str, text: &str) -> Collected {
    try_import(table, mapping, text).unwrap()
}

fn at(text: &str) -> Option<i64> {
    Some(DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis())
}

fn shipped(name: &str) -> MappedOptions {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/mappings").join(name);
    let mapping = Mapping::parse(name, &std::fs::read_to_string(path).unwrap()).unwrap();
    MappedOptions { mapping, ..MappedOptions::default() }
}

fn import_shared(path: &str, table: Table, mapping: &str) -> Option<Collected> {
    let mut out = Collected::default();
    read(&inputs(&shared(path)?), table, &shipped(mapping), &mut out).unwrap();
    Some(out)
}

#[test]
fn columns_with_our_names_need_no_mapping() {
    // Breaks when a file as we would write it has to be described.
    let out = import(
        Table::Samples,
        "",
        "sampled_at,gpu_uuid,gpu,gpu_util_ratio,mem_used_bytes,extra\n\
         2026-01-01T00:00:00Z,GPU-a,0,0.5,1024,x\n2026-01-01T00:00:30Z,GPU-a,0,N/A,,y\n",
    );
    let rows = out.table(Table::Samples);
    assert_eq!(rows.num_columns(), 5);
    assert_eq!(numbers(&rows, "gpu_util_ratio"), [Some(0.5), None]);
    assert_eq!(millis(&rows, "sampled_at")[1], at("2026-01-01T00:00:30Z"));
    for field in rows.schema().fields() {
        let ours = Table::Samples.schema().field_with_name(field.name()).unwrap().clone();
        assert_eq!(field.data_type(), ours.data_type(), "{}", field.name());
    }
}

#[test]
fn units_scales_and_constants_lead_to_ours() {
    // Breaks when a unit is ignored, in the mapping or in the cell.
    let out = import(
        Table::Samples,
        "zone = \"Asia/Shanghai\"\n[columns]\n\
         sampled_at = { from = \"t\", format = \"%d.%m.%Y %H:%M\" }\ngpu = \"i\"\n\
         gpu_util_ratio = { from = \"u\", unit = \"percent\" }\n\
         mem_used_bytes = { from = \"m\", unit = \"MiB\" }\n\
         power_w = { from = \"p\", unit = \"kW\" }\n\
         sm_clock_mhz = { from = \"c\", scale = 1e-6 }\n\
         [constants]\nnode = \"n1\"\nprocesses = 3\n",
        "t;i;u;m;p;c\n14.07.2026 08:00;1;50;2;500 W;1.5e9\n14.07.2026 08:01;1;101;-1;x;\n",
    );
    let rows = out.table(Table::Samples);
    assert_eq!(millis(&rows, "sampled_at")[0], at("2026-07-14T00:00:00Z"));
    assert_eq!(numbers(&rows, "gpu_util_ratio"), [Some(0.5), None]);
    assert_eq!(numbers(&rows, "power_w"), [Some(500.0), None]);
    assert_eq!(numbers(&rows, "sm_clock_mhz"), [Some(1500.0), None]);
    assert_eq!(integers(&rows, "processes"), [Some(3), Some(3)]);
    let memory = rows.column_by_name("mem_used_bytes").unwrap();
    let memory = memory.as_primitive::<arrow::datatypes::Int64Type>();
    assert_eq!(memory.iter().collect::<Vec<_>>(), [Some(2_097_152), None]);
    // 101 %, -1 MiB and `x` are no measurements; the blank clock merely is not there.
    let expected = [("gpu_util_ratio", 1), ("mem_used_bytes", 1), ("power_w", 1)];
    assert_eq!(out.nulled, expected);
}

#[test]
fn jobs_get_row_ids_ends_labels_and_workloads() {
    // Breaks when what is computed from other columns comes before them.
    let file = written("who,q,from,took,st\neve,prod,2026-01-01T00:00:00Z,90,Killed\nbob,,,,\n");
    let mapping = "[columns]\njob_id = { row = true, prefix = \"j-\", width = 3 }\n\
        user = { from = \"who\", rename = { eve = \"Eve\" } }\nstate = \"st\"\n\
        submitted_at = \"from\"\nstarted_at = { same_as = \"submitted_at\" }\n\
        ended_at = { start = \"started_at\", plus = \"took\", unit = \"min\" }\n\
        \"labels.queue\" = \"q\"";
    let rule = WorkloadRule {
        matches: [("label.queue".to_owned(), "prod".to_owned())].into(),
        workload: "inference".into(),
    };
    let options = MappedOptions {
        mapping: Mapping::parse("m", mapping).unwrap(),
        rules: WorkloadRules::new(&[rule]).unwrap(),
        ..MappedOptions::default()
    };
    let mut out = Collected::default();
    read(&inputs(file.path()), Table::Jobs, &options, &mut out).unwrap();
    let jobs = out.table(Table::Jobs);
    assert_eq!(texts(&jobs, "job_id"), [Some("j-001".into()), Some("j-002".into())]);
    assert_eq!(texts(&jobs, "user"), [Some("Eve".into()), Some("bob".into())]);
    assert_eq!(texts(&jobs, "state"), [Some("KILLED".into()), None]);
    assert_eq!(millis(&jobs, "ended_at"), [at("2026-01-01T01:30:00Z"), None]);
    assert_eq!(integers(&jobs, "attempt"), [Some(0), Some(0)]);
    let workloads = [Some("inference".into()), Some("unlabelled".into())];
    assert_eq!(texts(&jobs, "workload"), workloads);
    assert_eq!(jobs.column_by_name("labels").unwrap().null_count(), 1);
}

#[test]
fn rows_that_cannot_be_kept_go_aside_with_their_line() {
    // Breaks when a bad row takes its neighbours along or is dropped without a word.
    let out = import(
        Table::Jobs,
        "",
        "\u{feff}job_id,started_at,ended_at\r\n1,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z\r\n\
         2,noon,\r\n,2026-01-01T00:00:00Z,\r\n4,2026-01-02T00:00:00Z,2026-01-01T00:00:00Z\r\n\
         job_id,started_at,ended_at\r\n5,a,b,c\r\n6,2026-01",
    );
    assert_eq!(texts(&out.table(Table::Jobs), "job_id"), [Some("1".into())]);
    let lines: Vec<_> = out.rejects.iter().filter_map(|r| r.line).collect();
    assert_eq!((lines.len(), out.read), (5, 6));
    assert!(out.rejects.iter().any(|r| r.line == Some(3) && r.reason.contains("`noon`")));
    assert!(out.rejects.iter().any(|r| r.line == Some(4) && r.reason.contains("no `job_id`")));
    assert!(out.rejects.iter().any(|r| r.line == Some(7) && r.reason.contains("4 fields")));
}

#[test]
fn a_file_without_the_columns_is_refused_with_what_it_has() {
    // Breaks when the user has to guess what was looked for.
    let refused =
        |mapping: &str| try_import(Table::Samples, mapping, "a,b\n1,2\n").unwrap_err().to_string();
    assert!(refused("").contains("nothing becomes `sampled_at`; the file's columns are `a`, `b`"));
    assert!(refused("[columns]\nsampled_at = \"t\"").contains("no column `t`"));
    assert!(refused("[columns]\nwhen = \"a\"").contains("`samples` has sampled_at"));
    let unit = refused("[columns]\npower_w = { from = \"a\", unit = \"hp\" }");
    assert!(unit.contains("W, mW, kW"), "{unit}");
    let alone = refused("[columns]\nsampled_at = \"a\"");
    assert!(alone.contains("nothing becomes `gpu_uuid` or `gpu`"), "{alone}");
}

#[test]
fn parquet_of_any_types_becomes_ours() {
    // Breaks when a writer's choice of types decides what can be imported.
    let file = tempfile::NamedTempFile::new().unwrap();
    let nanos =
        TimestampNanosecondArray::from(vec![1_767_225_600_123_456_789, 1_767_225_601_000_000_000]);
    let rows = RecordBatch::try_from_iter([
        ("uuid", Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef),
        ("util", Arc::new(Float32Array::from(vec![100.0, f32::NAN]))),
        ("at", Arc::new(nanos)),
        ("mem", Arc::new(Int64Array::from(vec![5, -5]))),
        ("slot", Arc::new(UInt8Array::from(vec![7, 8]))),
    ])
    .unwrap();
    let mut writer = ArrowWriter::try_new(file.reopen().unwrap(), rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let mapping = "[columns]\nsampled_at = \"at\"\ngpu_uuid = \"uuid\"\ngpu = \"slot\"\n\
        mem_used_bytes = \"mem\"\ngpu_util_ratio = { from = \"util\", unit = \"percent\" }";
    let options = MappedOptions {
        mapping: Mapping::parse("m", mapping).unwrap(),
        ..MappedOptions::default()
    };
    let mut out = Collected::default();
    read(&inputs(file.path()), Table::Samples, &options, &mut out).unwrap();
    let rows = out.table(Table::Samples);
    assert_eq!(millis(&rows, "sampled_at")[0], at("2026-01-01T00:00:00.123Z"));
    assert_eq!(numbers(&rows, "gpu_util_ratio"), [Some(1.0), None]);
    assert_eq!(texts(&rows, "gpu_uuid"), [Some("a".into()), Some("b".into())]);
    assert_eq!(rows.column_by_name("mem_used_bytes").unwrap().null_count(), 1);
    for field in rows.schema().fields() {
        let ours = Table::Samples.schema().field_with_name(field.name()).unwrap().clone();
        assert_eq!(field.data_type(), ours.data_type(), "{}", field.name());
    }
}

#[test]
fn local_times_that_exist_twice_are_told() {
    // Breaks when the pick is silent, or `reject` still keeps the row.
    let text = "job_id,submitted_at\n1,2017-11-05 01:30:00\n2,2017-11-05 03:00:00\n";
    let zone = "zone = \"America/Los_Angeles\"\n";
    let out = import(Table::Jobs, zone, text);
    let submitted = millis(&out.table(Table::Jobs), "submitted_at");
    assert_eq!(submitted, [at("2017-11-05T08:30:00Z"), at("2017-11-05T11:00:00Z")]);
    assert!(out.notices[0].text.contains("happened twice"), "{:?}", out.notices);
    let out = import(Table::Jobs, &format!("{zone}ambiguous = \"reject\""), text);
    assert_eq!(out.rejects.len(), 1);
    assert_eq!(out.table(Table::Jobs).num_rows(), 1);
}

#[test]
fn the_generic_mappings_are_well_formed() {
    // Breaks when a shipped example cannot even be read.
    for (name, table) in [
        ("jobs.toml", Table::Jobs),
        ("samples.toml", Table::Samples),
        ("gpus.toml", Table::Gpus),
        ("allocations.toml", Table::Allocations),
    ] {
        let mapping = shipped(name).mapping;
        mapping.check_table(table).unwrap();
        let names: Vec<String> = mapping
            .columns
            .values()
            .filter_map(|source| source.spec().from.or(source.spec().plus))
            .collect();
        let text = format!("{}\n", names.join(","));
        let file = written(&text);
        let mut out = Collected::default();
        read(&inputs(file.path()), table, &shipped(name), &mut out).expect(name);
    }
}

#[test]
fn philly_agrees_with_a_separate_count() {
    // Breaks when a job is lost or its time is. Hours: a Python sum of duration x num_gpus over
    // the CSV, in all and by team.
    let Some(out) = import_shared("philly/philly.csv.gz", Table::Jobs, "philly.toml") else {
        return;
    };
    let jobs = out.table(Table::Jobs);
    assert_eq!((jobs.num_rows(), out.rejects.len()), (82_247, 0));
    let hours = gpu_hours(&jobs);
    assert!((hours / 978_078.472_777_8 - 1.0).abs() < 1e-9, "{hours}");
    let teams = texts(&jobs, "team");
    for (team, expected) in [
        ("6214e9", 97_184.822_5),
        ("ee9e8c", 256_112.178_333_3),
        ("7f04ca", 164_930.653_888_9),
        ("b436b2", 125_739.5),
        ("23dbec", 156.562_777_78),
        ("925e2b", 2.930_833_33),
    ] {
        let of_team: BooleanArray =
            teams.iter().map(|name| Some(name.as_deref() == Some(team))).collect();
        let hours = gpu_hours(&filter_record_batch(&jobs, &of_team).unwrap());
        assert!((hours / expected - 1.0).abs() < 1e-6, "{team}: {hours}");
    }
    assert!(out.notices[0].text.contains("7 local times happened twice"), "{:?}", out.notices);
    // 07:01:55 in California's summer.
    assert_eq!(millis(&jobs, "submitted_at")[0], at("2017-10-09T14:01:55Z"));
}

#[test]
fn helios_keeps_every_minute_of_every_team() {
    // Breaks when a team's minutes are lost or mixed. Sums over minutes from a Python reading.
    let path = "helios-earth/vc*.csv.gz";
    let Some(out) = import_shared(path, Table::GpuCounts, "helios-earth.toml") else { return };
    let rows = out.table(Table::GpuCounts);
    assert_eq!((rows.num_rows(), out.rejects.len()), (714_240, 0));
    let sum = |column: &str| numbers(&rows, column).iter().flatten().sum::<f64>();
    assert_eq!(sum("gpus_held"), 25_486_357.0);
    assert_eq!(sum("gpus_waiting"), 2_740_297.0);
    assert_eq!(sum("gpus_installed"), 38_211_840.0);
    let held = numbers(&rows, "gpus_held");
    let teams = texts(&rows, "team");
    let of = |team: &str| -> f64 {
        let pairs = teams.iter().zip(&held).filter(|(name, _)| name.as_deref() == Some(team));
        pairs.filter_map(|(_, held)| *held).sum()
    };
    assert_eq!([of("vc6YE"), of("vcgkz")], [8_381_023.0, 324_928.0]);
    // Midnight in Shanghai.
    assert_eq!(millis(&rows, "counted_at")[0], at("2020-04-30T16:00:00Z"));
}

#[test]
fn rows_that_are_joined_are_told() {
    // Breaks if fewer rows are kept than were read and nothing says why.
    let folder = tempfile::tempdir().unwrap();
    let paths = [("a-util.csv", ["00", "60"]), ("b-mem.csv", ["00", "20"])];
    let paths = paths.map(|(name, ends)| {
        let rows = ends.map(|end| format!("17672256{end},g,1\n")).concat();
        let path = folder.path().join(name);
        std::fs::write(&path, format!("at,uuid,value\n{rows}")).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let mapping = "[columns]\nsampled_at = { from = \"at\", unit = \"s\" }\ngpu_uuid = \"uuid\"\n\
        [[files]]\nmatch = \"a*\"\n\
        columns = { gpu_util_ratio = { from = \"value\", unit = \"percent\" } }\n\
        [[files]]\nmatch = \"b*\"\n\
        columns = { mem_used_bytes = { from = \"value\", unit = \"B\" } }\n";
    let mapping = Mapping::parse("test.toml", mapping).unwrap();
    let options = MappedOptions { mapping, ..MappedOptions::default() };
    let mut out = Collected::default();
    read(&Input::expand(&paths).unwrap(), Table::Samples, &options, &mut out).unwrap();
    assert_eq!(out.table(Table::Samples).num_rows(), 3);
    assert_eq!(out.notices[0].text, "4 rows of 2 files were joined into 3");
    assert!(out.notices[0].file.ends_with("a-util.csv and 1 more"));
}

#[test]
fn pod_samples_of_two_files_are_joined() {
    // Breaks when the second file's readings are taken for duplicates of the first's. 157,417 and
    // 161,413 readings have 161,415 instants together; sums from a Python reading.
    let path = "gpu-samples/*.csv.gz";
    let Some(out) = import_shared(path, Table::Samples, "pod-samples.toml") else { return };
    let rows = out.table(Table::Samples);
    assert_eq!((rows.num_rows(), out.read), (161_415, 157_417 + 161_413));
    assert_eq!(out.notices[0].text, "318830 rows of 2 files were joined into 161415");
    let util: Vec<f64> = numbers(&rows, "gpu_util_ratio").into_iter().flatten().collect();
    assert_eq!(util.len(), 157_417);
    assert!((util.iter().sum::<f64>() * 100.0 - 1_105_882.429_398_35).abs() < 1e-3);
    let memory = rows.column_by_name("mem_used_bytes").unwrap();
    assert_eq!(memory.len() - memory.null_count(), 161_413);
}

#[test]
fn supercloud_maps_as_plain_jobs() {
    // Breaks when the database's numbers stay numbers.
    let path = "mit-supercloud/slurm.csv.gz";
    let Some(out) = import_shared(path, Table::Jobs, "mit-supercloud.toml") else { return };
    let jobs = out.table(Table::Jobs);
    assert_eq!((jobs.num_rows(), out.rejects.len()), (9628, 0));
    let completed = Some("COMPLETED".to_owned());
    assert_eq!(texts(&jobs, "state").iter().filter(|state| **state == completed).count(), 5784);
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "[0-9A-Za-z,\"\n.:TZ -]{0,120}") {
        let text = format!("job_id,submitted_at,gpus_allocated\n{text}");
        if let Ok(out) = try_import(Table::Jobs, "", &text) {
            let rows: usize = out.batches.iter().map(|(_, rows)| rows.num_rows()).sum();
            prop_assert_eq!(rows as u64 + out.rejects.len() as u64, out.read);
        }
    }
}
