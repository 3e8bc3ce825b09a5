//! A connection that is closed when its peer is silent for too long, or never says who it is.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};
use tonic::transport::server::Connected;

/// A TCP connection of an agent.
///
/// Agents speak every ten seconds. Silence therefore is a half-open connection, a handshake that
/// stalls, or somebody who only holds a place: all end here, below TLS and HTTP/2. Pings are not
/// silence, so whoever is not [`Peer::vouch`]ed for ends after a while in any case (S5).
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    idle: Duration,
    silent_at: Pin<Box<Sleep>>,
    /// None: its peer has shown who it is.
    stranger_until: Option<Pin<Box<Sleep>>>,
    peer: Peer,
    _place: OwnedSemaphorePermit,
}

/// How long a connection may be silent, and how long a stranger's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Nothing is read.
    pub(crate) idle: Duration,
    /// No stream has shown who it speaks for.
    pub(crate) stranger: Duration,
}

/// Whose connection a request came by; among its extensions.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    known: Arc<AtomicBool>,
}

impl Peer {
    /// A stream of this connection has shown who it speaks for: the connection may stay.
    pub(crate) fn vouch(&self) {
        self.known.store(true, Ordering::Relaxed);
    }
}

impl Connection {
    pub(super) fn new(
        stream: TcpStream,
        address: SocketAddr,
        patience: Patience,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            stream,
            idle: patience.idle,
            silent_at: Box::pin(tokio::time::sleep(patience.idle)),
            stranger_until: Some(Box::pin(tokio::time::sleep(patience.stranger))),
            peer: Peer {
                address,
                known: Arc::default(),
            },
            _place: place,
        }
    }

    /// Fails where its peer has been a stranger for too long. Asked with every read and every
    /// write: HTTP/2 does not read while it has to write.
    fn stay(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if let Some(until) = &mut self.stranger_until {
            if self.peer.known.load(Ordering::Relaxed) {
                self.stranger_until = None;
            } else if until.as_mut().poll(cx).is_ready() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stay(cx)?;
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Ready(result) => {
                let silent_at = Instant::now() + self.idle;
                self.silent_at.as_mut().reset(silent_at);
                Poll::Ready(result)
            }
            Poll::Pending => {
                ready!(self.silent_at.as_mut().poll(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stay(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stay(cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::Semaphore;
    use tokio::time::{interval, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn s05_a_stranger_who_goes_on_talking_ends_and_who_is_known_stays() {
        for (known, ends) in [(false, true), (true, false)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let mut theirs = TcpStream::connect(address).await.unwrap();
            let (stream, peer) = listener.accept().await.unwrap();
            let place = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
            let patience = Patience {
                idle: Duration::from_mins(10),
                stranger: Duration::from_secs(30),
            };
            let mut ours = Connection::new(stream, peer, patience, place);
            if known {
                ours.connect_info().vouch();
            }
            let talking = tokio::spawn(async move {
                let mut every = interval(Duration::from_secs(5));
                loop {
                    every.tick().await;
                    if theirs.write_all(b"ping").await.is_err() {
                        return;
                    }
                }
            });
            let mut heard = Vec::new();
            let read = timeout(Duration::from_mins(5), ours.read_to_end(&mut heard)).await;
            assert_eq!(read.is_ok(), ends, "known: {known}");
            talking.abort();
        }
    }
}
