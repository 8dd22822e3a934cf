//! What goes to the terminal or a file: lines, and results in the form asked for.

use std::io::{self, Write};
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::util::display::FormatOptions;
use arrow::util::pretty::pretty_format_batches_with_options;
use loadline_engine::Answer;
use loadline_engine::output::flat;
use parquet::arrow::ArrowWriter;

use super::waiting;
use crate::cli::{OutputFormat, TableArgs};
use crate::failure::Failure;

/// Prints a line; a closed pipe is no failure.
pub(super) fn line(text: &str) -> Result<(), Failure> {
    waiting::end();
    quiet_pipe(writeln!(io::stdout(), "{text}").map_err(Failure::from))
}

/// Progress and reasons go beside the result, so that the result can be piped.
pub(super) fn aside(text: &str) {
    waiting::end();
    // Nobody listens where standard error is closed.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes an answer as asked.
pub(super) fn answer(answer: &Answer, args: &TableArgs) -> Result<(), Failure> {
    waiting::end();
    match &args.output {
        None => quiet_pipe(write(answer, args.form(), io::stdout())),
        Some(path) if special(path) => {
            let file = std::fs::OpenOptions::new().write(true).truncate(true).open(path);
            let file = file.map_err(|error| {
                Failure::new(format!("could not write `{}`: {error}", path.display()))
            })?;
            write(answer, args.form(), file)
        }
        Some(path) => {
            let mut file = beside(path).map_err(|error| {
                Failure::new(format!("could not write `{}`: {error}", path.display()))
            })?;
            write(answer, args.form(), file.as_file_mut())?;
            file.persist(path).map_err(|error| Failure::from(error.error))?;
            Ok(())
        }
    }
}

fn quiet_pipe(outcome: Result<(), Failure>) -> Result<(), Failure> {
    match outcome {
        Err(failure) if failure.broken_pipe() => Ok(()),
        outcome => outcome,
    }
}

fn write(answer: &Answer, form: OutputFormat, mut to: impl Write + Send) -> Result<(), Failure> {
    let Answer { schema, batches } = answer;
    match form {
        OutputFormat::Table => writeln!(to, "{}", table(schema, batches)?)?,
        OutputFormat::Csv => {
            let mut writer = arrow::csv::Writer::new(&mut to);
            writer.write(&flat(&RecordBatch::new_empty(schema.clone()))?)?;
            for batch in batches {
                writer.write(&flat(batch)?)?;
            }
        }
        OutputFormat::Json => {
            let mut writer = arrow::json::ArrayWriter::new(&mut to);
            writer.write_batches(&batches.iter().collect::<Vec<_>>())?;
            writer.finish()?;
            writeln!(to)?;
        }
        OutputFormat::Ndjson => {
            let mut writer = arrow::json::LineDelimitedWriter::new(&mut to);
            writer.write_batches(&batches.iter().collect::<Vec<_>>())?;
            writer.finish()?;
        }
        OutputFormat::Parquet => {
            let mut writer = ArrowWriter::try_new(&mut to, schema.clone(), None)?;
            for batch in batches {
                writer.write(batch)?;
            }
            writer.close()?;
        }
        OutputFormat::Arrow => {
            let mut writer = arrow::ipc::writer::FileWriter::try_new(&mut to, schema)?;
            for batch in batches {
                writer.write(batch)?;
            }
            writer.finish()?;
        }
    }
    Ok(())
}

/// A result as aligned columns.
pub(super) fn table(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<String, Failure> {
    let options = FormatOptions::default().with_null("NULL");
    let empty = [RecordBatch::new_empty(schema.clone())];
    let shown = if batches.is_empty() { &empty[..] } else { batches };
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let table = pretty_format_batches_with_options(shown, &options)?.to_string();
    // Names come from users; what would steer a terminal is shown as a mark.
    let control = |c: char| c.is_control() && c != '\n';
    let table = table.replace(control, "\u{fffd}");
    Ok(format!("{table}\n{rows} row{}", if rows == 1 { "" } else { "s" }))
}

/// Writes a file, whole or not at all.
pub(super) fn whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed =
        |error: io::Error| Failure::new(format!("could not write `{}`: {error}", path.display()));
    if special(path) {
        return std::fs::write(path, bytes).map_err(failed);
    }
    let mut file = beside(path).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Whether something stands at `path` that is no file of ours to replace: a device such as
/// `/dev/null`, a pipe, a link.
fn special(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| !found.is_file())
}

/// A file in the folder of `path` that takes its place once it is complete.
fn beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        // As readable as any other file; the umask takes its part.
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder.unwrap_or(".".as_ref()))
}
