//! Which clusters do the rows of a table name? As the statistics of its files tell, unread.

use std::collections::BTreeSet;

use deltalake::DeltaTable;

use super::Cause;

/// Clusters that rows name, and whether some name none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clusters {
    /// Names, the first and the last of each file.
    pub named: BTreeSet<String>,
    /// Whether rows name none.
    pub unnamed: bool,
    /// Whether what every file holds is known.
    pub known: bool,
}

/// The clusters of a table that has a column of that name.
pub(in crate::store) fn clusters(delta: &DeltaTable) -> Result<Clusters, Cause> {
    let mut found = Clusters { known: true, ..Clusters::default() };
    for file in delta.snapshot()?.log_data() {
        let stats: serde_json::Value = match file.stats() {
            Some(stats) => serde_json::from_str(&stats)?,
            None => serde_json::Value::Null,
        };
        let (rows, none) = (stats["numRecords"].as_i64(), stats["nullCount"]["cluster"].as_i64());
        let ends = ["minValues", "maxValues"].map(|end| stats[end]["cluster"].as_str());
        let (Some(rows), Some(none)) = (rows, none) else {
            found.known = false;
            continue;
        };
        found.unnamed |= none > 0;
        found.known &= none == rows || ends.iter().all(Option::is_some);
        found.named.extend(ends.into_iter().flatten().map(str::to_owned));
    }
    Ok(found)
}
