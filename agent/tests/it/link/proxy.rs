//! What lies between an agent and its controllers: a forwarder that can cut, freeze and switch, and
//! that looks at the HTTP/2 frames which pass.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Where connections go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Way {
    /// New connections go to this address; open ones stay where they are.
    To(SocketAddr),
    /// Everything stays open and nothing passes: half-open, or a host that accepts and is silent.
    Frozen,
    /// Everything is closed, at once.
    Cut,
}

pub(super) struct Proxy {
    address: SocketAddr,
    way: watch::Sender<Way>,
    accepted: Arc<AtomicU64>,
    pings: Arc<AtomicU64>,
}

impl Proxy {
    pub(super) async fn start(way: Way) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, receiver) = watch::channel(way);
        let accepted = Arc::new(AtomicU64::new(0));
        let pings = Arc::new(AtomicU64::new(0));
        let (count, seen) = (accepted.clone(), pings.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(carry(client, receiver.clone(), seen.clone()));
            }
        });
        Self {
            address,
            way: sender,
            accepted,
            pings,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn set(&self, way: Way) {
        self.way.send_replace(way);
    }

    /// Connections taken so far.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::SeqCst)
    }

    /// HTTP/2 pings the agent sent of its own accord.
    pub(super) fn pings(&self) -> u64 {
        self.pings.load(Ordering::SeqCst)
    }
}

async fn carry(client: TcpStream, mut way: watch::Receiver<Way>, pings: Arc<AtomicU64>) {
    let server = loop {
        let now = *way.borrow_and_update();
        match now {
            Way::To(address) => break TcpStream::connect(address).await,
            Way::Frozen => {
                if way.changed().await.is_err() {
                    return;
                }
            }
            Way::Cut => return,
        }
    };
    let Ok(server) = server else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let there = pump(from_client, to_server, way.clone(), Frames::counting(pings));
    let back = pump(from_server, to_client, way, Frames::default());
    tokio::join!(there, back);
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut way: watch::Receiver<Way>,
    mut frames: Frames,
) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let now = *way.borrow_and_update();
        let changed = match now {
            Way::Cut => return,
            Way::Frozen => way.changed().await,
            Way::To(_) => tokio::select! {
                changed = way.changed() => changed,
                read = from.read(&mut buffer) => match read {
                    Ok(len) if len > 0 => {
                        frames.see(&buffer[..len]);
                        if to.write_all(&buffer[..len]).await.is_err() {
                            return;
                        }
                        Ok(())
                    }
                    _ => return,
                },
            },
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Reads along in one direction of an HTTP/2 connection.
#[derive(Default)]
struct Frames {
    pings: Option<Arc<AtomicU64>>,
    seen: Vec<u8>,
    is_past_preface: bool,
}

impl Frames {
    const PREFACE: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();
    const HEADER: usize = 9;

    fn counting(pings: Arc<AtomicU64>) -> Self {
        Self {
            pings: Some(pings),
            ..Self::default()
        }
    }

    fn see(&mut self, bytes: &[u8]) {
        let Some(pings) = &self.pings else { return };
        self.seen.extend_from_slice(bytes);
        if !self.is_past_preface && self.seen.len() >= Self::PREFACE {
            self.seen.drain(..Self::PREFACE);
            self.is_past_preface = true;
        }
        while self.is_past_preface && self.seen.len() >= Self::HEADER {
            let len = u32::from_be_bytes([0, self.seen[0], self.seen[1], self.seen[2]]) as usize;
            if self.seen.len() < Self::HEADER + len {
                return;
            }
            let (kind, flags) = (self.seen[3], self.seen[4]);
            // Type 6 without the flag that makes it an answer.
            if kind == 6 && flags & 1 == 0 {
                pings.fetch_add(1, Ordering::SeqCst);
            }
            self.seen.drain(..Self::HEADER + len);
        }
    }
}
