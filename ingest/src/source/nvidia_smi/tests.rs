mod captures;
mod night;

use std::path::PathBuf;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int16Type, Int32Type, Int64Type, TimestampMillisecondType};
use proptest::prelude::*;

use super::*;
use crate::schema::Table;

/// Everything a source handed over.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) samples: Vec<RecordBatch>,
    pub(crate) gpus: Vec<RecordBatch>,
    pub(crate) events: Vec<RecordBatch>,
    pub(crate) read: u64,
    pub(crate) rejects: Vec<Reject>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) nulled: Vec<(&'static str, u64)>,
}

impl Output for Taken {
    fn rows(&mut self, table: Table, rows: RecordBatch) -> Result<(), IngestError> {
        for field in rows.schema().fields() {
            let wanted = table.schema();
            let wanted = wanted.field_with_name(field.name()).unwrap();
            assert_eq!(wanted.data_type(), field.data_type(), "{}", field.name());
        }
        match table {
            Table::Samples => self.samples.push(rows),
            Table::Gpus => self.gpus.push(rows),
            Table::Events => self.events.push(rows),
            _ => panic!("no rows of {table} were expected"),
        }
        Ok(())
    }

    fn read(&mut self, rows: u64) {
        self.read += rows;
    }

    fn reject(&mut self, reject: Reject) {
        self.rejects.push(reject);
    }

    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    fn nulled(&mut self, column: &'static str, values: u64) {
        self.nulled.push((column, values));
    }
}

impl Taken {
    pub(crate) fn count(&self) -> usize {
        self.samples.iter().map(RecordBatch::num_rows).sum()
    }

    /// Cells of one column, in order of time and then slice, as text; NULL is `-`.
    pub(crate) fn column(&self, name: &str) -> Vec<String> {
        let mut cells = Vec::new();
        for batch in &self.samples {
            let at = batch["sampled_at"].as_primitive::<TimestampMillisecondType>();
            for row in 0..batch.num_rows() {
                let order = (at.value(row), text(batch, "gpu_uuid", row), text(batch, "mig", row));
                cells.push((order, text(batch, name, row)));
            }
        }
        cells.sort();
        cells.into_iter().map(|(_, cell)| cell).collect()
    }

    pub(crate) fn gpu_column(&self, name: &str) -> Vec<String> {
        let cells =
            |b: &RecordBatch| (0..b.num_rows()).map(|r| text(b, name, r)).collect::<Vec<_>>();
        self.gpus.iter().flat_map(cells).collect()
    }
}

fn text(batch: &RecordBatch, name: &str, row: usize) -> String {
    let Some(column) = batch.column_by_name(name) else { return "-".into() };
    if column.is_null(row) {
        return "-".into();
    }
    let any = column.as_any();
    if any.is::<arrow::array::StringArray>() {
        column.as_string::<i32>().value(row).to_owned()
    } else if let Some(values) = column.as_primitive_opt::<Float64Type>() {
        let value = (values.value(row) * 1e9).round() / 1e9;
        value.to_string()
    } else if let Some(values) = column.as_primitive_opt::<Int64Type>() {
        values.value(row).to_string()
    } else if let Some(values) = column.as_primitive_opt::<Int32Type>() {
        values.value(row).to_string()
    } else if let Some(values) = column.as_primitive_opt::<Int16Type>() {
        values.value(row).to_string()
    } else {
        let ms = column.as_primitive::<TimestampMillisecondType>().value(row);
        DateTime::from_timestamp_millis(ms).unwrap().format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
    }
}

fn read_text(text: &str, options: &Options) -> Result<Taken, IngestError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let mut taken = Taken::default();
    read(&[Input::one(&file.path().to_string_lossy())], options, &mut taken)?;
    Ok(taken)
}

fn utc() -> Options {
    Options { zone: Some(Tz::UTC), ..Options::default() }
}

pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var("LOADLINE_SHARED").map_or_else(
        |_| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let path = root.join("data/captures").join(path);
    if !path.exists() {
        println!("skipped: ../shared/data is absent");
        return None;
    }
    Some(path)
}

fn capture(path: &str, options: &Options) -> Option<Taken> {
    let path = shared(path)?;
    let mut taken = Taken::default();
    read(&[Input::one(&path.to_string_lossy())], options, &mut taken).unwrap();
    Some(taken)
}

