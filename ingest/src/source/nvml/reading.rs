//! What the thread of one GPU hands over: raw figures, not yet checked, and why some are missing.

use std::sync::Arc;

use nvml_wrapper::error::NvmlError;

use super::fault::{Fault, Gravity, gravity};
use crate::source::sample::Name;
use crate::source::value::Measure;

/// What does not change from reading to reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) uuid: Arc<str>,
    pub(super) model: Name,
    pub(super) vbios: Name,
}

/// A process on a GPU or slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Memory it holds, where the driver tells.
    pub(super) bytes: Option<u64>,
    /// GPU instance it runs in.
    pub(super) mig: Option<u32>,
}

/// Figures of a board or of one of its slices, in the units of their columns.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// GPU instance; `None` for the board.
    pub(super) mig: Option<i16>,
    pub(super) values: Vec<(Measure, f64)>,
    /// First fault that says something of the whole GPU.
    pub(super) fault: Option<Fault>,
    /// First fault that one call alone may have; it counts where nothing at all could be read.
    doubt: Option<Fault>,
}

impl Row {
    pub(super) fn of(mig: Option<i16>) -> Self {
        Self { mig, ..Self::default() }
    }

    /// The answer of a call; what went wrong is kept.
    pub(super) fn take<T>(&mut self, answer: Result<T, NvmlError>) -> Option<T> {
        match answer {
            Ok(value) => Some(value),
            Err(error) => {
                self.note(&error);
                None
            }
        }
    }

    fn note(&mut self, error: &NvmlError) {
        match gravity(error) {
            Gravity::NoFigure => {}
            Gravity::Doubtful => {
                self.doubt.get_or_insert_with(|| Fault::of(error));
            }
            Gravity::Whole => {
                self.fault.get_or_insert_with(|| Fault::of(error));
            }
        }
    }

    /// Takes a figure in the unit of its column.
    pub(super) fn put(&mut self, measure: Measure, value: f64) {
        self.values.push((measure, value));
    }

    /// Whether a measurement is there.
    pub(super) fn has(&self, measure: Measure) -> bool {
        self.values.iter().any(|(known, _)| *known == measure)
    }

    /// A figure, if it is there.
    pub(super) fn get(&self, measure: Measure) -> Option<f64> {
        self.values.iter().find(|(known, _)| *known == measure).map(|(_, value)| *value)
    }

    /// What is wrong with the GPU as a whole.
    pub(super) fn verdict(&mut self) -> Option<Fault> {
        let blind = self.values.is_empty();
        self.fault.take().or_else(|| self.doubt.take().filter(|_| blind))
    }
}

/// One round of one GPU.
#[derive(Debug)]
pub(super) struct Reading {
    /// Place on the node.
    pub(super) index: u32,
    /// Number of the round that asked for it.
    pub(super) round: u64,
    /// Which board sits there, if it ever told.
    pub(super) facts: Option<Arc<Facts>>,
    /// The board first, then its slices.
    pub(super) rows: Vec<Row>,
    /// `None` where the driver does not list them.
    pub(super) processes: Option<Vec<Process>>,
    /// Why the GPU could not be read, or not as a whole.
    pub(super) fault: Option<Fault>,
}
