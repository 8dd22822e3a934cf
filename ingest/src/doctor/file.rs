//! One data file: is it there, whole, and of this table?

use object_store::{ObjectStoreExt, path::Path};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::Finding;
use super::remedy::Remedy;
use crate::error::IngestError;
use crate::store::{FileEntry, Store, TableSnapshot, sum_of};

/// What a look at a file gave.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) with_checksum: bool,
    pub(super) finding: Option<Finding>,
}

/// Reads a file whole and holds it against what the log, its name and its table say.
pub(super) async fn look(
    store: &Store,
    snapshot: &TableSnapshot,
    entry: &FileEntry,
) -> Result<Looked, IngestError> {
    let table = snapshot.table;
    let told = sum_of(&entry.path);
    let place = format!("{}/{}", table.name(), entry.path);
    let read =
        async { snapshot.objects.get(&Path::from(entry.path.as_str())).await?.bytes().await };
    let wrong = match read.await {
        Err(object_store::Error::NotFound { .. }) => {
            Some(format!("is missing, and version {} names it", snapshot.version))
        }
        Err(error) => return Err(store.failed("read", table, error.into())),
        Ok(bytes) if bytes.len() as u64 != entry.size => {
            Some(format!("holds {} bytes where the log says {}", bytes.len(), entry.size))
        }
        Ok(bytes) => match told {
            Some(sum) if crc32fast::hash(&bytes) != sum => Some(format!(
                "its checksum is {:08x} where its name says {sum:08x}",
                crc32fast::hash(&bytes)
            )),
            _ => match columns(&bytes, told.is_none(), entry.rows) {
                Err(reason) => Some(reason),
                Ok(columns) => {
                    let schema = table.schema();
                    let known = |name: &String| schema.column_with_name(name).is_some();
                    let strange: Vec<String> =
                        columns.into_iter().filter(|name| !known(name)).collect();
                    let finding = (!strange.is_empty()).then(|| {
                        Finding::by_hand(
                            "unknown-columns",
                            place.clone(),
                            format!(
                                "has columns that this version does not know: {}",
                                strange.join(", ")
                            ),
                            "a newer loadline wrote it: use that one to read them".into(),
                        )
                    });
                    return Ok(Looked { with_checksum: told.is_some(), finding });
                }
            },
        },
    };
    let finding = wrong.map(|what| {
        let rows = match entry.rows {
            None => String::new(),
            Some(1) => "; its one row is lost with it".to_owned(),
            Some(rows) => format!("; {rows} rows are lost with it"),
        };
        Finding::with(
            "damaged-file",
            place,
            format!("{what}{rows}"),
            "mending moves it to `quarantine/` and takes it out of the table; import its day again",
            Remedy::SetAside { table, path: entry.path.clone() },
        )
    });
    Ok(Looked { with_checksum: told.is_some(), finding })
}

/// Names of the columns of a Parquet file; with `deep` every page is read as well.
fn columns(bytes: &bytes::Bytes, deep: bool, rows: Option<u64>) -> Result<Vec<String>, String> {
    let told = |error: &dyn std::fmt::Display| format!("is no sound Parquet file: {error}");
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).map_err(|e| told(&e))?;
    let names = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    let found = u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or_default();
    if let Some(rows) = rows.filter(|rows| *rows != found) {
        return Err(format!("holds {found} rows where the log says {rows}"));
    }
    if deep {
        for batch in reader.build().map_err(|error| told(&error))? {
            batch.map_err(|error| told(&error))?;
        }
    }
    Ok(names)
}
