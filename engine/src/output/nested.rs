//! Maps, lists and structs as JSON text, for forms that hold plain values only.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::Value;

/// The batch with its maps, lists and structs as JSON text. Keys are sorted; instants are RFC 3339; NULL stays NULL.
///
/// # Errors
/// A value that cannot be shown.
pub fn flat(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    if !batch.schema().fields().iter().any(|field| field.data_type().is_nested()) {
        return Ok(batch.clone());
    }
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if field.data_type().is_nested() {
            let texts = (0..column.len()).map(|row| {
                let told = column.is_valid(row).then(|| json(column, row)).transpose()?;
                Ok(told.map(|value| value.to_string()))
            });
            let texts = texts.collect::<Result<StringArray, ArrowError>>()?;
            fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
            columns.push(Arc::new(texts) as ArrayRef);
        } else {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}

/// One value as JSON; objects sort their keys.
fn json(column: &ArrayRef, row: usize) -> Result<Value, ArrowError> {
    if column.is_null(row) {
        return Ok(Value::Null);
    }
    let list = |items: ArrayRef| {
        let items = (0..items.len()).map(|item| json(&items, item));
        items.collect::<Result<Vec<_>, _>>().map(Value::Array)
    };
    match column.data_type() {
        DataType::Map(..) => {
            let entries = column.as_map().value(row);
            let pairs = (0..entries.len()).map(|entry| {
                Ok((plain(entries.column(0), entry)?, json(entries.column(1), entry)?))
            });
            pairs.collect::<Result<BTreeMap<_, _>, ArrowError>>().map(object)
        }
        DataType::Struct(fields) => {
            let parts = fields.iter().zip(column.as_struct().columns());
            let pairs = parts.map(|(field, part)| Ok((field.name().clone(), json(part, row)?)));
            pairs.collect::<Result<BTreeMap<_, _>, ArrowError>>().map(object)
        }
        DataType::List(_) => list(column.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(column.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(column.as_fixed_size_list().value(row)),
        DataType::Boolean => Ok(Value::Bool(column.as_boolean().value(row))),
        kind if kind.is_numeric() => {
            // A number that JSON does not have, such as NaN, stays text.
            let text = plain(column, row)?;
            Ok(text.parse().map_or(Value::String(text), Value::Number))
        }
        _ => Ok(Value::String(plain(column, row)?)),
    }
}

fn object(pairs: BTreeMap<String, Value>) -> Value {
    Value::Object(pairs.into_iter().collect())
}

fn plain(column: &ArrayRef, row: usize) -> Result<String, ArrowError> {
    let options = FormatOptions::default();
    ArrayFormatter::try_new(column, &options)?.value(row).try_to_string()
}

#[cfg(test)]
mod tests {
    use arrow::array::StructArray;
    use arrow::array::{Float64Builder, Int64Array, ListBuilder, MapBuilder, StringBuilder};

    use super::*;
    use crate::answer::Answer;
    use crate::output::{ExportForm, ExportSettings, export};

    #[test]
    fn nested_values_are_json_in_csv() {
        // Breaks if labels keep an answer out of CSV, or their order makes equal files differ.
        let mut labels = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for (key, value) in [("qos", "high"), ("group", "a \"b\"")] {
            labels.keys().append_value(key);
            labels.values().append_value(value);
        }
        labels.append(true).unwrap();
        labels.append(false).unwrap();
        let mut shares = ListBuilder::new(Float64Builder::new());
        shares.values().append_value(0.5);
        shares.values().append_null();
        shares.append(true);
        shares.append(true);
        let gpus: ArrayRef = Arc::new(Int64Array::from(vec![Some(8), None]));
        let field = Arc::new(Field::new("gpus", DataType::Int64, true));
        let rows = RecordBatch::try_from_iter_with_nullable([
            ("job_id", Arc::new(StringArray::from(vec!["1", "2"])) as ArrayRef, true),
            ("labels", Arc::new(labels.finish()), true),
            ("shares", Arc::new(shares.finish()), true),
            ("asked", Arc::new(StructArray::from(vec![(field, gpus)])), true),
        ])
        .unwrap();
        let plain = flat(&rows).unwrap();
        let shown = |column: usize| plain.column(column).as_string::<i32>().clone();
        let labels = [Some(r#"{"group":"a \"b\"","qos":"high"}"#), None];
        assert_eq!(shown(1), StringArray::from(labels.to_vec()));
        assert_eq!(shown(2), StringArray::from(vec!["[0.5,null]", "[]"]));
        assert_eq!(shown(3), StringArray::from(vec![r#"{"gpus":8}"#, r#"{"gpus":null}"#]));
        let none = rows.project(&[]).unwrap();
        assert_eq!(flat(&none).unwrap(), none);

        let place = tempfile::tempdir().unwrap();
        let to = place.path().join("out");
        let answer = Answer { schema: rows.schema(), batches: vec![rows] };
        let csv = ExportSettings { form: ExportForm::Csv, ..ExportSettings::default() };
        export(&answer, &to, &csv).unwrap();
        let text = std::fs::read_to_string(to.join("part-0.csv")).unwrap();
        assert_eq!(text.lines().nth(2), Some(r#"2,,[],"{""gpus"":null}""#));
    }
}