const TWO: &str = "\
timestamp, index, uuid, utilization.gpu [%], memory.used [MiB], power.draw [W]\n\
2026/07/14 09:00:27.792, 0, GPU-a, 100 %, 575 MiB, 631.95 W\n\
2026/07/14 09:00:27.795, 1, GPU-b, [N/A], 0 MiB, [N/A]\n";

#[test]
fn units_in_header_and_cell_header_only_and_nowhere_agree() {
    // Breaks when a log's unit style changes its numbers (case 1).
    let header_only = TWO.replace(" %,", ",").replace(" MiB,", ",").replace(" W\n", "\n");
    let nowhere = header_only.replace(" [%]", "").replace(" [MiB]", "").replace(" [W]", "");
    for text in [TWO, &header_only, &nowhere] {
        let taken = read_text(text, &utc()).unwrap();
        assert_eq!((taken.count(), taken.read, taken.rejects.len()), (2, 2, 0));
        assert_eq!(taken.column("gpu_util_ratio"), ["1", "-"]);
        assert_eq!(taken.column("mem_used_bytes"), ["602931200", "0"]);
        assert_eq!(taken.column("power_w"), ["631.95", "-"]);
        assert_eq!(taken.column("sampled_at")[0], "2026-07-14T09:00:27.792Z");
        assert_eq!(taken.gpu_column("gpu_uuid"), ["GPU-a", "GPU-b"]);
        assert_eq!(taken.gpu_column("gpu"), ["0", "1"]);
    }
}

#[test]
fn renamed_columns_are_one_in_any_order() {
    // Breaks when a driver update loses a column (case 1).
    let old = "uuid, clocks_throttle_reasons.active, clocks.sm, timestamp\n\
               GPU-a, 0x0000000000000004, 1980 MHz, 2026/07/14 09:00:00.000\n";
    let new = "timestamp, clocks.current.sm, clocks_event_reasons.active, uuid\n\
               2026/07/14 09:00:00.000, 1980, 0x0000000000000004, GPU-a\n";
    let bits = "timestamp, clocks.sm, clocks_event_reasons.sw_power_cap, \
                clocks_event_reasons.gpu_idle, uuid\n\
                2026/07/14 09:00:00.000, 1980, Active, Not Active, GPU-a\n";
    for text in [old, new, bits] {
        let taken = read_text(text, &utc()).unwrap();
        assert_eq!(taken.count(), 1);
        assert_eq!(taken.column("throttle_reasons"), ["4"]);
        assert_eq!(taken.column("sm_clock_mhz"), ["1980"]);
    }
}

#[test]
fn tokens_are_null_the_row_lives_and_a_gpu_in_distress_is_told() {
    // Breaks when one bad cell costs the others of its row (case 2).
    let text = "timestamp, uuid, utilization.gpu [%], power.draw [W], temperature.gpu\n\
                2026/07/14 09:00:00.000, GPU-a, [Not Supported], ERR!, 40\n\
                2026/07/14 09:00:10.000, GPU-a, [GPU requires reset], [Unknown Error], 41\n\
                2026/07/14 09:00:20.000, GPU-b, -, , N/A\n";
    let taken = read_text(text, &utc()).unwrap();
    assert_eq!((taken.count(), taken.rejects.len()), (3, 0));
    assert_eq!(taken.column("gpu_util_ratio"), ["-", "-", "-"]);
    assert_eq!(taken.column("power_w"), ["-", "-", "-"]);
    assert_eq!(taken.column("temp_c"), ["40", "41", "-"]);
    assert_eq!(taken.gpu_column("state"), ["needs reset", "-"]);
    assert_eq!(taken.notices.len(), 1);
    assert!(taken.notices[0].text.contains("`GPU-a`: needs reset"));
    assert_eq!(taken.nulled, []);
}

