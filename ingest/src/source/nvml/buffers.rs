//! What lies within an interval, from the driver's own buffers of samples.
//!
//! The driver keeps its last readings of utilisation and power, some ten to a hundred of them. Where
//! it offers them, a row holds the mean, the least and the most of those since the row before; where
//! they reach back less far, of what there is. Where it does not, the row holds the reading of the
//! instant, and neither a least nor a most.

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::Sampling;
use nvml_wrapper::enums::device::SampleValue;

use super::reading::Row;
use crate::source::value::{Measure, Reading};

/// Up to where each buffer was read, in µs since 1970.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    read_us: [u64; 3],
}

/// What a buffer told of an interval, in the unit of the column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Within {
    pub(super) mean: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Buffers {
    /// What a buffer holds since the reading before; `None` where the driver has none.
    pub(super) fn within(
        &mut self,
        device: &Device<'_>,
        measure: Measure,
        now_ms: i64,
        interval_ms: i64,
        row: &mut Row,
    ) -> Option<Within> {
        let (sampling, place, factor) = match measure {
            Measure::Power => (Sampling::Power, 0, 1e-3),
            Measure::GpuUtil => (Sampling::GpuUtilization, 1, 0.01),
            Measure::MemCopyUtil => (Sampling::MemoryUtilization, 2, 0.01),
            _ => return None,
        };
        let read_us = &mut self.read_us[place];
        let now_us = micros(now_ms);
        let earliest_us = micros(now_ms - interval_ms);
        // The first time, what lies before the interval is of another time; and so is all of it
        // where the clock went back.
        if *read_us < earliest_us || *read_us > now_us {
            *read_us = earliest_us;
        }
        let samples = row.take(device.samples(sampling, *read_us))?;
        let (mut sum, mut count) = (0.0, 0_u32);
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut latest_us = *read_us;
        for sample in samples.iter().filter(|sample| sample.timestamp > *read_us) {
            latest_us = latest_us.max(sample.timestamp);
            if let Reading::Value(value) = measure.check(number(&sample.value) * factor) {
                sum += value;
                count += 1;
                (least, most) = (value.min(least), value.max(most));
            }
        }
        *read_us = latest_us;
        (count > 0).then(|| Within { mean: sum / f64::from(count), least, most })
    }
}

fn micros(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or_default() * 1000
}

fn number(value: &SampleValue) -> f64 {
    match value {
        SampleValue::F64(value) => *value,
        SampleValue::U32(value) => f64::from(*value),
        SampleValue::U64(value) => *value as f64,
        SampleValue::I64(value) => *value as f64,
    }
}
