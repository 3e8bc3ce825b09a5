//! A connection that fails when its peer takes nothing of what it is sent.
//!
//! Whoever asks and never reads would otherwise keep a place, and what is written for it, for ever
//! (S5).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A connection whose writes go on, if slowly, or end it.
#[derive(Debug)]
pub(super) struct Unstalled<I> {
    io: I,
    within: Duration,
    /// From when a write first had to wait; none while nothing waits.
    due: Option<Pin<Box<Sleep>>>,
}

impl<I> Unstalled<I> {
    pub(super) fn new(io: I, within: Duration) -> Self {
        Self {
            io,
            within,
            due: None,
        }
    }

    fn in_time<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.due = None;
            return written;
        }
        let within = self.within;
        let due = self
            .due
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        ready!(due.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Unstalled<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Unstalled<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        self.in_time(written, cx)
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
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.in_time(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn s05_a_peer_that_reads_nothing_ends_and_one_that_reads_slowly_does_not() {
        let (mut theirs, ours) = tokio::io::duplex(8);
        let mut ours = Unstalled::new(ours, Duration::from_secs(30));
        let writing = tokio::spawn(async move {
            ours.write_all(&[0; 64]).await.unwrap();
            ours.write_all(&[0; 64]).await
        });
        for _ in 0..8 {
            sleep(Duration::from_secs(20)).await;
            theirs.read_exact(&mut [0; 8]).await.unwrap();
        }
        let ended = timeout(Duration::from_mins(1), writing).await.unwrap();
        assert_eq!(ended.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