#[test]
fn nothing_in_the_stream_costs_or_invents_a_row() {
    // Breaks on case 3: messages, repeated headers, CRLF, a mark, a torn last line.
    let text = "\u{feff}timestamp, pci.bus_id, uuid, utilization.gpu [%]\r\n\
                2026/07/14 09:00:00.000, 00000000:01:00.0, GPU-a, 10 %\r\n\
                2026/07/14 09:00:00.001, 00000000:02:00.0, GPU-b, 20 %\r\n\
                Unable to determine the device handle for GPU0000:02:00.0: Unknown Error\r\n\
                timestamp, pci.bus_id, uuid, utilization.gpu [%]\r\n\
                2026/07/14 09:00:10.000, 00000000:01:00.0, GPU-a, 30 %\r\n\
                \r\n\
                Unable to determine the device handle for GPU0000:02:00.0: Unknown Error\r\n\
                2026/07/14 09:00:20.000, 00000000:01:00.0, GPU-a, 40 %\r\n\
                2026/07/14 09:00:30.000, 0000";
    let taken = read_text(text, &utc()).unwrap();
    assert_eq!(taken.count(), 4);
    assert_eq!(taken.column("gpu_util_ratio"), ["0.1", "0.2", "0.3", "0.4"]);
    let lines: Vec<_> = taken.rejects.iter().map(|reject| reject.line.unwrap()).collect();
    assert_eq!(lines, [4, 8, 10]);
    assert!(taken.rejects[2].reason.contains("2 of 4 columns"));
    assert_eq!(taken.read, 7);
    assert_eq!(taken.notices.len(), 1, "the same message is told once");
    assert_eq!(taken.gpu_column("state"), ["-", "lost"]);
}

#[test]
fn a_last_line_without_newline_keeps_its_row_but_not_a_cell_that_may_be_cut() {
    // Breaks when `631` of `631.95 W` is stored as power (case 3).
    let cut = "timestamp, uuid, utilization.gpu [%], power.draw [W]\n\
               2026/07/14 09:00:00.000, GPU-a, 10 %, 631";
    let taken = read_text(cut, &utc()).unwrap();
    assert_eq!(taken.count(), 1);
    assert_eq!(taken.column("gpu_util_ratio"), ["0.1"]);
    assert_eq!(taken.column("power_w"), ["-"]);
    assert!(taken.notices[0].text.contains("ends inside this row"));
    let whole = format!("{cut}.95 W");
    assert_eq!(read_text(&whole, &utc()).unwrap().column("power_w"), ["631.95"]);
}

#[test]
fn a_date_line_times_the_block_after_it() {
    // Breaks when the log of a shell loop without `timestamp` loses its time (case 3).
    let block = "index, utilization.gpu [%]\n0, 50 %\n1, 60 %\n";
    for (first, second) in [
        ("Mon Nov 30 04:10:56 UTC 2026", "Mon Nov 30 04:11:06 UTC 2026"),
        ("2026-11-30T04:10:56+00:00", "2026-11-30T04:11:06+00:00"),
        ("1796011856", "1796011866"),
    ] {
        let text = format!("{first}\n{block}{second}\n{block}");
        let taken = read_text(&text, &Options::default()).unwrap();
        assert_eq!((taken.count(), taken.rejects.len()), (4, 0));
        assert_eq!(
            taken.column("sampled_at"),
            [
                "2026-11-30T04:10:56.000Z",
                "2026-11-30T04:10:56.000Z",
                "2026-11-30T04:11:06.000Z",
                "2026-11-30T04:11:06.000Z"
            ]
        );
    }
    // A block that repeats under one date has no time: it is kept aside, not merged.
    let text = format!("Mon Nov 30 04:10:56 UTC 2026\n{block}{block}");
    let taken = read_text(&text, &Options::default()).unwrap();
    assert_eq!((taken.count(), taken.rejects.len()), (2, 2));
}

#[test]
fn a_zone_is_asked_for_by_name_and_a_missing_time_too() {
    // Breaks when local times are stored as if they were UTC (case 4).
    let error = read_text(TWO, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("`--zone` was not given"), "{error}");
    let shanghai = Options { zone: Some(Tz::Asia__Shanghai), ..Options::default() };
    let taken = read_text(TWO, &shanghai).unwrap();
    assert_eq!(taken.column("sampled_at")[0], "2026-07-14T01:00:27.792Z");

    let timeless = "index, utilization.gpu [%]\n0, 50 %\n";
    let error = read_text(timeless, &utc()).unwrap_err();
    assert!(error.to_string().contains("`--time` was not given"), "{error}");
    let nobody = "timestamp, utilization.gpu [%]\n2026/07/14 09:00:27.792, 50 %\n";
    assert!(read_text(nobody, &utc()).unwrap_err().hint().unwrap().contains("`uuid`"));
    let headless = "2026/07/14 09:00:27.792, GPU-a, 50 %\n";
    assert!(read_text(headless, &utc()).unwrap_err().hint().unwrap().contains("--columns"));
    let columns = ["timestamp", "uuid", "utilization.gpu"].map(str::to_owned).to_vec();
    let named = Options { columns: Some(columns), ..utc() };
    assert_eq!(read_text(headless, &named).unwrap().column("gpu_util_ratio"), ["0.5"]);
}

