//! One module per input format; each turns text or columns into batches of table rows.

pub(crate) mod clock;
pub mod dcgm;
pub mod input;
pub mod nvidia_smi;
pub(crate) mod sample;
pub(crate) mod value;
