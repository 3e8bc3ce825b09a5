//! A connection that has to say in time which protocol it speaks.
//!
//! The HTTP server reads a connection's first bytes to tell HTTP/1 from HTTP/2, and waits for them
//! for ever; its own limits begin after that. Without this, whoever opens connections and says
//! nothing would have all places, without a login (S5).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// What an HTTP/2 connection begins with. Anything else is HTTP/1.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection that fails where its protocol is not known in time.
#[derive(Debug)]
pub(super) struct Prompt<I> {
    io: I,
    /// Bytes of the preface that have come.
    came: usize,
    /// None: the protocol is known.
    due: Option<Pin<Box<Sleep>>>,
}

impl<I> Prompt<I> {
    pub(super) fn new(io: I, within: Duration) -> Self {
        Self {
            io,
            came: 0,
            due: Some(Box::pin(tokio::time::sleep(within))),
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        let expected = &PREFACE[self.came..];
        let same = bytes
            .iter()
            .zip(expected)
            .take_while(|(a, b)| a == b)
            .count();
        self.came += same;
        if same < bytes.len() || self.came == PREFACE.len() {
            self.due = None;
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Prompt<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        let Some(due) = &mut self.due else {
            return read;
        };
        if read.is_pending() {
            ready!(due.as_mut().poll(cx));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        self.hear(&buf.filled()[before..]);
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Prompt<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn s05_a_connection_without_a_protocol_ends_and_one_with_it_may_be_quiet() {
        for (said, ends) in [
            (&b""[..], true),
            (b"P", true),
            (b"PRI * HTTP/2.0\r\n", true),
            (PREFACE, false),
            (b"POST / HT", false),
            (b"G", false),
        ] {
            let (mut theirs, ours) = tokio::io::duplex(64);
            let mut ours = Prompt::new(ours, Duration::from_secs(10));
            theirs.write_all(said).await.unwrap();
            let mut read = Vec::new();
            let ended = tokio::time::timeout(Duration::from_mins(5), ours.read_to_end(&mut read));
            assert_eq!(ended.await.is_ok(), ends, "{said:?}");
            assert_eq!(read, said);
        }
    }
}