#[test]
fn hours_that_exist_twice_or_never_are_said() {
    // Breaks when the night of a clock change is merged or moved (case 4).
    let row = |time: &str| format!("2026/{time}.000, GPU-a, 50 %\n");
    let header = "timestamp, uuid, utilization.gpu [%]\n";
    let zone = Options { zone: Some(Tz::America__Los_Angeles), ..Options::default() };
    let night: String =
        ["11/01 00:30:00", "11/01 01:30:00", "11/01 01:00:00", "11/01 01:30:00", "11/01 02:00:00"]
            .map(row)
            .concat();
    let taken = read_text(&format!("{header}{night}"), &zone).unwrap();
    assert_eq!(taken.count(), 5);
    let hours: Vec<_> = taken.column("sampled_at").iter().map(|t| t[11..16].to_owned()).collect();
    assert_eq!(hours, ["07:30", "08:30", "09:00", "09:30", "10:00"]);
    assert_eq!(taken.notices.len(), 1);
    let never = read_text(&format!("{header}{}", row("03/08 02:30:00")), &zone).unwrap();
    assert_eq!((never.count(), never.rejects.len()), (0, 1));
    assert!(never.rejects[0].reason.contains("never was"));
}

#[test]
fn impossible_figures_are_null_and_counted() {
    // Breaks when a sentinel is averaged in (case 7).
    let text = "timestamp, uuid, utilization.gpu [%], temperature.memory, power.draw [W]\n\
                2026/07/14 09:00:00.000, GPU-a, 4294967295 %, 255, 14000000000000000 W\n";
    let taken = read_text(text, &utc()).unwrap();
    assert_eq!(taken.count(), 1);
    assert_eq!(taken.column("gpu_util_ratio"), ["-"]);
    assert_eq!(
        taken.nulled,
        [("gpu_util_ratio", 1), ("temp_c", 1), ("power_w", 1)]
            .map(|n| { if n.0 == "temp_c" { ("mem_temp_c", 1) } else { n } })
    );
}

#[test]
fn an_index_that_moves_follows_the_uuid() {
    // Breaks when history follows the place instead of the board (case 11).
    let text = "timestamp, index, uuid, utilization.gpu [%]\n\
                2026/07/14 09:00:00.000, 0, GPU-a, 10 %\n\
                2026/07/14 09:00:00.000, 1, GPU-b, 20 %\n\
                2026/07/14 09:10:00.000, 0, GPU-b, 30 %\n\
                2026/07/14 09:10:00.000, 1, GPU-a, 40 %\n";
    let taken = read_text(text, &utc()).unwrap();
    assert_eq!(taken.count(), 4);
    assert_eq!(taken.gpu_column("gpu_uuid"), ["GPU-a", "GPU-b"]);
    assert_eq!(taken.gpu_column("gpu"), ["1", "0"]);
    assert_eq!(taken.gpu_column("first_seen_at")[0], "2026-07-14T09:00:00.000Z");
    assert_eq!(taken.gpu_column("last_seen_at")[0], "2026-07-14T09:10:00.000Z");
}

#[test]
fn processes_listed_after_a_block_are_counted_in_its_readings() {
    // Breaks when memory held by nobody cannot be told (case 15).
    let text = format!(
        "{TWO}timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n\
         2026/07/14 09:00:28.000, GPU-a, 11, /bin/a, 100 MiB\n\
         2026/07/14 09:00:28.000, GPU-a, 12, python -c 'f(1, 2)', 200 MiB\n"
    );
    let taken = read_text(&text, &utc()).unwrap();
    assert_eq!((taken.count(), taken.rejects.len()), (2, 0));
    assert_eq!(taken.column("processes"), ["2", "0"]);
}
