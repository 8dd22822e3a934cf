//! Readings that two files of a day both hold.

use std::collections::BTreeMap;

use arrow::compute::concat_batches;
use chrono::NaiveDate;

use super::Finding;
use super::remedy::Remedy;
use crate::error::IngestError;
use crate::merge::comparable;
use crate::store::{Bounds, FileEntry, Store, TableSnapshot};

/// Days with readings that are stored twice. Only files whose spans and nodes meet are read.
pub(super) async fn find(
    store: &Store,
    snapshot: &TableSnapshot,
) -> Result<Vec<Finding>, IngestError> {
    let table = snapshot.table;
    if table.partitioned_by().is_none() {
        return Ok(Vec::new());
    }
    let mut days: BTreeMap<NaiveDate, Vec<&FileEntry>> = BTreeMap::new();
    for file in &snapshot.files {
        if let Some(date) = file.date {
            days.entry(date).or_default().push(file);
        }
    }
    let mut findings = Vec::new();
    for (date, files) in days.into_iter().filter(|(_, files)| files.len() > 1) {
        let bounds = store.bounds(snapshot, date)?;
        let of = |file: &FileEntry| bounds.get(&file.path);
        let meets = |file: &&FileEntry| {
            files.iter().any(|other| other.path != file.path && meet(of(file), of(other)))
        };
        let suspects: Vec<&FileEntry> = files.iter().copied().filter(meets).collect();
        let twice = twice(store, snapshot, &suspects).await?;
        if twice > 0 {
            findings.push(Finding::with(
                "stored-twice",
                format!("{}/date={date}", table.name()),
                format!("{twice} rows have a key that another row has"),
                "mending merges the day: the first of each stays",
                Remedy::Merge { table, date },
            ));
        }
    }
    Ok(findings)
}

/// Whether two files may hold the same reading. What statistics do not tell may be anything.
fn meet(one: Option<&Bounds>, other: Option<&Bounds>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return true };
    let times = match (one.instants, other.instants) {
        (Some(a), Some(b)) => a.0 <= b.1 && b.0 <= a.1,
        _ => true,
    };
    let nodes = match (&one.nodes, &other.nodes) {
        (Some(a), Some(b)) => a.0 <= b.1 && b.0 <= a.1,
        _ => true,
    };
    times && nodes
}

async fn twice(
    store: &Store,
    snapshot: &TableSnapshot,
    files: &[&FileEntry],
) -> Result<usize, IngestError> {
    let key = snapshot.table.key();
    let mut batches = Vec::new();
    for file in files {
        match store.read_file(snapshot, file, Some(key)).await {
            Ok(read) => batches.extend(read),
            // Told as a damaged file.
            Err(IngestError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let Some(first) = batches.first() else { return Ok(0) };
    let all = concat_batches(&first.schema(), &batches)?;
    let keys = comparable(&all, key)?;
    let mut rows: Vec<_> = keys.iter().collect();
    rows.sort_unstable();
    Ok(rows.windows(2).filter(|pair| pair[0] == pair[1]).count())
}
