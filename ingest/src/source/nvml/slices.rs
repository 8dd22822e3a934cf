//! MIG slices of a board: one row for each GPU instance.

use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;

use super::activity::Activity;
use super::reading::Row;
use super::unwrapped::gpu_instance;
use crate::source::value::Measure;

/// A GPU instance, through the first of its compute instances: they share its memory.
#[derive(Debug)]
pub(super) struct Slice<'n> {
    device: Device<'n>,
    instance: u32,
    activity: Activity<'n>,
}

/// The slices of a board; `None` where MIG is off or unknown to it.
///
/// # Errors
/// What the driver answers where the board itself is in trouble.
pub(super) fn of<'n>(
    board: &Device<'n>,
    mut known: Vec<Slice<'n>>,
) -> Result<Option<Vec<Slice<'n>>>, NvmlError> {
    match board.mig_mode() {
        Ok(mode) if mode.current != 0 => {}
        Err(error @ (NvmlError::GpuLost | NvmlError::ResetRequired)) => return Err(error),
        _ => return Ok(None),
    }
    let mut slices: Vec<Slice<'n>> = Vec::new();
    for place in 0..board.mig_device_count()? {
        // Places without a slice answer that nothing was found.
        let Ok(device) = board.mig_device_by_index(place) else { continue };
        let Ok(instance) = gpu_instance(&device) else { continue };
        if slices.iter().any(|slice| slice.instance == instance) {
            continue;
        }
        let before = known.iter().position(|slice| slice.instance == instance);
        let activity = before.map(|at| known.swap_remove(at).activity).unwrap_or_default();
        slices.push(Slice { device, instance, activity });
    }
    Ok(Some(slices))
}

impl<'n> Slice<'n> {
    /// Reads what the driver offers of a slice: its memory and, with `gpm`, its activity.
    pub(super) fn read(&mut self, board: &Device<'n>, gpm: bool) -> Row {
        let mut row = Row::of(i16::try_from(self.instance).ok());
        if let Some(memory) = row.take(self.device.memory_info()) {
            row.put(Measure::MemUsed, memory.used as f64);
            row.put(Measure::MemTotal, memory.total as f64);
        }
        if gpm {
            self.activity.read(board, Some(self.instance), &mut row);
        }
        row
    }
}
