//! A file tells what it was given, in the encodings that were measured, with its indexes.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Float64Array, Int16Array, StringArray, TimestampMillisecondArray,
};
use arrow::compute::concat_batches;
use arrow::datatypes::Float64Type;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::Encoding;
use parquet::file::metadata::PageIndexPolicy;

use super::*;

const ROWS: usize = 200_000;

/// Two jobs, power that takes more values than a dictionary holds, and a rate that never repeats.
fn content() -> Content {
    let at = (0..ROWS as i64).map(|row| 1_767_225_600_000 + row * 400);
    let at = TimestampMillisecondArray::from_iter_values(at).with_timezone("UTC");
    let jobs: Vec<_> = (0..ROWS).map(|row| if row < 1_000 { "71" } else { "72" }).collect();
    let real = |value: fn(usize) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values((0..ROWS).map(value)))
    };
    let rows = RecordBatch::try_from_iter([
        ("sampled_at", Arc::new(at) as ArrayRef),
        ("node", Arc::new(StringArray::from(vec!["n1"; ROWS]))),
        ("gpu", Arc::new(Int16Array::from(vec![0; ROWS]))),
        ("job_id", Arc::new(StringArray::from(jobs))),
        ("gpu_util_ratio", real(|row| (row % 101) as f64 / 100.0)),
        ("power_w", real(|row| 90.0 + row as f64 / 1e3)),
        ("pcie_rx_bytes_per_s", real(|row| 1e8 + row as f64 * 17.0)),
    ]);
    let rows = rows.unwrap();
    Content {
        date: NaiveDate::from_ymd_opt(2026, 1, 1),
        part: (1, 1),
        rows,
        series: None,
        made_from: None,
    }
}

#[test]
fn every_value_comes_back_and_the_indexes_are_there() {
    let content = content();
    let (_, bytes) = encode(Table::Samples, &content).unwrap();
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let file =
        ParquetRecordBatchReaderBuilder::try_new_with_options(Bytes::from(bytes), options).unwrap();
    let meta = Arc::clone(file.metadata());
    let group = meta.row_group(0);
    let chunk = |name: &str| {
        let mut chunks = group.columns().iter();
        chunks.find(|chunk| chunk.column_path().string() == name).unwrap()
    };
    let has = |name: &str, encoding| chunk(name).encodings().any(|used| used == encoding);
    assert!(has("sampled_at", Encoding::DELTA_BINARY_PACKED));
    assert!(has("gpu_util_ratio", Encoding::RLE_DICTIONARY));
    assert!(!has("gpu_util_ratio", Encoding::BYTE_STREAM_SPLIT));
    assert!(has("pcie_rx_bytes_per_s", Encoding::BYTE_STREAM_SPLIT));
    assert!(!has("pcie_rx_bytes_per_s", Encoding::RLE_DICTIONARY));
    // The dictionary of a column with too many values is left for the places of their bytes.
    assert!(
        has("power_w", Encoding::RLE_DICTIONARY) && has("power_w", Encoding::BYTE_STREAM_SPLIT)
    );
    assert!(group.sorting_columns().is_some_and(|columns| !columns.is_empty()));
    assert!(meta.column_index().is_some() && meta.offset_index().is_some());

    let job = group.columns().iter().position(|c| c.column_path().string() == "job_id").unwrap();
    let bloom = file.get_row_group_column_bloom_filter(0, job).unwrap().unwrap();
    assert!(bloom.check(&"71") && bloom.check(&"72"));
    let strangers = (100..1_100).filter(|job| bloom.check(&job.to_string().as_str())).count();
    assert!(strangers < 100, "{strangers} of 1000 jobs that are not there");
    assert!(chunk("job_id").bloom_filter_length().is_some_and(|bytes| bytes < 1_024));

    let read: Vec<RecordBatch> = file.build().unwrap().map(Result::unwrap).collect();
    let read = concat_batches(&read[0].schema(), &read).unwrap();
    assert_eq!(read.num_rows(), ROWS);
    for name in ["gpu_util_ratio", "power_w", "pcie_rx_bytes_per_s"] {
        let told = content.rows.column_by_name(name).unwrap().as_primitive::<Float64Type>();
        let found = read.column_by_name(name).unwrap().as_primitive::<Float64Type>();
        assert_eq!(told.values(), found.values(), "{name}");
    }
}
