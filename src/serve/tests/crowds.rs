//! The door for rows where more connect than it has room for.

use std::time::Duration;

use loadline_ingest::Table;
use loadline_ingest::ship::descriptor;

use super::flight::{call, put, run};
use super::open::CONNECTIONS_OF_ONE_MAX;
use super::ship::{local, reading, serving};
use super::*;

#[test]
fn connections_that_send_nothing_do_not_keep_a_client_out() {
    // Breaks when whoever reaches the port can open connections until no collector gets in.
    let folder = tempfile::tempdir().unwrap();
    serving(folder.path(), &local(), |url, _| {
        let address = url.trim_start_matches("grpc://");
        let connect = || {
            let stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            stream
        };
        let mut silent: Vec<TcpStream> = (0..CONNECTIONS_OF_ONE_MAX).map(|_| connect()).collect();
        // One byte less than what a client begins with is nothing.
        silent[1].write_all(&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..23]).unwrap();
        let messages = call(descriptor(Table::Samples, None), &[(reading(0), "")]);
        run(put(url, messages)).unwrap();
        // The oldest went for it, and only that. The server tells its settings unasked.
        let mut told = Vec::new();
        silent[0].read_to_end(&mut told).unwrap();
        let last = &mut silent[CONNECTIONS_OF_ONE_MAX - 1];
        last.set_nonblocking(true).unwrap();
        let error = last.read_to_end(&mut told).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    });
}
