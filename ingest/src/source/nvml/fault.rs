//! What an error of the driver means: no figure here, a GPU in trouble, or a driver that is gone.

use nvml_wrapper::error::NvmlError;

use crate::event::EventKind;

/// Why a GPU could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The event that it begins.
    pub(super) kind: EventKind,
    /// What was said, in words.
    pub(super) words: String,
}

/// How far an error reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gravity {
    /// The driver has no such figure for this GPU: NULL.
    NoFigure,
    /// One call went wrong, which says nothing of the others.
    Doubtful,
    /// The GPU or the driver is in trouble.
    Whole,
}

impl Fault {
    pub(super) fn of(error: &NvmlError) -> Self {
        let kind = match error {
            NvmlError::ResetRequired => EventKind::RequiresReset,
            NvmlError::Uninitialized
            | NvmlError::DriverNotLoaded
            | NvmlError::LibRmVersionMismatch => EventKind::DriverFailed,
            _ => EventKind::Lost,
        };
        Self { kind, words: words(error) }
    }

    /// Nothing was heard of the GPU.
    pub(super) fn silent(limit_ms: u128) -> Self {
        Self { kind: EventKind::Lost, words: format!("no answer within {limit_ms} ms") }
    }

    /// The state in the inventory, where it is one of the board.
    pub(super) fn state(&self) -> Option<&'static str> {
        match self.kind {
            EventKind::Lost => Some("lost"),
            EventKind::RequiresReset => Some("needs reset"),
            _ => None,
        }
    }
}

/// How far `error` reaches.
pub(super) fn gravity(error: &NvmlError) -> Gravity {
    match error {
        NvmlError::GpuLost
        | NvmlError::ResetRequired
        | NvmlError::Uninitialized
        | NvmlError::DriverNotLoaded
        | NvmlError::LibRmVersionMismatch => Gravity::Whole,
        NvmlError::Unknown
        | NvmlError::IrqIssue
        | NvmlError::OperatingSystem
        | NvmlError::InsufficientPower
        | NvmlError::InsufficientMemory
        | NvmlError::CorruptedInfoROM => Gravity::Doubtful,
        _ => Gravity::NoFigure,
    }
}

/// What the driver said, as it stands in a message of ours.
pub(super) fn words(error: &NvmlError) -> String {
    match error {
        NvmlError::GpuLost => "the driver lost the GPU".into(),
        NvmlError::ResetRequired => "the GPU requires a reset".into(),
        NvmlError::DriverNotLoaded => "the NVIDIA driver is not loaded".into(),
        NvmlError::LibRmVersionMismatch => {
            "the driver's library and its kernel module have different versions".into()
        }
        NvmlError::Uninitialized => "the driver ended the session".into(),
        other => other.to_string(),
    }
}
