//! The small data set that notebooks read.

use std::path::Path;

use super::{DemoError, Options};

/// Options of the small fleet: eight GPUs, two weeks, a reading every ten minutes.
pub(super) fn options() -> Options {
    Options { gpus: 8, weeks: 2, interval_s: 600, ..Options::default() }
}

/// Writes the small fleet's files into `dir`.
///
/// # Errors
/// A file that could not be written.
pub fn write_notebooks_data(dir: &Path) -> Result<(), DemoError> {
    super::write_fleet(dir, &options(), &mut |_| {}).map(|_| ())
}
