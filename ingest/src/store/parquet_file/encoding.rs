//! How each column of a file is encoded, chosen from what was measured (`benches/README.md`).
//!
//! Sensors tell few different values, so a dictionary serves most columns. Two kinds of column are
//! different. Instants step by the interval of sampling: their differences are nearly one number.
//! A rate or a counter of bytes or joules hardly tells a value twice: its bytes, place by place,
//! compress better than a dictionary as long as the column.
//!
//! Of a rollup the same column may be either: the sums of a measure that is read in whole percents
//! repeat, those of another do not. There the values themselves are asked, and what serves to skip
//! rows is kept of the key alone: with some hundred columns of few rows it took more room than they.

use std::collections::HashSet;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Float64Type};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::schema::Table;

/// Rows of a row group: enough to compress well, few enough to skip by statistics.
pub(super) const ROW_GROUP_ROWS: usize = 1 << 20;

/// One look-up in a hundred for a job that a row group does not have reads it in vain.
const BLOOM_FALSE_RATIO: f64 = 0.01;

/// How a file of `table` with these rows is written.
pub(super) fn properties(
    table: Table,
    rows: &RecordBatch,
) -> Result<WriterProperties, ParquetError> {
    let level = if table.derived() { 3 } else { 1 };
    let builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(level)?))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_sorting_columns(Some(sorting(table)))
        .set_created_by(concat!("loadline ", env!("CARGO_PKG_VERSION")).to_owned());
    let schema = table.schema();
    let fields = schema.fields().iter();
    if !table.derived() {
        return Ok(fields.fold(builder, |builder, field| column(builder, field)).build());
    }
    let builder =
        builder.set_statistics_enabled(EnabledStatistics::None).set_offset_index_disabled(true);
    Ok(fields.fold(builder, |builder, field| derived(table, rows, builder, field)).build())
}

/// A column of a rollup.
fn derived(
    table: Table,
    rows: &RecordBatch,
    builder: WriterPropertiesBuilder,
    field: &Field,
) -> WriterPropertiesBuilder {
    let path = ColumnPath::from(field.name().as_str());
    if table.key().contains(&field.name().as_str()) {
        let builder = builder.set_column_statistics_enabled(path, EnabledStatistics::Chunk);
        return column(builder, field);
    }
    let dictionary = rows.column_by_name(field.name()).is_none_or(|column| repeats(column));
    builder
        .set_column_dictionary_enabled(path.clone(), dictionary)
        .set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT)
}

/// Bits of a measurement that always compress well: its sign and its order of magnitude.
const LIKE_BITS: u32 = 9;

/// Whether a dictionary takes less room than the bytes of the values, place by place. It costs each
/// value once, as many bits as values have, and a number for each row.
fn repeats(column: &dyn Array) -> bool {
    let Some(values) = column.as_primitive_opt::<Float64Type>() else { return true };
    let (mut different, mut used) = (HashSet::new(), 0);
    for bits in values.iter().flatten().map(f64::to_bits) {
        different.insert(bits);
        used |= bits;
    }
    let value_bits = f64::from((u64::BITS - used.trailing_zeros()).saturating_sub(LIKE_BITS));
    let (rows, count) = ((values.len() - values.null_count()) as f64, different.len() as f64);
    count * value_bits + rows * count.max(1.0).log2() < rows * value_bits || count <= 1.0
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
    ["_bytes_per_s", "_iops", "_j"].iter().any(|unit| name.ends_with(unit))
}

fn sorting(table: Table) -> Vec<SortingColumn> {
    let schema = table.schema();
    let positions = table.sorted_by().iter().filter_map(|column| schema.index_of(column).ok());
    positions
        .filter_map(|position| i32::try_from(position).ok())
        .map(|column_idx| SortingColumn { column_idx, descending: false, nulls_first: true })
        .collect()
}
