//! Which series a reading belongs to: its key without the instant, as a small number.
//!
//! The key columns of ten million readings repeat a few thousand GPUs. Each is told once here, and
//! a waiting row carries its number.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

use crate::schema::Table;

/// Parts into which the series of one day can be divided, at most.
pub(super) const PARTS_MAX: usize = 64;

/// The series of one table, numbered in the order of their first reading.
#[derive(Debug)]
pub(crate) struct Series {
    columns: Vec<(&'static str, DataType)>,
    converter: RowConverter,
    ids: HashMap<Box<[u8]>, u32>,
    keys: Vec<Box<[u8]>>,
    buckets: Vec<u8>,
}

impl Series {
    pub(crate) fn new(table: Table) -> Result<Self, ArrowError> {
        Self::over(table, columns(table))
    }

    /// The same of any columns of `table`.
    pub(crate) fn over(
        table: Table,
        columns: impl Iterator<Item = &'static str>,
    ) -> Result<Self, ArrowError> {
        let schema = table.schema();
        let columns: Vec<(&'static str, DataType)> = columns
            .map(|name| Ok((name, schema.field_with_name(name)?.data_type().clone())))
            .collect::<Result<_, ArrowError>>()?;
        let fields = columns.iter().map(|(_, kind)| SortField::new(kind.clone())).collect();
        Ok(Self {
            columns,
            converter: RowConverter::new(fields)?,
            ids: HashMap::new(),
            keys: Vec::new(),
            buckets: Vec::new(),
        })
    }

    /// The number of each row's series; new ones are numbered on.
    pub(crate) fn number(&mut self, rows: &RecordBatch) -> Result<UInt32Array, ArrowError> {
        let arrays: Vec<ArrayRef> = self
            .columns
            .iter()
            .map(|(name, kind)| match rows.column_by_name(name) {
                Some(column) if column.data_type() == kind => Ok(column.clone()),
                Some(column) => cast(column, kind),
                None => Ok(new_null_array(kind, rows.num_rows())),
            })
            .collect::<Result<_, ArrowError>>()?;
        let keys = self.converter.convert_columns(&arrays)?;
        let mut numbers = Vec::with_capacity(rows.num_rows());
        for row in 0..rows.num_rows() {
            let repeats = row > 0 && keys.row(row) == keys.row(row - 1);
            let number = match numbers.last() {
                Some(last) if repeats => *last,
                _ => self.find(keys.row(row).as_ref()),
            };
            numbers.push(number);
        }
        Ok(numbers.into())
    }

    fn find(&mut self, key: &[u8]) -> u32 {
        if let Some(number) = self.ids.get(key) {
            return *number;
        }
        let number = u32::try_from(self.keys.len()).expect("fewer series than 2^32");
        self.keys.push(key.into());
        self.buckets.push(bucket(key));
        self.ids.insert(key.into(), number);
        number
    }

    /// The place of each series in sort order, by its number.
    pub(crate) fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..).take(self.keys.len()).collect();
        order.sort_unstable_by_key(|number| &self.keys[*number as usize]);
        let mut ranks = vec![0; order.len()];
        for (rank, number) in (0..).zip(order) {
            ranks[number as usize] = rank;
        }
        ranks
    }

    /// Whether a series is in the `part`th of `parts`; the same for every import.
    pub(crate) fn within(&self, number: u32, (part, parts): (usize, usize)) -> bool {
        usize::from(self.buckets[number as usize]) * parts / PARTS_MAX == part
    }

    /// The key columns; row `n` is series `n`.
    pub(crate) fn keys(&self) -> Result<RecordBatch, ArrowError> {
        let parser = self.converter.parser();
        let rows: Vec<_> = self.keys.iter().map(|key| parser.parse(key)).collect();
        let arrays = self.converter.convert_rows(rows)?;
        let names = self.columns.iter().map(|(name, _)| *name);
        RecordBatch::try_from_iter_with_nullable(names.zip(arrays).map(|(n, a)| (n, a, true)))
    }

    /// A series in words: what of its key is known.
    pub(super) fn label(&self, number: u32) -> Result<String, ArrowError> {
        let keys = self.keys()?;
        let texts = keys.columns().iter().map(|column| {
            let text = cast(column, &DataType::Utf8)?;
            let text = text.as_string::<i32>();
            let number = number as usize;
            Ok(text.is_valid(number).then(|| text.value(number).to_owned()))
        });
        let texts: Vec<Option<String>> = texts.collect::<Result<_, ArrowError>>()?;
        Ok(texts.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }

    /// Distinct texts of a key column.
    pub(super) fn names(&self, column: &str) -> Result<Vec<String>, ArrowError> {
        let keys = self.keys()?;
        let texts = keys.column_by_name(column).and_then(|column| column.as_string_opt::<i32>());
        Ok(texts
            .map(|texts| texts.iter().flatten().map(str::to_owned).collect())
            .unwrap_or_default())
    }
}

/// Key columns without the instant.
pub(super) fn columns(table: Table) -> impl Iterator<Item = &'static str> {
    let instant = table.partitioned_by();
    table.key().iter().copied().filter(move |column| Some(*column) != instant)
}

/// FNV-1a, folded: spreads the series evenly over parts.
fn bucket(key: &[u8]) -> u8 {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    u8::try_from((hash >> 32) % PARTS_MAX as u64).expect("fewer than 64")
}
