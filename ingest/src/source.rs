//! One module per input format; each turns text or columns into batches of table rows.

pub(crate) mod clock;
mod columns;
pub mod input;
pub mod nvidia_smi;
pub mod sacct;
pub(crate) mod sample;
pub mod table_csv;
pub(crate) mod value;
