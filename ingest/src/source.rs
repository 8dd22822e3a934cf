//! One module per input format; each turns text or columns into batches of table rows.

pub(crate) mod clock;
#[cfg(test)]
pub(crate) mod collected;
pub mod dcgm;
pub mod folder;
pub mod input;
pub mod instant;
pub mod mapped;
pub mod node;
pub mod nvidia_smi;
pub mod nvml;
pub(crate) mod once;
pub mod remote_write;
pub mod sacct;
pub(crate) mod sample;
pub mod scrape;
pub mod slurm;
pub(crate) mod sound;
pub(crate) mod text;
pub(crate) mod trouble;
pub(crate) mod value;
