//! Connections that come in for rows, no more than the door has room for.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::serve::open::Open;

/// Bytes with which a client of HTTP/2 begins, in the open or encrypted: one that has sent fewer is
/// no client yet.
const PREFACE_BYTES: usize = 24;

/// Those that connect to `listener`. For one too many the longest of those goes that have not begun
/// to ask; where there is none, it is turned away.
pub(super) fn incoming(listener: TcpListener) -> impl Stream<Item = io::Result<Bounded>> {
    let begun = (listener, Arc::new(Open::default()), 0);
    futures::stream::unfold(begun, |(listener, open, number)| async move {
        let mut number: usize = number;
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => return Some((Err(error), (listener, open, number))),
            };
            number += 1;
            if let Ok(stream) = Bounded::new(stream, number, &open) {
                return Some((Ok(stream), (listener, open, number)));
            }
        }
    })
}

/// A connection that has its place.
#[derive(Debug)]
pub(super) struct Bounded {
    stream: TcpStream,
    number: usize,
    open: Arc<Open>,
    /// Bytes that it must send before it is a client.
    lacking: usize,
}

impl Bounded {
    fn new(stream: TcpStream, number: usize, open: &Arc<Open>) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let stream = stream.into_std()?;
        if !open.add(number, &stream) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let stream = TcpStream::from_std(stream).inspect_err(|_| open.remove(number))?;
        Ok(Self { stream, number, open: Arc::clone(open), lacking: PREFACE_BYTES })
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        self.open.remove(self.number);
    }
}

impl Connected for Bounded {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.lacking > 0 {
            self.lacking = self.lacking.saturating_sub(buffer.filled().len() - before);
            if self.lacking == 0 {
                self.open.note(self.number, false);
            }
        }
        read
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
