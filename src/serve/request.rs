//! One request of HTTP/1.1 and its answer, within limits of size and time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of a request line and its headers, at most.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Headers of a request, at most.
const HEADERS_MAX: usize = 64;

/// How a client begins that takes the door for one with TLS.
const TLS_RECORD: &[u8] = &[0x16, 0x03];

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Time for the head of a request: from the beginning of the connection, or from the first byte of
/// a later one. Whoever has something to ask says so at once.
const HEAD_WITHIN: Duration = Duration::from_secs(5);

/// Time for a whole request, from its first byte.
const REQUEST_WITHIN: Duration = Duration::from_secs(30);

/// Bytes that are read, and thrown away, after a request was refused.
const REST_BYTES_MAX: usize = 64 << 20;

/// Time for these bytes, and between any two of them.
const REST_WITHIN: Duration = Duration::from_secs(10);
const REST_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Time that a connection may rest between two requests.
const IDLE_MAX: Duration = Duration::from_secs(90);

/// What was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `POST`.
    pub method: String,
    /// Path without what follows `?`.
    pub path: String,
    /// Value of `Authorization`.
    pub authorization: Option<String>,
    /// Value of `Content-Type`.
    pub content_type: Option<String>,
    /// Body.
    pub body: Vec<u8>,
    /// Whether the connection ends after it.
    pub last: bool,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Status code and words.
    pub status: &'static str,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: String,
}

/// Why there is no request.
#[derive(Debug)]
pub(super) enum NoRequest {
    /// The connection ended, or rested for too long.
    Ended,
    /// It is answered with this, and the connection ends.
    Refused(Response),
}

impl Response {
    /// An answer in plain text; a newline is added.
    #[must_use]
    pub fn text(status: &'static str, words: &str) -> Self {
        let headers = vec![("Content-Type", "text/plain; charset=utf-8".to_owned())];
        Self { status, headers, body: format!("{words}\n") }
    }

    pub(super) fn send(&self, stream: &mut TcpStream, last: bool) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {}\r\n", self.status);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !self.status.starts_with("204") {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        head += if last { "Connection: close\r\n\r\n" } else { "\r\n" };
        stream.write_all(&[head.as_bytes(), self.body.as_bytes()].concat())
    }
}

/// Reads the next request; `rest` holds what came before it and keeps what comes after it. `first`
/// tells whether it is the first one of its connection, and `begun` hears when some of it is there.
pub(super) fn next(
    stream: &mut TcpStream,
    rest: &mut Vec<u8>,
    body_bytes_max: usize,
    first: bool,
    begun: &dyn Fn(),
) -> Result<Request, NoRequest> {
    let now = Instant::now();
    let mut until = now + if rest.is_empty() && !first { IDLE_MAX } else { HEAD_WITHIN };
    let mut whole_until = now + REQUEST_WITHIN;
    if !rest.is_empty() {
        begun();
    }
    let (mut request, head, length, waits) = loop {
        if let Some(parsed) = head(rest, body_bytes_max)? {
            break parsed;
        }
        if rest.len() > HEAD_BYTES_MAX {
            return Err(refused(
                "431 Request Header Fields Too Large",
                "at most 16 KiB of headers",
            ));
        }
        let empty = rest.is_empty();
        more(stream, rest, until)?;
        if empty {
            begun();
            let now = Instant::now();
            (until, whole_until) = (now + HEAD_WITHIN, now + REQUEST_WITHIN);
        }
    };
    if waits {
        let go_on = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        go_on.map_err(|_| NoRequest::Ended)?;
    }
    while rest.len() < head + length {
        more(stream, rest, whole_until)?;
    }
    request.body = rest[head..head + length].to_vec();
    rest.drain(..head + length);
    Ok(request)
}

/// Ends a connection whose sender has more to say than was read. Closed with unread bytes it would
/// be reset, and the sender would see that rather than the answer.
pub(super) fn end(stream: &mut TcpStream) {
    let until = Instant::now() + REST_WITHIN;
    let mut chunk = [0; CHUNK_BYTES];
    let mut left = REST_BYTES_MAX;
    let ready = stream.shutdown(Shutdown::Write).is_ok()
        && stream.set_read_timeout(Some(REST_PAUSE_MAX)).is_ok();
    while ready && left > 0 && Instant::now() < until {
        match stream.read(&mut chunk) {
            Ok(0) => return,
            Ok(read) => left = left.saturating_sub(read),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn more(stream: &mut TcpStream, rest: &mut Vec<u8>, until: Instant) -> Result<(), NoRequest> {
    let late = || refused("408 Request Timeout", "the request did not come to its end in time");
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(if rest.is_empty() { NoRequest::Ended } else { late() });
    }
    stream.set_read_timeout(Some(left)).map_err(|_| NoRequest::Ended)?;
    let mut chunk = [0; CHUNK_BYTES];
    match stream.read(&mut chunk) {
        Ok(0) => Err(NoRequest::Ended),
        Ok(read) => {
            rest.extend_from_slice(&chunk[..read]);
            Ok(())
        }
        Err(error) => match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::WouldBlock | ErrorKind::TimedOut if !rest.is_empty() => Err(late()),
            _ => Err(NoRequest::Ended),
        },
    }
}

/// The request without its body, the bytes of its head and of its body, and whether its sender
/// waits for a word before it sends that; `None` while the head is not whole.
fn head(
    bytes: &[u8],
    body_bytes_max: usize,
) -> Result<Option<(Request, usize, usize, bool)>, NoRequest> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let bad = |words: &str| refused("400 Bad Request", words);
    if bytes.starts_with(TLS_RECORD) {
        return Err(bad("this door speaks no TLS: ask for http://, not https://"));
    }
    let head = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(bad(&format!("no request of HTTP/1.1: {error}"))),
    };
    let mut request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: parsed.path.unwrap_or_default().split('?').next().unwrap_or_default().to_owned(),
        last: parsed.version == Some(0),
        ..Request::default()
    };
    let (mut length, mut waits) = (None, false);
    for header in parsed.headers.iter() {
        let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => {
                let told = value.parse::<usize>().map_err(|_| bad("Content-Length: no number"))?;
                if length.is_some_and(|length| length != told) {
                    return Err(bad("Content-Length: two that differ"));
                }
                length = Some(told);
            }
            "transfer-encoding" => {
                return Err(refused("411 Length Required", "give Content-Length; no chunks"));
            }
            "expect" => waits = value.eq_ignore_ascii_case("100-continue"),
            "connection" => request.last |= value.eq_ignore_ascii_case("close"),
            "content-type" => request.content_type = Some(value.to_owned()),
            "authorization" => request.authorization = Some(value.to_owned()),
            _ => {}
        }
    }
    let length = length.unwrap_or(0);
    if length > body_bytes_max {
        let words = format!("the body has {length} bytes; at most {body_bytes_max} are taken");
        return Err(refused("413 Content Too Large", &words));
    }
    Ok(Some((request, head, length, waits)))
}

fn refused(status: &'static str, words: &str) -> NoRequest {
    NoRequest::Refused(Response::text(status, words))
}
