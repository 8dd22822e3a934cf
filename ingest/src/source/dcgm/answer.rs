//! Answers of the Prometheus API over series of DCGM.
//!
//! # Source
//! `/api/v1/query` (a vector: one value a series) and `/api/v1/query_range` (a matrix).

use std::collections::BTreeMap;
use std::io::{BufRead, Cursor, Read};

use serde::Deserialize;

use super::Pages;
use super::series::{Series, meaning};
use crate::batch::Output;
use crate::error::IngestError;

#[derive(Debug, Deserialize)]
struct Answer {
    error: Option<String>,
    data: Option<Data>,
}

#[derive(Debug, Deserialize)]
struct Data {
    result: Vec<Told>,
}

#[derive(Debug, Deserialize)]
struct Told {
    metric: BTreeMap<String, String>,
    value: Option<(f64, String)>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// Blank bytes before the first that decides what a file is.
const BLANK_BYTES_MAX: usize = 1 << 16;

/// Whether `reader` begins with a brace, and the reader with nothing lost: an answer without
/// what stands before the brace, anything else from its first byte.
pub(super) fn peek(
    mut reader: Box<dyn BufRead + Send>,
) -> std::io::Result<(bool, Box<dyn BufRead + Send>)> {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0xef | 0xbb | 0xbf);
    let mut start = Vec::new();
    while start.iter().all(blank) && start.len() < BLANK_BYTES_MAX {
        let next = reader.fill_buf()?;
        if next.is_empty() {
            break;
        }
        start.extend_from_slice(next);
        let taken = next.len();
        reader.consume(taken);
    }
    let first = start.iter().position(|byte| !blank(byte));
    let brace = first.filter(|first| start[*first] == b'{');
    let mut start = Cursor::new(start);
    start.set_position(brace.unwrap_or(0) as u64);
    Ok((brace.is_some(), Box::new(start.chain(reader))))
}

/// Reads answers, one after the other.
///
/// # Errors
/// [`IngestError::Format`] where a document is no answer, or tells an error of the server.
pub(super) fn read(
    pages: &mut Pages<'_>,
    reader: Box<dyn BufRead + Send>,
    out: &mut dyn Output,
) -> Result<(), IngestError> {
    let answers = serde_json::Deserializer::from_reader(reader).into_iter::<Answer>();
    for (number, answer) in answers.enumerate() {
        let answer = answer.map_err(|error| not_an_answer(pages, &error.to_string()))?;
        let data = answer.data.ok_or_else(|| match &answer.error {
            Some(error) => not_an_answer(pages, &format!("the server said `{error}`")),
            None => not_an_answer(pages, "it has no `data`"),
        })?;
        for (place, found) in data.result.iter().enumerate() {
            // Series of one answer differ by their labels.
            series(pages, found, &format!("{number}/{place}"), out)?;
        }
        pages.end_page(out)?;
    }
    Ok(())
}

fn series(
    pages: &mut Pages<'_>,
    found: &Told,
    identity: &str,
    out: &mut dyn Output,
) -> Result<(), IngestError> {
    let name = found.metric.get("__name__").map_or("", String::as_str);
    for (seconds, printed) in found.value.iter().chain(&found.values) {
        let labels = found.metric.iter();
        let labels =
            labels.map(|(label, value)| (label.as_str().into(), value.as_str().into())).collect();
        let (told, labels) = meaning(name, labels, pages.maps);
        let series = Series {
            name,
            told,
            labels,
            value: printed.parse().unwrap_or(f64::NAN),
            decimals: printed.contains('.'),
            at_ms: Some((seconds * 1000.0).round() as i64),
            identity,
        };
        pages.series(&series, None, "", out)?;
    }
    Ok(())
}

fn not_an_answer(pages: &Pages<'_>, why: &str) -> IngestError {
    pages.format_error(
        format!("it is no answer of the Prometheus API: {why}"),
        "save the whole answer of `/api/v1/query` or `/api/v1/query_range`",
    )
}
