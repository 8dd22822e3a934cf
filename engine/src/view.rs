//! Views over the tables: `queries/views/`, registered in the order in which they build on each
//! other.

use datafusion::prelude::SessionContext;

use crate::error::EngineError;

/// Name and text of each view; a view stands after those it reads.
const VIEWS: &[(&str, &str)] = &[
    ("holdings", include_str!("../../queries/views/holdings.sql")),
    ("demand_hourly", include_str!("../../queries/views/demand_hourly.sql")),
    ("capacity_hourly", include_str!("../../queries/views/capacity_hourly.sql")),
];

pub(crate) async fn register(context: &SessionContext) -> Result<(), EngineError> {
    for (name, text) in VIEWS {
        let statement = format!("CREATE VIEW {name} AS\n{text}");
        context
            .sql(&statement)
            .await
            .map_err(|error| EngineError::sql(format!("view `{name}`"), error))?;
    }
    Ok(())
}
