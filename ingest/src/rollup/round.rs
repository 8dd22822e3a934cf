//! Sums as they are kept: rounded, so that what differs by noise alone is one value.
//!
//! # Why
//! The last bits of a sum of floating-point products are noise, and noise does not compress: it
//! took most of the room of `gpu_5m`. What a sum is rounded by is less than a billionth of it by far,
//! and sums of rounded sums are no further off. Least and most are values that were read, and stay.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch};
use arrow::datatypes::{DataType, Float64Type};
use arrow::error::ArrowError;

/// Bits of a sum's mantissa that are kept: it changes by a part in 2^33, 1.2e-10, at most.
const BITS: u32 = 32;

/// Bits of the mantissa of an `f64`.
const MANTISSA_BITS: u32 = 52;

/// The rows with their sums rounded, and their seconds to milliseconds.
pub(super) fn rounded(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = rows.schema();
    let columns = schema.fields().iter().zip(rows.columns()).map(|(field, column)| {
        let name = field.name();
        if field.data_type() != &DataType::Float64
            || name.ends_with("_min")
            || name.ends_with("_max")
        {
            return Arc::clone(column);
        }
        let round = if name.ends_with("_s") { to_ms } else { to_bits };
        let values = column.as_primitive::<Float64Type>();
        Arc::new(values.iter().map(|value| value.map(round)).collect::<Float64Array>()) as ArrayRef
    });
    let columns = columns.collect();
    RecordBatch::try_new(schema, columns)
}

fn to_ms(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

/// The nearest value with so many bits; of two, the one that is further from 0.
fn to_bits(value: f64) -> f64 {
    let unit = 1_u64 << (MANTISSA_BITS - BITS);
    let near = f64::from_bits(value.to_bits().saturating_add(unit / 2) & !(unit - 1));
    if near.is_finite() { near } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_changes_by_a_ten_billionth_at_most() {
        // Breaks when a rollup is further from its readings than it promises, or when what few bits
        // tell is changed at all.
        for exact in [0.0, -0.0, 1.0, -1.5, 30.0 * 100.0, 37.5, 4_294_967_297.0, f64::INFINITY] {
            assert_eq!(to_bits(exact).to_bits(), exact.to_bits(), "{exact}");
        }
        let unit = 2.0_f64.powi(-32);
        assert_eq!(to_bits(1.0 + unit), 1.0 + unit);
        assert_eq!(to_bits(1.0 + 0.49 * unit), 1.0);
        assert_eq!(to_bits(1.0 + 0.5 * unit), 1.0 + unit);
        assert_eq!(to_bits(-1.0 - 0.5 * unit), -1.0 - unit);
        // Up to the next power of two.
        assert_eq!(to_bits(2.0 - 0.25 * unit), 2.0);
        assert_eq!(to_bits(f64::MAX), f64::MAX);
        for n in 1..1_000_i32 {
            let value = f64::from(n).powf(7.3) / 13.0;
            assert!((to_bits(value) / value - 1.0).abs() < 1.2e-10, "{value}");
        }
    }

    #[test]
    fn equal_seconds_are_equal() {
        // Breaks when 0.1 s and 0.2 s are not 0.3 s, so that nearly every row has seconds of its own.
        assert_eq!(to_ms(0.1 + 0.2), 0.3);
        assert_eq!(to_ms(86_400.000_4), 86_400.0);
        assert_eq!(to_ms(0.000_6), 0.001);
    }
}
