//! How each column of a file is encoded, chosen from what was measured (`benches/README.md`).
//!
//! Sensors tell few different values, so a dictionary serves most columns. Two kinds of column are
//! different. Instants step by the interval of sampling: their differences are nearly one number.
//! A rate or a counter of bytes or joules hardly tells a value twice: its bytes, place by place,
//! compress better than a dictionary as long as the column.

use arrow::datatypes::{DataType, Field};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::schema::Table;

/// Rows of a row group: enough to compress well, few enough to skip by statistics.
pub(super) const ROW_GROUP_ROWS: usize = 1 << 20;

/// One look-up in a hundred for a job that a row group does not have reads it in vain.
const BLOOM_FALSE_RATIO: f64 = 0.01;

/// How a file of `table` is written.
pub(super) fn properties(table: Table) -> Result<WriterProperties, ParquetError> {
    let builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_sorting_columns(Some(sorting(table)))
        .set_created_by(concat!("loadline ", env!("CARGO_PKG_VERSION")).to_owned());
    let schema = table.schema();
    Ok(schema.fields().iter().fold(builder, |builder, field| column(builder, field)).build())
}

fn column(builder: WriterPropertiesBuilder, field: &Field) -> WriterPropertiesBuilder {
    let path = ColumnPath::from(field.name().as_str());
    match field.data_type() {
        DataType::Timestamp(_, _) => builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        // An encoding beside a dictionary is what takes over when the dictionary grows too large.
        DataType::Float64 | DataType::Int64 => builder
            .set_column_dictionary_enabled(path.clone(), !hardly_repeats(field.name()))
            .set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT),
        _ if field.name() == "job_id" => {
            builder.set_column_bloom_filter_fpp(path, BLOOM_FALSE_RATIO)
        }
        _ => builder,
    }
}

/// Whether a measurement is one whose values hardly repeat.
fn hardly_repeats(name: &str) -> bool {
    ["_bytes_per_s", "_iops", "_j", "_sum", "_sum_sq"].iter().any(|unit| name.ends_with(unit))
}

fn sorting(table: Table) -> Vec<SortingColumn> {
    let schema = table.schema();
    let positions = table.sorted_by().iter().filter_map(|column| schema.index_of(column).ok());
    positions
        .filter_map(|position| i32::try_from(position).ok())
        .map(|column_idx| SortingColumn { column_idx, descending: false, nulls_first: true })
        .collect()
}
