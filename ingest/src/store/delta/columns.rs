//! The columns of a table as its log tells them. A table that was made before a column came gets it
//! with the next rows: other readers know a column only where the log tells it.

use deltalake::DeltaTable;
use deltalake::kernel::{
    Action, DataType, MapType, MetadataExt, PrimitiveType, StructField, StructType,
};

use super::super::Cause;
use super::DATE;
use crate::schema::Table;

/// The columns that a new table has.
pub(super) fn of(table: Table) -> Vec<StructField> {
    let schema = table.schema();
    let fields = schema.fields().iter();
    let mut columns: Vec<StructField> = fields
        .map(|field| StructField::nullable(field.name(), delta_type(field.data_type())))
        .collect();
    if table.partitioned_by().is_some() {
        columns.push(StructField::nullable(DATE, DataType::Primitive(PrimitiveType::Date)));
    }
    columns
}

/// What adds to the log of `base` the columns that it does not tell; `None` where it tells all.
/// None is ever taken out: a newer program may know it.
pub(super) fn added(table: Table, base: &DeltaTable) -> Result<Option<Action>, Cause> {
    let state = base.snapshot()?;
    let known = state.schema();
    let lacking: Vec<StructField> =
        of(table).into_iter().filter(|column| known.field(column.name()).is_none()).collect();
    if lacking.is_empty() {
        return Ok(None);
    }
    let schema = StructType::try_new(known.fields().cloned().chain(lacking))?;
    Ok(Some(Action::Metadata(state.metadata().clone().with_schema(&schema)?)))
}

fn delta_type(kind: &arrow::datatypes::DataType) -> DataType {
    use arrow::datatypes::DataType as Arrow;
    let primitive = match kind {
        Arrow::Int16 => PrimitiveType::Short,
        Arrow::Int32 => PrimitiveType::Integer,
        Arrow::Int64 => PrimitiveType::Long,
        Arrow::Float64 => PrimitiveType::Double,
        Arrow::Timestamp(_, _) => PrimitiveType::Timestamp,
        Arrow::Map(_, _) => {
            let text = DataType::Primitive(PrimitiveType::String);
            return DataType::from(MapType::new(text.clone(), text, true));
        }
        _ => PrimitiveType::String,
    };
    DataType::Primitive(primitive)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use arrow::array::Array;

    use super::*;
    use crate::import::tests::{import, readings, store};

    #[tokio::test]
    async fn a_table_made_before_a_column_came_gets_it_with_the_next_rows() {
        // Breaks when other readers never see a column that came after the table.
        let (folder, store) = store();
        import(&store, vec![readings("GPU-a", &[30])]).await;
        let log = folder.path().join("samples/_delta_log");
        let commit = |version: u64| log.join(format!("{version:020}.json"));
        let text = fs::read_to_string(commit(0)).unwrap();
        let column =
            r#"{\"name\":\"power_max_w\",\"type\":\"double\",\"nullable\":true,\"metadata\":{}},"#;
        assert!(text.contains(column), "{text}");
        // As a program wrote it that did not know the column, and one that another added.
        let other = column.replace("power_max_w", "of_another");
        fs::write(commit(0), text.replace(column, &other)).unwrap();
        for seconds in [60, 90] {
            import(&store, vec![readings("GPU-a", &[seconds])]).await;
        }
        let told = fs::read_to_string(commit(1)).unwrap();
        assert!(told.contains("metaData") && told.contains("power_max_w"), "{told}");
        assert!(told.contains("of_another"), "{told}");
        assert!(!fs::read_to_string(commit(2)).unwrap().contains("metaData"), "told once");
        let snapshot = store.snapshot(Table::Samples).await.unwrap().unwrap();
        let rows = store.read(&snapshot, None).await.unwrap();
        assert_eq!((rows.num_rows(), rows["power_max_w"].null_count()), (3, 3));
    }
}
