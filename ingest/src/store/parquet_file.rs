//! One sorted Parquet file of one partition, with the statistics that Delta's log carries.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, max, min};
use arrow::datatypes::{DataType, Float64Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use chrono::{DateTime, SecondsFormat, Utc};
use deltalake::kernel::Add;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value, json};

use super::Replacement;
use super::delta::DATE;
use crate::schema::Table;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Rows of a row group: enough to compress well, few enough to skip by statistics.
const ROW_GROUP_ROWS: usize = 1 << 20;

/// Encodes, uploads and describes one file. Its name is its content's fingerprint, so that the
/// same rows make the same file.
pub(super) async fn write(
    table: Table,
    objects: &Arc<dyn ObjectStore>,
    replacement: Replacement,
) -> Result<Add, Cause> {
    let Replacement { date, rows } = replacement;
    let rows = in_micros(&rows)?;
    let stats = stats(&rows);
    let bytes = tokio::task::spawn_blocking(move || encode(&rows)).await??;
    let name = format!("{}-{:016x}.parquet", table.name(), fingerprint(&bytes));
    let path = match date {
        Some(date) => format!("{DATE}={date}/{name}"),
        None => name,
    };
    let size = i64::try_from(bytes.len())?;
    objects.put(&Path::from(path.as_str()), bytes.into()).await?;
    let partition = date.map(|date| (DATE.to_owned(), Some(date.to_string())));
    Ok(Add {
        path,
        partition_values: partition.into_iter().collect(),
        size,
        modification_time: Utc::now().timestamp_millis(),
        data_change: true,
        stats: Some(stats.to_string()),
        tags: None,
        deletion_vector: None,
        base_row_id: None,
        default_row_commit_version: None,
        clustering_provider: None,
    })
}

/// Delta's timestamps are microseconds.
fn in_micros(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let micros = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let columns: Vec<(String, ArrayRef)> = rows
        .schema()
        .fields()
        .iter()
        .zip(rows.columns())
        .map(|(field, column)| {
            let timed = matches!(field.data_type(), DataType::Timestamp(_, _));
            let column = if timed { cast(column, &micros)? } else { Arc::clone(column) };
            Ok((field.name().clone(), column))
        })
        .collect::<Result<_, ArrowError>>()?;
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
}

fn encode(rows: &RecordBatch) -> Result<Vec<u8>, parquet::errors::ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_created_by(concat!("loadline ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), Some(properties))?;
    writer.write(rows)?;
    writer.close()?;
    Ok(bytes)
}

/// FNV-1a: tells files apart, guards nothing.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// `numRecords`, and minimum, maximum and NULL count of instants, numbers and short texts.
fn stats(rows: &RecordBatch) -> Value {
    let (mut least, mut most, mut nulls) = (Map::new(), Map::new(), Map::new());
    for (field, column) in rows.schema().fields().iter().zip(rows.columns()) {
        if matches!(field.data_type(), DataType::Map(_, _)) {
            continue;
        }
        nulls.insert(field.name().clone(), json!(column.null_count()));
        if let Some((low, high)) = extremes(column) {
            least.insert(field.name().clone(), low);
            most.insert(field.name().clone(), high);
        }
    }
    json!({"numRecords": rows.num_rows(), "minValues": least, "maxValues": most, "nullCount": nulls})
}

fn extremes(column: &ArrayRef) -> Option<(Value, Value)> {
    match column.data_type() {
        DataType::Timestamp(_, _) => {
            let values = column.as_primitive::<TimestampMicrosecondType>();
            Some((instant(min(values)?)?, instant(max(values)?)?))
        }
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>();
            Some((json!(min(values)?), json!(max(values)?)))
        }
        _ => None,
    }
}

fn instant(micros: i64) -> Option<Value> {
    let at = DateTime::from_timestamp_micros(micros)?;
    Some(json!(at.to_rfc3339_opts(SecondsFormat::Micros, true)))
}
