//! Exporters on the loopback that answer as a test says.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What an exporter does with a request.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// The page, as it is.
    Page(Vec<u8>),
    /// The page, where the request has this line.
    PageIf(String, Vec<u8>),
    /// Another status line.
    Status(&'static str),
    /// A page that ends before its length.
    BreaksOff,
    /// A page without a length that never ends.
    Endless,
    /// Nothing, and the connection stays open.
    Hangs,
}

/// An exporter and its address.
#[derive(Debug)]
pub(super) struct Exporter {
    pub(super) address: String,
    answer: Arc<Mutex<Answer>>,
}

impl Exporter {
    pub(super) fn new(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answer = Arc::new(Mutex::new(answer));
        let of_thread = Arc::clone(&answer);
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming().flatten() {
                let answer = of_thread.lock().unwrap().clone();
                open.extend(serve(stream, answer));
            }
        });
        Self { address, answer }
    }

    pub(super) fn page(text: &str) -> Self {
        Self::new(Answer::Page(text.as_bytes().to_vec()))
    }

    pub(super) fn now_answers(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }
}

/// Answers one request; the stream where it is to stay open.
fn serve(mut stream: TcpStream, answer: Answer) -> Option<TcpStream> {
    let mut head = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while reader.read_line(&mut head).unwrap_or(0) > 2 {}
    let ok = |page: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
        [head.as_bytes(), page].concat()
    };
    let bytes = match answer {
        Answer::Page(page) => ok(&page),
        Answer::PageIf(line, page) if head.contains(&line) => ok(&page),
        Answer::PageIf(..) => b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n".to_vec(),
        Answer::Status(line) => format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n").into(),
        Answer::BreaksOff => b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nup 1\n".to_vec(),
        Answer::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(b"DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 30\n").is_ok() {}
            return None;
        }
        Answer::Hangs => return Some(stream),
    };
    let _ = stream.write_all(&bytes);
    None
}
