//! The only cluster that a store names: rows without one are of it.
//!
//! A ledger of Slurm tells its cluster where readings and inventories seldom do. Taken for two
//! clusters, one fleet would count twice.

use std::collections::BTreeSet;

use arrow::array::{Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use loadline_ingest::wal::Overlay;
use loadline_ingest::{IngestError, Store};

/// The column that names it.
pub(crate) const COLUMN: &str = "cluster";

/// The cluster that rows without one are of; `None` where none is without, none is named, several
/// are, or a file does not tell.
///
/// # Errors
/// The statistics of a table cannot be read.
pub(crate) fn sole(store: &Store, overlays: &[Overlay]) -> Result<Option<String>, IngestError> {
    let (mut named, mut unnamed) = (BTreeSet::new(), false);
    for overlay in overlays {
        if overlay.table.schema().column_with_name(COLUMN).is_none() {
            continue;
        }
        if let Some(snapshot) = &overlay.snapshot {
            let clusters = store.clusters(snapshot)?;
            if !clusters.known {
                return Ok(None);
            }
            named.extend(clusters.named);
            unnamed |= clusters.unnamed;
        }
        for rows in &overlay.rows {
            unnamed |= waiting(rows, &mut named);
        }
    }
    let first = named.pop_first().filter(|_| named.is_empty());
    Ok(first.filter(|_| unnamed))
}

/// Adds the clusters that rows name; whether some name none.
fn waiting(rows: &RecordBatch, named: &mut BTreeSet<String>) -> bool {
    use arrow::array::AsArray;
    let column = rows.column_by_name(COLUMN).and_then(|column| cast(column, &DataType::Utf8).ok());
    let Some(column) = column else { return false };
    named.extend(column.as_string::<i32>().iter().flatten().map(str::to_owned));
    column.null_count() > 0
}
