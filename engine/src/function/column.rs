//! Columns as the functions read them, whatever they are encoded as.

use arrow::array::{ArrayRef, AsArray, Int16Array, Int32Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int16Type, Int32Type};
use datafusion::common::Result;

pub(super) fn texts(column: &ArrayRef) -> Result<StringArray> {
    Ok(cast(column, &DataType::Utf8)?.as_string::<i32>().clone())
}

pub(super) fn smalls(column: &ArrayRef) -> Result<Int16Array> {
    Ok(cast(column, &DataType::Int16)?.as_primitive::<Int16Type>().clone())
}

pub(super) fn integers(column: &ArrayRef) -> Result<Int32Array> {
    Ok(cast(column, &DataType::Int32)?.as_primitive::<Int32Type>().clone())
}
