//! One module per input format; each turns text or columns into batches of table rows.

pub mod input;
