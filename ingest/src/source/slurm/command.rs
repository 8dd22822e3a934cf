//! Asking a command, within limits of time and size.

use std::io::ErrorKind;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use crate::error::IngestError;

/// Bytes that are kept of what a command says of its failure.
const WORDS_BYTES_MAX: u64 = 4_096;

/// What became of a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// It answered.
    Answer(String),
    /// There is no such command.
    Absent,
}

/// Runs `command` with `arguments`, in UTC; what it printed.
///
/// # Errors
/// [`IngestError::Collect`] where it fails, or goes past the limits: time and bytes.
pub(super) async fn ask(
    command: &[String],
    arguments: &[&str],
    (within, bytes_max): (Duration, u64),
) -> Result<Asked, IngestError> {
    let name = command.first().map_or("", String::as_str);
    let failed = |reason: String| failure(name, reason, None);
    let child = Command::new(name)
        .args(&command[1..])
        .args(arguments)
        .env("TZ", "UTC")
        .env_remove("SLURM_TIME_FORMAT")
        .env_remove("SACCT_FORMAT")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Asked::Absent),
        Err(error) => return Err(failed(error.to_string())),
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let all = async {
        let (answer, words) =
            tokio::join!(read(stdout, bytes_max + 1), read(stderr, WORDS_BYTES_MAX));
        let answer = answer?;
        // One that has more to say than is read would wait for ever.
        if answer.len() as u64 > bytes_max {
            return Ok((None, answer, words?));
        }
        Ok::<_, std::io::Error>((Some(child.wait().await?), answer, words?))
    };
    let told = tokio::time::timeout(within, all).await;
    let told = told.map_err(|_| failed(format!("no answer within {} s", within.as_secs_f64())))?;
    let (status, answer, words) = told.map_err(|error| failed(error.to_string()))?;
    let Some(status) = status else {
        return Err(failed(format!("it answered more than {bytes_max} bytes")));
    };
    if !status.success() {
        let words = String::from_utf8_lossy(&words);
        let words = words.lines().find(|line| !line.trim().is_empty()).unwrap_or("no word of it");
        return Err(failed(format!("{status}: {}", words.trim())));
    }
    Ok(Asked::Answer(String::from_utf8_lossy(&answer).into_owned()))
}

/// What comes out of a pipe, up to `bytes_max`; what stands behind that is read and dropped where
/// it is the command's words.
async fn read(
    pipe: Option<impl AsyncRead + Unpin>,
    bytes_max: u64,
) -> Result<Vec<u8>, std::io::Error> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        (&mut pipe).take(bytes_max).read_to_end(&mut bytes).await?;
        if bytes_max == WORDS_BYTES_MAX {
            tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
        }
    }
    Ok(bytes)
}

/// A runtime of the thread that asks.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, IngestError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| failure("any command", error.to_string(), None))
}

/// The error of a command that is not there.
pub(super) fn absent(command: &[String]) -> IngestError {
    let hint = "install Slurm's client, or name the command: `collect.slurm.sacct`".to_owned();
    failure(&command[0], "there is no such command".into(), Some(hint))
}

pub(super) fn failure(name: &str, reason: String, hint: Option<String>) -> IngestError {
    IngestError::Collect { from: format!("`{name}`"), reason, hint }
}
