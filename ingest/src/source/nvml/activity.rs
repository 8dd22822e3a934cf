//! Activity of the parts of a GPU through GPM (Hopper and later): two samples make a mean over the
//! time between them, so that each row holds the activity since the row before.

use nvml_wrapper::Device;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};

use super::reading::Row;
use crate::source::value::Measure;

/// GPM tells percent.
const PERCENT: f64 = 0.01;

/// GPM tells traffic in MiB a second.
const MIB: f64 = 1_048_576.0;

/// Metrics of a board; the first seven are told of a slice too.
const METRICS: [(GpmMetricId, Measure, f64); 11] = [
    (GpmMetricId::SmUtil, Measure::SmActive, PERCENT),
    (GpmMetricId::SmOccupancy, Measure::SmOccupancy, PERCENT),
    (GpmMetricId::AnyTensorUtil, Measure::TensorActive, PERCENT),
    (GpmMetricId::DramBwUtil, Measure::DramActive, PERCENT),
    (GpmMetricId::Fp64Util, Measure::Fp64Active, PERCENT),
    (GpmMetricId::Fp32Util, Measure::Fp32Active, PERCENT),
    (GpmMetricId::Fp16Util, Measure::Fp16Active, PERCENT),
    (GpmMetricId::PcieRxPerSec, Measure::PcieRx, MIB),
    (GpmMetricId::PcieTxPerSec, Measure::PcieTx, MIB),
    (GpmMetricId::NvlinkTotalRxPerSec, Measure::NvlinkRx, MIB),
    (GpmMetricId::NvlinkTotalTxPerSec, Measure::NvlinkTx, MIB),
];

const SLICE_METRICS: usize = 7;

/// The sample of the row before, of a board or one slice.
#[derive(Debug, Default)]
pub(super) struct Activity<'n> {
    last: Option<GpmSample<'n>>,
}

impl<'n> Activity<'n> {
    /// Takes a sample of the board, or of its GPU instance `slice`, and puts into `row` what
    /// happened since the one before, where nothing else has told it.
    pub(super) fn read(&mut self, device: &Device<'n>, slice: Option<u32>, row: &mut Row) {
        let taken = match slice {
            None => device.gpm_sample(),
            Some(instance) => device.gpm_mig_sample(instance),
        };
        let Some(new) = row.take(taken) else {
            self.last = None;
            return;
        };
        if let Some(old) = &self.last {
            let metrics = if slice.is_some() { &METRICS[..SLICE_METRICS] } else { &METRICS[..] };
            let told = row.take(between(device, old, &new, metrics));
            for (value, (_, measure, factor)) in told.into_iter().flatten().zip(metrics) {
                if let Some(value) = value
                    && !row.has(*measure)
                {
                    row.put(*measure, value * factor);
                }
            }
        }
        self.last = Some(new);
    }
}

fn between<'n>(
    device: &Device<'n>,
    old: &GpmSample<'n>,
    new: &GpmSample<'n>,
    metrics: &[(GpmMetricId, Measure, f64)],
) -> Result<Vec<Option<f64>>, NvmlError> {
    let mut ids = [GpmMetricId::SmUtil; METRICS.len()];
    for (id, (metric, ..)) in ids.iter_mut().zip(metrics) {
        *id = *metric;
    }
    let told = gpm_metrics_get(device.nvml(), old, new, &ids[..metrics.len()])?;
    Ok(told.into_iter().map(|metric| metric.ok().map(|metric| metric.value)).collect())
}
